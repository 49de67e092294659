//! Which keys a stack has.
//!
//! The names of call sites are keys in addition to the fields of a stack, so which keys exist depends on the
//! equations of the blocks.

use std::sync::Arc;

use super::block;
use super::wiring::{self, PartKind};
use crate::diag::suggest::{is_near, suggest};
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::definition::Definitions;
use crate::field::mend::mended;
use crate::field::mend_part::mended_part;
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
    // The call sites of a block whose equation is `node`.
    let default = Node::plain("pre_norm", Span::default());
    let sources = cx.sources();
    let definitions = Arc::clone(cx.definitions());
    let calls = |node: Option<&Node>| {
        let found = wiring::calls(node.unwrap_or(&default), wirings, has_memory, sources, &definitions);
        // The word of a part that the spec defines is a key for all its calls, as `ffn` is.
        let words = found.sites.iter().filter(|s| s.kind == PartKind::Own).map(|s| s.word.clone());
        let mut names: Vec<String> =
            words.chain(found.sites.iter().map(|site| site.name.clone())).chain(found.missed).collect();
        // A text that is no equation gives each call under several names.
        names.sort_unstable();
        names.dedup();
        Names { names, is_complete: found.is_complete }
    };
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
    // Reading the equations of all blocks takes time, and is needed only where a key is no field.
    let of_block = block::fields();
    let names_calls = |node: &Node, fields: &[Field]| {
        node.entries().unwrap_or(&[]).iter().any(|e| fields.iter().all(|f| f.name != e.key))
    };
    let is_needed = names_calls(node, fields)
        || inner("ranges").iter().any(|e| e.value.get("block").is_none() && names_calls(&e.value, &of_block));
    let mut anywhere = own.clone();
    let others = inner("blocks").iter().chain(inner("ranges")).filter(|_| is_needed);
    for e in others.filter(|e| e.value.get("block").is_some()) {
        let more = calls(e.value.get("block"));
        anywhere.names.extend(more.names);
        anywhere.is_complete &= more.is_complete;
    }
    anywhere.names.sort_unstable();
    anywhere.names.dedup();
    let mut tree = mend_map(node, title, fields, &anywhere, cx);
    let Kind::Map(entries) = &mut tree.kind else { return tree };
    for e in entries.iter_mut().filter(|e| matches!(e.key.as_str(), "blocks" | "ranges")) {
        let Kind::Map(trees) = &mut e.value.kind else { continue };
        for tree in trees {
            let names = match tree.value.get("block") {
                // A map of fields alone names no calls, and reading equations takes time.
                _ if !names_calls(&tree.value, &of_block) => own.clone(),
                Some(equation) => calls(Some(equation)),
                // A range may change blocks of any equation.
                None if e.key == "ranges" => anywhere.clone(),
                None => own.clone(),
            };
            tree.value = mend_map(&tree.value, "block", &of_block, &names, cx);
        }
    }
    tree
}

/// The names of the call sites of one or more equations.
#[derive(Clone)]
struct Names {
    names: Vec<String>,
    /// Whether these are all; an equation with an error may have others.
    is_complete: bool,
}

/// The part and the name in `norm[name]`, the form in which an equation names a call site.
fn labelled<'k>(key: &'k str, own: &Definitions) -> Option<(&'k str, &'k str)> {
    let (part, label) = key.strip_suffix(']')?.split_once('[')?;
    (PartKind::from_word(part).is_some() || own.has(part)).then_some((part, label))
}

/// The keys that a stack has with any equations.
fn own_keys(fields: &[Field]) -> Vec<&'static str> {
    let parts = PartKind::ALL.iter().map(|kind| kind.word());
    fields.iter().map(|f| f.name).chain(parts).collect()
}

fn mend_map(node: &Node, title: &str, fields: &[Field], calls: &Names, cx: &mut Context<'_>) -> Node {
    let Kind::Map(entries) = &node.kind else { return node.clone() };
    let is_field = |e: &Entry| fields.iter().any(|f| f.name == e.key);
    let is_call = |name: &str| calls.names.iter().any(|call| call == name);
    let part = |e: &Entry| PartKind::from_word(e.key.trim_end_matches(|c: char| c.is_ascii_digit()));
    let own = Arc::clone(cx.definitions());
    let names = || listed(&calls.names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut kept: Vec<Entry> = Vec::new();
    for e in entries {
        match (labelled(&e.key, &own), part(e)) {
            _ if is_field(e) || is_call(&e.key) => kept.push(e.clone()),
            // `norm[ffn]` has the word of another part as its label.
            (Some((part, label)), _)
                if is_call(label) && label != part && PartKind::from_word(label).is_some() =>
            {
                let message = format!("no `{part}` of the {title} is called `{label}`");
                cx.report(
                    Diagnostic::error(Code::UnknownKey, e.key_span, message)
                        .help(format!("the equation calls {}", names())),
                );
            }
            (Some((_, label)), _) if is_call(label) => {
                let message = format!("a call site is named by its label alone, not by `{}`", e.key);
                cx.report(
                    Diagnostic::error(Code::UnknownKey, e.key_span, message)
                        .help(format!("write `{label}: ...`")),
                );
                kept.push(Entry { key: label.to_owned(), ..e.clone() });
            }
            // The call sites of an equation with an error are not all known, so this key may be one of them.
            (Some(_), _) | (_, Some(_)) if !calls.is_complete => {}
            (Some((_, label)), _) => {
                let message = format!("no call site of the {title} is called `{label}`");
                cx.report(
                    Diagnostic::error(Code::UnknownKey, e.key_span, message)
                        .help(format!("the equation calls {}", names()))
                        .help(format!("a call gets a name in the equation: `x + ... {}(x)`", e.key)),
                );
            }
            (None, Some(_)) => {
                let message = format!("no call site of the {title} is called `{}`", e.key);
                cx.report(
                    Diagnostic::error(Code::UnknownKey, e.key_span, message)
                        .help(format!("the equation calls {}", names())),
                );
            }
            (None, None) => kept.push(e.clone()),
        }
    }
    let mut tree = mended(&Node::map(kept, node.span), title, fields, &calls.names, cx).into_owned();
    let Kind::Map(entries) = &mut tree.kind else { return tree };
    for e in entries {
        let Some(kind) = PartKind::from_word(&e.key) else { continue };
        // Corrected before `with_part`, which would take a misspelled part for a field of the implied one.
        if let Some(slot) = kind.slot().filter(|slot| slot.implied.is_some()) {
            e.value = mended_part(&e.value, &slot, cx).into_owned();
        }
        e.value = kind.with_part(&e.value, &own);
    }
    tree
}
