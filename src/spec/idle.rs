//! What to write in place of a key that has no effect.

use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::words::listed;
use crate::parts::{Attention, Ffn};
use crate::source::Span;
use crate::syntax::tree::{Entry, Node};

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
    for key in ["blocks", "ranges"] {
        for block in stack.get(key).and_then(Node::entries).unwrap_or(&[]) {
            // The dots of a range are none between keys.
            let name = if block.key.contains('.') { format!("\"{}\"", block.key) } else { block.key.clone() };
            add(&format!("{title}.{key}.{name}"), &block.value, true);
        }
    }
    found
}

/// The most paths that a message names.
const MOST_NAMED: usize = 4;

/// Adds which paths have the effect that an entry has not: as the command line sets them, if it sets the entry.
pub fn with_others(found: Diagnostic, others: &[String], e: &Entry, cx: &Context<'_>) -> Diagnostic {
    let paths = others.get(..MOST_NAMED).unwrap_or(others);
    if paths.is_empty() {
        return found;
    }
    // A shell would take the quotes of a range away.
    let is_plain = paths.iter().all(|path| !path.contains('"'));
    let value = plain_value(e).filter(|_| is_plain && is_set(e.key_span, cx));
    let named: Vec<String> = match value {
        Some(value) => paths.iter().map(|path| format!("--set {path}={value}")).collect(),
        None => paths.to_vec(),
    };
    match value {
        Some(_) => found.help(format!("what has an effect: `{}`", named.join(" "))),
        None => {
            let named: Vec<&str> = named.iter().map(String::as_str).collect();
            found.help(format!("what has an effect: {}", listed(&named)))
        }
    }
}

/// Whether a place is in a setting of the command line.
fn is_set(place: Span, cx: &Context<'_>) -> bool {
    cx.sources().get(place.source).is_some_and(|source| source.name.starts_with("--set"))
}

/// A value that a setting of the command line may have without quotes.
fn plain_value(e: &Entry) -> Option<&str> {
    e.value.text().filter(|value| !value.contains(char::is_whitespace))
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
    // As after `--set decoder.norm=rms_norm`, where `--set norm=rms_norm` was meant.
    let found = fail("this norm has no effect: the stacks have their own");
    let labelled = others.iter().fold(found, |found, own| found.label(own.key_span, "used in its place"));
    // What is extended cannot be changed, but each of its keys can.
    let is_extended = others.iter().all(|own| own.key_span.source != e.key_span.source);
    let mut values = others.iter().map(|own| plain_value(own).filter(|_| is_set(own.key_span, cx)));
    let first = values.next().flatten();
    let set = first.filter(|_| values.all(|value| value == first));
    cx.report(labelled.help(match (set, is_extended) {
        (Some(value), true) => {
            format!(
                "for every stack, write `--set norm={value}` alone; to keep this, add `--set 'norm=!delete'`"
            )
        }
        (_, true) => {
            "write `norm: !delete` where the stack has its own, or `norm` alone for every stack".to_owned()
        }
        (_, false) => {
            "keep one of them: the `norm` of the spec is that of every stack without its own".to_owned()
        }
    }));
}
