//! Assigns blocks to layers, by `pattern`, `ranges` or `runs`.
//!
//! Layers are not listed one by one: a stack of a billion layers is a few [`Run`]s, each of which repeats a
//! short cycle.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::mend::mended;
use crate::field::value::{DefaultDoc, Field, Shape, Value};
use crate::field::words::listed;
use crate::field::{Size, value::wrong_kind};
use crate::source::Span;
use crate::syntax::merge::merge;
use crate::syntax::tree::{Entry, Kind, Node};

/// The fields of one item of `runs`.
pub fn run_fields() -> Vec<Field> {
    vec![
        Field::new("count", "How many layers.", Size::describe, DefaultDoc::Required),
        Field::new(
            "cycle",
            "Names of the blocks that they cycle through.",
            || Shape::List(String::describe, None),
            DefaultDoc::Required,
        ),
    ]
}

/// Consecutive layers that cycle through the trees of some blocks.
#[derive(Clone, Debug)]
pub struct Run {
    /// The number of layers, which need not be a multiple of the length of the cycle.
    pub count: u64,
    /// The trees of the cycle, each with the name of its block if that has one.
    pub cycle: Vec<(Option<String>, Node)>,
}

/// An entry of `ranges`: the layers from `start` up to but not including `end`, and the tree with what it
/// changes in them.
struct Range {
    start: u64,
    end: u64,
    tree: Node,
    span: Span,
}

/// The blocks of the layers. If these are not known because of an error, `trees` can still be checked.
pub struct Plan {
    /// The runs, which together are all layers; `None` after an error.
    pub runs: Option<Vec<Run>>,
    /// Without runs, the trees of all named blocks, or the base if there are none, and for each range the
    /// first of these trees with the changes of the range.
    pub trees: Vec<(Option<String>, Node)>,
}

impl Plan {
    /// The names of the blocks that layers have, if the runs are known.
    pub fn with_layers(&self) -> Option<BTreeSet<&str>> {
        let cycles = self.runs.as_ref()?.iter().flat_map(|run| &run.cycle);
        Some(cycles.filter_map(|(name, _)| name.as_deref()).collect())
    }
}

/// The plan of a stack. `base` is the tree that every block starts from, and the tree of a block without a
/// name. Errors are reported.
pub fn plan(stack: &Node, base: &Node, layers: Option<u64>, cx: &mut Context<'_>) -> Plan {
    let named = named(stack, cx);
    let runs = if let Some(entry) = stack.entry("runs") {
        // The rules of a stack report the clash.
        let clash = ["pattern", "ranges"].iter().any(|key| stack.get(key).is_some());
        let blocks = named.as_ref().filter(|_| !clash);
        blocks.and_then(|blocks| explicit(&entry.value, stack, blocks, base, layers, cx))
    } else {
        let cycle = named.as_ref().and_then(|blocks| pattern(stack, blocks, base, layers, cx));
        let Ranges { layers: of_layers, changes } = ranges(stack, layers, cx);
        match (cycle, of_layers, layers) {
            (Some(cycle), Some(ranges), Some(layers)) => Some(cut(&cycle, &ranges, layers, cx)),
            _ => return Plan { runs: None, trees: trees(named, &changes, base, cx) },
        }
    };
    match runs {
        Some(runs) => Plan { runs: Some(runs), trees: Vec::new() },
        None => Plan { runs: None, trees: trees(named, &[], base, cx) },
    }
}

/// The trees of all named blocks, or the base if there are none, and for each range the first of these trees
/// with the changes of the range.
fn trees(
    named: Option<Vec<(&str, Span, &Node)>>,
    changes: &[Node],
    base: &Node,
    cx: &mut Context<'_>,
) -> Vec<(Option<String>, Node)> {
    let named = named.into_iter().flatten();
    let mut trees: Vec<(Option<String>, Node)> =
        named.map(|(name, _, tree)| (Some(name.to_owned()), lay(base, tree, cx))).collect();
    if trees.is_empty() {
        trees.push((None, base.clone()));
    }
    for change in changes {
        let over = |(name, tree): &(_, Node)| (Option::clone(name), lay(tree, change, cx));
        // One tree is enough to check what the range changes.
        let changed: Vec<(Option<String>, Node)> = trees.iter().take(1).map(over).collect();
        trees.extend(changed);
    }
    trees
}

/// The layers as runs, which begin and end where a range does.
fn cut(cycle: &[(Option<String>, Node)], ranges: &[Range], layers: u64, cx: &mut Context<'_>) -> Vec<Run> {
    // Sorted and each once, however the ranges are written and wherever they touch.
    let cuts: BTreeSet<u64> = ranges.iter().flat_map(|r| [r.start, r.end]).chain([0, layers]).collect();
    let by_start: BTreeMap<u64, &Range> = ranges.iter().map(|r| (r.start, r)).collect();
    let mut runs = Vec::new();
    for (&start, &end) in cuts.iter().zip(cuts.iter().skip(1)) {
        // No layer is in two ranges, so the range of these layers, if any, begins at the first of them.
        let over = by_start.get(&start).filter(|r| end <= r.end);
        let count = end.saturating_sub(start);
        // A range does not restart the cycle, so these layers begin somewhere within it.
        let first = start.checked_rem(cycle.len() as u64).unwrap_or(0) as usize;
        let from_there = cycle.iter().cycle().skip(first).take(cycle.len());
        let cycle = from_there
            .take(reached(count))
            .map(|(name, tree)| {
                (name.clone(), over.iter().fold(tree.clone(), |tree, range| lay(&tree, &range.tree, cx)))
            })
            .collect();
        runs.push(Run { count, cycle });
    }
    runs
}

/// How many names of a cycle these layers get to. The blocks of the others have no layer here: they would be
/// decoded for nothing, and what they need would be computed for nothing.
fn reached(layers: u64) -> usize {
    usize::try_from(layers).unwrap_or(usize::MAX)
}

/// The entries of `blocks`: names, their places, and what each block changes, which may be null. `None` after
/// an error.
fn named<'n>(stack: &'n Node, cx: &mut Context<'_>) -> Option<Vec<(&'n str, Span, &'n Node)>> {
    let Some(node) = stack.get("blocks") else { return Some(Vec::new()) };
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map of named blocks", cx);
        return None;
    };
    let mut blocks = Vec::new();
    let mut has_number = false;
    for e in entries {
        // `--set decoder.blocks.0.ffn.hidden=64` would name a block `0`, which all layers would be.
        if e.key.chars().all(|c| c.is_ascii_digit()) {
            has_number = true;
            let message = format!("the name of a block is a word, but `{}` is a number", e.key);
            cx.report(Diagnostic::error(Code::BadKey, e.key_span, message).help(
                "`ranges` changes layers by their numbers: `ranges: {\"0..1\": {...}}` changes the first",
            ));
        }
        match e.value.kind {
            Kind::Map(_) | Kind::Null => blocks.push((e.key.as_str(), e.key_span, &e.value)),
            Kind::Scalar(_) | Kind::List(_) | Kind::Delete => {
                wrong_kind(&e.value, "a map with what this block changes", cx);
                return None;
            }
        }
    }
    (!has_number).then_some(blocks)
}

fn lay(base: &Node, over: &Node, cx: &mut Context<'_>) -> Node {
    match over.kind {
        Kind::Null => base.clone(),
        Kind::Map(_) | Kind::Scalar(_) | Kind::List(_) | Kind::Delete => {
            merge(base, over, &super::Parts::known(cx), cx.sink())
        }
    }
}

fn pattern(
    stack: &Node,
    blocks: &[(&str, Span, &Node)],
    base: &Node,
    layers: Option<u64>,
    cx: &mut Context<'_>,
) -> Option<Vec<(Option<String>, Node)>> {
    let Some(node) = stack.get("pattern") else {
        return match blocks {
            [] => Some(vec![(None, base.clone())]),
            // With a single block there is no choice.
            [(name, _, tree)] => Some(vec![(Some((*name).to_owned()), lay(base, tree, cx))]),
            [(_, span, _), ..] => {
                let names: Vec<&str> = blocks.iter().map(|(name, ..)| *name).collect();
                let message = format!(
                    "{} blocks have names, and no `pattern` says which layers have them",
                    blocks.len()
                );
                cx.report(
                    Diagnostic::error(Code::MissingKey, *span, message)
                        .help(format!("add `pattern: [{}]`", names.join(", "))),
                );
                None
            }
        };
    };
    let Kind::List(items) = &node.kind else {
        let message = format!("expected a list of names of blocks, found {}", node.describe());
        let diagnostic = Diagnostic::error(Code::WrongKind, node.span, message);
        let alone = node.text().map(|name| format!("write `pattern: [{name}]`"));
        cx.report(alone.into_iter().fold(diagnostic, Diagnostic::help));
        return None;
    };
    if items.is_empty() {
        wrong_kind(node, "a list of at least one name", cx);
        return None;
    }
    let by_name = by_name(blocks);
    // All names are looked up before the first error ends this, so that every error is reported.
    let cycle: Vec<Option<Named>> = items.iter().map(|item| block_named(item, &by_name, base, cx)).collect();
    let cycle: Vec<(Option<String>, Node)> = cycle.into_iter().collect::<Option<_>>()?;
    let called: Vec<&str> = items.iter().filter_map(Node::text).collect();
    // After an error in `layers`, any name may have a layer.
    let with_layer = called.get(..layers.map_or(usize::MAX, reached)).unwrap_or(&called);
    report_idle(blocks, (&called, with_layer), node.span, "pattern", cx);
    Some(cycle)
}

/// Reports the blocks that no layer has: those that are not `called`, and those of which no layer is
/// `with_layer`, because the layers end before. Called only if all names that are `called` are known, because
/// a misspelled name may be that of such a block.
fn report_idle(
    blocks: &[(&str, Span, &Node)],
    (called, with_layer): (&[&str], &[&str]),
    place: Span,
    key: &str,
    cx: &mut Context<'_>,
) {
    let called: BTreeSet<&str> = called.iter().copied().collect();
    let with_layer: BTreeSet<&str> = with_layer.iter().copied().collect();
    for (name, span, _) in blocks.iter().filter(|(name, ..)| !with_layer.contains(name)) {
        let message = format!("no layer uses the block `{name}`");
        let (why, help) = match (called.contains(name), key == "runs") {
            (false, true) => ("the runs do not name it", format!("name it in `{key}`, or remove it")),
            (false, false) => ("the pattern does not name it", format!("name it in `{key}`, or remove it")),
            (true, true) => (
                "each run that names it ends before reaching it",
                "give the run as many layers as its cycle has names, or remove the block".to_owned(),
            ),
            (true, false) => (
                "the layers end before the pattern gets to it",
                format!("more `layers`, an earlier place in `{key}`, or remove it"),
            ),
        };
        let diagnostic = Diagnostic::error(Code::UnusedKey, *span, message).label(place, why);
        cx.report(match misspelt(name, blocks, &called, cx).filter(|_| !called.contains(name)) {
            Some(near) => diagnostic.meant(name, &near),
            None => diagnostic.help(help),
        });
    }
}

/// The block with a layer that was probably meant by the name of one without: one in a document over which this one is laid, as
/// by `--set`, because the same document would have the name twice.
fn misspelt(
    name: &str,
    blocks: &[(&str, Span, &Node)],
    called: &BTreeSet<&str>,
    cx: &Context<'_>,
) -> Option<String> {
    let (_, span, value) = blocks.iter().find(|(own, ..)| *own == name)?;
    let is_other = |(own, at, _): &&(&str, Span, &Node)| called.contains(own) && at.source != span.source;
    let others: Vec<&str> = blocks.iter().filter(is_other).map(|(own, ..)| *own).collect();
    let near = suggest(name, &others)?;
    let entry = Entry { key: name.to_owned(), key_span: *span, value: (*value).clone() };
    cx.would_accept(&entry, std::slice::from_ref(&near), value).then_some(near)
}

/// Named blocks, found by name, in the order of the text.
type ByName<'b> = IndexMap<&'b str, &'b Node>;

fn by_name<'b>(blocks: &[(&'b str, Span, &'b Node)]) -> ByName<'b> {
    blocks.iter().map(|(name, _, tree)| (*name, *tree)).collect()
}

/// A block of a cycle, and its name if it has one.
type Named = (Option<String>, Node);

fn block_named(item: &Node, blocks: &ByName<'_>, base: &Node, cx: &mut Context<'_>) -> Option<Named> {
    let Some(name) = item.text() else {
        wrong_kind(item, "the name of a block", cx);
        return None;
    };
    match blocks.get(name) {
        Some(tree) => Some((Some(name.to_owned()), lay(base, tree, cx))),
        None => {
            let names: Vec<&str> = blocks.keys().copied().collect();
            let message = format!("there is no block `{name}`");
            let diagnostic = Diagnostic::error(Code::UnknownBlock, item.span, message);
            cx.report(match suggest(name, &names) {
                Some(near) => diagnostic.meant(name, &near),
                None if names.is_empty() => {
                    diagnostic.help(format!("describe it under `blocks: {{{name}: {{...}}}}`"))
                }
                None => diagnostic.help(format!("the blocks are {}", listed(&names))),
            });
            None
        }
    }
}

/// The entries of `ranges`.
struct Ranges {
    /// The ranges; `None` after an error in one of them.
    layers: Option<Vec<Range>>,
    /// What each entry changes, also one whose layers are wrong, so that all of them can be checked.
    changes: Vec<Node>,
}

fn ranges(stack: &Node, layers: Option<u64>, cx: &mut Context<'_>) -> Ranges {
    let nothing = |layers| Ranges { layers, changes: Vec::new() };
    let Some(node) = stack.get("ranges") else { return nothing(Some(Vec::new())) };
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map from ranges of layers to what they change", cx);
        return nothing(None);
    };
    let is_map = |e: &&Entry| matches!(e.value.kind, Kind::Map(_));
    let changes = entries.iter().filter(is_map).map(|e| e.value.clone()).collect();
    let mut ranges: Vec<Range> = Vec::new();
    // The indices of those that do not overlap, by their first layer.
    let mut by_start: BTreeMap<u64, usize> = BTreeMap::new();
    let mut complete = true;
    for e in entries {
        let (start, end) = match parse_range(&e.key, layers) {
            Ok(range) => range,
            Err((message, help)) => {
                cx.report(Diagnostic::error(Code::BadRange, e.key_span, message).help(help));
                complete = false;
                continue;
            }
        };
        if !matches!(e.value.kind, Kind::Map(_)) {
            wrong_kind(&e.value, "a map with what these layers change", cx);
            complete = false;
            continue;
        }
        // The ranges in `by_start` do not overlap, so only the last one that starts before this end can
        // overlap this range.
        let before = by_start.range(..end).next_back().and_then(|(_, i)| ranges.get(*i));
        if let Some(twin) = before.filter(|r: &&Range| r.start < end && start < r.end) {
            let message = format!("two ranges contain layer {}", twin.start.max(start));
            cx.report(
                Diagnostic::error(Code::BadRange, e.key_span, message)
                    .label(twin.span, "the other one")
                    .help("put each layer into one range at most"),
            );
            complete = false;
        } else {
            by_start.insert(start, ranges.len());
        }
        ranges.push(Range { start, end, tree: e.value.clone(), span: e.key_span });
    }
    Ranges { layers: complete.then_some(ranges), changes }
}

/// Parses `0..3`, `3..`, `..3` or `7` into the first layer and the one after the last. The range must not be
/// empty or go beyond the layers. The error is a message and a help.
fn parse_range(text: &str, layers: Option<u64>) -> Result<(u64, u64), (String, String)> {
    let text = text.trim();
    // Rust would read `+3`, too.
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u64>().ok()).flatten();
    let number = |t: &str, otherwise: u64| match t.trim() {
        "" => Some(otherwise),
        given => digits(given),
    };
    // After an error in `layers`, an open end is not compared with anything.
    let parsed = match text.split_once("..") {
        Some((start, end)) => number(start, 0).zip(number(end, layers.unwrap_or(u64::MAX))),
        None => digits(text).map(|at| (at, at.saturating_add(1))),
    };
    let Some((start, end)) = parsed else {
        let help = "`0..3` is layers 0, 1 and 2; `3..` is all from 3 on; `0` is the first";
        return Err((format!("`{text}` is not a range of layers"), help.to_owned()));
    };
    match layers {
        Some(layers) if start >= layers || end > layers => {
            let message = match layers {
                1 => format!("there is 1 layer, but `{text}` goes beyond it"),
                _ => format!("there are {layers} layers, but `{text}` goes beyond them"),
            };
            let help = match layers {
                1 => "layers are counted from 0, so the only one is 0".to_owned(),
                _ => format!("layers are counted from 0, so the last one is {}", layers.saturating_sub(1)),
            };
            Err((message, help))
        }
        Some(_) | None if start >= end => {
            let help =
                format!("the end is not included: `{start}..{}` is layer {start}", start.saturating_add(1));
            Err((format!("`{text}` contains no layer"), help))
        }
        Some(_) | None => Ok((start, end)),
    }
}

/// Reports an item of `runs` without a count or a cycle, unless an unknown key in it has been reported, which says what a run
/// has.
fn not_a_run(item: &Node, cx: &mut Context<'_>) {
    if cx.sink().has_error_in(item.span) {
        return;
    }
    let lacks = |(key, _): &&(&str, &str)| item.get(key).is_none();
    let mut lacking = [("count", "count: 2"), ("cycle", "cycle: [name]")].iter().filter(lacks);
    match (item.entries(), lacking.next(), lacking.next()) {
        (Some(_), Some((key, example)), None) => {
            let message = format!("a run needs `{key}`");
            cx.report(
                Diagnostic::error(Code::MissingKey, item.span, message).help(format!("write `{example}`")),
            );
        }
        (_, _, _) => wrong_kind(item, "`{count: n, cycle: [names]}`", cx),
    }
}

/// An item of `runs`: the number of its layers, and the blocks of its cycle with their names. Each is `None` after an error.
fn run_of(
    item: &Node,
    by_name: &ByName<'_>,
    base: &Node,
    cx: &mut Context<'_>,
) -> (Option<u64>, Option<Vec<Named>>) {
    let item = &*mended(item, "run", &run_fields(), &[], cx);
    let (count, names) = (item.get("count"), item.get("cycle"));
    let names = names.and_then(|names| if let Kind::List(names) = &names.kind { Some(names) } else { None });
    // Both are decoded before an error of either ends this.
    let count = count.map(|count| Size::decode(count, cx));
    let cycle: Option<Vec<Option<Named>>> =
        names.map(|names| names.iter().map(|n| block_named(n, by_name, base, cx)).collect());
    let (Some(count), Some(cycle)) = (count, cycle) else {
        not_a_run(item, cx);
        return (None, None);
    };
    if cycle.is_empty() {
        wrong_kind(item, "a cycle of at least one name", cx);
        return (None, None);
    }
    (count.map(|count| *count), cycle.into_iter().collect())
}

fn explicit(
    node: &Node,
    stack: &Node,
    blocks: &[(&str, Span, &Node)],
    base: &Node,
    layers: Option<u64>,
    cx: &mut Context<'_>,
) -> Option<Vec<Run>> {
    let Kind::List(items) = &node.kind else {
        wrong_kind(node, "a list of `{count: n, cycle: [names]}`", cx);
        return None;
    };
    let by_name = by_name(blocks);
    let mut runs = Vec::new();
    let mut called = Vec::new();
    let mut with_layer = Vec::new();
    // All of them before an error ends this, so that the errors of each are reported.
    let all: Vec<_> = items.iter().map(|item| run_of(item, &by_name, base, cx)).collect();
    let mut counts = all.iter().map(|(count, _)| *count);
    let total = counts.try_fold(0u64, |total, count| Some(total.saturating_add(count?)));
    // The number of layers can be compared although a name in a cycle is not known.
    let is_as_long = total.is_none_or(|total| adds_up(total, layers, (node, stack), cx));
    for (count, cycle) in all {
        let (count, mut cycle) = (count?, cycle?);
        called.extend(cycle.iter().filter_map(|(name, _)| name.clone()));
        cycle.truncate(reached(count));
        with_layer.extend(cycle.iter().filter_map(|(name, _)| name.clone()));
        runs.push(Run { count, cycle });
    }
    let called: Vec<&str> = called.iter().map(String::as_str).collect();
    let with_layer: Vec<&str> = with_layer.iter().map(String::as_str).collect();
    report_idle(blocks, (&called, &with_layer), node.span, "runs", cx);
    is_as_long.then_some(runs)
}

/// Whether the runs have as many layers together as the stack, if that is known; reports it if not.
fn adds_up(total: u64, layers: Option<u64>, (node, stack): (&Node, &Node), cx: &mut Context<'_>) -> bool {
    let Some(layers) = layers.filter(|layers| *layers != total) else { return true };
    let message = format!("the runs add up to {}, not {layers}", crate::diag::count::counted(total, "layer"));
    let place = stack.get("layers").map_or(node.span, |n| n.span);
    cx.report(
        Diagnostic::error(Code::LengthMismatch, node.span, message)
            .label(place, format!("{} here", crate::diag::count::counted(layers, "layer")))
            .help(format!("`layers: {total}`, or counts that add up to {layers}")),
    );
    false
}
