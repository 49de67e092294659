//! An unknown key in the place of one that a map lacks and needs.

use super::context::Context;
use super::seek::STACKS;
use super::value::{DefaultDoc, Field};
use crate::diag::foreign::foreign;
use crate::diag::ideas;
use crate::syntax::tree::{Entry, Kind, Node};

/// The only one of the fields that a map lacks and needs with which the checker accepts the value of an unknown key.
pub(super) fn the_missing(
    entry: &Entry,
    fields: &[Field],
    map: &Node,
    cx: &Context<'_>,
) -> Option<&'static str> {
    let is_known_elsewhere =
        foreign(&entry.key).is_some() || ideas::outside(&entry.key, ideas::Met::Value).is_some();
    if is_known_elsewhere || !cx.can_try() {
        return None;
    }
    let is_needed = |f: &&Field| match f.default {
        DefaultDoc::Required => true,
        // Where a spec has none, those that its head is for.
        _ => STACKS.contains(&f.name) && cx.stacks().contains(&f.name),
    };
    let missing = fields.iter().filter(is_needed).filter(|f| map.get(f.name).is_none());
    let mut accepted =
        missing.map(|f| f.name).filter(|name| cx.would_accept(entry, &[(*name).to_owned()], &entry.value));
    match (accepted.next(), accepted.next()) {
        (Some(name), None) => Some(name),
        (_, _) => None,
    }
}

/// The only field that a map of this kind has, without a value, if it is needed and `kept` lacks it: no unknown key can be meant
/// for another, so that it is missing would be the same fault again.
pub(super) fn in_its_place(entry: &Entry, fields: &[Field], kept: &[Entry]) -> Option<Entry> {
    let [only] = fields else { return None };
    let is_missing = matches!(only.default, DefaultDoc::Required) && kept.iter().all(|k| k.key != only.name);
    let value = Node { kind: Kind::Null, span: entry.value.span };
    is_missing.then(|| Entry { key: only.name.to_owned(), key_span: entry.key_span, value })
}
