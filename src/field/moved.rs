//! A tree with one of its entries in another place, in which a suggestion is tried.

use crate::diag::Sink;
use crate::syntax::merge::{Parts, merge};
use crate::syntax::tree::{Entry, Node};

/// The tree with an entry, which is found by its place, moved: `value`, if there is one, is at `path` below
/// the map that had it. `None` if the tree has no such entry.
pub(super) fn moved(
    tree: &Node,
    entry: &Entry,
    path: &[String],
    value: Option<&Node>,
    parts: &dyn Parts,
    sink: &mut Sink,
) -> Option<Node> {
    let entries = tree.entries()?;
    // By its place, since other maps may have the same key.
    if entries.iter().any(|e| e.key_span == entry.key_span && e.key == entry.key) {
        let rest = entries.iter().filter(|e| e.key_span != entry.key_span || e.key != entry.key).cloned();
        let rest = Node::map(rest.collect(), tree.span);
        let Some(value) = value else { return Some(rest) };
        return Some(merge(&rest, &below(path, entry, value), parts, sink));
    }
    entries.iter().enumerate().find_map(|(i, e)| {
        let value = moved(&e.value, entry, path, value, parts, sink)?;
        let mut entries = entries.to_vec();
        entries.get_mut(i)?.value = value;
        Some(Node::map(entries, tree.span))
    })
}

/// The keys of a tree that lead to an entry, which is found by its place.
pub(super) fn above(tree: &Node, entry: &Entry) -> Option<Vec<String>> {
    tree.entries()?.iter().find_map(|e| {
        if e.key_span == entry.key_span && e.key == entry.key {
            return Some(Vec::new());
        }
        let mut keys = above(&e.value, entry)?;
        keys.insert(0, e.key.clone());
        Some(keys)
    })
}

/// Maps in maps, with the value of an entry at a path.
pub(super) fn below(path: &[String], entry: &Entry, value: &Node) -> Node {
    path.iter().rev().fold(value.clone(), |value, key| {
        let e = Entry { key: key.clone(), key_span: entry.key_span, value };
        Node::map(vec![e], entry.key_span.to(entry.value.span))
    })
}
