//! Which keys a stack has.
//!
//! The names of call sites are keys in addition to the fields of a stack, so which keys exist depends on the
//! equations of the blocks.

use std::collections::BTreeSet;

use super::block;
use super::wiring::{self, PartKind};
use crate::diag::suggest::{is_near, suggest};
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::mend::{mended, mended_part};
use crate::field::value::Field;
use crate::field::words::listed;
use crate::source::Span;
use crate::syntax::equation::Equation;
use crate::syntax::tree::{Entry, Kind, Node};

/// The stack's tree without the keys that do not exist, which are reported; misspelled keys are corrected.
/// See [`mended`].
pub fn mend(
    node: &Node,
    title: &str,
    fields: &[Field],
    wirings: &[Equation],
    has_memory: bool,
    cx: &mut Context<'_>,
) -> Node {
    // The names of the call sites of a block whose equation is `node`. `None` if the equation has an error.
    let default = Node::plain("pre_norm", Span::default());
    let sources = cx.sources();
    let calls =
        |node: Option<&Node>| wiring::instance_names(node.unwrap_or(&default), wirings, has_memory, sources);
    // Which names are keys depends on the equations, so these must be found under a misspelled `block` or
    // `blocks` too.
    let keys = own_keys(fields);
    let meant = |key: &str| {
        let slip = |e: &&Entry| {
            is_near(&e.key, key)
                && !keys.contains(&e.key.as_str())
                && suggest(&e.key, &keys).as_deref() == Some(key)
        };
        node.get(key).or_else(|| node.entries()?.iter().find(slip).map(|e| &e.value))
    };
    let inner = |key: &str| meant(key).and_then(Node::entries).unwrap_or(&[]);
    let own = calls(meant("block"));
    let mut anywhere: Option<BTreeSet<String>> = own.clone().map(|names| names.into_iter().collect());
    for e in inner("blocks").iter().chain(inner("ranges")).filter(|e| e.value.get("block").is_some()) {
        match (&mut anywhere, calls(e.value.get("block"))) {
            (Some(names), Some(more)) => names.extend(more),
            (_, _) => anywhere = None,
        }
    }
    let anywhere: Option<Vec<String>> = anywhere.map(|names| names.into_iter().collect());
    let mut tree = mend_map(node, title, fields, anywhere.as_deref(), cx);
    let Kind::Map(entries) = &mut tree.kind else { return tree };
    for e in entries.iter_mut().filter(|e| matches!(e.key.as_str(), "blocks" | "ranges")) {
        let Kind::Map(trees) = &mut e.value.kind else { continue };
        for tree in trees {
            let names = match tree.value.get("block") {
                Some(equation) => calls(Some(equation)),
                None if e.key == "ranges" => anywhere.clone(),
                None => own.clone(),
            };
            tree.value = mend_map(&tree.value, "block", &block::fields(), names.as_deref(), cx);
        }
    }
    tree
}

/// The name in `norm[name]`, the form in which an equation names a call site.
fn labelled(key: &str) -> Option<&str> {
    let (part, label) = key.strip_suffix(']')?.split_once('[')?;
    PartKind::from_word(part).map(|_| label)
}

/// The keys that a stack has with any equations.
fn own_keys(fields: &[Field]) -> Vec<&'static str> {
    let parts = PartKind::ALL.iter().map(|kind| kind.word());
    fields.iter().map(|f| f.name).chain(parts).collect()
}

fn mend_map(
    node: &Node,
    title: &str,
    fields: &[Field],
    calls: Option<&[String]>,
    cx: &mut Context<'_>,
) -> Node {
    let Kind::Map(entries) = &node.kind else { return node.clone() };
    let is_field = |e: &Entry| fields.iter().any(|f| f.name == e.key);
    let is_call = |e: &Entry| calls.is_some_and(|calls| calls.contains(&e.key));
    let part = |e: &Entry| PartKind::from_word(e.key.trim_end_matches(|c: char| c.is_ascii_digit()));
    let mut kept: Vec<Entry> = Vec::new();
    for e in entries {
        match (calls, part(e)) {
            _ if is_field(e) || is_call(e) => kept.push(e.clone()),
            // The call sites of an equation with an error are not known, so this key may be one of them.
            (None, Some(_)) => {}
            (Some(calls), Some(_)) => {
                let message = format!("no call site of the {title} is called `{}`", e.key);
                let mut names: Vec<&str> = calls.iter().map(String::as_str).collect();
                names.sort_unstable();
                names.dedup();
                cx.report(
                    Diagnostic::error(Code::UnknownKey, e.key_span, message)
                        .help(format!("the equation calls {}", listed(&names))),
                );
            }
            (Some(calls), None) if labelled(&e.key).is_some_and(|label| calls.iter().any(|c| c == label)) => {
                let label = labelled(&e.key).unwrap_or_default();
                let message = format!("a call site is named by its label alone, not by `{}`", e.key);
                cx.report(
                    Diagnostic::error(Code::UnknownKey, e.key_span, message)
                        .help(format!("write `{label}: ...`")),
                );
                kept.push(Entry { key: label.to_owned(), ..e.clone() });
            }
            (_, None) => kept.push(e.clone()),
        }
    }
    let mut tree = mended(&Node::map(kept, node.span), title, fields, calls.unwrap_or(&[]), cx).into_owned();
    let Kind::Map(entries) = &mut tree.kind else { return tree };
    for e in entries {
        let Some(kind) = PartKind::from_word(&e.key) else { continue };
        if let Some(slot) = kind.implying_slot() {
            e.value = mended_part(&e.value, &slot, cx).into_owned();
        }
        e.value = kind.with_part(&e.value);
    }
    tree
}
