//! Changes to a text that carry out a [`Fix`], by the places of its tree, so that comments and the layout of everything
//! else stay as they are.
//!
//! An edit is made only where the text is of a usual form; elsewhere there is none. Whoever makes one checks the text
//! that results, because an edit knows nothing of what the words mean.

mod found;
mod said;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use self::found::find;
pub use self::found::key;
use self::said::{Site, is_as_said};
pub use self::text::Change;
use self::text::{Layout, Text};
use super::comment::Comment;
use super::notation::Notation;
use super::tree::Node;
use super::{comments, parse};
use crate::diag::render::{EditData, FixData};
use crate::diag::{Certainty, Diagnostic, Fix, Sink, suggest};
use crate::source::{SourceId, SourceMap, Span};

/// A text with the tree to which it parses.
#[derive(Clone, Copy, Debug)]
pub struct Parsed<'t> {
    /// The text.
    pub text: &'t str,
    /// Its notation.
    pub notation: Notation,
    /// What it parses to.
    pub tree: &'t Node,
}

/// A change of a text that carries out a fix.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The pieces that are replaced, which do not overlap, and what replaces them.
    pub changes: Vec<Change>,
    /// Whether this is what the author meant, as far as that can be known, and nothing is lost.
    pub is_safe: bool,
    /// Where the entry is written that the fix is about, and each of those around it, from the inside.
    pub around: Vec<Range<usize>>,
    /// Where the key begins of the map that has no entry any more.
    pub emptied: Option<usize>,
    /// What it carries out, and where.
    site: Site,
    /// Where comments are lost, because they are about what is removed.
    pub lost: Range<usize>,
    /// The maps that lose or get an entry.
    maps: Vec<Span>,
}

/// The longest text in bytes that is edited: each edit parses it anew, and what is longer was written by a program.
pub const LONGEST: usize = 64 << 10;

/// The most maps that a safe move makes: more of them choose parts that the author may not have meant.
const MADE: usize = 1;

impl Parsed<'_> {
    /// The edit that carries out a fix at the place `at` of a diagnostic, before the result is compared with what the fix
    /// says, as [`Parsed::with`] does. `None` if the text is longer than [`LONGEST`] or of a form that cannot be changed.
    pub fn edit(&self, at: Span, fix: &Fix) -> Option<Edit> {
        let Self { text, notation, tree } = *self;
        if text.len() > LONGEST {
            return None;
        }
        let whole = Text { text, notation };
        let found = find(tree, at);
        let (mut made, mut lost, mut maps, mut emptied) = (0, 0..0, Vec::new(), None);
        let changes = match fix {
            Fix::Rename { from, to } | Fix::Guess { from, to } => vec![(whole.word(at, from)?, to.clone())],
            Fix::Replace(value) => vec![(at.range(), value.clone())],
            Fix::Assign { key, value } => vec![(at.range(), format!("{key}: {value}"))],
            Fix::Remove => {
                let found = found.as_ref()?;
                let (map, entry) = found.above.last()?;
                let removed = whole.removed(found)?;
                // The comment in its line is about what is removed.
                if whole.layout(map, entry) == Layout::Lines {
                    lost = removed.clone();
                } else if whole.has_own_comment(&whole.written(entry)?) {
                    return None;
                }
                maps.push(map.span);
                emptied = Text::above(found);
                vec![(removed, String::new())]
            }
            Fix::Move { .. } | Fix::Choose { .. } => {
                let found = found.as_ref()?;
                let (path, up, written) = whole.destination(found, fix)?;
                let moved = whole.moved(found, path, up, &written)?;
                made = moved.made;
                maps = moved.maps;
                emptied = moved.emptied;
                moved.changes
            }
        };
        let is_sure = match fix {
            Fix::Rename { from, to } => suggest::is_sure(from, to),
            Fix::Move { .. }
            | Fix::Guess { .. }
            | Fix::Replace(_)
            | Fix::Choose { .. }
            | Fix::Assign { .. }
            | Fix::Remove => true,
        };
        let is_safe = match fix.certainty() {
            Certainty::Certain => true,
            Certainty::Likely => made <= MADE && is_sure,
            Certainty::Guess => false,
        };
        let entries = found.iter().flat_map(|found| found.above.iter().rev());
        let mut around: Vec<_> = entries.filter_map(|(_, entry)| whole.written(entry)).collect();
        if around.is_empty() {
            around.push(at.range());
        }
        Some(Edit { changes, is_safe, around, emptied, site: Site { at, fix: fix.clone() }, maps, lost })
    }

    /// The text after some edits. `None` if they overlap, if the tree would then differ in anything that their fixes do not
    /// say, or if a comment would be lost.
    pub fn with(&self, edits: &[&Edit]) -> Option<String> {
        let Self { text, notation, tree } = *self;
        let changed = apply(text, edits.iter().flat_map(|edit| edit.changes.iter().cloned()).collect())?;
        let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if is_json(text) && !is_json(&changed) {
            return None;
        }
        let mut sources = SourceMap::new();
        let id = sources.add("", changed.clone());
        let mut sink = Sink::new();
        let after = parse(&sources, id, notation, &mut sink).filter(|_| !sink.has_errors())?;
        let kept = |text: &str, tree: &Node, lost: &[&Edit]| {
            let all = comments::all(text, notation, tree).into_iter();
            let is_kept = |c: &Comment| !lost.iter().any(|edit| edit.lost.contains(&c.start));
            let mut kept: Vec<String> = all.filter(is_kept).map(|c| c.text).collect();
            kept.sort();
            kept
        };
        let sites: Vec<&Site> = edits.iter().map(|edit| &edit.site).collect();
        let is_right =
            is_as_said(tree, &after, &sites) && kept(text, tree, edits) == kept(&changed, &after, &[]);
        is_right.then_some(changed)
    }

    /// Which of some edits are right, each with those of them that can be made with it.
    fn right(&self, edits: &[&Edit]) -> Vec<bool> {
        if edits.is_empty() || self.with(edits).is_some() {
            return vec![true; edits.len()];
        }
        if edits.len() == 1 {
            return vec![false];
        }
        let (one, other) = edits.split_at(edits.len() / 2);
        [self.right(one), self.right(other)].concat()
    }
}

/// The indices of the edits that can be made at once: each one, from the first on, that leaves alone what those before it
/// change.
pub fn at_once(edits: &[Edit]) -> Vec<usize> {
    let mut maps = BTreeSet::new();
    // Where what is replaced begins and ends.
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    let mut chosen = Vec::new();
    for (i, edit) in edits.iter().enumerate() {
        let is_free = |range: &Range<usize>| {
            let before = taken.range(..range.start).next_back();
            let after = taken.range(range.start..).next();
            before.is_none_or(|(_, end)| *end <= range.start)
                && after.is_none_or(|(start, _)| *start > range.start && *start >= range.end)
        };
        if edit.maps.iter().any(|map| maps.contains(map)) || !edit.changes.iter().all(|(at, _)| is_free(at)) {
            continue;
        }
        maps.extend(edit.maps.iter().copied());
        taken.extend(edit.changes.iter().map(|(at, _)| (at.start, at.end)));
        chosen.push(i);
    }
    chosen
}

/// The fix of each diagnostic as changes to the source of its primary place.
pub fn fixes(diagnostics: &[Diagnostic], sources: &SourceMap) -> Vec<Option<FixData>> {
    let mut data: Vec<Option<FixData>> = diagnostics.iter().map(|_| None).collect();
    let mut by_source: BTreeMap<SourceId, Vec<usize>> = BTreeMap::new();
    for (i, d) in diagnostics.iter().enumerate().filter(|(_, d)| d.fix.is_some()) {
        by_source.entry(d.span().source).or_default().push(i);
    }
    for (id, indices) in by_source {
        let Some(source) = sources.get(id) else { continue };
        let notation = Notation::from_path(&source.name).unwrap_or_else(|| Notation::guess(&source.text));
        let Some(tree) = parse(sources, id, notation, &mut Sink::new()) else { continue };
        let parsed = Parsed { text: &source.text, notation, tree: &tree };
        let edit = |i: usize| {
            let d = diagnostics.get(i)?;
            Some((i, parsed.edit(d.span(), d.fix.as_deref()?)?))
        };
        let (mut places, mut edits): (Vec<usize>, Vec<Edit>) = indices.into_iter().filter_map(edit).unzip();
        while !edits.is_empty() {
            let chosen = at_once(&edits);
            let together: Vec<&Edit> = chosen.iter().filter_map(|i| edits.get(*i)).collect();
            let right = parsed.right(&together);
            for ((i, edit), _) in chosen.iter().zip(together).zip(right).filter(|(_, right)| *right) {
                let changes = edit.changes.iter().cloned();
                let edits =
                    changes.map(|(range, text)| EditData { start: range.start, end: range.end, text });
                let fix = FixData { safe: edit.is_safe, edits: edits.collect() };
                if let Some(data) = places.get(*i).and_then(|place| data.get_mut(*place)) {
                    *data = Some(fix);
                }
            }
            let chosen: BTreeSet<usize> = chosen.into_iter().collect();
            let mut left = (0..edits.len()).map(|i| !chosen.contains(&i));
            edits.retain(|_| left.next().unwrap_or(false));
            let mut left = (0..places.len()).map(|i| !chosen.contains(&i));
            places.retain(|_| left.next().unwrap_or(false));
        }
    }
    data
}

/// The text with these changes; `None` if they overlap.
fn apply(text: &str, mut changes: Vec<Change>) -> Option<String> {
    changes.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut out, mut at) = (String::new(), 0);
    for (range, with) in changes {
        out += text.get(at..range.start)?;
        out += &with;
        at = range.end;
    }
    out += text.get(at..)?;
    Some(out)
}
