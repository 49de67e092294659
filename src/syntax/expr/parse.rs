//! Parses a scalar's text to an [`Expr`].
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = sign (("*" | "/") sign)*
//! sign    = ("-" | "+") sign | power
//! power   = atom ("^" sign)?
//! atom    = number | name | function "(" sum ("," sum)* ")" | "(" sum ")"
//! ```
//! In a formula every `sum` within brackets is an `or`, and there are more operands:
//! ```text
//! or      = and ("or" and)*
//! and     = not ("and" not)*
//! not     = "not" not | compare
//! compare = else (("==" | "!=" | "<" | ">" | "in") else)?
//! else    = sum ("??" sum)*
//! atom    = ... | 'text' | true | false | null | table "(" or ")" | "[" or ("," or)* "]"
//! ```

use crate::diag::{Code, Diagnostic, suggest};
use crate::source::{SourceMap, Span};
use crate::syntax::token::{Cursor, Language, Text, Token, TokenKind, unit_of};
use crate::syntax::tree::{Kind, Node, Style};

use super::{Expr, ExprKind, Function, MAX_WORDS, Number, Operator};

/// The advice for an expression that is nested too deep.
const FLATTER: &str = "give parts of it names under `let`";

/// Parses a scalar as an expression.
pub fn parse(sources: &SourceMap, node: &Node) -> Result<Expr, Diagnostic> {
    // A quoted `"12"` is a text in YAML; taking it for a number would make quotes mean nothing.
    let quoted = matches!(&node.kind, Kind::Scalar(s) if s.style == Style::Quoted);
    if quoted || node.text().is_none() {
        let message = format!("expected a number, found {}", node.describe());
        let diagnostic = Diagnostic::error(Code::Expression, node.span, message);
        return Err(if quoted { diagnostic.help("remove the quotes") } else { diagnostic });
    }
    whole(&Text::of(sources, node))
}

/// Parses a scalar as an amount: an expression whose numbers may have units, such as `2 * 350M` and `24 GiB`.
pub fn parse_amount(sources: &SourceMap, node: &Node) -> Result<Expr, Diagnostic> {
    whole(&Text::of_amount(sources, node))
}

fn whole(text: &Text<'_>) -> Result<Expr, Diagnostic> {
    let tokens = text.tokens(Code::Expression, MAX_WORDS).map_err(|d| *d)?;
    let (expr, used) = parse_tokens(text, &tokens).map_err(|d| *d)?;
    match tokens.get(used) {
        Some(next) if next.kind != TokenKind::End => Err(left_over(text, next, &tokens, used)),
        Some(_) | None => Ok(expr),
    }
}

/// Parses a scalar that begins with `=`, whose rest is a formula.
pub fn parse_formula(sources: &SourceMap, node: &Node) -> Result<Expr, Diagnostic> {
    let text = Text::of_formula(sources, node);
    let tokens = text.tokens(Code::Expression, MAX_WORDS).map_err(|d| *d)?;
    let mut parser =
        Parser { words: Cursor::new(&text, &tokens, "write a formula with fewer brackets and signs") };
    parser.words.take_mark(&["="]);
    let expr = parser.whole().map_err(|d| *d)?;
    match tokens.get(parser.words.at) {
        Some(next) if next.kind != TokenKind::End => Err(left_over(&text, next, &tokens, parser.words.at)),
        Some(_) | None => Ok(expr),
    }
}

/// Parses the expression at the start of a list of tokens, and returns how many of them it takes.
pub fn parse_tokens(text: &Text<'_>, tokens: &[Token<'_>]) -> Result<(Expr, usize), Box<Diagnostic>> {
    let mut parser = Parser { words: Cursor::new(text, tokens, FLATTER) };
    let expr = parser.sum()?;
    Ok((expr, parser.words.at))
}

/// The diagnostic for a token after a complete expression.
fn left_over(text: &Text<'_>, next: &Token<'_>, tokens: &[Token<'_>], used: usize) -> Diagnostic {
    let span = text.span(&next.range);
    let diagnostic =
        Diagnostic::error(Code::Expression, span, format!("`{}` follows a complete expression", next.text));
    let before = used.checked_sub(1).and_then(|i| tokens.get(i));
    match (before, next.kind, next.text) {
        (_, TokenKind::Mark, ")" | "]") => diagnostic.help("no bracket is open for it"),
        (_, TokenKind::Mark, ",") => diagnostic.help("a decimal point is `.`; separate thousands with `_`"),
        (Some(before), TokenKind::Number | TokenKind::Name, word) => {
            diagnostic.help(format!("write a product with `*`: `{} * {word}`", before.text))
        }
        (Some(before), TokenKind::Mark, "(") if before.kind == TokenKind::Name => {
            diagnostic.help("write a product with `*`, or remove the space before the bracket")
        }
        _ => diagnostic,
    }
}

struct Parser<'t, 'a> {
    words: Cursor<'t, 'a>,
}

impl<'a> Parser<'_, 'a> {
    /// What may be within brackets: a sum, or in a formula an `or`.
    fn whole(&mut self) -> Result<Expr, Box<Diagnostic>> {
        match self.words.text.language() {
            Language::Numbers | Language::Parts | Language::Amounts => self.sum(),
            Language::Formulas => self.or(),
        }
    }

    fn or(&mut self) -> Result<Expr, Box<Diagnostic>> {
        let mut left = self.and()?;
        while self.words.take_word("or").is_some() {
            left = binary(Operator::Or, left, self.and()?);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Box<Diagnostic>> {
        let mut left = self.not()?;
        while self.words.take_word("and").is_some() {
            left = binary(Operator::And, left, self.not()?);
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Box<Diagnostic>> {
        let Some(word) = self.words.take_word("not") else { return self.compare() };
        self.words.deeper(&word)?;
        let inner = self.not()?;
        self.words.shallower();
        let span = self.words.text.span(&word.range).to(inner.span);
        Ok(Expr { kind: ExprKind::Not(Box::new(inner)), span })
    }

    fn compare(&mut self) -> Result<Expr, Box<Diagnostic>> {
        // Comparisons are not chained: in `a < b < c` the second one is left over and reported.
        let left = self.otherwise()?;
        let mark = self.words.take_mark(&["==", "!=", "<", ">"]).or_else(|| self.words.take_word("in"));
        let operator = match mark.map(|mark| mark.text) {
            Some("==") => Operator::Equal,
            Some("!=") => Operator::Differ,
            Some("<") => Operator::Less,
            Some(">") => Operator::Greater,
            Some(_) => Operator::In,
            None => return Ok(left),
        };
        Ok(binary(operator, left, self.otherwise()?))
    }

    fn otherwise(&mut self) -> Result<Expr, Box<Diagnostic>> {
        let mut left = self.sum()?;
        while self.words.take_mark(&["??"]).is_some() {
            left = binary(Operator::Else, left, self.sum()?);
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr, Box<Diagnostic>> {
        let mut left = self.product()?;
        while let Some(mark) = self.words.take_mark(&["+", "-"]) {
            let right = self.product()?;
            let operator = if mark.text == "+" { Operator::Add } else { Operator::Subtract };
            left = binary(operator, left, right);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr, Box<Diagnostic>> {
        let mut left = self.sign()?;
        while let Some(mark) = self.words.take_mark(&["*", "/"]) {
            let right = self.sign()?;
            let operator = if mark.text == "*" { Operator::Multiply } else { Operator::Divide };
            left = binary(operator, left, right);
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Expr, Box<Diagnostic>> {
        // Signs count as levels of nesting, because `----1` recurses once for each.
        let Some(mark) = self.words.take_mark(&["-", "+"]) else { return self.power() };
        self.words.deeper(&mark)?;
        let inner = self.sign()?;
        self.words.shallower();
        // A plus changes no value, so it has no node.
        if mark.text == "+" {
            return Ok(inner);
        }
        let span = self.words.text.span(&mark.range).to(inner.span);
        Ok(Expr { kind: ExprKind::Negate(Box::new(inner)), span })
    }

    fn power(&mut self) -> Result<Expr, Box<Diagnostic>> {
        let base = self.atom()?;
        let Some(mark) = self.words.take_mark(&["^"]) else { return Ok(base) };
        self.words.deeper(&mark)?;
        // Not an atom: `2^-1` has a sign in its exponent, and `2^3^2` is `2^(3^2)`.
        let exponent = self.sign()?;
        self.words.shallower();
        Ok(binary(Operator::Power, base, exponent))
    }

    fn atom(&mut self) -> Result<Expr, Box<Diagnostic>> {
        let token = self.words.take();
        let span = self.words.text.span(&token.range);
        match (token.kind, token.text) {
            (TokenKind::Number, text) => match self.number(text) {
                Some(number) => Ok(Expr { kind: ExprKind::Number(number), span }),
                None => {
                    let message = format!("`{text}` is larger than the greatest number, about 1.8e308");
                    Err(Box::new(Diagnostic::error(Code::ExpressionOverflow, span, message)))
                }
            },
            (TokenKind::Name, name) => {
                let open = self.words.peek();
                let is_formula = self.words.text.language() == Language::Formulas;
                // With a space before the bracket a `*` may be missing; `left_over` asks for it.
                if open.text == "(" && (open.range.start == token.range.end || is_formula) {
                    return self.call(name, &token);
                }
                let kind = match name {
                    "true" | "false" if is_formula => ExprKind::Truth(name == "true"),
                    "null" if is_formula => ExprKind::Null,
                    _ => ExprKind::Name(name.to_owned()),
                };
                Ok(Expr { kind, span })
            }
            (TokenKind::Text, text) => {
                Ok(Expr { kind: ExprKind::Text(text.trim_matches('\'').to_owned()), span })
            }
            (TokenKind::Mark, "[") if self.words.text.language() == Language::Formulas => {
                self.words.deeper(&token)?;
                let items = self.list("]")?;
                self.words.shallower();
                let close = self.close(&token, "]")?;
                Ok(Expr { kind: ExprKind::List(items), span: span.to(self.words.text.span(&close.range)) })
            }
            (TokenKind::Mark, "(") => {
                self.words.deeper(&token)?;
                let inner = self.whole()?;
                self.words.shallower();
                let close = self.close(&token, ")")?;
                Ok(Expr { kind: inner.kind, span: span.to(self.words.text.span(&close.range)) })
            }
            (TokenKind::Mark | TokenKind::End, text) => {
                let found = if token.kind == TokenKind::End {
                    "the end of the text".to_owned()
                } else {
                    format!("`{text}`")
                };
                let wanted = match self.words.text.language() {
                    Language::Numbers | Language::Parts | Language::Amounts => "a number or a name",
                    Language::Formulas => "a value",
                };
                let message = format!("found {found}, expected {wanted}");
                let diagnostic = Diagnostic::error(Code::Expression, span, message);
                let is_after_star = self.words.text.before(&token.range).ends_with('*');
                Err(Box::new(if text == "*" && is_after_star {
                    diagnostic.help("a power is written with `^`")
                } else {
                    diagnostic
                }))
            }
        }
    }

    /// The value of a number; of an amount with the unit that ends or follows it.
    fn number(&mut self, text: &str) -> Option<Number> {
        if self.words.text.language() != Language::Amounts {
            return Number::parse(text);
        }
        let next = self.words.peek();
        // `24 GiB` has its unit in a word of its own, `24GiB` in the same.
        let (digits, factor) = match unit_of(text) {
            (digits, 1) if next.kind == TokenKind::Name && unit_of(next.text).0.is_empty() => {
                self.words.take();
                (digits, unit_of(next.text).1)
            }
            with_unit => with_unit,
        };
        Number::parse(digits)?.times(Number::integer(factor))
    }

    fn call(&mut self, name: &str, token: &Token<'a>) -> Result<Expr, Box<Diagnostic>> {
        let open = self.words.take();
        self.words.deeper(&open)?;
        let span = self.words.text.span(&token.range);
        let is_formula = self.words.text.language() == Language::Formulas;
        let function = if is_formula { Function::of_any(name) } else { Function::of_numbers(name) };
        // In a formula it may be a table. Elsewhere the name is the first mistake, so it is reported before
        // any in the arguments.
        if function.is_none() && !is_formula {
            return Err(self.unknown_function(name, token));
        }
        let mut args = self.list(")")?;
        self.words.shallower();
        let close = self.close(&open, ")")?;
        let whole = span.to(self.words.text.span(&close.range));
        let Some(function) = function else {
            // What is no function of a formula is a table, which is asked for one entry.
            return match (args.pop(), args.is_empty()) {
                (Some(key), true) => {
                    let kind = ExprKind::Entry(name.to_owned(), Box::new(key));
                    Ok(Expr { kind, span: whole })
                }
                (Some(_) | None, _) => Err(self.unknown_function(name, token)),
            };
        };
        let span = whole;
        let (least, most) = function.arity();
        if args.len() < least || args.len() > most {
            let wanted = match (least, most) {
                (1, 1) => "one argument".to_owned(),
                (a, b) if a == b => format!("{a} arguments"),
                (a, b) => format!("{a} to {b} arguments"),
            };
            let message = format!("`{name}` takes {wanted}, not {}", args.len());
            return Err(Box::new(Diagnostic::error(Code::Expression, span, message)));
        }
        Ok(Expr { kind: ExprKind::Call(function, args), span })
    }

    fn unknown_function(&self, name: &str, token: &Token<'a>) -> Box<Diagnostic> {
        let others = match self.words.text.language() {
            Language::Numbers | Language::Parts | Language::Amounts => &[],
            Language::Formulas => Function::VALUES,
        };
        // In `multiple-of(x, 8)` what is before the name belongs to it.
        let before = self.words.text.before(&token.range);
        let begin = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_' || c == '-').len();
        let whole = format!("{}{name}", before.get(begin..).unwrap_or_default()).replace('-', "_");
        let meant = Function::of_numbers(&whole).map(Function::name);
        Box::new(unknown_function(name, meant, self.words.text.span(&token.range), others))
    }

    /// The expressions between commas up to the closing bracket, which is not taken.
    fn list(&mut self, close: &str) -> Result<Vec<Expr>, Box<Diagnostic>> {
        let mut all = Vec::new();
        // An empty list is valid in formulas; that a function has no arguments is reported with its arity.
        if self.words.peek().text != close {
            all.push(self.whole()?);
            while self.words.take_mark(&[","]).is_some() {
                all.push(self.whole()?);
            }
        }
        Ok(all)
    }

    /// Takes the bracket that closes `open`.
    fn close(&mut self, open: &Token<'a>, mark: &str) -> Result<Token<'a>, Box<Diagnostic>> {
        if let Some(close) = self.words.take_mark(&[mark]) {
            return Ok(close);
        }
        let token = self.words.peek();
        let found = if token.kind == TokenKind::End {
            "the end of the text".to_owned()
        } else {
            format!("`{}`", token.text)
        };
        let message = format!("found {found}, expected `{mark}`");
        let diagnostic = Diagnostic::error(Code::Expression, self.words.text.span(&token.range), message);
        Err(Box::new(diagnostic.label(self.words.text.span(&open.range), "opened here")))
    }
}

/// The diagnostic for a call of a function that does not exist, of numbers or of those in `others`. `meant` is the one
/// that was meant, if that is certain.
pub fn unknown_function(name: &str, meant: Option<&str>, place: Span, others: &[Function]) -> Diagnostic {
    let names: Vec<&str> = Function::NUMBERS.iter().chain(others).map(|f| f.name()).collect();
    let diagnostic = Diagnostic::error(Code::UnknownName, place, format!("there is no function `{name}`"));
    let near = meant.map(str::to_owned).or_else(|| suggest::suggest(name, &names));
    match near {
        Some(near) => diagnostic.meant(name, &near),
        None => diagnostic.help(format!("the functions are {}", names.join(", "))),
    }
}

fn binary(operator: Operator, left: Expr, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span }
}
