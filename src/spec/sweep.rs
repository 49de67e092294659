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
use crate::diag::{Code, Diagnostic, Label, Severity, Sink};
use crate::field::Context;
use crate::field::context::Trial;
use crate::field::single::alone;
use crate::field::value::{Field, wrong_kind};
use crate::source::Span;
use crate::syntax::merge::{are_alternatives, lay_along, merge};
use crate::syntax::set::keys_of;
use crate::syntax::tree::{Entry, Kind, Node};

/// The most variants of a sweep.
pub const MAX_VARIANTS: usize = 1_000;

/// The most work for the check of a sweep: the number of changes, each of which is checked in the whole spec, times
/// the values and the calls of parts that the spec has.
pub const MAX_WORK: usize = 200_000;

/// The largest number of combinations that is said exactly.
const COUNTED: usize = 1_000_000_000;

/// One variant of a spec.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name: the author's, or the grid's values, `decoder.layers=6,d_model=512`.
    pub name: String,
    /// The spec's tree without the sweep, merged with the variant.
    pub tree: Node,
}

/// What a sweep changes.
pub struct Base<'a> {
    /// The spec with its sweep.
    pub spec: &'a Node,
    /// The keys of a spec.
    pub keys: &'a [Field],
    /// In how many places the blocks of its stacks call parts.
    pub calls: usize,
    /// Decodes a whole spec, to report the errors of a variant.
    pub decode: &'a dyn Fn(&Node, &mut Context<'_>),
}

/// The spec that a sweep changes, without the sweep.
struct Unswept<'a> {
    spec: &'a Node,
    calls: usize,
    decode: &'a dyn Fn(&Node, &mut Context<'_>),
    /// The places that its own errors are about.
    faults: Vec<Span>,
    /// Whether one of them is that it lacks a key.
    is_lacking: bool,
}

impl Unswept<'_> {
    /// Whether what is wrong within a variant may be due to the errors of the spec: a number that does not fit one that an
    /// error is about, or a key that is lacking.
    fn explains(&self, found: &Diagnostic) -> bool {
        let is_known = |label: &Label| {
            let near = |place: &Span| place.contains(label.span) || label.span.contains(*place);
            self.faults.iter().any(near)
        };
        found.code.is_misfit() && found.labels.iter().any(is_known)
            || self.is_lacking && found.code == Code::MissingKey
    }
}

/// Checks the form of a sweep and each change that it makes to the spec: every named variant, and every
/// single value of a grid. If the spec has errors itself, only what is wrong within a change is reported: the rest
/// may follow from these errors.
pub fn check(sweep: &Entry, base: Base<'_>, cx: &mut Context<'_>) {
    let node = &sweep.value;
    let Some(entries) = node.entries() else {
        wrong_kind(node, "a map of variants", cx);
        return;
    };
    if entries.is_empty() {
        report_empty("sweep", node, cx);
    }
    let own = Unswept {
        spec: &without_sweep(base.spec),
        calls: base.calls,
        decode: base.decode,
        faults: cx
            .sink()
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .flat_map(|d| d.labels.iter().map(|label| label.span))
            .collect(),
        is_lacking: cx.sink().iter().any(|d| d.code == Code::MissingKey),
    };
    let named = entries.iter().filter(|e| e.key != "grid").count();
    let is_checked = !cx.is_trial() && is_affordable(sweep, entries, &own, cx);
    for e in entries {
        match (&e.value.kind, e.key.as_str()) {
            (Kind::Map(axes), "grid") if axes.is_empty() => {
                let message = "the grid has no values, so it makes no variant";
                let help =
                    "give it a size and its values, such as `grid: {d_model: [64, 128]}`, or remove it";
                cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).help(help));
            }
            (Kind::Map(axes), "grid") => {
                for axis in axes {
                    match values_of(axis) {
                        Some(values) => {
                            report_repeated(values, &axis.key, cx);
                            if is_checked {
                                check_axis(axis, values, &own, cx);
                            }
                        }
                        None => {
                            let message =
                                format!("expected a list of values, found {}", axis.value.describe());
                            let diagnostic = Diagnostic::error(Code::WrongKind, axis.value.span, message);
                            cx.report(alone(&axis.value).into_iter().fold(diagnostic, Diagnostic::help));
                        }
                    }
                }
                if is_checked {
                    check_alternatives(axes, &own, cx);
                }
                check_number(e, combinations(axes), named, cx);
            }
            (Kind::Map(changes), _) if are_variants(&e.key, changes, base.keys) => {
                let message = format!("`{}` is not a variant: it only contains variants", e.key);
                let first = changes.first().map_or("", |e| e.key.as_str());
                let key =
                    changes.first().and_then(|e| e.value.entries()?.first()).map_or("", |e| e.key.as_str());
                let help = format!(
                    "write the variants directly under `sweep`, such as `sweep: {{{first}: {{{key}: ...}}}}`"
                );
                cx.report(Diagnostic::error(Code::UnknownKey, e.key_span, message).help(help));
            }
            (Kind::Map(changes), name) => {
                report_unused(changes, cx);
                let over = undotted(&e.value, cx);
                if is_checked {
                    check_variant(&own, &over, name, cx);
                }
            }
            (Kind::Null | Kind::Scalar(_) | Kind::List(_) | Kind::Delete, _) => {
                let message = format!("expected a map to merge over the spec, found {}", e.value.describe());
                let help = match values_of(e) {
                    // Variants have names, and the values of a key are those of a grid.
                    Some(_) => {
                        format!("write `grid: {{{}: [...]}}` for a variant with each of the values", e.key)
                    }
                    None if e.key.contains('.') || own.spec.get(&e.key).is_some() => {
                        format!("write `NAME: {{{}: ...}}`: a variant has a name of its own", e.key)
                    }
                    None => format!("such as `{}: {{d_model: 1024}}`", e.key),
                };
                cx.report(Diagnostic::error(Code::WrongKind, e.value.span, message).help(help));
            }
        }
    }
}

/// Whether the changes of what is written as a variant are variants themselves: maps with other names than the
/// keys of a spec, whose own keys are those.
fn are_variants(key: &str, changes: &[Entry], keys: &[Field]) -> bool {
    let is_key = |name: &str| keys.iter().any(|field| field.name == name);
    let is_known = |e: &Entry| is_key(e.key.split('.').next().unwrap_or_default());
    let is_variant = |e: &Entry| {
        !is_known(e) && e.value.entries().is_some_and(|own| !own.is_empty() && own.iter().all(is_known))
    };
    !is_key(key) && !changes.is_empty() && changes.iter().all(is_variant)
}

/// The values of an axis of a grid, if they are a list with some.
fn values_of(axis: &Entry) -> Option<&[Node]> {
    match &axis.value.kind {
        Kind::List(values) if !values.is_empty() => Some(values),
        Kind::List(_) | Kind::Map(_) | Kind::Scalar(_) | Kind::Null | Kind::Delete => None,
    }
}

/// The values of an axis that are checked. More make too many combinations, which is reported, and checking all of
/// them would take long.
fn checked(values: &[Node]) -> impl Iterator<Item = &Node> {
    values.iter().take(MAX_VARIANTS)
}

/// The number of combinations of a grid; `None` above [`COUNTED`].
fn combinations(axes: &[Entry]) -> Option<usize> {
    let mut counts = axes.iter().filter_map(values_of).map(<[Node]>::len);
    counts.try_fold(1usize, |all, count| all.checked_mul(count).filter(|all| *all <= COUNTED))
}

/// Whether checking the changes of a sweep one by one is not too much work, which is reported.
fn is_affordable(sweep: &Entry, entries: &[Entry], base: &Unswept<'_>, cx: &mut Context<'_>) -> bool {
    let changes = entries.iter().map(|e| match (e.value.entries(), e.key.as_str()) {
        (Some(axes), "grid") => axes.iter().filter_map(values_of).map(|values| checked(values).count()).sum(),
        _ => 1usize,
    });
    let changes = changes.fold(0, usize::saturating_add);
    let size = base.spec.nodes().count().saturating_add(base.calls);
    let is_affordable = changes.saturating_mul(size) <= MAX_WORK;
    if !is_affordable {
        let message = format!(
            "the sweep makes {} to a spec with {size} values and calls of parts, {} in all, but at most {MAX_WORK} \
             are checked",
            counted(changes, "change"),
            changes.saturating_mul(size),
        );
        cx.report(Diagnostic::error(Code::TooLarge, sweep.key_span, message).help(
            "remove some variants or values, or give layers the same block where they need not differ",
        ));
    }
    is_affordable
}

/// Reports a grid with more combinations, next to named variants, than a sweep may have.
fn check_number(grid: &Entry, count: Option<usize>, named: usize, cx: &mut Context<'_>) {
    if count.is_some_and(|count| count.saturating_add(named) <= MAX_VARIANTS) {
        return;
    }
    let more = match named {
        0 => String::new(),
        n => format!(" next to {}", counted(n, "named variant")),
    };
    let count = count.map_or_else(|| format!("more than {COUNTED}"), |count| count.to_string());
    let message =
        format!("the grid has {count} combinations{more}, but at most {MAX_VARIANTS} variants are allowed");
    cx.report(Diagnostic::error(Code::TooLarge, grid.key_span, message).help("remove some values"));
}

/// Checks every value of an axis by itself.
fn check_axis(axis: &Entry, values: &[Node], base: &Unswept<'_>, cx: &mut Context<'_>) {
    for value in checked(values) {
        let over = nested(&axis.key, axis.key_span, value);
        // A path that the spec does not have is wrong with every value.
        if check_variant(base, &over, &axis.key, cx).contains(&axis.key_span) {
            return;
        }
    }
}

/// Checks axes that are alternatives of each other, which no variant can have both.
fn check_alternatives(axes: &[Entry], base: &Unswept<'_>, cx: &mut Context<'_>) {
    let keys: Vec<Vec<&str>> = axes.iter().map(|axis| keys_of(&axis.key)).collect();
    for (i, (axis, own)) in axes.iter().zip(&keys).enumerate() {
        for (earlier, its) in axes.iter().zip(&keys).take(i) {
            let is_alternative = match (own.split_last(), its.split_last()) {
                (Some((own, above)), Some((its, beside))) => above == beside && are_alternatives(own, its),
                (_, None) | (None, _) => false,
            };
            let first = |axis: &Entry| values_of(axis)?.first().map(|v| nested(&axis.key, axis.key_span, v));
            if is_alternative && let (Some(one), Some(other)) = (first(earlier), first(axis)) {
                let both = lay_along(&one, &other, &|_| true, &super::Parts::default(), cx.sink());
                check_variant(base, &both, &axis.key, cx);
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

/// Reports changes of a variant that have no effect: a sweep of its own, and values that a later one of its dotted paths sets
/// again.
fn report_unused(changes: &[Entry], cx: &mut Context<'_>) {
    if let Some(own) = changes.iter().find(|e| e.key == "sweep" || e.key.starts_with("sweep.")) {
        let message = "a variant has no variants of its own";
        let help = "give them names next to this one, with its changes and theirs";
        cx.report(Diagnostic::error(Code::UnusedKey, own.key_span, message).help(help));
    }
    // Without dots, a repeated key is found when the text is read.
    if !changes.iter().any(|e| e.key.contains('.')) {
        return;
    }
    let mut firsts: BTreeMap<String, Span> = BTreeMap::new();
    for e in changes {
        let mut values = vec![(e.key.clone(), e.key_span, &e.value)];
        while let Some((path, place, value)) = values.pop() {
            // Maps are merged, so only what is in them is given twice.
            if let Kind::Map(entries) = &value.kind {
                values.extend(entries.iter().map(|e| (format!("{path}.{}", e.key), e.key_span, &e.value)));
                continue;
            }
            match firsts.get(&path) {
                Some(first) => {
                    let message = format!("the variant gives `{path}` twice");
                    let diagnostic = Diagnostic::error(Code::DuplicateKey, place, message).here("again here");
                    cx.report(
                        diagnostic.label(*first, "it is given here already").help("remove one of them"),
                    );
                }
                None => drop(firsts.insert(path, place)),
            }
        }
    }
}

/// Reports the errors of one change, those inside of it and those that it causes elsewhere; and gives their places.
fn check_variant(base: &Unswept<'_>, over: &Node, name: &str, cx: &mut Context<'_>) -> Vec<Span> {
    // Nothing more would be kept.
    if cx.is_full() {
        return Vec::new();
    }
    let mut sink = Sink::new();
    let parts = super::Parts::of(&[base.spec, over]);
    let tree = merge(base.spec, over, &parts, &mut sink);
    // A misspelled key of a variant replaces what the spec has there, so that nothing follows from it.
    let trial = Trial { tree: &tree, parts: &parts, decode: base.decode };
    let mut own = Context::new(cx.sources(), &mut sink).with_trial(trial).with_trials_of(cx);
    (base.decode)(&tree, &mut own);
    let mut places = Vec::new();
    for diagnostic in sink.into_sorted() {
        let (at, within) = (diagnostic.span(), over.span);
        places.push(at);
        let is_here = at.source == within.source && within.start <= at.start && at.end <= within.end;
        if is_here && !base.explains(&diagnostic) {
            // In the place of one value, a list is that of a grid.
            let list = (diagnostic.code == Code::WrongKind).then(|| list_at(over, at)).flatten();
            let help = list
                .map(|path| format!("write `grid: {{{path}: [...]}}` for a variant with each of the values"));
            cx.report(help.into_iter().fold(diagnostic, Diagnostic::help));
        } else if !is_here && base.faults.is_empty() {
            cx.report(diagnostic.label(over.span, format!("with `{name}` of the sweep")));
        }
    }
    places
}

/// The path of the list at a place below a map.
fn list_at(map: &Node, place: Span) -> Option<String> {
    map.entries()?.iter().find_map(|e| match &e.value.kind {
        Kind::List(_) => (e.value.span == place).then(|| e.key.clone()),
        Kind::Map(_) => list_at(&e.value, place).map(|below| format!("{}.{below}", e.key)),
        Kind::Scalar(_) | Kind::Null | Kind::Delete => None,
    })
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
                    let pairs = combinations.iter().flat_map(|all| values.iter().map(move |v| (all, v)));
                    // Bounds the work on a grid that is too large, which `check` reports.
                    let next = pairs.take(MAX_VARIANTS).map(|((names, tree), value)| {
                        let over = nested(&axis.key, axis.key_span, value);
                        let is_along = |at| e.value.span.contains(at);
                        let tree = lay_along(tree, &over, &is_along, &super::Parts::of(&[tree]), cx.sink());
                        let name = format!("{}={}", axis.key, said(value));
                        (names.iter().cloned().chain([name]).collect(), tree)
                    });
                    combinations = next.collect();
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

/// The keys and the values of a variant of a grid, by its name; `None` if it has no such name.
pub fn pairs(name: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let pairs: Option<Vec<(&str, &str)>> =
        pieces(name).into_iter().map(|piece| piece.split_once('=')).collect();
    Some(pairs?.into_iter().unzip())
}

/// What commas separate in the name of a variant, outside of brackets: within them they separate the entries of a value.
fn pieces(name: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut depth, mut from) = (0usize, 0);
    for (at, c) in name.char_indices() {
        match c {
            '(' | '[' | '{' => depth = depth.saturating_add(1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pieces.push(name.get(from..at).unwrap_or_default());
                from = at.saturating_add(1);
            }
            _ => {}
        }
    }
    pieces.push(name.get(from..).unwrap_or_default());
    pieces
}

/// What a name means that no variant has.
#[derive(Clone, Debug)]
pub enum Meant<'v> {
    /// The variants with the same parts and no others.
    Same(Vec<&'v Variant>),
    /// Those that have most of its parts; none if no variant has one of them.
    Near(Vec<&'v Variant>),
}

/// The variants of a grid that a name may mean: those with the same values of the same keys in any order, where a key may lack
/// its beginning (`layers` of `decoder.layers`). The values alone, as comparisons show them, mean those of all keys in order.
pub fn meant<'v>(variants: &'v [Variant], name: &str) -> Meant<'v> {
    let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let Some((keys, values)) = pairs(name) else {
        let values: Vec<String> = pieces(name).into_iter().map(plain).collect();
        let has_values = |v: &&Variant| {
            pairs(&v.name).is_some_and(|(_, own)| own.into_iter().map(plain).eq(values.iter().cloned()))
        };
        return Meant::Same(variants.iter().filter(has_values).collect());
    };
    let asked: Vec<(String, String)> =
        keys.into_iter().map(plain).zip(values.into_iter().map(plain)).collect();
    let is_key = |own: &str, asked: &str| {
        own.strip_suffix(asked).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let common = |variant: &Variant| {
        let Some((keys, values)) = pairs(&variant.name) else { return 0 };
        let has = |(key, value): &&(String, String)| {
            keys.iter().zip(&values).any(|(own, its)| is_key(own, key) && plain(its) == *value)
        };
        asked.iter().filter(has).count()
    };
    let most = variants.iter().map(common).max().filter(|most| *most > 0);
    let having: Vec<&Variant> = variants.iter().filter(|v| Some(common(v)) == most).collect();
    let is_same = most == Some(asked.len()) && having.iter().all(|v| pieces(&v.name).len() == asked.len());
    if is_same { Meant::Same(having) } else { Meant::Near(having) }
}

/// How many variants a spec's tree has, if its sweep has no errors.
pub fn count(tree: &Node) -> usize {
    let entries = tree.get("sweep").and_then(Node::entries).unwrap_or(&[]);
    let counts = entries.iter().map(|e| match (e.value.entries(), e.key.as_str()) {
        (Some(axes), "grid") => combinations(axes).unwrap_or(usize::MAX),
        _ => 1,
    });
    counts.fold(0, usize::saturating_add)
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
        Kind::Null => value.describe(),
        Kind::Delete => "!delete".to_owned(),
    }
}

/// Turns `decoder.layers` and 6 into `{decoder: {layers: 6}}`, with the keys at `place`.
fn nested(path: &str, place: Span, value: &Node) -> Node {
    keys_of(path).into_iter().rev().fold(value.clone(), |inner, key| {
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
                lay_along(&all, &over, &|_| true, &super::Parts::default(), cx.sink())
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
