//! A document with another word in the place of one of its values, in which a suggestion is tried.

use super::context::Context;
use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node};

/// Whether a document has no new fault, not even about numbers that do not fit others, with a word in the place of one of its
/// values. Also true if this cannot be tried.
pub(super) fn would_hold(place: Span, word: &str, cx: &Context<'_>) -> bool {
    let now = cx.tried(Node::clone);
    let then = cx.tried(|tree| replaced(tree, place, word));
    now.zip(then).is_none_or(|(now, then)| then.is_subset(&now))
}

/// The most numbers that are tried on one side of a number.
const TRIED: usize = 6;

/// The first number of each of some sequences with which a document has no new fault, not even about numbers that do not fit
/// others, in the place of one of its values. The first one of each if this cannot be tried.
pub(super) fn that_hold<'i>(
    place: Option<Span>,
    sides: impl IntoIterator<Item = Box<dyn Iterator<Item = u64> + 'i>>,
    cx: &Context<'_>,
) -> Vec<u64> {
    let now = place.and_then(|place| Some((place, cx.tried(Node::clone)?)));
    let holds = |number: &u64| {
        now.as_ref().is_none_or(|(place, now)| {
            let then = cx.tried(|tree| replaced(tree, *place, &number.to_string()));
            then.is_some_and(|then| then.is_subset(now))
        })
    };
    sides.into_iter().filter_map(|side| side.take(TRIED).find(holds)).collect()
}

/// The tree with a word in place of the scalars at a place: a value that is repeated is there several times.
fn replaced(tree: &Node, place: Span, word: &str) -> Node {
    let kind = match &tree.kind {
        Kind::Scalar(_) if tree.span == place => return Node::plain(word, place),
        Kind::Map(entries) => {
            let changed = |e: &Entry| Entry { value: replaced(&e.value, place, word), ..e.clone() };
            Kind::Map(entries.iter().map(changed).collect())
        }
        Kind::List(items) => Kind::List(items.iter().map(|item| replaced(item, place, word)).collect()),
        Kind::Null | Kind::Scalar(_) | Kind::Delete => tree.kind.clone(),
    };
    Node { kind, span: tree.span }
}
