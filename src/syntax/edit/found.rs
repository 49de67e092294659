//! Finds the entry of a tree that is at a place.

use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node};

/// An entry in the maps above it.
pub struct Found<'t> {
    /// The maps from the outermost one to the one that has the entry, with the entry itself or the one that leads to it.
    /// A list on the way makes it begin anew.
    pub above: Vec<(&'t Node, &'t Entry)>,
}

/// The key of the entry of which the key or the value is at a place.
pub fn key(tree: &Node, at: Span) -> Option<&str> {
    find(tree, at)?.above.last().map(|(_, entry)| entry.key.as_str())
}

/// The entry whose key or value is at a place.
pub fn find(tree: &Node, at: Span) -> Option<Found<'_>> {
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
