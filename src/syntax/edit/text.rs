//! Where entries are written in a text, and the changes that take them away or put them elsewhere.

use std::ops::Range;

use super::found::Found;
use crate::diag::Fix;
use crate::source::Span;
use crate::syntax::allow;
use crate::syntax::notation::Notation;
use crate::syntax::tree::{Entry, Node};

/// A piece of a text and what replaces it.
pub type Change = (Range<usize>, String);

/// A text with its notation.
#[derive(Clone, Copy, Debug)]
pub struct Text<'t> {
    /// The text.
    pub text: &'t str,
    /// Its notation.
    pub notation: Notation,
}

/// How the entries of a map are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each on lines of its own.
    Lines,
    /// Between braces or parentheses, separated by commas.
    Commas,
    /// Between the braces of the DSL in one line.
    Blanks,
    /// In another way, in which nothing is changed.
    Other,
}

/// The changes that put an entry elsewhere.
pub struct Moved {
    /// What they replace.
    pub changes: Vec<Change>,
    /// How many maps they make.
    pub made: usize,
    /// The maps that lose or get an entry.
    pub maps: Vec<Span>,
    /// Where the key begins of the map that has no entry any more.
    pub emptied: Option<usize>,
}

impl<'t> Text<'t> {
    /// Where a word is at a place: all of it without quotation marks, the name of a call, or one of the keys of a path.
    pub fn word(self, at: Span, word: &str) -> Option<Range<usize>> {
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
    pub fn written(self, entry: &Entry) -> Option<Range<usize>> {
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
    pub fn layout(self, map: &Node, entry: &Entry) -> Layout {
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
    pub fn removed(self, found: &Found<'_>) -> Option<Range<usize>> {
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
                    (None, None) => {
                        let start = self.before(place.start).trim_end_matches(' ').len();
                        Some(start..place.end)
                    }
                }
            }
            Layout::Other => None,
        }
    }

    /// Where a fix puts an entry: the path below the map that is some levels above it, and what is written there.
    pub fn destination<'f>(self, found: &Found<'_>, fix: &'f Fix) -> Option<(&'f [String], usize, String)> {
        let (_, entry) = found.above.last()?;
        match fix {
            Fix::Move { path, up, .. } => {
                let last = path.last()?;
                let key = self.written(entry)?;
                // The key may get another name on its way; what is between it and its value stays.
                let after = self.text.get(entry.key_span.end as usize..key.end)?;
                let before = self.text.get(key.start..entry.key_span.start as usize)?;
                Some((path, *up, format!("{before}{last}{after}")))
            }
            Fix::Choose { path, part } => {
                let last = path.last()?;
                let written = match self.notation {
                    // As JSON has it.
                    Notation::Yaml if self.text.get(entry.key_span.range())?.starts_with('"') => {
                        format!("\"{last}\": \"{part}\"")
                    }
                    Notation::Yaml => format!("{last}: {part}"),
                    Notation::Dsl => format!("{last} = {part}"),
                };
                Some((path, 0, written))
            }
            Fix::Rename { .. } | Fix::Guess { .. } | Fix::Replace(_) | Fix::Assign { .. } | Fix::Remove => {
                None
            }
        }
    }

    /// The changes that take an entry away and add what is `written` at a path, below the map that is `up` levels above.
    pub fn moved(self, found: &Found<'_>, path: &[String], up: usize, written: &str) -> Option<Moved> {
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
        let made = maps.len();
        // The place of a value of several lines depends on the column of its key.
        let from = self.indent(place.start);
        if std::ptr::eq(map, *own) {
            let text = self.nested(maps, written, (&from, &from), self.layout(map, entry))?;
            return Some(Moved { changes: vec![(place, text)], made, maps: vec![map.span], emptied: None });
        }
        let own_layout = self.layout(own, entry);
        let above = self.comments_above(place.start);
        if self.text.get(above.clone())?.contains(allow::WORD) {
            // It would be about something else.
            return None;
        }
        // A comment in the same line goes with its entry.
        let comment = self.text.get(place.end..self.line_end(place.end)).unwrap_or("").trim_end();
        let (removed, emptied) = match own_layout {
            Layout::Lines => {
                let removed = self.removed(found).or_else(|| self.emptied(found, above.start))?;
                let is_line = removed.start == self.line_start(place.start);
                // Between a key and its only entry are no comments, or they are lost, which is not allowed.
                let start = if is_line { above.start } else { removed.start };
                (start..removed.end, Text::above(found))
            }
            // Between commas it is not clear which comments are about which entry.
            _ if self.has_own_comment(&place) => return None,
            Layout::Commas | Layout::Blanks | Layout::Other => (self.removed(found)?, Text::above(found)),
        };
        let (comment, above) = match own_layout {
            Layout::Lines => (comment, self.text.get(above)?),
            Layout::Commas | Layout::Blanks | Layout::Other => ("", ""),
        };
        // Comments on lines of their own, with the indent of the line that follows them.
        let comments = |indent: &str| -> String {
            above.lines().map(|line| format!("{indent}{}{}", line.trim(), self.line_feed())).collect()
        };
        let entries = map.entries()?;
        let mut changes = vec![(removed.clone(), String::new())];
        if self.begins_with_line(&removed, found) {
            changes = vec![(removed.clone(), " {}".to_owned())];
        }
        let Some(last) = after.or(entries.last()) else {
            if !comment.is_empty() {
                return None;
            }
            let (place, text) = self.filled(map, maps, written, &from)?;
            if !above.is_empty() {
                let start = self.line_start(place.start);
                changes.push((start..start, comments(&self.indent_of_line(start))));
            }
            changes.push((place, text));
            return Some(Moved { changes, made, maps: vec![own.span, map.span], emptied });
        };
        let Range { start, end } = self.written(last)?;
        let layout = self.layout(map, last);
        match layout {
            Layout::Lines => {
                let indent = self.indent(start);
                let text = self.nested(maps, written, (&from, &indent), layout)?;
                let line_end = self.line_end(end);
                let line_feed = self.line_feed();
                let begins = if self.before(line_end).ends_with('\n') { "" } else { line_feed };
                // Lines that are removed there must not be cut in two.
                let at = if removed.contains(&line_end) { removed.end } else { line_end };
                let comments = comments(&indent);
                changes.push((at..at, format!("{begins}{comments}{indent}{text}{comment}{line_feed}")));
            }
            Layout::Commas | Layout::Blanks => {
                let text = self.nested(maps, written, (&from, &from), layout)?;
                if !comment.is_empty() || removed.contains(&end) && end != removed.start {
                    return None;
                }
                let between = if layout == Layout::Commas { ", " } else { " " };
                if self.has_comment(end) {
                    // It stays in the line of its entry.
                    let has_comma = self.after(end).trim_start().starts_with(',');
                    if layout == Layout::Commas && !has_comma {
                        changes.push((end..end, ",".to_owned()));
                    }
                    let (at, indent) = (self.line_end(end), self.indent(start));
                    changes.push((at..at, format!("{indent}{text}{}", self.line_feed())));
                } else {
                    changes.push((end..end, format!("{between}{text}")));
                }
                if !above.is_empty() {
                    let start = self.line_start(end);
                    changes.push((start..start, comments(&self.indent_of_line(start))));
                }
            }
            Layout::Other => return None,
        }
        Some(Moved { changes, made, maps: vec![own.span, map.span], emptied })
    }

    /// The lines of comments right above the line in which an entry begins, if it is the first in its line. Those at the head
    /// of the text are about all of it.
    fn comments_above(self, at: usize) -> Range<usize> {
        let end = self.line_start(at);
        let mut start = end;
        while self.begins_line(at)
            && let Some(before) = start.checked_sub(1).filter(|_| start > 0)
            && let line = self.line_start(before)
            && let Some(text) = self.text.get(line..before)
            && self.is_comment(text.trim())
        {
            // What is further left may be about the entries around this one, and what is further right in YAML is at the end
            // of the map above it, or within its text.
            let indent = text.len().saturating_sub(text.trim_start().len());
            let column = at.saturating_sub(end);
            if indent < column || self.notation == Notation::Yaml && indent > column {
                break;
            }
            start = line;
        }
        let is_head = self.before(start).trim_start_matches('\u{feff}').is_empty();
        if is_head { end..end } else { start..end }
    }

    /// Whether a piece of a text that begins no value is a comment.
    fn is_comment(self, text: &str) -> bool {
        text.starts_with('#') || self.notation == Notation::Dsl && text.starts_with("//")
    }

    /// Whether a comment is in the same line after an entry, with nothing but a comma between them.
    fn has_comment(self, end: usize) -> bool {
        let rest = self.text.get(end..self.line_end(end)).unwrap_or("");
        self.is_comment(rest.trim_start().trim_start_matches(',').trim_start())
    }

    /// Whether a comment that may be about an entry is next to it.
    pub fn has_own_comment(self, place: &Range<usize>) -> bool {
        let above = self.before(self.line_start(place.start)).lines().next_back().unwrap_or("");
        self.has_comment(place.end) || self.begins_line(place.start) && self.is_comment(above.trim())
    }

    /// The blanks with which the line begins that begins at a place.
    fn indent_of_line(self, start: usize) -> String {
        self.after(start).chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
    }

    /// Where the key begins of the map that has only this entry.
    pub fn above(found: &Found<'_>) -> Option<usize> {
        let (own, _) = found.above.last()?;
        let (_, parent) = found.above.get(found.above.len().checked_sub(2)?)?;
        own.entries().is_some_and(|entries| entries.len() == 1).then_some(parent.key_span.start as usize)
    }

    /// What is removed with the only entry of a map in lines, so that the map is left without entries. `above` is where the
    /// comments above it begin.
    fn emptied(self, found: &Found<'_>, above: usize) -> Option<Range<usize>> {
        let (own, entry) = found.above.last()?;
        let (_, parent) = found.above.get(found.above.len().checked_sub(2)?)?;
        let place = self.written(entry)?;
        if own.entries()?.len() != 1 {
            return None;
        }
        let lines = self.line_start(place.start)..self.line_end(place.end);
        match self.notation {
            Notation::Dsl => Some(lines),
            // From the colon on, where `{}` is written instead.
            Notation::Yaml => {
                let key = parent.key_span.end as usize;
                let colon = self.text.get(key..place.start)?.find(':')?;
                let start = key.checked_add(colon)?.checked_add(1)?;
                let is_alone = self.text.get(start..above)?.trim().is_empty();
                let end = lines.start.checked_add(self.text.get(lines)?.trim_end().len())?;
                is_alone.then_some(start..end)
            }
        }
    }

    /// Whether what is removed is all of the value of a key in YAML.
    fn begins_with_line(self, removed: &Range<usize>, found: &Found<'_>) -> bool {
        self.notation == Notation::Yaml
            && Text::above(found).is_some()
            && self.before(removed.start).ends_with(':')
    }

    /// The change that writes an entry between the braces of a map without entries.
    fn filled(self, map: &Node, maps: &[String], written: &str, from: &str) -> Option<Change> {
        let inside = self.text.get(map.span.range())?.strip_prefix('{')?.strip_suffix('}')?;
        if !inside.trim().is_empty() {
            return None;
        }
        let start = (map.span.start as usize).checked_add(1)?;
        let place = start..start.checked_add(inside.len())?;
        if self.notation == Notation::Yaml {
            return Some((place, self.nested(maps, written, (from, from), Layout::Commas)?));
        }
        if !written.contains('\n') && !inside.contains('\n') {
            let text = self.nested(maps, written, (from, from), Layout::Blanks)?;
            return Some((place, format!(" {text} ")));
        }
        let outer = self.indent_of_line(self.line_start(start));
        let unit = if from.contains('\t') || outer.contains('\t') { "\t" } else { "  " };
        let indent = format!("{outer}{unit}");
        let text = self.nested(maps, written, (from, &indent), Layout::Lines)?;
        let line_feed = self.line_feed();
        Some((place, format!("{line_feed}{indent}{text}{line_feed}{outer}")))
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
