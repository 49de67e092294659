//! Checks brackets, quotes and comments before the text is parsed.
//!
//! In a text that passes, every bracket is closed by its counterpart, at most [`MAX_DEPTH`] brackets are
//! open at a time, and every quote is closed on its line. The parser recurses only on brackets, so this
//! bounds its stack.

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceId, Span};
use crate::syntax::text::MAX_DEPTH;

use super::repair::{self, Mark, Sort, closing};

/// Whether all brackets and quotes are closed; those that are not are reported.
pub fn check(text: &str, id: SourceId, sink: &mut Sink) -> bool {
    let marks = match scan(text, id) {
        Ok(marks) => marks,
        Err(diagnostic) => {
            sink.push(*diagnostic);
            return false;
        }
    };
    let Some(first) = first_wrong(&marks, id) else { return true };
    let found = repair::faults(text, id, &marks);
    if found.is_empty() {
        sink.push(first);
    }
    found.into_iter().for_each(|diagnostic| sink.push(diagnostic));
    false
}

/// Whether all brackets and quotes are closed.
pub fn are_closed(text: &str) -> bool {
    scan(text, SourceId::default()).is_ok_and(|marks| first_wrong(&marks, SourceId::default()).is_none())
}

/// The brackets and words of a text; as an error, a quote that is not closed, or brackets that nest too deep.
fn scan(text: &str, id: SourceId) -> Result<Vec<Mark>, Box<Diagnostic>> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    let span = |start: usize, end: usize| Span::new(id, start, end);
    let fail = |at: Span, message: String| Diagnostic::error(Code::Syntax, at, message);
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        let rest = text.get(at..).unwrap_or("");
        let start = at;
        let sort = match c {
            // Brackets and quotes in a comment do not count.
            '#' => {
                at = at.saturating_add(rest.find('\n').unwrap_or(rest.len()));
                continue;
            }
            '/' if rest.starts_with("//") => {
                at = at.saturating_add(rest.find('\n').unwrap_or(rest.len()));
                continue;
            }
            '"' => match string_len(rest) {
                Some(len) => {
                    at = at.saturating_add(len);
                    Sort::Word
                }
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
                depth = depth.saturating_add(1);
                at = at.saturating_add(1);
                // Checked here and not by the parser, which would have recursed as deep already.
                if depth > MAX_DEPTH {
                    let message = format!("brackets nest more than {MAX_DEPTH} deep");
                    let diagnostic = Diagnostic::error(Code::TooDeep, span(start, at), message);
                    return Err(Box::new(diagnostic.help("a spec needs about ten levels")));
                }
                Sort::Open(c)
            }
            '}' | ']' | ')' => {
                depth = depth.saturating_sub(1);
                at = at.saturating_add(1);
                Sort::Close(c)
            }
            c if is_word(c) => {
                at = at.saturating_add(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
                Sort::Word
            }
            other => {
                at = at.saturating_add(other.len_utf8());
                continue;
            }
        };
        marks.push(Mark { at: start, end: at, sort });
    }
    Ok(marks)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.')
}

/// The diagnostic for the first bracket that does not match those before it, or that is open at the end.
fn first_wrong(marks: &[Mark], id: SourceId) -> Option<Diagnostic> {
    let mut open: Vec<(char, Span)> = Vec::new();
    let fail = |at: Span, message: String| Diagnostic::error(Code::Syntax, at, message);
    for mark in marks {
        let span = Span::new(id, mark.at, mark.end);
        let c = match mark.sort {
            Sort::Open(c) => {
                open.push((c, span));
                continue;
            }
            Sort::Close(c) => c,
            Sort::Word => continue,
        };
        match open.pop() {
            Some((before, _)) if closing(before) == c => {}
            Some((before, place)) => {
                let help = format!("close it with `{}`", closing(before));
                let diagnostic = fail(span, format!("`{before}` is closed by `{c}`"));
                return Some(diagnostic.label(place, "opened here").help(help));
            }
            None => {
                let message = format!("this `{c}` has no opening bracket");
                return Some(fail(span, message).help("remove it, or add the opening bracket before it"));
            }
        }
    }
    let (c, place) = open.pop()?;
    Some(fail(place, format!("`{c}` is never closed")).help(format!("close it with `{}`", closing(c))))
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
