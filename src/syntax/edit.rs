//! Changes to a text that carry out a [`Fix`], by the places of its tree, so that comments and the layout of everything
//! else stay as they are.
//!
//! An edit is made only where the text is of a usual form; elsewhere there is none. Whoever makes one checks the text
//! that results, because an edit knows nothing of what the words mean.

use std::collections::BTreeMap;
use std::ops::Range;

use super::notation::Notation;
use super::tree::{Entry, Kind, Node};
use super::{allow, comments, parse};
use crate::diag::render::{EditData, FixData};
use crate::diag::{Certainty, Diagnostic, Fix, Sink, suggest};
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
    /// Each on lines of its own.
    Lines,
    /// Between braces or parentheses, separated by commas.
    Commas,
    /// Between the braces of the DSL in one line.
    Blanks,
    /// In another way, in which nothing is changed.
    Other,
}

/// A change of a text that carries out a fix.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The pieces that are replaced, which do not overlap, and what replaces them.
    pub changes: Vec<(Range<usize>, String)>,
    /// The text after that.
    pub text: String,
    /// Whether this is what the author meant, as far as that can be known, and nothing is lost.
    pub is_safe: bool,
}

/// The longest text in bytes that is edited: each edit parses it anew, and what is longer was written by a program.
pub const LONGEST: usize = 64 << 10;

/// The most maps that a safe move makes: more of them choose parts that the author may not have meant.
const MADE: usize = 1;

/// The edit that carries out a fix at the place `at` of a diagnostic; `tree` is what the text parses to. `None` if the text
/// is longer than [`LONGEST`] or of a form that cannot be changed, if the tree would then differ in anything that the fix
/// does not say, or if a comment would be lost.
pub fn edit(text: &str, notation: Notation, tree: &Node, at: Span, fix: &Fix) -> Option<Edit> {
    if text.len() > LONGEST {
        return None;
    }
    let whole = Text { text, notation };
    let mut made = 0;
    let mut lost = 0..0;
    let changes = match fix {
        Fix::Rename { from, to } | Fix::Guess { from, to } => vec![(whole.word(at, from)?, to.clone())],
        Fix::Replace(value) => vec![(at.range(), value.clone())],
        Fix::Remove => {
            let found = find(tree, at)?;
            let (map, entry) = found.above.last()?;
            let removed = whole.removed(&found)?;
            // The comment in its line is about what is removed.
            if whole.layout(map, entry) == Layout::Lines {
                lost = removed.clone();
            }
            vec![(removed, String::new())]
        }
        Fix::Move { path, up, .. } => {
            let found = find(tree, at)?;
            let (_, entry) = found.above.last()?;
            let last = path.last()?;
            let key = whole.written(entry)?;
            // The key may get another name on its way; what is between it and its value stays.
            let after = text.get(entry.key_span.end as usize..key.end)?;
            let before = text.get(key.start..entry.key_span.start as usize)?;
            whole.moved(&found, path, *up, &format!("{before}{last}{after}"), &mut made)?
        }
        Fix::Choose { path, part } => {
            let last = path.last()?;
            let entry = find(tree, at).and_then(|found| Some(found.above.last()?.1.key_span))?;
            let written = match notation {
                // As JSON has it.
                Notation::Yaml if text.get(entry.range())?.starts_with('"') => {
                    format!("\"{last}\": \"{part}\"")
                }
                Notation::Yaml => format!("{last}: {part}"),
                Notation::Dsl => format!("{last} = {part}"),
            };
            whole.moved(&find(tree, at)?, path, 0, &written, &mut made)?
        }
    };
    let changed = apply(text, changes.clone())?;
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if is_json(text) && !is_json(&changed) {
        return None;
    }
    let mut sources = SourceMap::new();
    let id = sources.add("", changed.clone());
    let mut sink = Sink::new();
    let after = parse(&sources, id, notation, &mut sink).filter(|_| !sink.has_errors())?;
    let kept = |text: &str, tree: &Node, lost: &Range<usize>| {
        let all = comments::all(text, notation, tree).into_iter();
        let mut kept: Vec<String> = all.filter(|c| !lost.contains(&c.start)).map(|c| c.text).collect();
        kept.sort();
        kept
    };
    if !is_as_said(tree, &after, at, fix) || kept(text, tree, &lost) != kept(&changed, &after, &(0..0)) {
        return None;
    }
    let is_sure = match fix {
        Fix::Rename { from, to } => suggest::is_sure(from, to),
        Fix::Move { .. } | Fix::Guess { .. } | Fix::Replace(_) | Fix::Choose { .. } | Fix::Remove => true,
    };
    let is_safe = match fix.certainty() {
        Certainty::Certain => true,
        Certainty::Likely => made <= MADE && is_sure,
        Certainty::Guess => false,
    };
    Some(Edit { changes, text: changed, is_safe })
}

/// Whether a fix makes the one tree of the other, and nothing else differs.
fn is_as_said(before: &Node, after: &Node, at: Span, fix: &Fix) -> bool {
    match fix {
        Fix::Rename { from, to } | Fix::Guess { from, to } => {
            let renamed = |old: &str, new: &str| {
                old.match_indices(from.as_str()).any(|(start, _)| {
                    let rest = start.saturating_add(from.len());
                    let (Some(head), Some(tail)) = (old.get(..start), old.get(rest..)) else { return false };
                    new.strip_prefix(head).and_then(|new| new.strip_suffix(tail)) == Some(to.as_str())
                })
            };
            differ(before, after, at, &|_, _| false, &renamed) == Some(true)
        }
        Fix::Replace(value) => {
            let is_value = |_: &Node, new: &Node| new.text() == Some(value.as_str());
            differ(before, after, at, &is_value, &|_, _| false) == Some(true)
        }
        Fix::Remove => {
            let expected = find(before, at).and_then(|found| {
                let (map, entry) = found.above.last()?;
                Some(with(before, map, &|map| Some(without(map, std::slice::from_ref(&entry.key)))))
            });
            expected.flatten().is_some_and(|expected| expected.is_written_as(after))
        }
        Fix::Move { path, up, .. } => {
            placed(before, at, path, *up, None).is_some_and(|expected| expected.is_written_as(after))
        }
        Fix::Choose { path, part } => {
            placed(before, at, path, 0, Some(part)).is_some_and(|expected| expected.is_written_as(after))
        }
    }
}

/// Whether two trees differ only at a place of the first one, as `value` or `word` says; `None` if they differ elsewhere.
fn differ(
    old: &Node,
    new: &Node,
    at: Span,
    value: &dyn Fn(&Node, &Node) -> bool,
    word: &dyn Fn(&str, &str) -> bool,
) -> Option<bool> {
    if old.span == at && value(old, new) {
        return Some(true);
    }
    match (&old.kind, &new.kind) {
        (Kind::Map(a), Kind::Map(b)) if a.len() == b.len() => {
            let mut differs = false;
            for (a, b) in a.iter().zip(b) {
                if a.key != b.key {
                    if a.key_span != at || !word(&a.key, &b.key) {
                        return None;
                    }
                    differs = true;
                }
                differs |= differ(&a.value, &b.value, at, value, word)?;
            }
            Some(differs)
        }
        (Kind::List(a), Kind::List(b)) if a.len() == b.len() => {
            let mut differs = false;
            for (a, b) in a.iter().zip(b) {
                differs |= differ(a, b, at, value, word)?;
            }
            Some(differs)
        }
        (_, _) if old.is_written_as(new) => Some(false),
        (Kind::Scalar(a), Kind::Scalar(b)) if old.span.contains(at) && word(&a.text, &b.text) => Some(true),
        // In the DSL, a call is a map with one key.
        (_, _) => None,
    }
}

/// The tree after an entry has gone to a path below the map that is `up` levels above it, perhaps with another value.
fn placed(tree: &Node, at: Span, path: &[String], up: usize, part: Option<&str>) -> Option<Node> {
    let found = find(tree, at)?;
    let (_, entry) = found.above.last()?;
    let level = found.above.len().checked_sub(up)?.checked_sub(1)?;
    let (target, _) = found.above.get(level)?;
    let from: Vec<String> = found.above.get(level..)?.iter().map(|(_, entry)| entry.key.clone()).collect();
    let value = match part {
        Some(part) => Node::plain(part, entry.value.span),
        None => entry.value.clone(),
    };
    with(tree, target, &|map| added(&without(map, &from), path, &value))
}

/// A tree with another node in the place of one of its own.
fn with(tree: &Node, target: &Node, other: &dyn Fn(&Node) -> Option<Node>) -> Option<Node> {
    if std::ptr::eq(tree, target) {
        return other(tree);
    }
    let kind = match &tree.kind {
        Kind::Map(entries) => {
            let entry = |e: &Entry| Some(Entry { value: with(&e.value, target, other)?, ..e.clone() });
            Kind::Map(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        Kind::List(items) => {
            Kind::List(items.iter().map(|item| with(item, target, other)).collect::<Option<_>>()?)
        }
        Kind::Null | Kind::Delete | Kind::Scalar(_) => tree.kind.clone(),
    };
    Some(Node { kind, span: tree.span })
}

/// A map without the entry at a path.
fn without(map: &Node, path: &[String]) -> Node {
    let (Kind::Map(entries), Some((first, rest))) = (&map.kind, path.split_first()) else {
        return map.clone();
    };
    let kept = entries.iter().filter(|e| !rest.is_empty() || e.key != *first).map(|e| {
        let is_above = e.key == *first;
        if is_above { Entry { value: without(&e.value, rest), ..e.clone() } } else { e.clone() }
    });
    Node { kind: Kind::Map(kept.collect()), span: map.span }
}

/// A map with a value at a path, where nothing has been; `None` if there is something else.
fn added(map: &Node, path: &[String], value: &Node) -> Option<Node> {
    let (first, rest) = path.split_first()?;
    let mut entries = map.entries()?.to_vec();
    let own = entries.iter().position(|e| e.key == *first);
    match own.and_then(|index| entries.get_mut(index)) {
        Some(_) if rest.is_empty() => return None,
        Some(entry) => entry.value = added(&entry.value, rest, value)?,
        None => {
            let empty = Node { kind: Kind::Map(Vec::new()), span: map.span };
            let value = if rest.is_empty() { value.clone() } else { added(&empty, rest, value)? };
            entries.push(Entry { key: first.clone(), key_span: map.span, value });
        }
    }
    Some(Node { kind: Kind::Map(entries), span: map.span })
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
        let found = edit(&source.text, *notation, tree, d.span(), fix)?;
        let data =
            |(range, text): (Range<usize>, String)| EditData { start: range.start, end: range.end, text };
        Some(FixData { safe: found.is_safe, edits: found.changes.into_iter().map(data).collect() })
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
    /// Where a word is at a place: all of it without quotation marks, the name of a call, or one of the keys of a path.
    fn word(self, at: Span, word: &str) -> Option<Range<usize>> {
        let (mut start, mut text) = (at.range().start, self.text.get(at.range())?);
        if let Some(mark) = text.chars().next().filter(|c| matches!(c, '"' | '\''))
            && let Some(inner) = text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark))
        {
            (start, text) = (start.checked_add(1)?, inner);
        }
        let is_call =
            text.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(['(', '[']));
        if is_call {
            return Some(start..start.checked_add(word.len())?);
        }
        let keys = || text.split('.');
        if keys().filter(|key| *key == word).count() != 1 || text.contains(char::is_whitespace) {
            return None;
        }
        let before: usize =
            keys().take_while(|key| *key != word).map(|key| key.len().saturating_add(1)).sum();
        let start = start.checked_add(before)?;
        Some(start..start.checked_add(word.len())?)
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

    /// Whether nothing but blanks and tabs is between the beginning of a line and a place.
    fn begins_line(self, at: usize) -> bool {
        let before = self.text.get(self.line_start(at)..at);
        before.is_some_and(|text| text.chars().all(|c| matches!(c, ' ' | '\t')))
    }

    /// What is before a place in its line, with blanks in the place of other text.
    fn indent(self, at: usize) -> String {
        let before = self.text.get(self.line_start(at)..at).unwrap_or("");
        if self.begins_line(at) { before.to_owned() } else { " ".repeat(before.len()) }
    }

    /// Whether nothing but blanks, a comma and a comment is between a place and the end of its line.
    fn ends_line(self, at: usize) -> bool {
        let rest = self.text.get(at..self.line_end(at)).unwrap_or("").trim();
        rest.is_empty() || rest.starts_with('#') || rest.starts_with("//")
    }

    /// How an entry of a map is written.
    fn layout(self, map: &Node, entry: &Entry) -> Layout {
        let Some(place) = self.written(entry) else { return Layout::Other };
        let all = || map.entries().into_iter().flatten().filter_map(|e| self.written(e));
        let opens = |place: &Range<usize>, sign: char| self.before(place.start).trim_end().ends_with(sign);
        let sign = if self.notation == Notation::Yaml { '{' } else { '(' };
        if all().next().is_some_and(|first| opens(&first, sign)) {
            return Layout::Commas;
        }
        if self.begins_line(place.start) && self.ends_line(place.end) {
            return Layout::Lines;
        }
        // The layers of a stack are before its brace.
        let first = all().find(|place| opens(place, '{'));
        let inside =
            first.zip(all().next_back()).and_then(|(first, last)| self.text.get(first.start..last.end));
        if inside.is_some_and(|inside| !inside.contains('\n')) { Layout::Blanks } else { Layout::Other }
    }

    /// What is removed with an entry: its lines, or its part of a list with commas. The only entry of a map in lines
    /// cannot be removed.
    fn removed(self, found: &Found<'_>) -> Option<Range<usize>> {
        let (map, entry) = found.above.last()?;
        let entries = map.entries()?;
        let place = self.written(entry)?;
        match self.layout(map, entry) {
            Layout::Lines if entries.len() < 2 => None,
            Layout::Lines => Some(self.line_start(place.start)..self.line_end(place.end)),
            Layout::Commas | Layout::Blanks => {
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
    /// `made` is the number of maps that this makes.
    fn moved(
        self,
        found: &Found<'_>,
        path: &[String],
        up: usize,
        written: &str,
        made: &mut usize,
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
        *made = maps.len();
        // The place of a value of several lines depends on the column of its key.
        let from = self.indent(place.start);
        if std::ptr::eq(map, *own) {
            let text = self.nested(maps, written, (&from, &from), self.layout(map, entry))?;
            return Some(vec![(place, text)]);
        }
        let removed = self.removed(found)?;
        // A comment above it that allows a warning would be about something else.
        let above = self.before(self.line_start(place.start)).trim_end().lines().last().unwrap_or("");
        if above.trim_start().starts_with(['#', '/']) && above.contains(allow::WORD) {
            return None;
        }
        // A comment in the same line goes with its entry.
        let comment = self.text.get(place.end..self.line_end(place.end)).unwrap_or("").trim_end();
        let comment = if self.layout(own, entry) == Layout::Lines { comment } else { "" };
        let last = after.or(map.entries()?.last())?;
        let Range { start, end } = self.written(last)?;
        let layout = self.layout(map, last);
        let added = match layout {
            Layout::Lines => {
                let indent = self.indent(start);
                let text = self.nested(maps, written, (&from, &indent), layout)?;
                let line_end = self.line_end(end);
                let line_feed = self.line_feed();
                let begins = if self.before(line_end).ends_with('\n') { "" } else { line_feed };
                // Lines that are removed there must not be cut in two.
                let at = if removed.contains(&line_end) { removed.end } else { line_end };
                (at..at, format!("{begins}{indent}{text}{comment}{line_feed}"))
            }
            Layout::Commas | Layout::Blanks => {
                let text = self.nested(maps, written, (&from, &from), layout)?;
                if !comment.is_empty() || removed.contains(&end) && end != removed.start {
                    return None;
                }
                let between = if layout == Layout::Commas { ", " } else { " " };
                (end..end, format!("{between}{text}"))
            }
            Layout::Other => return None,
        };
        Some(vec![(removed, String::new()), added])
    }

    /// An entry below maps with these keys. Its text comes from a line that begins with the first of two indents and goes to
    /// one with the second, where the rest of its lines follow it. `None` if it has several lines where there may be only one.
    fn nested(
        self,
        maps: &[String],
        written: &str,
        (from, to): (&str, &str),
        layout: Layout,
    ) -> Option<String> {
        if !written.contains('\n') {
            let (open, close) = match (self.notation, layout) {
                (Notation::Yaml, _) => (": {", "}"),
                (Notation::Dsl, Layout::Lines | Layout::Blanks) => (" { ", " }"),
                // What is in parentheses has commas and colons.
                (Notation::Dsl, Layout::Commas | Layout::Other) if maps.is_empty() => ("", ""),
                (Notation::Dsl, Layout::Commas | Layout::Other) => return None,
            };
            // As JSON has it.
            let mark = if self.notation == Notation::Yaml && written.starts_with('"') { "\"" } else { "" };
            let below = |text: String, key: &String| format!("{mark}{key}{mark}{open}{text}{close}");
            return Some(maps.iter().rev().fold(written.to_owned(), below));
        }
        if layout != Layout::Lines {
            return None;
        }
        let unit = if from.contains('\t') || to.contains('\t') { "\t" } else { "  " };
        let indent = |depth: usize| format!("{to}{}", unit.repeat(depth));
        let mut text = String::new();
        for (depth, key) in maps.iter().enumerate() {
            let open = match self.notation {
                Notation::Yaml => ":",
                Notation::Dsl => " {",
            };
            text += &format!("{key}{open}{}{}", self.line_feed(), indent(depth.saturating_add(1)));
        }
        let column = indent(maps.len());
        for (i, line) in written.split('\n').enumerate() {
            if i == 0 {
                text += line;
            } else if line.trim().is_empty() {
                text.push('\n');
            } else {
                // Further left than its key, it is not a part of the value.
                text += &format!("\n{column}{}", line.strip_prefix(from)?);
            }
        }
        if self.notation == Notation::Dsl {
            for depth in (0..maps.len()).rev() {
                text += &format!("\n{}}}", indent(depth));
            }
        }
        Some(text)
    }
}
