//! What to write in place of a key that has no effect.

use std::collections::BTreeSet;

use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::words::listed;
use crate::parts::{Attention, Embed, Ffn, Position};
use crate::source::Span;
use crate::syntax::set::{argument_at, as_typed, in_path};
use crate::syntax::tree::{Entry, Kind, Node};

/// The paths at which a stack and its blocks give values in place of that at a path of the stack, such as `decoder.norm1` for
/// `norm`.
pub fn in_place_of(path: &[&str], stack: &Node, title: &str) -> Vec<String> {
    let Some((part, fields)) = path.split_first() else { return Vec::new() };
    let given = |node: &Node| fields.iter().try_fold(node, |node, key| node.get(key)).is_some();
    // The parts whose fields need no name before them.
    let implied = [Attention::documentation().implied, Ffn::documentation().implied];
    let shown = fields.iter().filter(|key| !implied.contains(&Some(**key)));
    let below: String = shown.map(|key| format!(".{key}")).collect();
    let mut found = Vec::new();
    let mut add = |above: &str, map: &Node, may_be_same: bool| {
        for e in map.entries().unwrap_or(&[]) {
            let is_call = e.key.trim_end_matches(|c: char| c.is_ascii_digit()) == *part;
            if is_call && (may_be_same || e.key != *part) && given(&e.value) {
                found.push(format!("{above}.{}{below}", e.key));
            }
        }
    };
    add(title, stack, false);
    // What a block gives that no layer has has no effect either.
    let with_layers = with_layers(stack);
    let has_layers = |name: &str| with_layers.as_ref().is_none_or(|names| names.contains(name));
    for key in ["blocks", "ranges"] {
        let blocks = stack.get(key).and_then(Node::entries).unwrap_or(&[]);
        for block in blocks.iter().filter(|block| key == "ranges" || has_layers(&block.key)) {
            add(&format!("{title}.{key}.{}", in_path(&block.key)), &block.value, true);
        }
    }
    found
}

/// The names of the blocks that layers may have, those in `pattern` and `runs`; `None` if there is neither,
/// so that any block may have layers.
pub fn with_layers(stack: &Node) -> Option<BTreeSet<&str>> {
    fn items(node: &Node) -> &[Node] {
        match &node.kind {
            Kind::List(items) => items.as_slice(),
            Kind::Null | Kind::Scalar(_) | Kind::Map(_) | Kind::Delete => &[],
        }
    }
    let (pattern, runs) = (stack.get("pattern"), stack.get("runs"));
    if pattern.is_none() && runs.is_none() {
        return None;
    }
    let cycles = runs.into_iter().flat_map(items).filter_map(|run| run.get("cycle"));
    Some(cycles.chain(pattern).flat_map(items).filter_map(Node::text).collect())
}

/// The most paths that a message names.
const MOST_NAMED: usize = 4;

/// Adds which paths have the effect that an entry has not: as the command line sets them, if it sets the entry.
pub fn with_others(found: Diagnostic, others: &[String], e: &Entry, cx: &Context<'_>) -> Diagnostic {
    let paths = others.get(..MOST_NAMED).unwrap_or(others);
    if paths.is_empty() {
        return found;
    }
    let settings: Option<Vec<String>> =
        set_below(e, cx).and_then(|below| paths.iter().map(|path| setting(path, below)).collect());
    match settings {
        Some(settings) => found.help(format!("what has an effect: `{}`", settings.join(" "))),
        None => {
            let named: Vec<&str> = paths.iter().map(String::as_str).collect();
            found.help(format!("what has an effect: {}", listed(&named)))
        }
    }
}

/// Whether a place is in a setting of the command line.
pub fn is_set(place: Span, cx: &Context<'_>) -> bool {
    argument_at(cx.sources(), place).is_some()
}

/// What follows the key of an entry in the setting of the command line that it is from: `=layer_norm`, `.rms_norm.eps=1e-5`.
fn set_below<'a>(e: &Entry, cx: &Context<'a>) -> Option<&'a str> {
    let source = cx.sources().get(e.key_span.source).filter(|_| is_set(e.key_span, cx))?;
    let below = source.text.get(e.key_span.end as usize..)?.trim_end();
    below.starts_with(['.', '=']).then_some(below)
}

/// A setting of a path as a shell takes it.
fn setting(path: &str, below: &str) -> Option<String> {
    as_typed("--set", &format!("{path}{below}"))
}

/// Where the command line has set others in the place of a value of the spec, which is left without effect: what to set
/// instead, as after `decoder.norm=rms_norm`, where `norm=rms_norm` was meant. `None` if it has set none of them, or several
/// to different values.
pub fn set_instead(path: &str, others: &[&Entry], cx: &Context<'_>) -> Option<String> {
    let mut set = others.iter().filter(|own| is_set(own.key_span, cx)).map(|own| set_below(own, cx));
    let first = set.next()??;
    let are_same = set.all(|other| other == Some(first));
    setting(path, first).filter(|_| are_same).map(|setting| format!("write `{setting}` instead"))
}

/// Reports the norm of the spec, which has no effect on any of its stacks.
pub fn report_norm(e: &Entry, stacks: &[(&str, &Node)], cx: &mut Context<'_>) {
    let others: Vec<&Entry> = stacks.iter().filter_map(|(_, stack)| stack.entry("norm")).collect();
    let fail = |message: &str| Diagnostic::error(Code::UnusedKey, e.key_span, message);
    if others.len() < stacks.len() {
        let found = fail("no block calls this norm, and it is not a final norm").removable();
        let of_stack = |(title, stack): &(&str, &Node)| {
            let last = stack.get("final_norm").filter(|norm| !matches!(norm.text(), Some("true" | "false")));
            let last = last.map(|_| format!("{title}.final_norm"));
            in_place_of(&["norm"], stack, title).into_iter().chain(last).collect::<Vec<_>>()
        };
        let paths: Vec<String> = stacks.iter().flat_map(of_stack).collect();
        return cx.report(with_others(found, &paths, e, cx));
    }
    let found = fail("this norm has no effect: the stacks have their own");
    let labelled = others.iter().fold(found, |found, own| found.label(own.key_span, "used in its place"));
    // What is extended cannot be changed, but each of its keys can.
    let is_extended = others.iter().all(|own| own.key_span.source != e.key_span.source);
    let paths: Vec<String> = stacks.iter().map(|(title, _)| format!("{title}.norm")).collect();
    cx.report(match (set_instead("norm", &others, cx), is_extended) {
        (Some(set), _) => labelled.help(format!("{set}; to keep both, add `--set 'norm=!delete'`")),
        (None, _) if is_set(e.key_span, cx) => with_others(labelled, &paths, e, cx),
        (None, true) => labelled
            .help("write `norm: !delete` where the stack has its own, or `norm` alone for every stack"),
        (None, false) => {
            labelled.help("keep one of them: the `norm` of the spec is that of every stack without its own")
        }
    });
}

/// Reports `position: none` of blocks that have no positions in any case, because those of the stack are added to its embeddings.
pub fn report_nowhere(
    node: &Node,
    title: &str,
    (embed, position): (&Embed, Option<&Entry>),
    cx: &mut Context<'_>,
) {
    if !matches!(embed.position, Position::Learned(_) | Position::Sinusoidal(_)) {
        return;
    }
    let within = |key: &'static str| {
        let blocks = node.get(key).and_then(Node::entries).unwrap_or(&[]);
        let with_keys = move |block| {
            let Entry { key: name, value, .. }: &Entry = block;
            Some((vec![title, key, name.as_str()], value.entry("position")?))
        };
        blocks.iter().filter_map(with_keys)
    };
    let of_stack = node.entry("position").map(|e| (vec![title], e));
    let given: Vec<_> =
        of_stack.into_iter().chain(["blocks", "ranges"].into_iter().flat_map(within)).collect();
    // Beside blocks with other positions, a block without any is one of its own.
    if !given.iter().all(|(_, e)| e.value.text() == Some("none") || e.value.get("none").is_some()) {
        return;
    }
    for (keys, e) in given {
        let part = embed.position.part();
        let message = format!(
            "this `position` has no effect: the `{part}` positions are added to the embeddings, and blocks have no others"
        );
        let leave = "`embed: {position: none}` leaves them out";
        let found = Diagnostic::warning(Code::UnusedKey, e.key_span, message).help(leave);
        // What is given elsewhere, by a spec that is extended, is taken away where the positions are given.
        let place = position.map(|p| p.key_span).filter(|place| place.source != e.key_span.source);
        cx.report(match place {
            Some(place) if is_set(place, cx) => {
                let path = [&keys[..], &["position"]].concat().join(".");
                found.help(format!("for these, add `--set '{path}=!delete'`"))
            }
            Some(_) => {
                let (open, close) = (keys.join(": {"), "}".repeat(keys.len()));
                found.help(format!("for these, write `{open}: {{position: !delete{close}` next to them"))
            }
            None => found,
        });
    }
}
