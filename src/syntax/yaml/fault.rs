//! Turns an error of the YAML parser into a diagnostic in the author's terms.

use serde_yaml::granit_parser::{ErrorKind, ScanError};

use crate::diag::{Code, Diagnostic};
use crate::source::{SourceId, Span};
use crate::syntax::text::MAX_KEY;

use super::{colon, indent};

/// The diagnostic for a text that is not valid YAML. `open` is where the innermost map or list begins, if
/// one is open, and `outermost` where the first of those in brackets does.
pub fn syntax(
    fault: &ScanError,
    text: &str,
    id: SourceId,
    open: Option<usize>,
    outermost: Option<usize>,
) -> Diagnostic {
    let at = fault.marker().byte_offset().unwrap_or(text.len()).min(text.len());
    let in_quotes = matches!(
        fault.kind(),
        ErrorKind::InvalidQuotedScalarIndent
            | ErrorKind::UnclosedQuotedScalar
            | ErrorKind::DocumentIndicatorInQuotedScalar
    );
    // The parser says where it gave up, which for an open quote is often the end of the text; the author
    // looks for the quote.
    let is_quote = text.get(at..).is_some_and(|rest| rest.starts_with(['"', '\'']));
    let unclosed = if in_quotes { unclosed_quote(text, at).or(is_quote.then_some(at)) } else { None };
    // A text that ends on another line than it begins is more often one whose quote is not closed, and which ends with
    // the quote that should begin the next one.
    let ended = after_quote(fault.kind(), text, at);
    let over_lines = |quote: &usize| text.get(*quote..at).is_some_and(|between| between.contains('\n'));
    if let Some(quote) = unclosed.or(ended.filter(over_lines)) {
        let mark = text.get(quote..).and_then(|t| t.get(..1)).unwrap_or("\"");
        let end =
            text.get(quote..).and_then(|t| t.find('\n')).map_or(text.len(), |n| quote.saturating_add(n));
        let end = text.get(..end).map_or(end, |t| t.trim_end().len());
        return Diagnostic::error(Code::Syntax, Span::new(id, quote, end), "this quote is never closed")
            .help(format!("close it with `{mark}`"));
    }
    if let Some(quote) = ended {
        return Diagnostic::error(Code::Syntax, word_at(text, id, at), "a text in quotes ends before this")
            .label(Span::new(id, quote, quote.saturating_add(1)), "here it begins")
            .help("close the quote where the text ends, and separate entries by commas");
    }
    if let Some(diagnostic) = outermost.and_then(|from| closed_by_paren(text, id, from)) {
        return diagnostic;
    }
    if let ErrorKind::MismatchedFlowCollectionEnd { .. } = fault.kind()
        && let Some(diagnostic) = mismatched(text, id, outermost.or(open).unwrap_or(at))
    {
        return diagnostic;
    }
    if let Some(from) = outermost
        && let Some(diagnostic) = open_bracket(fault.kind(), text, id, from, at)
    {
        return diagnostic;
    }
    if let Some(diagnostic) = unspaced(fault.kind(), text, at, id) {
        return diagnostic;
    }
    if let Some(diagnostic) = assigned(fault.kind(), text, at, id) {
        return diagnostic;
    }
    if let Some(diagnostic) = indent::misaligned(fault.kind(), text, at, id) {
        return diagnostic;
    }
    if let Some(diagnostic) = unopened(fault.kind(), text, at, id) {
        return diagnostic;
    }
    let (code, message, help) = explain(fault.kind(), text, at);
    if let Some(help) = colon::braced(text, at).filter(|_| message == SECOND) {
        return Diagnostic::error(code, word_at(text, id, at), message).help(help);
    }
    // The parser may notice a tab only after the word before it, or at the end of its line.
    let at = if message == TAB { tab_near(text, at) } else { at };
    let diagnostic = Diagnostic::error(code, word_at(text, id, at), message);
    // A separator that is missing on a later line than the bracket is more often a bracket that is not closed.
    let is_on_line = |open: usize| text.get(open..at).is_some_and(|between| !between.contains('\n'));
    let help = match (fault.kind(), open) {
        (ErrorKind::ExpectedFlowMappingSeparator, Some(open)) if !is_on_line(open) => {
            "close the map with `}` where it ends, or separate its entries by commas"
        }
        (ErrorKind::ExpectedFlowSequenceSeparator, Some(open)) if !is_on_line(open) => {
            "close the list with `]` where it ends, or separate its items by commas"
        }
        _ => help,
    };
    // The end of the text, where the parser notices it, says little about which bracket is open.
    let diagnostic = match (fault.kind(), open) {
        (
            ErrorKind::ExpectedFlowMappingSeparator
            | ErrorKind::ExpectedFlowSequenceSeparator
            | ErrorKind::UnexpectedEofFlowMapping
            | ErrorKind::UnexpectedEofFlowSequence
            | ErrorKind::MismatchedFlowCollectionEnd { .. },
            Some(open),
        ) => diagnostic.label(Span::within(id, text, open, open.saturating_add(1)), "opened here"),
        _ => diagnostic,
    };
    if help.is_empty() { diagnostic } else { diagnostic.help(help) }
}

/// A bracket: its place, itself, and the one that closes it.
type Bracket = (usize, char, char);

/// A bracket, and the one of another kind that closes it with its place.
type Mismatch = (Bracket, (usize, char));

/// The brackets from an offset on that are open at the end of the text; as an error, the first one that another kind of bracket
/// closes, with that. `None` if there is a bracket that closes none.
fn left_open(text: &str, from: usize) -> Option<Result<Vec<Bracket>, Mismatch>> {
    let mut open: Vec<Bracket> = Vec::new();
    let mut quote = None;
    let mut last = ' ';
    let mut letters = text.get(from..)?.char_indices();
    while let Some((i, c)) = letters.next() {
        let at = from.saturating_add(i);
        match (quote, c) {
            (Some('"'), '\\') => {
                letters.next();
            }
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if matches!(last, ' ' | '[' | '{' | ',' | '\n') => quote = Some(c),
            // The rest of the line is a comment.
            (None, '#') if last.is_whitespace() => {
                letters.find(|(_, c)| *c == '\n');
            }
            (None, '{') => open.push((at, '{', '}')),
            (None, '[') => open.push((at, '[', ']')),
            (None, '}' | ']') => {
                let bracket = open.pop()?;
                if c != bracket.2 {
                    return Some(Err((bracket, (at, c))));
                }
            }
            (None, _) => {}
        }
        last = c;
    }
    Some(Ok(open))
}

/// The diagnostic for the first bracket from an offset on that closes one of the other kind. The parser reports it at the
/// bracket that it closes.
fn mismatched(text: &str, id: SourceId, from: usize) -> Option<Diagnostic> {
    let Err(((begin, mark, close), (at, c))) = left_open(text, from)? else { return None };
    let message = format!("`{mark}` is closed by `{c}`");
    let diagnostic = Diagnostic::error(Code::Syntax, word_at(text, id, at), message);
    let diagnostic = diagnostic.label(word_at(text, id, begin), "opened here");
    Some(diagnostic.help(format!("close it with `{close}`")))
}

/// The diagnostic for a `{` or `[`, from an offset on, that a `)` closes in its line.
fn closed_by_paren(text: &str, id: SourceId, from: usize) -> Option<Diagnostic> {
    let mut open: Vec<(usize, char)> = Vec::new();
    for (i, c) in text.get(from..)?.lines().next()?.char_indices() {
        let at = from.saturating_add(i);
        match c {
            // What is in quotes or in a comment may be anything.
            '"' | '\'' | '#' => return None,
            '{' | '[' | '(' => open.push((at, c)),
            '}' | ']' => drop(open.pop()),
            ')' => {
                let (begin, mark) = open.pop()?;
                let close = match mark {
                    '{' => '}',
                    '[' => ']',
                    _ => continue,
                };
                let message = format!("`{mark}` is closed by `)`");
                let diagnostic = Diagnostic::error(Code::Syntax, word_at(text, id, at), message);
                let diagnostic = diagnostic.label(word_at(text, id, begin), "opened here");
                return Some(diagnostic.help(format!("close it with `{close}`")));
            }
            _ => {}
        }
    }
    None
}

/// The diagnostic for a map or list without its opening bracket, `attention: heads: 4}`, of which the parser notices only
/// the second colon, or in parentheses.
fn unopened(kind: &ErrorKind, text: &str, at: usize, id: SourceId) -> Option<Diagnostic> {
    if !matches!(kind, ErrorKind::MappingValueNotAllowed) {
        return None;
    }
    let start = text.get(..at)?.rfind('\n').map_or(0, |n| n.saturating_add(1));
    let line = text.get(start..)?.lines().next()?.trim_end();
    let (key, value) = line.split_once(": ")?;
    let words = value.trim_start();
    let begin = start.saturating_add(line.len()).saturating_sub(words.len());
    let mut depth = 0usize;
    for (i, c) in words.char_indices() {
        let place = begin.saturating_add(i);
        let open = match c {
            '"' | '\'' | '#' => return None,
            '{' | '[' => {
                depth = depth.saturating_add(1);
                continue;
            }
            '}' | ']' if depth > 0 => {
                depth = depth.saturating_sub(1);
                continue;
            }
            '}' => '{',
            ']' => '[',
            '(' if i == 0 && words.ends_with(')') => {
                let inner = words.trim_start_matches('(').trim_end_matches(')');
                let message = "a map is written in `{` and `}`, and not in parentheses";
                let diagnostic = Diagnostic::error(Code::Syntax, word_at(text, id, place), message);
                return Some(diagnostic.help(format!("write `{}: {{{inner}}}`", key.trim())));
            }
            _ => continue,
        };
        let message = format!("this `{c}` has no opening bracket");
        let diagnostic = Diagnostic::error(Code::Syntax, word_at(text, id, place), message);
        return Some(diagnostic.help(format!("write `{}: {open}{words}`", key.trim())));
    }
    None
}

/// The diagnostic for a bracket that is never closed, of which the parser notices only that the lines below it do not go on as
/// what is in brackets does: the innermost one that is open where the parser stops, on another line.
fn open_bracket(kind: &ErrorKind, text: &str, id: SourceId, from: usize, at: usize) -> Option<Diagnostic> {
    if !matches!(
        kind,
        ErrorKind::ExpectedFlowMappingSeparator
            | ErrorKind::ExpectedFlowSequenceSeparator
            | ErrorKind::InvalidColonPlacement
            | ErrorKind::InvalidSimpleKey
            | ErrorKind::SimpleKeyExpected
            | ErrorKind::MappingValueNotAllowed
            | ErrorKind::MappingKeyNotAllowed
            | ErrorKind::BlockEntryInFlowCollection
            | ErrorKind::BlockSequenceEntryNotAllowed
            | ErrorKind::PlainScalarStartsWithDashFlowIndicator
            | ErrorKind::InvalidFlowScalarIndent
    ) {
        return None;
    }
    let brackets = left_open(text, from)?.ok()?;
    let (begin, mark, close) = *brackets.iter().rfind(|(begin, _, _)| *begin < at)?;
    text.get(begin..at).filter(|between| between.contains('\n'))?;
    let diagnostic =
        Diagnostic::error(Code::Syntax, word_at(text, id, begin), format!("`{mark}` is never closed"));
    Some(diagnostic.help(format!("close it with `{close}`")))
}

/// The message about a second colon.
const SECOND: &str = "there is a second `:` in this entry";

/// The message about a tab.
const TAB: &str = "there is a tab where YAML allows only spaces";

/// The first tab that indents a line, from the line of an offset on; the offset itself if no line has one.
fn tab_near(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or("");
    let start = before.rfind('\n').map_or(0, |n| n.saturating_add(1));
    let mut line_start = start;
    for line in text.get(start..).unwrap_or("").split_inclusive('\n') {
        let indent = line.len().saturating_sub(line.trim_start_matches(' ').len());
        if line.get(indent..).is_some_and(|rest| rest.starts_with('\t')) {
            return line_start.saturating_add(indent);
        }
        line_start = line_start.saturating_add(line.len());
    }
    at
}

/// What is said of a colon that does not end a key.
pub const UNSPACED: &str = "this `:` must be followed by a space";

/// The place of the colon in a word such as `heads:4`, which was meant as a key and its value.
pub fn unspaced_colon(word: &str) -> Option<usize> {
    let (key, value) = word.split_once(':')?;
    let is_key = key.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_value = !value.is_empty() && !value.starts_with([':', '/', ' ']);
    (is_key && is_value).then_some(key.len())
}

/// The diagnostic for an entry without a space after its colon, which the parser takes for a text: in the line where it
/// stops, or in the one above, which it reads on in that line.
fn unspaced(kind: &ErrorKind, text: &str, at: usize, id: SourceId) -> Option<Diagnostic> {
    if !matches!(
        kind,
        ErrorKind::InvalidSimpleKey | ErrorKind::SimpleKeyExpected | ErrorKind::MappingValueNotAllowed
    ) {
        return None;
    }
    let mut start = text.get(..at)?.rfind('\n').map_or(0, |n| n.saturating_add(1));
    for _ in 0..2 {
        let line = text.get(start..)?.lines().next()?;
        let word = line.trim();
        let first = start.saturating_add(line.find(word)?);
        if let Some((key, value)) = unspaced_colon(word).and_then(|colon| word.split_at_checked(colon)) {
            let place = first.saturating_add(key.len());
            let help = format!("write `{key}: {}`", value.trim_start_matches(':'));
            let place = Span::new(id, place, place.saturating_add(1));
            return Some(Diagnostic::error(Code::Syntax, place, UNSPACED).help(help));
        }
        start = text.get(..start.checked_sub(1)?)?.rfind('\n').map_or(0, |n| n.saturating_add(1));
    }
    None
}

/// The diagnostic for an entry with `=` after its key: in the line where the parser stops, or in the one above.
fn assigned(kind: &ErrorKind, text: &str, at: usize, id: SourceId) -> Option<Diagnostic> {
    if !matches!(
        kind,
        ErrorKind::InvalidSimpleKey | ErrorKind::SimpleKeyExpected | ErrorKind::MappingValueNotAllowed
    ) || follows_block_mark(text, at)
    {
        return None;
    }
    let mut start = text.get(..at)?.rfind('\n').map_or(0, |n| n.saturating_add(1));
    for _ in 0..2 {
        let line = text.get(start..)?.lines().next()?;
        // A line with a call is one of an equation, which has a `=`.
        if let Some((key, value)) = line.split_once('=').filter(|(_, value)| !value.contains('('))
            && !key.trim().is_empty()
            && key.trim().chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
        {
            let place = start.saturating_add(key.len());
            let message = "a key is followed by `:` in YAML, and not by `=`";
            let place = Span::new(id, place, place.saturating_add(1));
            let value = value.split(" #").next().map_or("", str::trim);
            // What else is written with `=` in the value is another fault.
            let value = if value.is_empty() || value.contains('=') { "..." } else { value };
            let help = format!("write `{}: {value}`", key.trim());
            return Some(Diagnostic::error(Code::Syntax, place, message).help(help));
        }
        start = text.get(..start.checked_sub(1)?)?.rfind('\n').map_or(0, |n| n.saturating_add(1));
    }
    None
}

/// Where the quoted text begins that the parser was in at an offset: the last quote before it, on a line of
/// its own, that begins a value and is not closed on its line.
fn unclosed_quote(text: &str, at: usize) -> Option<usize> {
    let mut end = at.min(text.len());
    loop {
        let before = text.get(..end)?;
        let start = before.rfind('\n').map_or(0, |n| n.saturating_add(1));
        let line = text.get(start..end)?;
        if let Some(quote) = open_quote(line) {
            return Some(start.saturating_add(quote));
        }
        end = start.checked_sub(1)?;
    }
}

/// Where a quote of a line begins a value and is not closed on it.
fn open_quote(line: &str) -> Option<usize> {
    let mut open: Option<(usize, char)> = None;
    let mut last = ' ';
    let mut letters = line.char_indices().peekable();
    while let Some((i, c)) = letters.next() {
        match open {
            // The rest of the line is a comment.
            None if c == '#' && last == ' ' => return None,
            None if matches!(c, '"' | '\'') && matches!(last, ' ' | '[' | '{' | ',') => open = Some((i, c)),
            Some((_, '"')) if c == '\\' => {
                letters.next();
            }
            // A single quote is doubled where it belongs to the text.
            Some((_, '\'')) if c == '\'' && letters.peek().is_some_and(|(_, c)| *c == '\'') => {
                letters.next();
            }
            Some((_, mark)) if c == mark => open = None,
            Some(_) | None => {}
        }
        last = c;
    }
    open.map(|(i, _)| i)
}

/// For a separator that is missing right after a quoted text: where that text begins.
fn after_quote(kind: &ErrorKind, text: &str, at: usize) -> Option<usize> {
    let missing = matches!(
        kind,
        ErrorKind::ExpectedFlowMappingSeparator
            | ErrorKind::ExpectedFlowSequenceSeparator
            | ErrorKind::InvalidTrailingSingleQuotedScalar
            | ErrorKind::InvalidTrailingDoubleQuotedScalar
    );
    let before = text.get(..at)?.trim_end_matches(' ');
    let mut inner = before.chars();
    let mark = inner.next_back().filter(|c| missing && matches!(c, '"' | '\''))?;
    inner.as_str().rfind(mark)
}

/// Whether a line at a fault begins with a key that is too long: its own, or one next to it, since the parser may
/// notice that a key is none at the beginning of the next line.
fn has_long_key(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("").lines().count();
    let first = before.saturating_sub(1);
    text.lines().skip(first.saturating_sub(1)).take(3).any(|line| {
        let key = line.split_once(": ").map(|(key, _)| key).or_else(|| line.trim_end().strip_suffix(':'));
        key.is_some_and(|key| key.trim().chars().nth(MAX_KEY).is_some())
    })
}

/// Whether the line at a fault, or the one before it, follows a line that ends with `|` or `>` without being indented
/// further than that: the parser may notice it at the beginning of the next line.
fn follows_block_mark(text: &str, at: usize) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let line = text.get(..at).unwrap_or("").matches('\n').count();
    let indent = |line: &str| line.len().saturating_sub(line.trim_start_matches(' ').len());
    let pairs = lines.windows(2).skip(line.saturating_sub(2)).take(2);
    pairs.into_iter().any(|pair| match pair {
        [mark, below] => {
            let is_mark = [": |", ": >"].iter().any(|end| mark.trim_end().ends_with(end));
            is_mark && indent(below) <= indent(mark) && !below.trim().is_empty()
        }
        _ => false,
    })
}

/// The code, the message and a suggestion.
fn explain(kind: &ErrorKind, text: &str, at: usize) -> (Code, String, &'static str) {
    use ErrorKind as E;
    let syntax = |message: &str, help: &'static str| (Code::Syntax, message.to_owned(), help);
    // Editors show a tab as spaces, so it is the fault that an author is least likely to see.
    let tab = text.get(at..).is_some_and(|t| t.starts_with('\t'))
        || text.get(..at).is_some_and(|t| t.rsplit('\n').next().is_some_and(|l| l.starts_with('\t')));
    match kind {
        E::RecursionLimitExceeded => (Code::TooDeep, "maps and lists nest more than 64 deep".to_owned(), ""),
        E::UnclosedFlowCollection { open } => {
            let close = if *open == '[' { ']' } else { '}' };
            (
                Code::Syntax,
                format!("`{open}` is never closed"),
                if close == ']' { "close it with `]`" } else { "close it with `}`" },
            )
        }
        E::MismatchedFlowCollectionEnd { open, close } => {
            (Code::Syntax, format!("`{open}` is closed by `{close}`"), "")
        }
        E::MisplacedFlowCollectionEnd => {
            syntax("this bracket has no opening bracket", "remove it, or add the opening bracket before it")
        }
        E::UnexpectedEofFlowSequence => syntax("a `[` is never closed", "close it with `]`"),
        E::UnexpectedEofFlowMapping | E::UnexpectedEofImplicitFlowMapping => {
            syntax("a `{` is never closed", "close it with `}`")
        }
        E::ExpectedFlowMappingSeparator => {
            syntax("expected `,` or `}` here", "separate the entries of a map by commas")
        }
        E::ExpectedFlowSequenceSeparator => {
            syntax("expected `,` or `]` here", "separate the items of a list by commas")
        }
        E::UnclosedQuotedScalar => {
            syntax("a quote is never closed", "close it with the same mark that opened it")
        }
        E::DocumentIndicatorInQuotedScalar => syntax("`---` or `...` is inside a quoted text", "indent it"),
        E::TabNotAllowed
        | E::TabInBlockIndentation
        | E::TabInIndentation
        | E::TabAtBlockScalarStart
        | E::TabInPlainScalar => syntax(TAB, "indent with spaces"),
        // Whatever the parser takes for the fault in a line that begins with a tab, the tab is its cause.
        _ if tab => syntax(TAB, "indent with spaces"),
        E::ExpectedBlockMappingKey | E::InvalidIndentation => syntax(
            "the indent of this line does not match any map or list above it",
            "align it with the keys of the map it belongs to",
        ),
        E::ExpectedBlockSequenceEntry => syntax("expected `-` here, as for the other items", ""),
        // YAML gives up on a key of more than 1,024 characters and then blames what follows.
        E::MappingValueNotAllowed | E::InvalidSimpleKey | E::SimpleKeyExpected if has_long_key(text, at) => {
            (Code::BadKey, format!("a key is at most {MAX_KEY} characters long"), "")
        }
        // The parser does not tell this from a line that is indented too far, which `indent` has recognised.
        E::MappingValueNotAllowed => syntax(SECOND, "put a text that contains `: ` in quotes"),
        E::InvalidSimpleKey | E::SimpleKeyExpected if follows_block_mark(text, at) => syntax(
            "the text below the `|` is not indented",
            "indent its lines further than the key before the `|`",
        ),
        E::InvalidSimpleKey | E::SimpleKeyExpected => syntax(
            "this is neither an entry nor part of the text above",
            "write `key: value`, with a space after the colon",
        ),
        E::MappingKeyNotAllowed => syntax("a key is not allowed here", "begin it on its own line"),
        E::InvalidMappingValueWhitespace | E::FlowMappingValueAdjacentCollection => {
            syntax(UNSPACED, "write `key: value`")
        }
        E::InvalidColonPlacement => syntax("this `:` has no key before it", ""),
        E::BlockEntryInFlowCollection
        | E::BlockSequenceEntryNotAllowed
        | E::PlainScalarStartsWithDashFlowIndicator => syntax(
            "`-` cannot begin an item here",
            "write the list as `[a, b]`, or each `- item` on its own line",
        ),
        E::InvalidBlockEntryWhitespace => syntax("this `-` must be followed by a space", ""),
        E::InvalidTrailingSingleQuotedScalar | E::InvalidTrailingDoubleQuotedScalar => {
            syntax("something follows the closing quote", "quote the whole value or none of it")
        }
        E::UnknownQuotedScalarEscape
        | E::InvalidQuotedScalarHexEscape
        | E::InvalidLowSurrogateHexEscape
        | E::InvalidLowSurrogate
        | E::MissingLowSurrogate
        | E::UnpairedLowSurrogate
        | E::InvalidUnicodeEscape => syntax(
            "this escape does not represent a character",
            "double the backslash, or use single quotes, in which it is an ordinary character",
        ),
        E::InvalidBlockScalarIndent => {
            syntax("this line of the text is indented less than the first one", "")
        }
        E::InvalidBlockScalarHeader | E::ZeroBlockScalarIndent => {
            syntax("the text begins on the line below `|`", "write nothing after `|`")
        }
        E::InvalidQuotedScalarIndent | E::InvalidFlowScalarIndent => {
            syntax("this line is indented less than the value it belongs to", "")
        }
        E::CommentNotSeparated => syntax("`#` must follow a space", "put a text that contains `#` in quotes"),
        E::CommentInterceptedScalar => {
            syntax("there is a comment inside a text of several lines", "move it above the text")
        }
        E::UnknownAnchor => (
            Code::BadAlias,
            "nothing before it is marked with this name".to_owned(),
            "put a text that begins with `*` in quotes; `*name` alone repeats a value that is marked `&name` before",
        ),
        E::MissingAnchorOrAliasName => {
            syntax("this mark must be followed by a name", "put a text that begins with `&` or `*` in quotes")
        }
        E::UnexpectedCharacter { character } => {
            let message = format!("a value cannot begin with `{}`", character.escape_default());
            (Code::Syntax, message, "put it in quotes")
        }
        E::UnsupportedYamlMajorVersion => {
            syntax("this version of YAML is not known", "leave the `%YAML` line out")
        }
        E::DuplicateVersionDirective | E::DuplicateTagDirective => {
            syntax("this directive is given twice", "leave it out")
        }
        E::ExpectedDocumentStart | E::MissingDocumentEndBeforeDirective | E::InvalidDocumentEnd => {
            syntax("there is text after the end of the document", "")
        }
        E::MultipleDocumentsUnsupported => {
            (Code::SeveralDocuments, "the file contains more than one document".to_owned(), "")
        }
        E::UndeclaredTagHandle
        | E::ExpectedTagBang
        | E::ExpectedTagDirectiveBang
        | E::InvalidGlobalTagCharacter
        | E::InvalidTagTerminator
        | E::InvalidTagDirectiveTerminator
        | E::MissingTagUri
        | E::UnclosedVerbatimTag
        | E::InvalidTagEscape
        | E::InvalidTagUtf8LeadingByte
        | E::InvalidTagUtf8TrailingByte
        | E::InvalidTagUtf8 => (
            Code::UnknownTag,
            "trafoc does not know this tag".to_owned(),
            "put a text that begins with `!` in quotes",
        ),
        // The parser may get new kinds of errors; its own message is then better than none.
        other => {
            let words = other.to_string();
            let mut letters = words.trim_end_matches('.').chars();
            let first = letters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
            (Code::Syntax, format!("{first}{}", letters.as_str()), "")
        }
    }
}

/// The place of the word or mark at an offset; an empty place at the end of the text.
pub fn word_at(text: &str, id: SourceId, at: usize) -> Span {
    let at = text.floor_char_boundary(at);
    let rest = text.get(at..).unwrap_or("");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let len = match rest.chars().next() {
        Some(c) if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
        Some('\n' | '\r') | None => 0,
        Some(c) => c.len_utf8(),
    };
    Span::new(id, at, at.saturating_add(len))
}
