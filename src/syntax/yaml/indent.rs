//! Recognises a line whose indent differs from that of the entries that it should be aligned with.

use serde_yaml::granit_parser::ErrorKind;

use crate::diag::{Code, Diagnostic};
use crate::source::{SourceId, Span};

/// A line that begins with a key: where the key begins and ends in the text, and its column, counted from 1.
#[derive(Clone, Copy)]
struct Line<'a> {
    key: &'a str,
    start: usize,
    column: usize,
}

/// The diagnostic for a fault of the parser that comes from the indent of the line at an offset: it names the column of the
/// line's key and those of its neighbours. `None` if the fault has another cause.
pub fn misaligned(kind: &ErrorKind, text: &str, at: usize, id: SourceId) -> Option<Diagnostic> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |n| n.saturating_add(1));
    let line = line(text, start)?;
    let colon = line.start.saturating_add(line.key.len());
    match kind {
        // The parser stops at the colon, and any other one in its line is a second one.
        ErrorKind::MappingValueNotAllowed if at == colon => {}
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedDocumentStart
        | ErrorKind::MissingDocumentEndBeforeDirective
        | ErrorKind::InvalidDocumentEnd
            if at <= line.start => {}
        _ => return None,
    }
    let neighbours = neighbours(text, start, line.column);
    let place = |line: &Line<'_>| Span::new(id, line.start, line.start.saturating_add(line.key.len()));
    let (key, column) = (line.key, line.column);
    let (message, help) = match neighbours.as_slice() {
        [one] => (
            format!(
                "`{key}` begins in column {column}, but the entry above it begins in column {}",
                one.column
            ),
            format!("align it with `{}`", one.key),
        ),
        [outer, inner] => (
            format!(
                "`{key}` begins in column {column}, but the entries above it begin in columns {} and {}",
                outer.column, inner.column
            ),
            format!("align it with `{}` or `{}`, whichever is in the same map", outer.key, inner.key),
        ),
        _ => return None,
    };
    let diagnostic = Diagnostic::error(Code::Syntax, place(&line), message).help(help);
    Some(neighbours.iter().fold(diagnostic, |diagnostic, near| {
        diagnostic.label(place(near), format!("`{}` begins in column {}", near.key, near.column))
    }))
}

/// The entries above a line with which it may have been meant to be aligned: the one before it if that begins further to
/// the left, otherwise the nearest ones to the left and right of the column among the open maps. Empty if the column is
/// that of an open map.
fn neighbours(text: &str, start: usize, column: usize) -> Vec<Line<'_>> {
    let mut open: Vec<Line<'_>> = Vec::new();
    let mut end = start;
    for above in text.get(..start).unwrap_or("").split_inclusive('\n').rev() {
        end = end.saturating_sub(above.len());
        let Some(found) = line(text, end) else { continue };
        if open.last().is_none_or(|inner| found.column < inner.column) {
            open.push(found);
        }
    }
    if open.iter().any(|line| line.column == column) {
        return Vec::new();
    }
    let outer = open.iter().find(|line| line.column < column);
    let inner = open.iter().rfind(|line| line.column > column);
    outer.into_iter().chain(inner).copied().collect()
}

/// The line that begins at an offset, if it begins with a key.
fn line(text: &str, start: usize) -> Option<Line<'_>> {
    let line = text.get(start..)?.lines().next()?;
    let indent = line.len().saturating_sub(line.trim_start_matches(' ').len());
    let rest = line.get(indent..)?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
    let after = rest.get(end..)?.strip_prefix(':')?;
    let is_key = end > 0 && !rest.starts_with('-') && (after.is_empty() || after.starts_with([' ', '\r']));
    is_key.then_some(Line {
        key: rest.get(..end)?,
        start: start.saturating_add(indent),
        column: indent.saturating_add(1),
    })
}
