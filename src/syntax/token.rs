//! The tokens of expressions and equations.
//!
//! The small languages share numbers, names, marks and comments, so they share this file; formulas have a few
//! marks more. Comments begin with `#` or `//` and end at the end of the line; `//` begins one only in a text of several
//! lines, since in a line of YAML or of a command its author means a quotient. The places of tokens are byte ranges of
//! the scalar's text.

use std::ops::Range;

use crate::diag::{Code, Diagnostic};
use crate::source::{SourceMap, Span};

use super::quotient;
use super::text::{MAX_DEPTH, MAX_KEY};
use super::tree::{Kind, Node, Style, TextPlaces};

/// One token with its place in the scalar's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Token<'a> {
    /// The kind of token.
    pub kind: TokenKind,
    /// The token as written.
    pub text: &'a str,
    /// The byte range in the scalar's text, which [`Text::span`] maps to the source.
    pub range: Range<usize>,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A number: `12`, `40_000`, `1e-5`, `0.5`.
    Number,
    /// A name: `d_model`, `ffn.hidden`.
    Name,
    /// One of `+ - * / ^ ( ) [ ] , ; = : { }`
    Mark,
    /// A text in quotes: single ones in formulas, double ones in the equations of parts.
    Text,
    /// The end of the text, an empty token after its last word.
    End,
}

/// Which words a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Those of numbers and equations.
    Numbers,
    /// Those of numbers and texts in double quotes: the equations of parts.
    Parts,
    /// Those of numbers, which may end in a unit (see [`UNITS`]): amounts on the command line.
    Amounts,
    /// Those of formulas: comparisons, texts in quotes, and names with any letters and with numbers after a
    /// dot.
    Formulas,
}

/// The units in which an amount may be given, each with its factor: `350M`, `24 GiB`. The first one in which
/// a text ends is taken, so `GiB` must come before `B`. Those of two and three letters are of bytes; `GB` comes
/// before `GiB`, so that `gb` is taken for it.
pub const UNITS: &[(&str, i128)] = &[
    ("KB", 1_000),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("K", 1_000),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("B", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// A number with a unit at its end, taken apart; the factor is 1 if there is no unit.
pub fn unit_of(text: &str) -> (&str, i128) {
    let found = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    found.unwrap_or((text, 1))
}

/// The first place in the text of an amount that has a unit of bytes, with what would be written there for a
/// count: `350M` for `350MB`.
pub fn bytes_in(text: &str) -> Option<(Range<usize>, String)> {
    // In any letters: `gb` is no unit, but it is clear what was meant.
    let cut = |word: &str, unit: &str| {
        let at = word.len().checked_sub(unit.len())?;
        let (number, end) = word.split_at_checked(at)?;
        let is_number = number.is_empty() || number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        (unit.len() > 1 && is_number && end.eq_ignore_ascii_case(unit)).then(|| number.to_owned())
    };
    let mut start = 0usize;
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_') {
        let end = start.saturating_add(word.len());
        let word = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let found = UNITS.iter().find_map(|(unit, _)| Some((cut(word, unit)?, unit.get(..1)?)));
        if let Some((number, prefix)) = found {
            return Some((start..start.saturating_add(word.len()), format!("{number}{prefix}")));
        }
        start = end;
    }
    None
}

/// A whole number with a unit, as it is written where numbers have none: `10_000` for `10k`.
fn without_unit(written: &str) -> Option<String> {
    let (number, factor) = unit_of(written);
    let value = number.replace('_', "").parse::<f64>().ok()? * factor as f64;
    // Above this, not every whole number is a float.
    let is_whole = factor > 1 && value.fract() == 0.0 && (1.0..9e15).contains(&value);
    let digits = is_whole.then(|| (value as u64).to_string())?;
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    Some(groups.collect::<Vec<_>>().join("_"))
}

/// The number and the name of a product that is written as in mathematics: `0.5x`.
fn factor_of(written: &str) -> Option<(&str, &str)> {
    let (number, name) = written.split_at_checked(written.find(|c: char| c.is_alphabetic())?)?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (number.parse::<f64>().is_ok() && is_name).then_some((number, name))
}

/// The amount that was probably meant by one whose unit is in other letters: `350m`, `3gb`.
fn meant_amount(text: &str) -> Option<String> {
    // Only for a message, so a unit that might be two of ours may be taken for the first. `gb` is `GB` and not `GiB`,
    // which is another number.
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.strip_prefix(number)?;
    let (ours, _) = UNITS.iter().find(|(ours, _)| ours.eq_ignore_ascii_case(unit))?;
    Some(format!("{number}{ours}"))
}

/// A scalar whose text is parsed: maps every byte range of the text to its place in the source.
#[derive(Clone)]
pub struct Text<'a> {
    places: TextPlaces,
    language: Language,
    /// Whether it is a text of several lines, as opposed to a value in a line.
    has_lines: bool,
    /// The scalar's text, of which tokens are slices.
    pub text: &'a str,
}

impl<'a> Text<'a> {
    /// The text of a scalar node; empty for other nodes.
    pub fn of(sources: &SourceMap, node: &'a Node) -> Self {
        Self {
            places: TextPlaces::of(sources, node),
            language: Language::Numbers,
            has_lines: matches!(&node.kind, Kind::Scalar(s) if s.style == Style::Block || s.text.contains('\n')),
            text: node.text().unwrap_or(""),
        }
    }

    /// The same text, of several lines.
    pub fn of_lines(self) -> Self {
        Self { has_lines: true, ..self }
    }

    /// The text of a scalar node that is the equation of a part.
    pub fn of_part(sources: &SourceMap, node: &'a Node) -> Self {
        Self { language: Language::Parts, ..Self::of(sources, node) }
    }

    /// The text of a scalar node that is a formula.
    pub fn of_formula(sources: &SourceMap, node: &'a Node) -> Self {
        Self { language: Language::Formulas, ..Self::of(sources, node) }
    }

    /// The text of a scalar node that is an amount.
    pub fn of_amount(sources: &SourceMap, node: &'a Node) -> Self {
        Self { language: Language::Amounts, ..Self::of(sources, node) }
    }

    /// Which words the text may have.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The text before a byte range, without blanks at its end.
    pub fn before(&self, range: &Range<usize>) -> &'a str {
        self.text.get(..range.start).unwrap_or("").trim_end()
    }

    /// The place of a byte range of the text.
    pub fn span(&self, range: &Range<usize>) -> Span {
        self.places.span(range)
    }

    /// All tokens, the last one [`TokenKind::End`], or a diagnostic for the first text that is not a token.
    pub fn tokens(&self, code: Code, limit: usize) -> Result<Vec<Token<'a>>, Box<Diagnostic>> {
        let mut faults = Vec::new();
        let tokens = self.words(code, limit, 1, &mut faults)?;
        faults.pop().map_or(Ok(tokens), |fault| Err(Box::new(fault)))
    }

    /// As [`Text::tokens`], but goes on after what is not a token as long as it is clear how, and then returns
    /// the diagnostics in `faults`, of which there are at most as many as `most`. Among the tokens a character
    /// without meaning is a mark, so that what follows it can be read, and a number with an error a name.
    pub fn words(
        &self,
        code: Code,
        limit: usize,
        most: usize,
        faults: &mut Vec<Diagnostic>,
    ) -> Result<Vec<Token<'a>>, Box<Diagnostic>> {
        let mut tokens = Vec::new();
        let mut foreign: Vec<char> = Vec::new();
        let mut at = 0;
        while let Some(c) = self.text.get(at..).and_then(|r| r.chars().next()) {
            let rest = self.text.get(at..).unwrap_or("");
            if c.is_whitespace() {
                at = at.saturating_add(c.len_utf8());
                continue;
            }
            if c == '#' || rest.starts_with("//") {
                let len = rest.find('\n').unwrap_or(rest.len());
                if c == '/' && (!self.has_lines || quotient::is_meant(self.line_before(at), rest)) {
                    let fault = self.no_comment(code, at, len);
                    if faults.len().saturating_add(1) >= most {
                        return Err(Box::new(fault));
                    }
                    faults.push(fault);
                }
                at = at.saturating_add(len);
                continue;
            }
            let found = match self.language {
                Language::Numbers | Language::Amounts => word(rest),
                Language::Parts => part_word(rest),
                Language::Formulas => formula_word(rest),
            };
            // After a letter or a quote without meaning, the words may be cut differently than their author
            // thinks, so only after signs reading goes on; a sign that is written twice is one mistake.
            let (kind, len) = match found {
                Some(found) => found,
                None => {
                    let is_sign = !(c.is_alphanumeric() || c == '"' && self.language == Language::Parts);
                    let fault = self.foreign(code, c, at);
                    if !is_sign || faults.len().saturating_add(1) >= most {
                        return Err(Box::new(fault));
                    }
                    if !foreign.contains(&c) {
                        foreign.push(c);
                        faults.push(fault);
                    }
                    (TokenKind::Mark, c.len_utf8())
                }
            };
            let range = at..at.saturating_add(len);
            let text = self.text.get(range.clone()).unwrap_or("");
            if kind == TokenKind::Number {
                let digits = if self.language == Language::Amounts { unit_of(text).0 } else { text };
                if let Err(fault) = self.check_number(code, digits, &range) {
                    // A number after a comma may be the thousands of the one before it.
                    let is_alone = !self.before(&range).ends_with(',');
                    if !is_alone || faults.len().saturating_add(1) >= most {
                        return Err(fault);
                    }
                    faults.push(*fault);
                    tokens.push(Token { kind: TokenKind::Name, text, range });
                    at = at.saturating_add(len);
                    continue;
                }
            }
            // A name may become a key, in an expansion or under the call that it names, and be written there.
            if kind == TokenKind::Name && text.chars().count() > MAX_KEY {
                let message = format!("a name is at most {MAX_KEY} characters long");
                return Err(Box::new(Diagnostic::error(code, self.span(&range), message)));
            }
            tokens.push(Token { kind, text, range });
            at = at.saturating_add(len);
            // Counted while reading, so that a hostile text is not read to its end.
            if tokens.len() > limit {
                let span = self.span(&(at.saturating_sub(len)..at));
                let is_equation = code == Code::Equation;
                let (what, help) = match self.language {
                    Language::Numbers | Language::Parts if is_equation => (
                        "this equation",
                        "repeat a computation with `layers` instead of writing it again, or give some layers \
                         an equation of their own under `blocks`",
                    ),
                    Language::Numbers | Language::Parts => {
                        ("this expression", "give parts of it names under `let`")
                    }
                    Language::Amounts => ("this expression", "write a shorter one"),
                    Language::Formulas => ("this formula", "write a shorter one"),
                };
                let message =
                    format!("{what} has more than {limit} words; each name, number and sign is a word");
                return Err(Box::new(Diagnostic::error(Code::TooLarge, span, message).help(help)));
            }
        }
        // Right after the last word, so that a message about a missing one points there.
        let end = self.text.trim_end().len();
        tokens.push(Token { kind: TokenKind::End, text: "", range: end..end });
        Ok(tokens)
    }

    /// The text of a line before this place.
    fn line_before(&self, at: usize) -> &'a str {
        self.text.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or("")
    }

    /// The diagnostic for `//` in the place of a quotient. `len` is how many bytes there are until the end of the line.
    fn no_comment(&self, code: Code, at: usize, len: usize) -> Diagnostic {
        let span = self.span(&(at..at.saturating_add(2)));
        let below = self.text.get(at.saturating_add(2)..at.saturating_add(len)).unwrap_or("");
        let help = match code {
            // Values have no remainder.
            Code::Equation => "write a quotient with one `/`; a comment begins with `#`".to_owned(),
            _ => quotient::help(self.line_before(at), below),
        };
        Diagnostic::error(code, span, "`//` is no operator").help(help)
    }

    /// The diagnostic for a character that neither language uses.
    fn foreign(&self, code: Code, c: char, at: usize) -> Diagnostic {
        let span = self.span(&(at..at.saturating_add(c.len_utf8())));
        let diagnostic = Diagnostic::error(code, span, format!("the character `{c}` has no meaning here"));
        match c {
            '×' | '·' | '∙' | '⋅' => diagnostic.help("write a product with `*`"),
            '÷' => diagnostic.help("write a quotient with `/`"),
            '−' | '–' | '—' => diagnostic.help("write a minus with `-`"),
            '%' => diagnostic.help("write a percentage as a number: 10 % is 0.1"),
            '"' if self.language == Language::Parts => {
                let message = "this quote is not closed on its line";
                Diagnostic::error(code, span, message).help("close it with `\"`")
            }
            '"' | '\'' => diagnostic.help("names are written without quotes here"),
            '²' | '³' => diagnostic.help("write a power with `^`"),
            '.' => diagnostic.help("a number needs digits, as in 0.5; infinity is not allowed"),
            '@' => diagnostic
                .help("write a product of tensors with `einsum(\"btd,de->bte\", x, w)` or `scores(q, k)`"),
            '√' => diagnostic.help("write a root with `sqrt(...)`"),
            other if other.is_numeric() => diagnostic.help("numbers are written with the digits 0 to 9"),
            other if other.is_alphabetic() => {
                diagnostic.help("names are written with the letters a to z, digits and `_`")
            }
            _ => diagnostic,
        }
    }

    /// Refuses numbers whose value readers could disagree about.
    fn check_number(&self, code: Code, text: &str, range: &Range<usize>) -> Result<(), Box<Diagnostic>> {
        let fail = |message: String| Diagnostic::error(code, self.span(range), message);
        // With its unit, which is no part of the number.
        let written = self.text.get(range.clone()).unwrap_or(text);
        let digits = text.replace('_', "");
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent.trim_start_matches(['+', '-']))),
            None => (digits.as_str(), None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |s: &str| s.chars().all(|c| c.is_ascii_digit());
        // `_` only between digits: `1__000` and `1_.5` are more likely typing errors than groups.
        let grouped =
            !text.ends_with('_') && !text.contains("__") && !text.contains("_.") && !text.contains("._");
        let exponent_ok = exponent.is_none_or(|e| !e.is_empty() && all_digits(e));
        if !(all_digits(whole) && all_digits(fraction) && exponent_ok && grouped) {
            let hex = digits.strip_prefix("0x").and_then(|h| u128::from_str_radix(h, 16).ok());
            let help = match hex {
                Some(value) => format!("numbers are decimal: write {value}"),
                None if self.language == Language::Amounts => match meant_amount(written) {
                    Some(amount) => format!("write {amount}"),
                    None => "an amount is written like 12, 350M, 1.5B, 24GiB or 24GB".to_owned(),
                },
                None => match (without_unit(written), factor_of(written)) {
                    (Some(plain), _) => format!("a number has no unit here: write {plain}"),
                    (None, Some((number, name))) => format!("a product has a `*`: `{number} * {name}`"),
                    (None, None) => "a number is written like 12, 40_000, 0.5 or 1e-5, and a name does not begin with a digit"
                        .to_owned(),
                },
            };
            return Err(Box::new(fail(format!("`{written}` is neither a number nor a name")).help(help)));
        }
        // YAML 1.1 reads `0755` as octal, YAML 1.2 as decimal.
        if whole.len() > 1 && whole.starts_with('0') {
            let plain = whole.trim_start_matches('0');
            let plain = if plain.is_empty() { "0" } else { plain };
            let mut help = format!("write {plain}");
            let octal = u128::from_str_radix(whole, 8).ok().filter(|o| o.to_string() != plain);
            if let (Some(octal), "", None) = (octal, fraction, exponent) {
                help = format!("write {plain}, or {octal} if octal was meant");
            }
            // The number may be the thousands of `40,000`.
            let before = self.text.get(..range.start).unwrap_or("");
            if before.strip_suffix(',').is_some_and(|b| b.ends_with(|c: char| c.is_ascii_digit())) {
                help = "a decimal point is `.`; separate thousands with `_`".to_owned();
            }
            let message = format!("`{text}` begins with 0, which some read as octal");
            return Err(Box::new(fail(message).help(help)));
        }
        Ok(())
    }
}

/// A place in a list of tokens, with how deep brackets and signs are nested there.
pub struct Cursor<'t, 'a> {
    /// The text that the tokens are slices of.
    pub text: &'t Text<'a>,
    /// The tokens of the text, or of a part of it.
    pub tokens: &'t [Token<'a>],
    /// The number of tokens before the place.
    pub at: usize,
    depth: usize,
    /// The advice for a text that is nested too deep.
    help: &'static str,
}

impl<'t, 'a> Cursor<'t, 'a> {
    /// The beginning of the tokens. `help` is the advice for a text that is nested too deep.
    pub fn new(text: &'t Text<'a>, tokens: &'t [Token<'a>], help: &'static str) -> Self {
        Self { text, tokens, at: 0, depth: 0, help }
    }

    /// The token `n` places after the next one; the end of the text beyond the last one.
    pub fn ahead(&self, n: usize) -> Token<'a> {
        let len = self.text.text.len();
        let end = Token { kind: TokenKind::End, text: "", range: len..len };
        // The tokens may be those of a part of the text, without its end.
        let last = self.tokens.last().filter(|token| token.kind == TokenKind::End);
        self.tokens.get(self.at.saturating_add(n)).or(last).cloned().unwrap_or(end)
    }

    /// The next token, without going past it.
    pub fn peek(&self) -> Token<'a> {
        self.ahead(0)
    }

    /// Goes past the next token.
    pub fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = self.at.saturating_add(1);
        token
    }

    /// Goes past the next token if it is one of these marks.
    pub fn take_mark(&mut self, marks: &[&str]) -> Option<Token<'a>> {
        let token = self.peek();
        let hit = token.kind == TokenKind::Mark && marks.contains(&token.text);
        hit.then(|| self.take())
    }

    /// Goes past the next token if it is this word.
    pub fn take_word(&mut self, word: &str) -> Option<Token<'a>> {
        let token = self.peek();
        let hit = token.kind == TokenKind::Name && token.text == word;
        hit.then(|| self.take())
    }

    /// Enters one more level of nesting, which fails beyond [`MAX_DEPTH`].
    pub fn deeper(&mut self, token: &Token<'a>) -> Result<(), Box<Diagnostic>> {
        self.depth = self.depth.saturating_add(1);
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("this is nested more than {MAX_DEPTH} levels deep");
        let place = self.text.span(&token.range);
        Err(Box::new(Diagnostic::error(Code::TooDeep, place, message).help(self.help)))
    }

    /// How deep brackets and signs are nested.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Goes on at a place where brackets and signs are nested this deep.
    pub fn go_on(&mut self, at: usize, depth: usize) {
        self.at = at;
        self.depth = depth;
    }

    /// Leaves a level of nesting.
    pub fn shallower(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

/// The kind and the length in bytes of the word at the start of a text, where there is no blank and no
/// comment.
fn word(text: &str) -> Option<(TokenKind, usize)> {
    let mut chars = text.chars();
    Some(match chars.next()? {
        '0'..='9' => (TokenKind::Number, number_len(text)),
        // `.5` is a number in most languages, though a dot alone is nothing here.
        '.' if chars.next().is_some_and(|d| d.is_ascii_digit()) => (TokenKind::Number, number_len(text)),
        'a'..='z' | 'A'..='Z' | '_' => (TokenKind::Name, name_len(text)),
        '+' | '-' | '*' | '/' | '^' | '(' | ')' | '[' | ']' | ',' | ';' | '=' | ':' | '{' | '}' => {
            (TokenKind::Mark, 1)
        }
        _ => return None,
    })
}

/// As [`word`], for the equation of a part.
fn part_word(text: &str) -> Option<(TokenKind, usize)> {
    if !text.starts_with('"') {
        return word(text);
    }
    // It ends on its line, so that a missing quote is reported where it is missing.
    let line = text.lines().next().unwrap_or("");
    let end = line.match_indices('"').map(|(at, _)| at).nth(1)?;
    Some((TokenKind::Text, end.checked_add(1)?))
}

/// As [`word`], for a text that is a formula.
fn formula_word(text: &str) -> Option<(TokenKind, usize)> {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    match text.chars().next()? {
        '\'' => {
            let end = text.match_indices('\'').map(|(at, _)| at).nth(1)?;
            Some((TokenKind::Text, end.checked_add(1)?))
        }
        c if c.is_alphabetic() || c == '_' => {
            Some((TokenKind::Name, text.find(|c| !is_inner(c)).unwrap_or(text.len())))
        }
        // Before single marks, or `==` would be two `=`.
        _ if ["==", "!=", "??"].iter().any(|mark| text.starts_with(mark)) => Some((TokenKind::Mark, 2)),
        '<' | '>' => Some((TokenKind::Mark, 1)),
        _ => word(text),
    }
}

/// Whether a text without quotes may be meant as a number or an expression: it consists of their words and
/// has a number or an operator among them. In quotes it would be another value.
pub fn may_be_value(text: &str) -> bool {
    let mut any = false;
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|r| r.chars().next()) {
        let rest = text.get(at..).unwrap_or("");
        if c.is_whitespace() {
            at = at.saturating_add(c.len_utf8());
        } else if c == '#' || rest.starts_with("//") {
            at = at.saturating_add(rest.find('\n').unwrap_or(rest.len()));
        } else if let Some((kind, len)) = word(rest) {
            let operator = matches!(c, '+' | '-' | '*' | '/' | '^' | '(' | ')');
            any |= kind == TokenKind::Number || operator;
            at = at.saturating_add(len);
        } else {
            return false;
        }
    }
    // What begins with `=` is a formula over tensors, which is read from quotes as well.
    any && !text.starts_with('=')
}

/// The length in bytes of the number-like word at the start of a text. Letters belong to it, so that `12abc`
/// is one word with an error, and not a number followed by a name.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let byte = |i: usize| bytes.get(i).copied().unwrap_or(b' ');
    let mut at = 0;
    loop {
        match byte(at) {
            // A sign belongs to a number only after the `e` of an exponent: `1-5` is a difference.
            b'e' | b'E'
                if matches!(byte(at.saturating_add(1)), b'+' | b'-')
                    && byte(at.saturating_add(2)).is_ascii_digit() =>
            {
                at = at.saturating_add(2)
            }
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => at = at.saturating_add(1),
            b'.' if byte(at.saturating_add(1)).is_ascii_digit() => at = at.saturating_add(1),
            _ => return at,
        }
    }
}

/// The length in bytes of the name at the start of a text; a dot belongs to it only if a letter follows.
fn name_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let byte = |i: usize| bytes.get(i).copied().unwrap_or(b' ');
    let mut at = 0;
    loop {
        match byte(at) {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => at = at.saturating_add(1),
            b'.' if byte(at.saturating_add(1)).is_ascii_alphabetic() => at = at.saturating_add(1),
            _ => return at,
        }
    }
}
