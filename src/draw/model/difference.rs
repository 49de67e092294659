//! Which boxes of two outlines are not alike.
//!
//! Boxes are matched by their path without the numbers of blocks. What only one model has is added or
//! removed; what both have with other words, sizes or wiring is changed.

use std::collections::BTreeMap;

use super::outline::{Flow, Form, Frame, Item, Outline};

/// How a box differs from its counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The first model has none.
    Added,
    /// The second model has none.
    Removed,
    /// Both have one, with other words on it.
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

    /// Its sign, which says the same without colour.
    pub fn sign(self) -> &'static str {
        match self {
            Change::Added => "+",
            Change::Removed => "−",
            Change::Changed => "≠",
        }
    }
}

/// What differs in one model, by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    items: BTreeMap<String, Change>,
}

impl Changes {
    /// How an item differs.
    pub fn item(&self, item: &Item) -> Option<Change> {
        self.items.get(&key(item)).copied()
    }

    /// How a frame differs.
    pub fn frame(&self, path: &str) -> Option<Change> {
        self.items.get(&format!("{} frame", unnumbered(path))).copied()
    }

    /// How many boxes differ.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// What differs in the first and in the second model.
pub fn changes(first: &Outline, second: &Outline) -> (Changes, Changes) {
    let (a, b) = (described(first), described(second));
    let against = |own: &BTreeMap<String, String>, other: &BTreeMap<String, String>, alone: Change| Changes {
        items: own
            .iter()
            .filter_map(|(path, words)| match other.get(path) {
                None => Some((path.clone(), alone)),
                Some(same) if same == words => None,
                Some(_) => Some((path.clone(), Change::Changed)),
            })
            .collect(),
    };
    (against(&a, &b, Change::Removed), against(&b, &a, Change::Added))
}

/// Every box with what is said on it.
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
                let words = format!("{} {:?}", item.label, item.notes);
                *out.entry(key(item)).or_default() += &words;
            }
            Form::Sum | Form::Product => {}
        }
    }
}

fn frame(frame: &Frame, times: &str, out: &mut BTreeMap<String, String>) {
    let words = format!("{times} {} {:?}", frame.times, frame.equations);
    *out.entry(format!("{} frame", unnumbered(&frame.path))).or_default() += &words;
    flow(&frame.flow, out);
}

/// Steps share the path of their module: their label tells them apart.
fn key(item: &Item) -> String {
    match item.form {
        Form::Step => format!("{} {}", unnumbered(&item.path), item.label),
        Form::Input | Form::Output | Form::Box(_) | Form::Sum | Form::Product | Form::Stack(_) => {
            unnumbered(&item.path)
        }
    }
}

/// `decoder.blocks.0..11.attention` → `decoder.blocks.attention`
fn unnumbered(path: &str) -> String {
    let named = path.split('.').filter(|s| s.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    named.collect::<Vec<_>>().join(".")
}
