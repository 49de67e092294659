//! Finds the boxes that differ between two outlines.
//!
//! Boxes are matched by their path without block numbers, and the norms of a block by their place in it: what
//! they normalise and what reads them. They are numbered in the order of a block's equations, so that one norm
//! more would give every later one the name of another. A box that only one model has is added or removed; a
//! box that both have with other words is changed.

use std::collections::{BTreeMap, BTreeSet};

use super::outline::{Flow, Form, Frame, From, Item, Outline, Tint};

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

/// The differences of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The boxes that differ, by what [`own`] calls them in their model.
    items: BTreeMap<String, Change>,
}

impl Changes {
    /// The difference of an item, if it has one.
    pub fn item(&self, item: &Item) -> Option<Change> {
        self.items.get(&own(item)).copied()
    }

    /// The difference of a frame, if it has one.
    pub fn frame(&self, path: &str) -> Option<Change> {
        self.items.get(&format!("{path} frame")).copied()
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

/// What a box is matched by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Its path without block numbers.
    Path(String),
    /// The place of a norm in a block.
    Norm(Place),
}

/// Where a norm is in its block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The path of the block without numbers.
    block: String,
    /// What it normalises.
    of: BTreeSet<String>,
    /// What reads it.
    before: BTreeSet<String>,
}

impl Place {
    /// Whether two norms do the same although one is read by more: both have the same input, some box reads
    /// either of them, and either both or none are a part of the residual stream.
    fn is_like(&self, other: &Place) -> bool {
        let is_in_stream = |place: &Place| place.before.iter().any(|reader| reader == SUM || reader == END);
        self.block == other.block
            && self.of == other.of
            && is_in_stream(self) == is_in_stream(other)
            && self.before.intersection(&other.before).any(|reader| reader != SUM && reader != END)
    }
}

/// A sum or a product, in places; no path has a space.
const SUM: &str = "a sum";
/// The end of a block, in places.
const END: &str = "the end";

/// The boxes of a model.
#[derive(Debug, Default)]
struct Boxes {
    /// The words of each. Blocks of several kinds share a key, so their words are joined.
    words: BTreeMap<Key, String>,
    /// What each is called in its own model, with its key.
    all: Vec<(String, Key)>,
}

impl Boxes {
    fn of(outline: &Outline) -> Self {
        let mut boxes = Self::default();
        for column in &outline.columns {
            boxes.flow(&column.flow, None);
        }
        boxes
    }

    fn add(&mut self, own: String, key: Key, words: &str) {
        *self.words.entry(key.clone()).or_default() += words;
        self.all.push((own, key));
    }

    /// The boxes of a flow; `block` is the path of the block that it is the content of.
    fn flow(&mut self, flow: &Flow, block: Option<&str>) {
        for (i, item) in flow.items.iter().enumerate() {
            match &item.form {
                Form::Stack(parts) => {
                    for part in parts {
                        for one in &part.frames {
                            self.frame(one, &part.times);
                        }
                    }
                }
                Form::Input | Form::Output | Form::Box(_) | Form::Step => {
                    let key = match block {
                        Some(block) if is_norm(item) => Key::Norm(place(flow, i, block)),
                        _ => Key::Path(unnumbered(&own(item))),
                    };
                    self.add(own(item), key, &format!("{} {:?}", item.label, item.notes));
                }
                // Circles have no text and share the path of their module. The equations of the frame tell
                // whether sums differ.
                Form::Sum | Form::Product => {}
            }
        }
    }

    fn frame(&mut self, frame: &Frame, times: &str) {
        let words = format!("{times} {} {:?}", frame.times, frame.equations);
        let own = format!("{} frame", frame.path);
        let key = Key::Path(unnumbered(&own));
        self.add(own, key, &words);
        self.flow(&frame.flow, Some(&frame.path));
    }

    /// The words of the box that a key of another model is matched with.
    fn matched(&self, key: &Key, others: &Boxes) -> Option<&String> {
        let exact = self.words.get(key);
        let (None, Key::Norm(place)) = (exact, key) else { return exact };
        // What has a counterpart of its own is not another's.
        let free = self.words.iter().filter(|(key, _)| !others.words.contains_key(key));
        let like = |key: &Key| matches!(key, Key::Norm(other) if other.is_like(place));
        free.into_iter().find(|(key, _)| like(key)).map(|(_, words)| words)
    }

    /// The differences of these from the boxes of another model.
    fn against(&self, other: &Boxes, alone: Change) -> Changes {
        let items = self.all.iter().filter_map(|(own, key)| {
            let change = match other.matched(key, self) {
                None => alone,
                // Words, not ops, are compared: what a picture does not show cannot be marked in it.
                Some(same) if self.words.get(key) == Some(same) => return None,
                Some(_) => Change::Changed,
            };
            Some((own.clone(), change))
        });
        Changes { items: items.collect() }
    }
}

/// The differences of the first and of the second model.
pub fn changes(first: &Outline, second: &Outline) -> (Changes, Changes) {
    let (a, b) = (Boxes::of(first), Boxes::of(second));
    (a.against(&b, Change::Removed), b.against(&a, Change::Added))
}

/// Whether an item is a norm on a line of the picture.
fn is_norm(item: &Item) -> bool {
    item.form == Form::Box(Tint::Norm) && !item.is_aside
}

/// The place of an item in its block.
fn place(flow: &Flow, index: usize, block: &str) -> Place {
    let name = |item: &Item| match &item.form {
        Form::Sum | Form::Product => SUM.to_owned(),
        // Its number would be the one that differs.
        Form::Box(Tint::Norm) => "a norm".to_owned(),
        Form::Box(_) | Form::Step | Form::Input | Form::Output | Form::Stack(_) => unnumbered(&own(item)),
    };
    let inputs = flow.items.get(index).map_or(&[][..], |item| &item.inputs);
    let of = inputs.iter().filter_map(|from| match from {
        From::Item(j) => flow.items.get(*j).map(name),
        From::Start => Some("the start".to_owned()),
        From::Memory => Some("the memory".to_owned()),
    });
    let readers = flow.items.iter().filter(|item| item.inputs.contains(&From::Item(index)));
    let mut before: BTreeSet<String> = readers.map(name).collect();
    if before.is_empty() {
        before.insert(END.to_owned());
    }
    Place { block: unnumbered(block), of: of.collect(), before }
}

/// What an item is called in its own model. Steps share the path of their module, so their label is part of
/// it.
fn own(item: &Item) -> String {
    match item.form {
        Form::Step => format!("{} {}", item.path, item.label),
        Form::Input | Form::Output | Form::Box(_) | Form::Sum | Form::Product | Form::Stack(_) => {
            item.path.clone()
        }
    }
}

/// Removes block numbers: `decoder.blocks.0..12.attention` → `decoder.blocks.attention`.
fn unnumbered(name: &str) -> String {
    // The label of a step may have dots, and numbers that are its own.
    let (path, label) = name.split_once(' ').map_or((name, None), |(path, label)| (path, Some(label)));
    let named = path.split('.').filter(|s| s.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    let path = named.collect::<Vec<_>>().join(".");
    label.map_or(path.clone(), |label| format!("{path} {label}"))
}
