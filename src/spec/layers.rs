//! Which block stands in which layer: patterns, ranges and runs, kept symbolic.
//!
//! A stack of a billion layers is a few [`Run`]s of a cycle each.

use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::record::listed;
use crate::field::value::Value;
use crate::field::{Size, value::wrong_kind};
use crate::source::Span;
use crate::syntax::merge::merge;
use crate::syntax::tree::{Kind, Node};

/// Consecutive layers that cycle through some trees.
#[derive(Clone, Debug)]
pub struct Run {
    /// How many layers.
    pub count: u64,
    /// The trees of the cycle, with the names of their blocks.
    pub cycle: Vec<(Option<String>, Node)>,
}

/// A range of layers with what it changes.
struct Range {
    start: u64,
    end: u64,
    tree: Node,
    span: Span,
}

/// The runs of a stack. `base` is the tree of a block without a name.
pub fn runs(stack: &Node, base: &Node, layers: u64, cx: &mut Context<'_>) -> Option<Vec<Run>> {
    if let Some(entry) = stack.entry("runs") {
        if let Some(other) = ["pattern", "ranges"].iter().find_map(|k| stack.entry(k)) {
            let message = format!("`runs` and `{}` both say which block stands where", other.key);
            cx.report(
                Diagnostic::error(Code::KeysExclude, other.key_span, message)
                    .label(entry.key_span, "the other one")
                    .help("keep one of them"),
            );
            return None;
        }
        return explicit(&entry.value, stack, base, layers, cx);
    }
    let cycle = pattern(stack, base, cx)?;
    let ranges = ranges(stack, layers, cx)?;
    let mut cuts: Vec<u64> = ranges.iter().flat_map(|r| [r.start, r.end]).chain([0, layers]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut runs = Vec::new();
    for pair in cuts.windows(2) {
        let &[start, end] = pair else { continue };
        let over: Vec<&Range> = ranges.iter().filter(|r| r.start <= start && end <= r.end).collect();
        let length = cycle.len() as u64;
        let cycle = (0..length.min(end - start))
            .filter_map(|i| cycle.get(((start + i) % length) as usize))
            .map(|(name, tree)| {
                let tree =
                    over.iter().fold(tree.clone(), |t, r| merge(&t, &r.tree, &super::is_part, cx.sink()));
                (name.clone(), tree)
            })
            .collect();
        runs.push(Run { count: end - start, cycle });
    }
    Some(runs)
}

/// The named blocks, each laid over the base.
fn named<'n>(stack: &'n Node, cx: &mut Context<'_>) -> Option<Vec<(&'n str, Span, &'n Node)>> {
    let Some(node) = stack.get("blocks") else { return Some(Vec::new()) };
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map of named blocks", cx);
        return None;
    };
    let mut blocks = Vec::new();
    for e in entries {
        match e.value.kind {
            Kind::Map(_) | Kind::Null => blocks.push((e.key.as_str(), e.key_span, &e.value)),
            Kind::Scalar(_) | Kind::List(_) | Kind::Delete => {
                wrong_kind(&e.value, "a map with what this block changes", cx);
                return None;
            }
        }
    }
    Some(blocks)
}

fn lay(base: &Node, over: &Node, cx: &mut Context<'_>) -> Node {
    match over.kind {
        Kind::Null => base.clone(),
        Kind::Map(_) | Kind::Scalar(_) | Kind::List(_) | Kind::Delete => {
            merge(base, over, &super::is_part, cx.sink())
        }
    }
}

fn pattern(stack: &Node, base: &Node, cx: &mut Context<'_>) -> Option<Vec<(Option<String>, Node)>> {
    let blocks = named(stack, cx)?;
    let Some(node) = stack.get("pattern") else {
        return match blocks.as_slice() {
            [] => Some(vec![(None, base.clone())]),
            [(name, _, tree)] => Some(vec![(Some((*name).to_owned()), lay(base, tree, cx))]),
            [(_, span, _), ..] => {
                let names: Vec<&str> = blocks.iter().map(|(name, ..)| *name).collect();
                let message =
                    format!("{} blocks have names, and no `pattern` says where they stand", blocks.len());
                cx.report(
                    Diagnostic::error(Code::MissingKey, *span, message)
                        .help(format!("add `pattern: [{}]`", names.join(", "))),
                );
                None
            }
        };
    };
    let Kind::List(items) = &node.kind else {
        wrong_kind(node, "a list of names of blocks", cx);
        return None;
    };
    if items.is_empty() {
        wrong_kind(node, "a list of at least one name", cx);
        return None;
    }
    let cycle: Vec<Option<(Option<String>, Node)>> =
        items.iter().map(|item| block_named(item, &blocks, base, cx)).collect();
    for (name, span, _) in &blocks {
        if !items.iter().any(|item| item.text() == Some(name)) {
            let message = format!("no layer is a `{name}` block");
            cx.report(
                Diagnostic::error(Code::UnusedKey, *span, message)
                    .label(node.span, "the pattern does not name it")
                    .help("name it in `pattern`, or take it away"),
            );
        }
    }
    cycle.into_iter().collect()
}

fn block_named(
    item: &Node,
    blocks: &[(&str, Span, &Node)],
    base: &Node,
    cx: &mut Context<'_>,
) -> Option<(Option<String>, Node)> {
    let Some(name) = item.text() else {
        wrong_kind(item, "the name of a block", cx);
        return None;
    };
    match blocks.iter().find(|(n, ..)| *n == name) {
        Some((_, _, tree)) => Some((Some(name.to_owned()), lay(base, tree, cx))),
        None => {
            let names: Vec<&str> = blocks.iter().map(|(n, ..)| *n).collect();
            let message = format!("there is no block `{name}`");
            let diagnostic = Diagnostic::error(Code::UnknownBlock, item.span, message);
            cx.report(match suggest(name, &names) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None if names.is_empty() => {
                    diagnostic.help(format!("describe it under `blocks: {{{name}: {{...}}}}`"))
                }
                None => diagnostic.help(format!("the blocks are {}", listed(&names))),
            });
            None
        }
    }
}

fn ranges(stack: &Node, layers: u64, cx: &mut Context<'_>) -> Option<Vec<Range>> {
    let Some(node) = stack.get("ranges") else { return Some(Vec::new()) };
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map from ranges of layers to what they change", cx);
        return None;
    };
    let mut ranges: Vec<Range> = Vec::new();
    let mut complete = true;
    for e in entries {
        let parsed = parse_range(&e.key, layers);
        let Some((start, end)) = parsed else {
            let message = format!("`{}` is not a range of the {layers} layers", e.key);
            cx.report(Diagnostic::error(Code::BadRange, e.key_span, message).help(format!(
                "`0..3` is layers 0, 1 and 2; `3..` is all from 3 on; `0` is the first; the last is {}",
                layers - 1
            )));
            complete = false;
            continue;
        };
        if !matches!(e.value.kind, Kind::Map(_)) {
            wrong_kind(&e.value, "a map with what these layers change", cx);
            complete = false;
            continue;
        }
        if let Some(twin) = ranges.iter().find(|r| r.start < end && start < r.end) {
            let message = format!("the ranges of layers overlap from {}", twin.start.max(start));
            cx.report(
                Diagnostic::error(Code::BadRange, e.key_span, message)
                    .label(twin.span, "the other one")
                    .help("a layer stands in one range at most"),
            );
            complete = false;
        }
        ranges.push(Range { start, end, tree: e.value.clone(), span: e.key_span });
    }
    complete.then_some(ranges)
}

/// `0..3`, `3..`, `..3`, `7`: within the layers and not empty.
fn parse_range(text: &str, layers: u64) -> Option<(u64, u64)> {
    let text = text.trim();
    let number = |t: &str| t.trim().parse::<u64>().ok();
    let (start, end) = match text.split_once("..") {
        Some((a, b)) => (
            if a.trim().is_empty() { 0 } else { number(a)? },
            if b.trim().is_empty() { layers } else { number(b)? },
        ),
        None => {
            let at = number(text)?;
            (at, at.checked_add(1)?)
        }
    };
    (start < end && end <= layers).then_some((start, end))
}

fn explicit(node: &Node, stack: &Node, base: &Node, layers: u64, cx: &mut Context<'_>) -> Option<Vec<Run>> {
    let blocks = named(stack, cx)?;
    let Kind::List(items) = &node.kind else {
        wrong_kind(node, "a list of `{count: n, cycle: [names]}`", cx);
        return None;
    };
    let mut runs = Vec::new();
    let mut total = 0u64;
    for item in items {
        let count = item.get("count").and_then(|n| Size::decode(n, cx));
        let Some(Kind::List(names)) = item.get("cycle").map(|n| &n.kind) else {
            wrong_kind(item, "`{count: n, cycle: [names]}`", cx);
            return None;
        };
        let cycle: Vec<Option<(Option<String>, Node)>> =
            names.iter().map(|n| block_named(n, &blocks, base, cx)).collect();
        let cycle: Option<Vec<_>> = cycle.into_iter().collect();
        let (count, cycle) = (count?, cycle?);
        if cycle.is_empty() {
            wrong_kind(item, "a cycle of at least one name", cx);
            return None;
        }
        total = total.saturating_add(*count);
        runs.push(Run { count: *count, cycle });
    }
    if total != layers {
        let message = format!("the runs add up to {total} layers, not {layers}");
        let place = stack.get("layers").map_or(node.span, |n| n.span);
        cx.report(
            Diagnostic::error(Code::LengthMismatch, node.span, message)
                .label(place, format!("{layers} layers here")),
        );
        return None;
    }
    Some(runs)
}
