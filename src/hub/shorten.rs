//! Leaves out of an imported spec what it means without being told.

use std::cell::Cell;

use crate::diag::Sink;
use crate::source::SourceMap;
use crate::spec::block::Block;
use crate::spec::stack::Stack;
use crate::spec::{ModelSpec, load};
use crate::syntax::tree::{Entry, Node};

/// The field of a stack with what single layers have of their own.
const RANGES: &str = "ranges";

/// The tree without the entries that change nothing: without each of them, in this order, it decodes to the same
/// spec, `whole`. And how often a tree was decoded for that, which is what takes the time.
pub fn shortened(tree: Node, whole: &ModelSpec, sources: &SourceMap) -> (Node, usize) {
    let attempts = Attempts { whole, sources, count: Cell::new(0) };
    let tree = attempts.shortened(tree);
    (tree, attempts.count.get())
}

/// The trees that are tried.
struct Attempts<'a> {
    whole: &'a ModelSpec,
    sources: &'a SourceMap,
    /// How many have been decoded.
    count: Cell<usize>,
}

impl Attempts<'_> {
    fn shortened(&self, tree: Node) -> Node {
        let mut tree = tree;
        // The stacks whose ranges have been looked at, and whether that has been decided for all of them together.
        let mut stacks: Vec<(String, bool)> = Vec::new();
        for path in paths(&tree, &mut Vec::new()) {
            if let [stack, field, _, ..] = path.as_slice()
                && field == RANGES
            {
                if stacks.iter().all(|(known, _)| known != stack) {
                    let shorter = self.without_in_layers(&tree, stack);
                    stacks.push((stack.clone(), shorter.is_some()));
                    tree = shorter.unwrap_or(tree);
                }
                if stacks.iter().any(|(known, is_done)| known == stack && *is_done) {
                    continue;
                }
            }
            let Some(shorter) = without(&tree, &path) else { continue };
            // Decoding the spec without the entry is slower than comparing the value with its default, but a
            // default may depend on other fields.
            if self.holds(&shorter) {
                tree = shorter;
            }
        }
        tree
    }

    /// Whether a tree decodes to the same spec, without even a warning.
    fn holds(&self, tree: &Node) -> bool {
        let mut sink = Sink::new();
        // A warning, such as about a field without effect, must not appear because another one was removed.
        self.decoded(tree, &mut sink).is_some_and(|spec| spec == *self.whole) && sink.iter().next().is_none()
    }

    /// The tree without those entries of a stack's ranges that change nothing, if every layer has at most one range, with
    /// the same entries as the others. A range then concerns its own layer alone, so that one decoded spec tells of every
    /// layer whether it is the same without an entry. `None` if each range must be looked at by itself.
    fn without_in_layers(&self, tree: &Node, stack: &str) -> Option<Node> {
        let ranges = tree.get(stack)?.get(RANGES)?.entries()?;
        let layer_of = |e: &Entry| e.key.parse::<u64>().ok().filter(|layer| layer.to_string() == e.key);
        let layers: Vec<u64> = ranges.iter().map(layer_of).collect::<Option<_>>()?;
        let below = |e: &Entry| paths(&e.value, &mut vec![stack.to_owned()]);
        let first = below(ranges.first()?);
        if ranges.iter().any(|e| below(e) != first) {
            return None;
        }
        // First the ranges themselves.
        let whole_range = vec![stack.to_owned()];
        let mut shorter = tree.clone();
        for below in std::iter::once(&whole_range).chain(&first) {
            let path = |layer: u64| {
                let inner = below.iter().skip(1).cloned();
                [stack.to_owned(), RANGES.to_owned(), layer.to_string()]
                    .into_iter()
                    .chain(inner)
                    .collect::<Vec<_>>()
            };
            let without_all = |tree: &Node, layers: &[u64]| {
                layers.iter().try_fold(tree.clone(), |tree, layer| without(&tree, &path(*layer)))
            };
            // A layer that has lost an outer entry no longer has those inside of it.
            let mut left: Vec<u64> =
                layers.iter().copied().filter(|layer| without(&shorter, &path(*layer)).is_some()).collect();
            let same = loop {
                let mut sink = Sink::new();
                let spec = self.decoded(&without_all(&shorter, &left)?, &mut sink);
                if sink.iter().next().is_none() {
                    let (found, wanted) = (named(spec.as_ref()?, stack)?, named(self.whole, stack)?);
                    let is_same = |layer: &u64| {
                        let block = block(wanted, *layer);
                        block.is_some() && block == self::block(found, *layer)
                    };
                    left.retain(is_same);
                    break left;
                }
                // A layer with a fault needs the entry. Where another place has the fault, no layer is known to be its cause.
                let faulty = |layer: &u64| {
                    let range = ranges.iter().find(|e| layer_of(e) == Some(*layer));
                    let has = |e: &Entry| sink.iter().any(|d| e.key_span.to(e.value.span).contains(d.span()));
                    range.is_some_and(has)
                };
                let count = left.len();
                left.retain(|layer| !faulty(layer));
                if left.len() == count {
                    let alone =
                        |layer: &u64| without(&shorter, &path(*layer)).is_some_and(|tree| self.holds(&tree));
                    left.retain(alone);
                    break left;
                }
            };
            shorter = without_all(&shorter, &same)?;
        }
        self.holds(&shorter).then_some(shorter)
    }

    fn decoded(&self, tree: &Node, sink: &mut Sink) -> Option<ModelSpec> {
        self.count.set(self.count.get().saturating_add(1));
        load::again(self.sources, tree, sink)
    }
}

/// The stack of that name.
fn named<'s>(spec: &'s ModelSpec, stack: &str) -> Option<&'s Stack> {
    let found = if stack == "encoder" { &spec.encoder } else { &spec.decoder };
    found.as_ref()
}

/// The block of a layer; `None` if there is no such layer, or if layers share blocks.
fn block(stack: &Stack, layer: u64) -> Option<&Block> {
    let mut before = layer;
    let is_plain = stack.each == 1
        && stack.segments.iter().try_fold(0u64, |sum, s| sum.checked_add(s.count)) == Some(stack.layers);
    for segment in stack.segments.iter().filter(|_| is_plain) {
        if before < segment.count {
            let at = usize::try_from(before).ok()?.checked_rem(segment.cycle.len())?;
            return stack.blocks.get(*segment.cycle.get(at)?);
        }
        before = before.checked_sub(segment.count)?;
    }
    None
}

/// The paths of all entries, outer ones first, so that a part without any settings is removed as a whole.
fn paths(node: &Node, at: &mut Vec<String>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for e in node.entries().unwrap_or(&[]) {
        at.push(e.key.clone());
        // These two are kept even where they have a default, so that the file says what it is.
        let is_title = matches!(at.as_slice(), [only] if only == "trafo" || only == "name");
        // The length of sequences in training is a fact about the weights: it must not follow a context that is set.
        if !is_title && e.key != "original_context" {
            found.push(at.clone());
        }
        found.extend(paths(&e.value, at));
        at.pop();
    }
    found
}

/// The tree without one entry; `None` if it is already gone.
fn without(node: &Node, path: &[String]) -> Option<Node> {
    let (key, rest) = path.split_first()?;
    let entries = node.entries()?;
    let at = entries.iter().position(|e| e.key == *key)?;
    let mut entries = entries.to_vec();
    if rest.is_empty() {
        entries.remove(at);
    } else {
        let e = entries.get_mut(at)?;
        e.value = without(&e.value, rest)?;
    }
    Some(Node::map(entries, node.span))
}
