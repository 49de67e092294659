//! Finds the boxes that differ between two outlines.
//!
//! Boxes are matched by their path without block numbers. A box that only one model has is added or
//! removed; a box that both have with other words, sizes or wiring is changed.

use std::collections::BTreeMap;

use super::outline::{Flow, Form, Frame, Item, Outline};

/// How a box differs from its counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the second model has it.
    Added,
    /// Only the first model has it.
    Removed,
    /// Both models have it, with different words.
    Changed,
}

impl Change {
    /// Its colour in [`crate::draw::theme`].
    pub fn class(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Removed => "removed",
            Change::Changed => "changed",
        }
    }

    /// A sign that shows the same without colour.
    pub fn sign(self) -> &'static str {
        match self {
            Change::Added => "+",
            Change::Removed => "−",
            Change::Changed => "≠",
        }
    }
}

/// The differences of one model, by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    items: BTreeMap<String, Change>,
}

impl Changes {
    /// The difference of an item, if it has one.
    pub fn item(&self, item: &Item) -> Option<Change> {
        self.items.get(&key(item)).copied()
    }

    /// The difference of a frame, if it has one.
    pub fn frame(&self, path: &str) -> Option<Change> {
        self.items.get(&format!("{} frame", unnumbered(path))).copied()
    }

    /// The number of boxes that differ.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no box differs.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// The differences of the first and of the second model.
pub fn changes(first: &Outline, second: &Outline) -> (Changes, Changes) {
    let (a, b) = (described(first), described(second));
    let against = |own: &BTreeMap<String, String>, other: &BTreeMap<String, String>, alone: Change| Changes {
        items: own
            .iter()
            .filter_map(|(path, words)| match other.get(path) {
                None => Some((path.clone(), alone)),
                // Words, not ops, are compared: what a picture does not show cannot be marked in it.
                Some(same) if same == words => None,
                Some(_) => Some((path.clone(), Change::Changed)),
            })
            .collect(),
    };
    (against(&a, &b, Change::Removed), against(&b, &a, Change::Added))
}

/// Every box, with its words.
fn described(outline: &Outline) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for column in &outline.columns {
        flow(&column.flow, &mut out);
    }
    out
}

fn flow(flow: &Flow, out: &mut BTreeMap<String, String>) {
    for item in &flow.items {
        match &item.form {
            Form::Stack(parts) => {
                for part in parts {
                    for one in &part.frames {
                        frame(one, &part.times, out);
                    }
                }
            }
            Form::Input | Form::Output | Form::Box(_) | Form::Step => {
                // Blocks of several kinds share a path once it has no numbers, so their words are joined.
                let words = format!("{} {:?}", item.label, item.notes);
                *out.entry(key(item)).or_default() += &words;
            }
            // Circles have no text and share the path of their module. The equations of the frame tell
            // whether sums differ.
            Form::Sum | Form::Product => {}
        }
    }
}

fn frame(frame: &Frame, times: &str, out: &mut BTreeMap<String, String>) {
    let words = format!("{times} {} {:?}", frame.times, frame.equations);
    *out.entry(format!("{} frame", unnumbered(&frame.path))).or_default() += &words;
    flow(&frame.flow, out);
}

/// Steps share the path of their module, so their label is part of the key.
fn key(item: &Item) -> String {
    match item.form {
        Form::Step => format!("{} {}", unnumbered(&item.path), item.label),
        Form::Input | Form::Output | Form::Box(_) | Form::Sum | Form::Product | Form::Stack(_) => {
            unnumbered(&item.path)
        }
    }
}

/// Removes block numbers: `decoder.blocks.0..11.attention` → `decoder.blocks.attention`.
fn unnumbered(path: &str) -> String {
    let named = path.split('.').filter(|s| s.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    named.collect::<Vec<_>>().join(".")
}
