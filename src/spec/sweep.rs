//! Variants of a spec under `sweep:`, named ones or a grid.
//!
//! ```yaml
//! sweep:
//!   wide: {d_model: 1024}                       # named: merged over the spec
//!   grid: {decoder.layers: [6, 12], d_model: [512, 768]}   # every combination
//! ```

use std::collections::BTreeMap;

use super::used::report_empty;
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::Context;
use crate::field::context::Trial;
use crate::field::value::{alone, wrong_kind};
use crate::source::Span;
use crate::syntax::merge::merge;
use crate::syntax::tree::{Entry, Kind, Node};

/// The most variants of a sweep.
pub const MAX_VARIANTS: usize = 1_000;

/// One variant of a spec.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name: the author's, or the grid's values, `decoder.layers=6,d_model=512`.
    pub name: String,
    /// The spec's tree without the sweep, merged with the variant.
    pub tree: Node,
}

/// Decodes a whole spec, to report the errors of a variant.
type Decode<'a> = &'a dyn Fn(&Node, &mut Context<'_>);

/// Checks the form of a sweep and each change that it makes to the spec: every named variant, and every
/// single value of a grid. Errors that the spec has anyway are not reported again.
pub fn check(node: &Node, spec: &Node, decode: Decode<'_>, cx: &mut Context<'_>) {
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map of variants", cx);
        return;
    };
    if entries.is_empty() {
        report_empty("sweep", node, cx);
    }
    let base = without_sweep(spec);
    let named = entries.iter().filter(|e| e.key != "grid").count();
    // If the spec has errors itself, those that a variant shows elsewhere may be the same.
    let is_sound = !cx.has_failed();
    for e in entries {
        match (&e.value.kind, e.key.as_str()) {
            (Kind::Map(axes), "grid") if axes.is_empty() => {
                let message = "the grid has no values, so it makes no variant";
                let help =
                    "give it a size and its values, such as `grid: {d_model: [64, 128]}`, or remove it";
                cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).help(help));
            }
            (Kind::Map(axes), "grid") => {
                let mut count = 1usize;
                for axis in axes {
                    match &axis.value.kind {
                        Kind::List(values) if !values.is_empty() => {
                            count = count.saturating_mul(values.len());
                            report_repeated(values, &axis.key, cx);
                            // More combinations than that are refused below, and checking all of them would
                            // take long.
                            for value in values.iter().take(MAX_VARIANTS) {
                                let over = nested(&axis.key, axis.key_span, value);
                                check_variant((&base, &over), &axis.key, is_sound, decode, cx);
                            }
                        }
                        Kind::List(_) | Kind::Map(_) | Kind::Scalar(_) | Kind::Null | Kind::Delete => {
                            let message =
                                format!("expected a list of values, found {}", axis.value.describe());
                            let diagnostic = Diagnostic::error(Code::WrongKind, axis.value.span, message);
                            cx.report(alone(&axis.value).into_iter().fold(diagnostic, Diagnostic::help));
                        }
                    }
                }
                if count.saturating_add(named) > MAX_VARIANTS && count > 0 {
                    let more = match named {
                        0 => String::new(),
                        n => format!(" next to {}", counted(n, "named variant")),
                    };
                    let message = format!(
                        "the grid has {count} combinations{more}, but at most {MAX_VARIANTS} variants are allowed"
                    );
                    cx.report(
                        Diagnostic::error(Code::TooLarge, e.key_span, message).help("remove some values"),
                    );
                }
            }
            (Kind::Map(_), name) => {
                check_variant((&base, &undotted(&e.value, cx)), name, is_sound, decode, cx);
            }
            (Kind::Null | Kind::Scalar(_) | Kind::List(_) | Kind::Delete, _) => {
                let message = format!("expected a map to merge over the spec, found {}", e.value.describe());
                let help = format!("such as `{}: {{d_model: 1024}}`", e.key);
                cx.report(Diagnostic::error(Code::WrongKind, e.value.span, message).help(help));
            }
        }
    }
}

/// Reports values that a list of a grid has twice: the variants with them would be the same, also in name.
fn report_repeated(values: &[Node], key: &str, cx: &mut Context<'_>) {
    let mut firsts: BTreeMap<&str, Span> = BTreeMap::new();
    for value in values.iter().take(MAX_VARIANTS) {
        // Maps and lists are not compared.
        let Some(text) = value.text().map(str::trim) else { continue };
        match firsts.get(text) {
            Some(first) => {
                let message =
                    format!("`{key}` has the value `{text}` twice, so two variants would be the same");
                let diagnostic = Diagnostic::error(Code::UnusedKey, value.span, message);
                cx.report(diagnostic.label(*first, "it is here already").help("remove one of them"));
            }
            None => drop(firsts.insert(text, value.span)),
        }
    }
}

/// Reports the errors of one change: those inside of it and, if the spec itself is valid, those that it
/// causes elsewhere.
fn check_variant(
    (base, over): (&Node, &Node),
    name: &str,
    is_sound: bool,
    decode: Decode<'_>,
    cx: &mut Context<'_>,
) {
    let mut sink = Sink::new();
    let parts = super::Parts::of(&[base, over]);
    let tree = merge(base, over, &parts, &mut sink);
    // A misspelled key of a variant replaces what the spec has there, so that nothing follows from it.
    let trial = Trial { tree: &tree, parts: &parts, decode };
    decode(&tree, &mut Context::new(cx.sources(), &mut sink).with_trial(trial));
    for diagnostic in sink.into_sorted() {
        let (at, within) = (diagnostic.span(), over.span);
        let is_here = at.source == within.source && within.start <= at.start && at.end <= within.end;
        match (is_here, is_sound) {
            // What is wrong inside of the variant is not wrong in the spec without it.
            (true, _) => cx.report(diagnostic),
            (false, true) => cx.report(diagnostic.label(over.span, format!("with `{name}` of the sweep"))),
            (false, false) => {}
        }
    }
}

fn without_sweep(spec: &Node) -> Node {
    let own = spec.entries().unwrap_or(&[]).iter().filter(|e| e.key != "sweep").cloned().collect();
    Node::map(own, spec.span)
}

/// The variants of a spec's tree; empty if it has no sweep.
pub fn variants(tree: &Node, cx: &mut Context<'_>) -> Vec<Variant> {
    let Some(sweep) = tree.get("sweep").and_then(Node::entries) else { return Vec::new() };
    let base = without_sweep(tree);
    let mut variants = Vec::new();
    for e in sweep {
        match (&e.value.kind, e.key.as_str()) {
            (Kind::Map(axes), "grid") => {
                let mut combinations: Vec<(Vec<String>, Node)> = vec![(Vec::new(), base.clone())];
                for axis in axes {
                    let Kind::List(values) = &axis.value.kind else { continue };
                    let mut next = Vec::new();
                    for (names, tree) in &combinations {
                        for value in values.iter().take(MAX_VARIANTS) {
                            let over = nested(&axis.key, axis.key_span, value);
                            let tree = merge(tree, &over, &super::Parts::of(&[tree]), cx.sink());
                            let said = said(value);
                            let name = format!("{}={said}", axis.key);
                            next.push((names.iter().cloned().chain([name]).collect(), tree));
                        }
                    }
                    // Bounds the work on a grid that is too large, which `check` reports.
                    next.truncate(MAX_VARIANTS);
                    combinations = next;
                }
                variants.extend(
                    combinations.into_iter().map(|(names, tree)| Variant { name: names.join(","), tree }),
                );
            }
            (Kind::Map(_), name) => {
                let over = undotted(&e.value, cx);
                let tree = merge(&base, &over, &super::Parts::of(&[&base, &over]), cx.sink());
                variants.push(Variant { name: name.to_owned(), tree });
            }
            (Kind::Null | Kind::Scalar(_) | Kind::List(_) | Kind::Delete, _) => {}
        }
    }
    variants
}

/// A value of a grid in the name of its variant: `6`, or on one line `{rms_norm: {eps: 1e-6}}`.
fn said(value: &Node) -> String {
    match &value.kind {
        Kind::Scalar(_) => value.text().unwrap_or_default().to_owned(),
        Kind::List(items) => format!("[{}]", items.iter().map(said).collect::<Vec<String>>().join(", ")),
        Kind::Map(entries) => {
            let all = entries.iter().map(|e| format!("{}: {}", e.key, said(&e.value)));
            format!("{{{}}}", all.collect::<Vec<String>>().join(", "))
        }
        Kind::Null | Kind::Delete => value.describe(),
    }
}

/// Turns `decoder.layers` and 6 into `{decoder: {layers: 6}}`, with the keys at `place`.
fn nested(path: &str, place: Span, value: &Node) -> Node {
    path.rsplit('.').fold(value.clone(), |inner, key| {
        let span = place.to(inner.span);
        Node::map(vec![Entry { key: key.to_owned(), key_span: place, value: inner }], span)
    })
}

/// The changes of a named variant with every dotted key, `decoder.layers: 6`, as nested maps.
fn undotted(node: &Node, cx: &mut Context<'_>) -> Node {
    let entries = node.entries().unwrap_or(&[]);
    if !entries.iter().any(|e| e.key.contains('.')) {
        return node.clone();
    }
    let empty = Node::map(Vec::new(), node.span);
    let merged = entries.iter().fold(empty, |all, e| {
        let over = nested(&e.key, e.key_span, &e.value);
        // A key of the base may be deleted; merging the variant into the base does that.
        match &e.value.kind {
            Kind::Delete => join(all, over),
            Kind::Map(_) | Kind::Scalar(_) | Kind::List(_) | Kind::Null => {
                merge(&all, &over, &super::Parts::default(), cx.sink())
            }
        }
    });
    // The errors of a variant are recognised by their place inside of it.
    Node { span: node.span, ..merged }
}

/// The entries of two maps, one after the other.
fn join(all: Node, more: Node) -> Node {
    let entries = |node: &Node| node.entries().unwrap_or(&[]).to_vec();
    Node::map([entries(&all), entries(&more)].concat(), all.span)
}
