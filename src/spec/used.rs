//! Which keys of a stack have an effect.
//!
//! That is decided by the place of a key in the text: trees are merged before anything is decoded, and a
//! place that is left in the tree of some part has an effect.

use std::collections::{BTreeMap, BTreeSet};

use super::idle::{in_place_of, set_instead, with_layers, with_others};
use super::wiring::PartKind;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::parts::attention::effect::Lack;
use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node};

/// The keys of a stack that assign blocks to layers, and those for what is before and after the blocks.
const STACK_KEYS: &[&str] =
    &["layers", "blocks", "pattern", "ranges", "runs", "share", "final_norm", "embed"];

/// Whether a key belongs to the stack itself and not to its blocks.
pub fn is_stack_key(key: &str) -> bool {
    STACK_KEYS.contains(&key)
}

/// The places in the text of a spec that have an effect.
#[derive(Debug, Default)]
pub struct Used {
    places: BTreeSet<Span>,
    /// The names of call sites of some block, and the words of their parts (`norm`, `ffn`).
    called: BTreeSet<String>,
    /// Values that have an effect in some blocks only, by their place: why they have none, or `None` if some
    /// block gives them one.
    conditional: BTreeMap<Span, Option<Lack>>,
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

    /// Notes for the value at a place why it has no effect in some block, or `None` if it has one there.
    pub fn note_effect(&mut self, place: Span, lack: Option<Lack>) {
        let known = self.conditional.entry(place).or_insert(lack);
        // One block in which the value has an effect is enough.
        if lack.is_none() {
            *known = None;
        }
    }

    /// Notes that a block has a call site with this name, where it calls this word.
    pub fn note_call(&mut self, word: &str, name: &str) {
        for word in [word, name] {
            // Most names are there already, so they are looked up before they are copied.
            if !self.called.contains(word) {
                self.called.insert(word.to_owned());
            }
        }
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
        if let Some(lack) = noted.conditional.get(&decoded.span) {
            self.note_effect(tree.span, *lack);
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
        other.conditional.into_iter().for_each(|(place, lack)| self.note_effect(place, lack));
        self.is_partial |= other.is_partial;
    }

    /// Whether anything in a tree has an effect, or may have one.
    pub fn any_of(&self, node: &Node) -> bool {
        let mut found = self.is_partial;
        each(node, &mut |place| found |= self.places.contains(&place));
        found
    }

    /// Reports the keys of the stack and of its blocks that have no effect. Some of the blocks have layers, those of
    /// these names if they are known.
    pub fn report_rest(
        &self,
        node: &Node,
        title: &str,
        have_layers: Option<BTreeSet<&str>>,
        cx: &mut Context<'_>,
    ) {
        for (place, lack) in self.conditional.iter().filter(|_| !self.is_partial) {
            if let Some(Lack { message, help }) = lack {
                cx.report(Diagnostic::error(Code::UnusedKey, *place, *message).help(*help));
            }
        }
        let with_layers = have_layers.or_else(|| with_layers(node));
        let may_have_layers = |name: &str| with_layers.as_ref().is_none_or(|names| names.contains(name));
        for e in node.entries().unwrap_or(&[]) {
            match e.key.as_str() {
                "blocks" | "ranges" if e.value.entries().is_some_and(<[Entry]>::is_empty) => {
                    report_empty(&e.key, &e.value, cx);
                }
                "blocks" | "ranges" => {
                    // A block that no layer has is left out here: `super::layers` reports it as a whole.
                    let is_in_use = |b: &&Entry| e.key == "ranges" || may_have_layers(&b.key);
                    for tree in e.value.entries().unwrap_or(&[]).iter().filter(is_in_use) {
                        tree.value.entries().unwrap_or(&[]).iter().for_each(|e| self.report_inner(e, cx));
                    }
                }
                key if is_stack_key(key) => {}
                _ => self.report_in(e, title, Some(node), cx),
            }
        }
    }

    /// Reports a key of a named block or of a range if it has no effect.
    fn report_inner(&self, e: &Entry, cx: &mut Context<'_>) {
        if !self.any_of(&e.value) {
            let message = format!("no layer here uses anything from `{}`", e.key);
            let help = "call it in the block's equation, or remove the key";
            cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).help(help));
        } else {
            self.report_fields(&e.value, &[], None, cx);
        }
    }

    /// Reports the fields of a part of which something is left, where every layer has other values in their place. The part is
    /// at this path in a stack, which is given with its title, if it is not that of a named block.
    fn report_fields(&self, part: &Node, path: &[&str], stack: Option<(&Node, &str)>, cx: &mut Context<'_>) {
        for e in part.entries().unwrap_or(&[]) {
            let path = [path, &[e.key.as_str()]].concat();
            if self.any_of(&e.value) {
                self.report_fields(&e.value, &path, stack, cx);
            // What is deleted is gone because it has had its effect.
            } else if !matches!(e.value.kind, Kind::Delete) {
                let found = Diagnostic::error(Code::UnusedKey, e.key_span, replaced(&e.key)).removable();
                let others = stack.map(|(node, title)| in_place_of(&path, node, title)).unwrap_or_default();
                cx.report(with_others(found, &others, e, cx));
            }
        }
    }

    /// Reports a key without effect in whose place all of these others are used, which are nearer to where it would take
    /// effect; as [`Used::report`] does if there are none.
    pub fn report_replaced(
        &self,
        (path, e): (&str, &Entry),
        others: &[&Entry],
        title: &str,
        cx: &mut Context<'_>,
    ) {
        if others.is_empty() || self.any_of(&e.value) {
            return self.report(e, title, cx);
        }
        let message = format!("this `{}` has no effect: another one is used in its place", e.key);
        let found = Diagnostic::error(Code::UnusedKey, e.key_span, message);
        let found = others.iter().fold(found, |found, own| found.label(own.key_span, "this one"));
        let help = set_instead(path, others, cx);
        cx.report(found.help(help.unwrap_or_else(|| "keep one of them".to_owned())));
    }

    /// Reports a key if it has no effect.
    pub fn report(&self, e: &Entry, title: &str, cx: &mut Context<'_>) {
        self.report_in(e, title, None, cx);
    }

    /// As [`Used::report`], for a key of this stack.
    fn report_in(&self, e: &Entry, title: &str, stack: Option<&Node>, cx: &mut Context<'_>) {
        if self.any_of(&e.value) {
            self.report_fields(&e.value, &[&e.key], stack.map(|node| (node, title)), cx);
            return;
        }
        let is_part = PartKind::from_word(&e.key).is_some();
        let (message, help) = match e.key.as_str() {
            "position" => (
                format!("no attention of the {title} has these positions"),
                "remove it, or call `attention(...)` in the block's equation, or a part that uses them: `rotate(..)` for \
                 rotary positions, `attend(..)` or `scores(..)` for others".to_owned(),
            ),
            "block" => (
                format!("no block of the {title} has this equation"),
                "every block in use has its own equation: remove this one".to_owned(),
            ),
            // Calling it would be an error, too.
            "cross" if title != "decoder" || !cx.stacks().contains(&"encoder") => (
                format!("the {title} has no encoder that `cross` could attend to"),
                "remove it".to_owned(),
            ),
            key if is_part && !self.called.contains(key) => (
                format!("no block of the {title} calls `{key}`"),
                format!("call `{key}(...)` in the block's equation, or remove the key"),
            ),
            key => (replaced(key), "remove it".to_owned()),
        };
        let others = stack.map(|node| in_place_of(&[&e.key], node, title)).unwrap_or_default();
        let found = Diagnostic::error(Code::UnusedKey, e.key_span, message).help(help);
        cx.report(with_others(found, &others, e, cx));
    }
}

/// The message about a key that other values have replaced everywhere.
fn replaced(key: &str) -> String {
    format!("this `{key}` has no effect: every layer has another one in its place")
}

/// Reports a key whose map has no entries, and so no effect; not if an entry of it was left out for an error.
pub fn report_empty(key: &str, map: &Node, cx: &mut Context<'_>) {
    let within =
        |at: Span| at.source == map.span.source && map.span.start <= at.start && at.end <= map.span.end;
    if cx.sink().iter().any(|diagnostic| within(diagnostic.span())) {
        return;
    }
    let message = format!("`{key}` is empty, so it has no effect");
    let help = format!("remove it; what a spec under `extends` gives is removed with `{key}: !delete`");
    cx.report(Diagnostic::error(Code::UnusedKey, map.span, message).help(help));
}

/// Visits the places of a node and of everything in it.
fn each(node: &Node, visit: &mut dyn FnMut(Span)) {
    visit(node.span);
    match &node.kind {
        Kind::Map(entries) => entries.iter().for_each(|e| each(&e.value, visit)),
        Kind::List(items) => items.iter().for_each(|i| each(i, visit)),
        Kind::Null | Kind::Scalar(_) | Kind::Delete => {}
    }
}
