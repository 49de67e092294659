//! The keys of a stack: which of them exist, and which of them have an effect.
//!
//! The names of call sites are keys in addition to the fields of a stack, so which keys exist depends on the
//! equations of the blocks. Whether a key has an effect is decided by its place in the text: trees are merged
//! before anything is decoded, and a place that is left in the tree of some part has an effect.

use std::collections::BTreeSet;

use super::block;
use super::stack;
use super::wiring::{self, PartKind};
use crate::diag::suggest::{is_near, suggest};
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::mend::{mended, mended_part};
use crate::field::record::listed;
use crate::source::Span;
use crate::syntax::equation::Equation;
use crate::syntax::tree::{Entry, Kind, Node};

/// The keys of a stack that assign blocks to layers, and those for what is before and after the blocks.
const STACK_KEYS: &[&str] =
    &["layers", "blocks", "pattern", "ranges", "runs", "share", "final_norm", "embed"];

/// Whether a key belongs to the stack itself and not to its blocks.
pub fn is_stack_key(key: &str) -> bool {
    STACK_KEYS.contains(&key)
}

/// The stack's tree without the keys that do not exist, which are reported; misspelled keys are corrected.
/// See [`mended`].
pub fn mend(node: &Node, title: &str, wirings: &[Equation], has_memory: bool, cx: &mut Context<'_>) -> Node {
    // The names of the call sites of a block whose equation is `node`. `None` if the equation has an error.
    let default = Node::plain("pre_norm", Span::default());
    let sources = cx.sources();
    let calls =
        |node: Option<&Node>| wiring::instance_names(node.unwrap_or(&default), wirings, has_memory, sources);
    // Which names are keys depends on the equations, so these must be found under a misspelled `block` or
    // `blocks` too.
    let keys = own_keys();
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
    let mut tree = mend_map(node, title, &stack::fields(), anywhere.as_deref(), cx);
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
fn own_keys() -> Vec<&'static str> {
    let parts = PartKind::ALL.iter().map(|kind| kind.word());
    stack::fields().iter().map(|f| f.name).chain(parts).collect()
}

fn mend_map(
    node: &Node,
    title: &str,
    fields: &[crate::field::value::Field],
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
                let message = format!("a call site goes by its name alone, and `{}` is none", e.key);
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

/// The places in the text of a spec that have an effect.
#[derive(Debug, Default)]
pub struct Used {
    places: BTreeSet<Span>,
    /// The names of call sites of some block, and the words of their parts (`norm`, `ffn`).
    called: BTreeSet<String>,
    /// Whether other places may have an effect too, because an equation has an error.
    is_partial: bool,
}

impl Used {
    /// Notes that everything in a tree has an effect.
    pub fn note(&mut self, node: &Node) {
        each(node, &mut |place| {
            self.places.insert(place);
        });
    }

    /// Notes that a block has a call site with this name and kind of part.
    pub fn note_call(&mut self, kind: PartKind, name: &str) {
        self.called.extend([kind.word().to_owned(), name.to_owned()]);
    }

    /// Notes that places other than those noted may have an effect.
    pub fn note_partial(&mut self) {
        self.is_partial = true;
    }

    /// Notes what has an effect in `tree`, which was not decoded because `decoded` has equal content: `noted`
    /// is what has an effect in `decoded`. The two trees are walked together, because equal content can be
    /// written in different places.
    pub fn note_like(&mut self, noted: &Used, decoded: &Node, tree: &Node) {
        if noted.places.contains(&decoded.span) {
            self.places.insert(tree.span);
        }
        match (&decoded.kind, &tree.kind) {
            (Kind::Map(_), Kind::Map(entries)) => {
                for e in entries {
                    decoded.get(&e.key).into_iter().for_each(|twin| self.note_like(noted, twin, &e.value));
                }
            }
            (Kind::List(twins), Kind::List(items)) => {
                twins.iter().zip(items).for_each(|(twin, item)| self.note_like(noted, twin, item));
            }
            (Kind::Map(_) | Kind::List(_) | Kind::Null | Kind::Scalar(_) | Kind::Delete, _) => {}
        }
    }

    /// Adds everything that `other` has noted.
    pub fn absorb(&mut self, other: Used) {
        self.places.extend(other.places);
        self.called.extend(other.called);
        self.is_partial |= other.is_partial;
    }

    /// Whether anything in a tree has an effect, or may have one.
    pub fn any_of(&self, node: &Node) -> bool {
        let mut found = self.is_partial;
        each(node, &mut |place| found |= self.places.contains(&place));
        found
    }

    /// Reports the keys of the stack and of its blocks that have no effect.
    pub fn report_rest(&self, node: &Node, title: &str, cx: &mut Context<'_>) {
        for e in node.entries().unwrap_or(&[]) {
            match e.key.as_str() {
                "blocks" | "ranges" => {
                    // A block that no layer has is left out here. If the pattern does not name it,
                    // `super::layers` reports it as a whole.
                    let stands = |b: &&Entry| e.key == "ranges" || stands_somewhere(node, &b.key);
                    for tree in e.value.entries().unwrap_or(&[]).iter().filter(stands) {
                        tree.value.entries().unwrap_or(&[]).iter().for_each(|e| self.report_inner(e, cx));
                    }
                }
                key if is_stack_key(key) => {}
                _ => self.report(e, title, cx),
            }
        }
    }

    /// Reports a key of a named block or of a range if it has no effect.
    fn report_inner(&self, e: &Entry, cx: &mut Context<'_>) {
        if !self.any_of(&e.value) {
            let message = format!("no layer here takes anything from `{}`", e.key);
            let help = "call it in the block's equation, or remove the key";
            cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).help(help));
        }
    }

    /// Reports a key if it has no effect.
    pub fn report(&self, e: &Entry, title: &str, cx: &mut Context<'_>) {
        if self.any_of(&e.value) {
            return;
        }
        let is_part = PartKind::from_word(&e.key).is_some();
        let (message, help) = match e.key.as_str() {
            "position" => (
                format!("no attention of the {title} has these positions"),
                "remove it, or call `attention(...)` in the block's equation".to_owned(),
            ),
            "block" => (
                format!("no block of the {title} has this equation"),
                "every block that stands somewhere has one of its own: remove this one".to_owned(),
            ),
            key if is_part && !self.called.contains(key) => (
                format!("no block of the {title} calls `{key}`"),
                format!("call `{key}(...)` in the block's equation, or remove the key"),
            ),
            key => (
                format!("nothing is left of this `{key}`: every layer has another in its place"),
                "remove it".to_owned(),
            ),
        };
        cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).help(help));
    }
}

/// Whether any layer may have the block with this name: `pattern` or `runs` names it, or there is neither.
fn stands_somewhere(stack: &Node, name: &str) -> bool {
    let lists = |node: &Node| match &node.kind {
        Kind::List(items) => items.iter().any(|item| item.text() == Some(name)),
        Kind::Null | Kind::Scalar(_) | Kind::Map(_) | Kind::Delete => false,
    };
    let runs = match stack.get("runs").map(|runs| &runs.kind) {
        Some(Kind::List(runs)) => runs.iter().filter_map(|run| run.get("cycle")).any(lists),
        Some(Kind::Null | Kind::Scalar(_) | Kind::Map(_) | Kind::Delete) | None => false,
    };
    runs || stack.get("pattern").map_or(stack.get("runs").is_none(), lists)
}

fn each(node: &Node, visit: &mut dyn FnMut(Span)) {
    visit(node.span);
    match &node.kind {
        Kind::Map(entries) => entries.iter().for_each(|e| each(&e.value, visit)),
        Kind::List(items) => items.iter().for_each(|i| each(i, visit)),
        Kind::Null | Kind::Scalar(_) | Kind::Delete => {}
    }
}
