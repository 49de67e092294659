//! Checks brackets, quotes and comments before the text is parsed.
//!
//! In a text that passes, every bracket is closed by its counterpart, at most [`MAX_DEPTH`] brackets are
//! open at a time, and every quote is closed on its line. The parser recurses only on brackets, so this
//! bounds its stack.

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceId, Span};
use crate::syntax::text::MAX_DEPTH;

/// Whether all brackets and quotes are closed; the first one that is not is reported.
pub fn check(text: &str, id: SourceId, sink: &mut Sink) -> bool {
    match scan(text, id) {
        Ok(()) => true,
        Err(diagnostic) => {
            sink.push(*diagnostic);
            false
        }
    }
}

fn scan(text: &str, id: SourceId) -> Result<(), Box<Diagnostic>> {
    // The first fault ends the scan: after a wrong bracket it is unknown which of the others belong together.
    let mut open: Vec<(char, usize)> = Vec::new();
    // The first `{` whose `}` begins a line with less indent, and that `}`: it probably belongs to a `{` before it.
    let mut unlike: Option<(usize, usize)> = None;
    let mut at = 0;
    let span = |start: usize, end: usize| Span::new(id, start, end);
    let fail = |at: Span, message: String| Diagnostic::error(Code::Syntax, at, message);
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        let rest = text.get(at..).unwrap_or("");
        match c {
            // Brackets and quotes in a comment do not count.
            '#' => at = at.saturating_add(rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("//") => at = at.saturating_add(rest.find('\n').unwrap_or(rest.len())),
            '"' => match string_len(rest) {
                Some(len) => at = at.saturating_add(len),
                None => {
                    let line = rest.find('\n').unwrap_or(rest.len());
                    let (place, message, mark) = match fence(rest) {
                        Some(marks) => (
                            span(at, at.saturating_add(marks.len())),
                            format!("`{marks}` is never closed"),
                            marks,
                        ),
                        None => (
                            span(at, at.saturating_add(line)),
                            "a quote is not closed on its line".to_owned(),
                            "\"",
                        ),
                    };
                    return Err(Box::new(fail(place, message).help(format!("close it with `{mark}`"))));
                }
            },
            '{' | '[' | '(' => {
                open.push((c, at));
                // Checked here and not by the parser, which would have recursed as deep already.
                if open.len() > MAX_DEPTH {
                    let message = format!("brackets nest more than {MAX_DEPTH} deep");
                    let diagnostic =
                        Diagnostic::error(Code::TooDeep, span(at, at.saturating_add(1)), message);
                    return Err(Box::new(diagnostic.help("a spec needs about ten levels")));
                }
                at = at.saturating_add(1);
            }
            '}' | ']' | ')' => {
                match open.pop() {
                    Some((before, place)) if closing(before) == c => {
                        if c == '}' && unlike.is_none() && is_less_indented(text, place, at) {
                            unlike = Some((place, at));
                        }
                    }
                    Some((before, place)) => {
                        let message = format!("`{before}` is closed by `{c}`");
                        let help = format!("close it with `{}`", closing(before));
                        let diagnostic = fail(span(at, at.saturating_add(1)), message)
                            .label(span(place, place.saturating_add(1)), "opened here");
                        return Err(Box::new(diagnostic.help(help)));
                    }
                    None => {
                        let message = format!("this `{c}` has no opening bracket");
                        return Err(Box::new(fail(span(at, at.saturating_add(1)), message).help(
                            "remove it, or add the opening bracket \
                                before it",
                        )));
                    }
                }
                at = at.saturating_add(1);
            }
            other => at = at.saturating_add(other.len_utf8()),
        }
    }
    let Some((c, place)) = open.last() else { return Ok(()) };
    let of = |place: usize| span(place, place.saturating_add(1));
    let message = format!("`{c}` is never closed");
    let help = format!("close it with `{}`", closing(*c));
    Err(Box::new(match unlike.filter(|_| *c == '{') {
        // Counted, the outermost bracket is the open one; the indents show where the author forgot to close one.
        Some((inner, end)) => {
            fail(of(inner), message).label(of(end), "the indent of this `}` is another's").help(help)
        }
        None => fail(of(*place), message).help(help),
    }))
}

/// Whether a `}` is the first character of its line and has less indent than the line of its `{`.
fn is_less_indented(text: &str, open: usize, close: usize) -> bool {
    let before = |at: usize| text.get(..at).unwrap_or("").rsplit('\n').next().unwrap_or("");
    let indent = |line: &str| line.len().saturating_sub(line.trim_start().len());
    let end = before(close);
    end.trim().is_empty() && end.len() < indent(before(open))
}

/// The quotes at the start of `rest` that open a text without escapes: three, or more of them if they end
/// their line.
pub fn fence(rest: &str) -> Option<&str> {
    let run = rest.len().saturating_sub(rest.trim_start_matches('"').len());
    let after = rest.get(run..)?.trim_start_matches([' ', '\t', '\r']);
    // With text on the same line only three of them open it: `""""a"""` is a text that begins with a
    // quotation mark.
    let marks = if after.starts_with('\n') { run } else { run.min(3) };
    rest.get(..marks).filter(|marks| marks.len() >= 3)
}

/// The length in bytes of the quoted text at the start of `rest`, if it is closed.
pub fn string_len(rest: &str) -> Option<usize> {
    if let Some(marks) = fence(rest) {
        let inside = rest.get(marks.len()..)?.find(marks)?;
        return Some(marks.len().saturating_mul(2).saturating_add(inside));
    }
    // An escaped quotation mark does not close the text, and an escaped backslash does not escape what
    // follows.
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(i.saturating_add(1)),
            _ => {}
        }
    }
    None
}

fn closing(open: char) -> char {
    match open {
        '{' => '}',
        '[' => ']',
        // `scan` only asks about the three brackets that open.
        _ => ')',
    }
}
