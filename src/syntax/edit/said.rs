//! Whether a text says after some fixes what they say, and nothing else: their trees are compared.

use std::collections::BTreeSet;

use super::found::find;
use crate::diag::Fix;
use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node};

/// A fix with the place of its diagnostic.
#[derive(Clone, Debug)]
pub struct Site {
    /// The place.
    pub at: Span,
    /// What is to be done there.
    pub fix: Fix,
}

/// Whether some fixes make the one tree of the other, and nothing else differs.
pub fn is_as_said(before: &Node, after: &Node, sites: &[&Site]) -> bool {
    let mut expected = before.clone();
    let mut words = Vec::new();
    for site in sites {
        let next = match &site.fix {
            Fix::Rename { .. } | Fix::Guess { .. } | Fix::Replace(_) => {
                words.push(*site);
                continue;
            }
            Fix::Remove => removed(&expected, site.at),
            Fix::Assign { key, value } => assigned(&expected, site.at, key, value),
            Fix::Move { path, up, .. } => placed(&expected, site.at, path, *up, None),
            Fix::Choose { path, part } => placed(&expected, site.at, path, 0, Some(part)),
        };
        let Some(next) = next else { return false };
        expected = next;
    }
    // What is spelt wrong in one text is replaced from its beginning on.
    words.sort_by_key(|site| site.at);
    let mut met = BTreeSet::new();
    differ_only(&expected, after, &words, &mut met) && met.len() == words.len()
}

/// Whether two trees differ only at some places of the first one, as the fixes there say; `met` gets their indices.
fn differ_only(old: &Node, new: &Node, sites: &[&Site], met: &mut BTreeSet<usize>) -> bool {
    let own = sites.iter().position(|site| site.at == old.span && matches!(site.fix, Fix::Replace(_)));
    if let Some(index) = own
        && let Some(Site { fix: Fix::Replace(value), .. }) = sites.get(index)
        && new.text() == Some(value.as_str())
    {
        met.insert(index);
        return true;
    }
    match (&old.kind, &new.kind) {
        (Kind::Map(a), Kind::Map(b)) => {
            let is_same = |(i, a): (usize, &Entry)| {
                let is_it = |b: &&Entry| b.key == a.key;
                let b = match b.get(i).filter(is_it).or_else(|| b.iter().find(is_it)) {
                    Some(b) => b,
                    None => {
                        let renamed = |b: &&Entry| rewritten(&a.key, &b.key, |at| at == a.key_span, sites);
                        let Some(b) = b.iter().find(|b| renamed(b).is_some()) else { return false };
                        met.extend(renamed(&b).into_iter().flatten());
                        b
                    }
                };
                differ_only(&a.value, &b.value, sites, met)
            };
            a.len() == b.len() && a.iter().enumerate().all(is_same)
        }
        (Kind::List(a), Kind::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| differ_only(a, b, sites, met))
        }
        (_, _) if old.is_written_as(new) => true,
        // In the DSL, a call is a map with one key.
        (Kind::Scalar(a), Kind::Scalar(b)) => {
            match rewritten(&a.text, &b.text, |at| old.span.contains(at), sites) {
                Some(here) => {
                    met.extend(here);
                    true
                }
                None => false,
            }
        }
        (_, _) => false,
    }
}

/// The indices of the sites that are here, if the words there, one after the other, make the one text of the other.
fn rewritten(old: &str, new: &str, is_here: impl Fn(Span) -> bool, sites: &[&Site]) -> Option<Vec<usize>> {
    let here = sites.iter().enumerate().filter(|(_, site)| is_here(site.at));
    let word = |(index, site): (usize, &&'_ Site)| match &site.fix {
        Fix::Rename { from, to } | Fix::Guess { from, to } => Some((index, (from.clone(), to.clone()))),
        Fix::Move { .. } | Fix::Choose { .. } | Fix::Assign { .. } | Fix::Replace(_) | Fix::Remove => None,
    };
    let (indices, words): (Vec<usize>, Vec<(String, String)>) = here.filter_map(word).unzip();
    (!words.is_empty() && is_rewritten(old, new, &words)).then_some(indices)
}

fn is_rewritten(old: &str, new: &str, words: &[(String, String)]) -> bool {
    let Some(((from, to), rest)) = words.split_first() else { return old == new };
    let is_next = |start: usize| {
        let (Some(head), Some(tail)) = (old.get(..start), old.get(start.saturating_add(from.len())..)) else {
            return false;
        };
        let new = new.strip_prefix(head).and_then(|new| new.strip_prefix(to.as_str()));
        new.is_some_and(|new| is_rewritten(tail, new, rest))
    };
    old.match_indices(from.as_str()).any(|(start, _)| is_next(start))
}

/// The tree without an entry.
fn removed(tree: &Node, at: Span) -> Option<Node> {
    let found = find(tree, at)?;
    let (map, entry) = found.above.last()?;
    with(tree, map, &|map| Some(without(map, std::slice::from_ref(&entry.key))))
}

/// The tree in which an entry that was a key alone has another key and a value.
fn assigned(tree: &Node, at: Span, key: &str, value: &str) -> Option<Node> {
    let found = find(tree, at)?;
    let (map, entry) = found.above.last()?;
    with(tree, map, &|map| {
        let mut entries = map.entries()?.to_vec();
        let own = entries.iter_mut().find(|e| e.key == entry.key && matches!(e.value.kind, Kind::Null))?;
        (own.key, own.value) = (key.to_owned(), Node::plain(value, entry.key_span));
        Some(Node { kind: Kind::Map(entries), span: map.span })
    })
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
            let entry = |e: &Entry| {
                let value = with(&e.value, target, other)?;
                Some(Entry { key: e.key.clone(), key_span: e.key_span, value })
            };
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
            // It has no place yet, and so no other fix is about it.
            let empty = Node { kind: Kind::Map(Vec::new()), span: Span::default() };
            let value = if rest.is_empty() { value.clone() } else { added(&empty, rest, value)? };
            entries.push(Entry { key: first.clone(), key_span: Span::default(), value });
        }
    }
    Some(Node { kind: Kind::Map(entries), span: map.span })
}
