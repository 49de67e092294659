//! Changes to a text that carry out a [`Fix`], by the places of its tree, so that comments and the layout of everything
//! else stay as they are.
//!
//! An edit is made only where the text is of a usual form; elsewhere there is none. Whoever makes one checks the text
//! that results, because an edit knows nothing of what the words mean.

use std::collections::BTreeMap;
use std::ops::Range;

use super::notation::Notation;
use super::parse;
use super::tree::{Entry, Kind, Node};
use crate::diag::render::{EditData, FixData};
use crate::diag::{Diagnostic, Fix, Sink};
use crate::source::{SourceId, SourceMap, Span};

/// A text with its notation.
#[derive(Clone, Copy, Debug)]
struct Text<'t> {
    text: &'t str,
    notation: Notation,
}

/// An entry in the maps above it.
struct Found<'t> {
    /// The maps from the outermost one to the one that has the entry, with the entry itself or the one that leads to it.
    /// A list on the way makes it begin anew.
    above: Vec<(&'t Node, &'t Entry)>,
}

/// How the entries of a map are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Each on lines of its own, indented by this many blanks.
    Lines(usize),
    /// Between braces or parentheses, separated by commas.
    Commas,
    /// In another way, in which nothing is changed.
    Other,
}

/// The changes of a text that carry out a fix at the place `at` of a diagnostic, which do not overlap; `tree` is what the
/// text parses to. `None` if the place is not of a form that can be changed.
pub fn changes(
    text: &str,
    notation: Notation,
    tree: &Node,
    at: Span,
    fix: &Fix,
) -> Option<Vec<(Range<usize>, String)>> {
    let text = Text { text, notation };
    Some(match fix {
        Fix::Rename(word) => vec![(text.word(at), word.clone())],
        Fix::Remove => vec![(text.removed(&find(tree, at)?)?, String::new())],
        Fix::Move { path, up } => {
            let found = find(tree, at)?;
            let (_, entry) = found.above.last()?;
            let last = path.last()?;
            let key = text.written(entry)?;
            // The key may get another name on its way; what is between it and its value stays.
            let after = text.text.get(entry.key_span.end as usize..key.end)?;
            let before = text.text.get(key.start..entry.key_span.start as usize)?;
            text.moved(&found, path, *up, &format!("{before}{last}{after}"))?
        }
        Fix::Choose { path, part } => {
            let last = path.last()?;
            let written = match notation {
                Notation::Yaml => format!("{last}: {part}"),
                Notation::Dsl => format!("{last} = {part}"),
            };
            text.moved(&find(tree, at)?, path, 0, &written)?
        }
    })
}

/// The fix of each diagnostic as changes to the source of its primary place.
pub fn fixes(diagnostics: &[Diagnostic], sources: &SourceMap) -> Vec<Option<FixData>> {
    // Each source is parsed once.
    let mut trees: BTreeMap<SourceId, Option<(Notation, Node)>> = BTreeMap::new();
    let data = |d: &Diagnostic| {
        let fix = d.fix.as_ref()?;
        let source = sources.get(d.span().source)?;
        let parsed = trees.entry(d.span().source).or_insert_with(|| {
            let notation = Notation::from_path(&source.name).unwrap_or_else(|| Notation::guess(&source.text));
            Some((notation, parse(sources, d.span().source, notation, &mut Sink::new())?))
        });
        let (notation, tree) = parsed.as_ref()?;
        let changes = changes(&source.text, *notation, tree, d.span(), fix)?;
        let edit =
            |(range, text): (Range<usize>, String)| EditData { start: range.start, end: range.end, text };
        Some(FixData { safe: fix.is_safe(), edits: changes.into_iter().map(edit).collect() })
    };
    diagnostics.iter().map(data).collect()
}

/// The text with these changes, which do not overlap.
pub fn apply(text: &str, mut changes: Vec<(Range<usize>, String)>) -> Option<String> {
    changes.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (String::new(), 0);
    for (range, with) in changes {
        out += text.get(at..range.start)?;
        out += &with;
        at = range.end;
    }
    out += text.get(at..)?;
    Some(out)
}

/// The key of the entry of which the key or the value is at a place.
pub fn key(tree: &Node, at: Span) -> Option<&str> {
    find(tree, at)?.above.last().map(|(_, entry)| entry.key.as_str())
}

/// The entry whose key or value is at a place.
fn find(tree: &Node, at: Span) -> Option<Found<'_>> {
    match &tree.kind {
        Kind::Map(entries) => entries.iter().find_map(|entry| {
            if entry.key_span == at || entry.value.span == at {
                return Some(Found { above: vec![(tree, entry)] });
            }
            let mut found = find(&entry.value, at)?;
            // An entry of a list is not below the keys around the list.
            if matches!(entry.value.kind, Kind::Map(_)) {
                found.above.insert(0, (tree, entry));
            }
            Some(found)
        }),
        Kind::List(items) => items.iter().find_map(|item| find(item, at)),
        Kind::Null | Kind::Scalar(_) | Kind::Delete => None,
    }
}

impl<'t> Text<'t> {
    /// The word at a place: without quotation marks, and of a call without what it takes.
    fn word(self, at: Span) -> Range<usize> {
        let range = at.range();
        let call = self.text.get(range.clone()).and_then(|text| {
            let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let rest = text.strip_prefix(word.as_str())?;
            (!word.is_empty() && rest.starts_with(['(', '['])).then_some(word)
        });
        if let Some(word) = call {
            return range.start..range.start.saturating_add(word.len());
        }
        let inner = self.text.get(range.clone()).and_then(|text| {
            let mark = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            text.strip_prefix(mark)?.strip_suffix(mark)
        });
        match inner {
            Some(inner) => {
                let start = range.start.saturating_add(1);
                start..start.saturating_add(inner.len())
            }
            None => range,
        }
    }

    /// The bytes before a place.
    fn before(self, at: usize) -> &'t str {
        self.text.get(..at).unwrap_or("")
    }

    /// The bytes from a place on.
    fn after(self, at: usize) -> &'t str {
        self.text.get(at..).unwrap_or("")
    }

    /// Where the line begins in which a place is.
    fn line_start(self, at: usize) -> usize {
        self.before(at).rfind('\n').map_or(0, |end| end.saturating_add(1))
    }

    /// One past the end of the line in which a place is, with its line end.
    fn line_end(self, at: usize) -> usize {
        self.after(at).find('\n').map_or(self.text.len(), |end| at.saturating_add(end).saturating_add(1))
    }

    /// How the lines of the text end.
    fn line_feed(self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// An entry from its key to its value, with quotation marks, without blanks and line ends after it.
    fn written(self, entry: &Entry) -> Option<Range<usize>> {
        let mut start = entry.key_span.start as usize;
        let mut key_end = entry.key_span.end as usize;
        if let Some(mark) = self.before(start).chars().last().filter(|c| matches!(c, '"' | '\''))
            && self.after(key_end).starts_with(mark)
        {
            start = start.checked_sub(1)?;
            key_end = key_end.checked_add(1)?;
        }
        let mut end = (entry.value.span.end as usize).max(key_end);
        // What comes from an anchor elsewhere is not written here.
        if (entry.value.span.start as usize) < start {
            return None;
        }
        // The closing mark of a quoted value.
        let opening = self.before(entry.value.span.start as usize).chars().last();
        if let Some(mark) = opening.filter(|c| matches!(c, '"' | '\''))
            && self.after(end).starts_with(mark)
        {
            end = end.checked_add(1)?;
        }
        let text = self.text.get(start..end)?;
        Some(start..start.checked_add(text.trim_end().len())?)
    }

    /// Whether nothing but blanks is between the beginning of a line and a place.
    fn begins_line(self, at: usize) -> bool {
        self.text.get(self.line_start(at)..at).is_some_and(|text| text.chars().all(|c| c == ' '))
    }

    /// Whether nothing but blanks, a comma and a comment is between a place and the end of its line.
    fn ends_line(self, at: usize) -> bool {
        let rest = self.text.get(at..self.line_end(at)).unwrap_or("").trim();
        rest.is_empty() || rest.starts_with('#') || rest.starts_with("//")
    }

    /// How an entry of a map is written.
    fn layout(self, map: &Node, entry: &Entry) -> Layout {
        let first = map.entries().and_then(|entries| self.written(entries.first()?));
        let (Some(first), Some(place)) = (first, self.written(entry)) else { return Layout::Other };
        let opening = self.before(first.start).trim_end().chars().last();
        match (self.notation, opening) {
            (Notation::Yaml, Some('{')) | (Notation::Dsl, Some('(')) => return Layout::Commas,
            (Notation::Yaml | Notation::Dsl, _) => {}
        }
        if self.begins_line(place.start) && self.ends_line(place.end) {
            return Layout::Lines(place.start.saturating_sub(self.line_start(place.start)));
        }
        Layout::Other
    }

    /// What is removed with an entry: its lines, or its part of a list with commas. The only entry of a map in lines
    /// cannot be removed.
    fn removed(self, found: &Found<'_>) -> Option<Range<usize>> {
        let (map, entry) = found.above.last()?;
        let entries = map.entries()?;
        let place = self.written(entry)?;
        match self.layout(map, entry) {
            Layout::Lines(_) if entries.len() < 2 => None,
            Layout::Lines(_) => Some(self.line_start(place.start)..self.line_end(place.end)),
            Layout::Commas => {
                let index = entries.iter().position(|e| e.key_span == entry.key_span)?;
                let before = index.checked_sub(1).and_then(|i| entries.get(i));
                match (before, entries.get(index.saturating_add(1))) {
                    (_, Some(next)) => Some(place.start..self.written(next)?.start),
                    (Some(before), None) => Some(self.written(before)?.end..place.end),
                    (None, None) => Some(place),
                }
            }
            Layout::Other => None,
        }
    }

    /// The changes that take an entry away and add what is `written` at a path, below the map that is `up` levels above.
    fn moved(
        self,
        found: &Found<'_>,
        path: &[String],
        up: usize,
        written: &str,
    ) -> Option<Vec<(Range<usize>, String)>> {
        let (own, entry) = found.above.last()?;
        let level = found.above.len().checked_sub(up)?.checked_sub(1)?;
        let &(mut map, beside) = found.above.get(level)?;
        let mut rest = path;
        // The key after which it is written, where it goes further up: next to the one that leads to where it was.
        let mut after = (up > 0).then_some(beside);
        while let [first, below @ ..] = rest
            && !below.is_empty()
            && let Some(next) = map.get(first)
        {
            // A part by its name alone would become another value.
            next.entries()?;
            (map, rest, after) = (next, below, None);
        }
        let place = self.written(entry)?;
        let maps = rest.split_last()?.1;
        // The place of a value of several lines depends on the column of its key.
        let column = place.start.saturating_sub(self.line_start(place.start));
        if std::ptr::eq(map, *own) {
            let is_lines = matches!(self.layout(map, entry), Layout::Lines(_));
            let text = self.nested(maps, written, (column, column), is_lines)?;
            return Some(vec![(place, text)]);
        }
        let removed = self.removed(found)?;
        // A comment in the same line goes with its entry.
        let comment = self.text.get(place.end..self.line_end(place.end)).unwrap_or("").trim_end();
        let comment = if matches!(self.layout(own, entry), Layout::Lines(_)) { comment } else { "" };
        let last = after.or(map.entries()?.last())?;
        let end = self.written(last)?.end;
        let added = match self.layout(map, last) {
            Layout::Lines(indent) => {
                let text = self.nested(maps, written, (column, indent), true)?;
                let line_end = self.line_end(end);
                let line_feed = self.line_feed();
                let begins = if self.before(line_end).ends_with('\n') { "" } else { line_feed };
                // Lines that are removed there must not be cut in two.
                let at = if removed.contains(&line_end) { removed.end } else { line_end };
                (at..at, format!("{begins}{}{text}{comment}{line_feed}", " ".repeat(indent)))
            }
            Layout::Commas => {
                let text = self.nested(maps, written, (column, column), false)?;
                if !comment.is_empty() || removed.contains(&end) && end != removed.start {
                    return None;
                }
                (end..end, format!(", {text}"))
            }
            Layout::Other => return None,
        };
        Some(vec![(removed, String::new()), added])
    }

    /// An entry below maps with these keys. Its text comes from the first of the columns and goes to the second, where
    /// the rest of its lines follow it. `None` if it has several lines where there may be only one.
    fn nested(
        self,
        maps: &[String],
        written: &str,
        (from, to): (usize, usize),
        is_lines: bool,
    ) -> Option<String> {
        if !written.contains('\n') {
            let (open, close) = match (self.notation, is_lines) {
                (Notation::Yaml, _) => (": {", "}"),
                (Notation::Dsl, true) => (" { ", " }"),
                // What is in parentheses has commas and colons.
                (Notation::Dsl, false) if maps.is_empty() => ("", ""),
                (Notation::Dsl, false) => return None,
            };
            return Some(
                maps.iter().rev().fold(written.to_owned(), |text, key| format!("{key}{open}{text}{close}")),
            );
        }
        if !is_lines {
            return None;
        }
        let blanks = |depth: usize| to.saturating_add(depth.saturating_mul(2));
        let mut text = String::new();
        for (depth, key) in maps.iter().enumerate() {
            let open = match self.notation {
                Notation::Yaml => ":",
                Notation::Dsl => " {",
            };
            text +=
                &format!("{key}{open}{}{}", self.line_feed(), " ".repeat(blanks(depth.saturating_add(1))));
        }
        let column = blanks(maps.len());
        for (i, line) in written.split('\n').enumerate() {
            if i == 0 {
                text += line;
            } else if line.trim().is_empty() {
                text.push('\n');
            } else {
                // Further left than its key, it is not a part of the value.
                let indent = line.len().saturating_sub(line.trim_start_matches(' ').len());
                let own = indent.checked_sub(from)?;
                text +=
                    &format!("\n{}{}", " ".repeat(column.saturating_add(own)), line.trim_start_matches(' '));
            }
        }
        if self.notation == Notation::Dsl {
            for depth in (0..maps.len()).rev() {
                text += &format!("\n{}}}", " ".repeat(blanks(depth)));
            }
        }
        Some(text)
    }
}
