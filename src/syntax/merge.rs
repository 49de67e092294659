//! Merges one tree over another, for `extends:` and `--set`.
//!
//! Maps are merged key by key; a key replaces its alternative (`hidden` an `expansion`); every other value replaces the old one. `!delete` removes a key. A part
//! replaces another part: `norm: {rms_norm: {}}` over `norm: {layer_norm: {eps: 1e-5}}` leaves no
//! `layer_norm`. Every node keeps the place where it was written.

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::{Code, Diagnostic, Sink};

use super::tree::{Entry, Kind, Node};

/// Keys of one map that say the same thing in two ways: one that is laid over a map replaces the other.
const ALTERNATIVES: &[(&str, &str)] = &[("expansion", "hidden"), ("steps", "epochs")];

/// Whether a word is the name of a part, such as `layer_norm`.
pub type IsPart<'a> = &'a dyn Fn(&str) -> bool;

/// Merges `over` over `base`. Reports every `!delete` without a key to remove.
pub fn merge(base: &Node, over: &Node, is_part: IsPart<'_>, sink: &mut Sink) -> Node {
    let (Kind::Map(below), Kind::Map(above)) = (&base.kind, &over.kind) else {
        return settle(over, sink);
    };
    if let ([old], [new]) = (below.as_slice(), above.as_slice())
        && old.key != new.key
        && is_part(&old.key)
        && is_part(&new.key)
    {
        return settle(over, sink);
    }
    let replaced = |key: &str| {
        let other = ALTERNATIVES.iter().find_map(|(a, b)| match key {
            _ if key == *a => Some(*b),
            _ if key == *b => Some(*a),
            _ => None,
        });
        other.is_some_and(|other| over.get(other).is_some())
    };
    let mut entries: Vec<Entry> = Vec::with_capacity(below.len().saturating_add(above.len()));
    let new: BTreeMap<&str, &Entry> = above.iter().map(|e| (e.key.as_str(), e)).collect();
    let old: BTreeSet<&str> = below.iter().map(|e| e.key.as_str()).collect();
    for old in below {
        match new.get(old.key.as_str()).copied() {
            None if replaced(&old.key) => {}
            None => entries.push(old.clone()),
            Some(Entry { value: Node { kind: Kind::Delete, .. }, .. }) => {}
            Some(new) => {
                let value = merge(&old.value, &new.value, is_part, sink);
                entries.push(Entry { key: new.key.clone(), key_span: new.key_span, value });
            }
        }
    }
    let added: Vec<&Entry> = above.iter().filter(|e| !old.contains(e.key.as_str())).collect();
    entries.extend(settled(added.into_iter(), sink));
    Node::map(entries, over.span)
}

/// A tree that is merged over nothing: every `!delete` in it is reported and left out.
pub fn settle(node: &Node, sink: &mut Sink) -> Node {
    let kind = match &node.kind {
        Kind::Map(entries) => Kind::Map(settled(entries.iter(), sink)),
        Kind::List(items) => Kind::List(items.iter().map(|i| settle(i, sink)).collect()),
        Kind::Delete => {
            nothing_to_delete("this", node, sink);
            Kind::Null
        }
        Kind::Null | Kind::Scalar(_) => node.kind.clone(),
    };
    Node { kind, span: node.span }
}

fn settled<'a>(entries: impl Iterator<Item = &'a Entry>, sink: &mut Sink) -> Vec<Entry> {
    let mut kept = Vec::new();
    for entry in entries {
        if matches!(entry.value.kind, Kind::Delete) {
            nothing_to_delete(&format!("`{}`", entry.key), &entry.value, sink);
        } else {
            kept.push(Entry { value: settle(&entry.value, sink), ..entry.clone() });
        }
    }
    kept
}

fn nothing_to_delete(what: &str, at: &Node, sink: &mut Sink) {
    let message = format!("`!delete` is used for {what}, which does not exist");
    let help = "`!delete` removes a key that the spec under `extends` gives; without such a key, leave it \
        out";
    sink.push(Diagnostic::error(Code::NothingToDelete, at.span, message).help(help));
}
