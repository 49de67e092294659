//! A spec's normal form: the same tree for the same model, however its author wrote it.
//!
//! Two specs that differ in one knob have normal forms that differ in one place. Defaults are written out. A value
//! that follows from other fields (`head_dim` = `d_model / heads`) is marked with [`Form::Word::follows`]. Norms
//! that are all equal become one `norm`, and an equation of the prelude becomes its name. The blocks of a pattern
//! become one block, in which a field that varies has a value for [`Form::Each`] of them. [`node`] turns a form
//! into a tree that decodes to the original spec. [`Wirings`](super::normal::Wirings) brings specs into it.

use indexmap::IndexMap;

use crate::field::Places;
use crate::field::definition::Definitions;
use crate::field::record::entry;
use crate::field::value::{PartDoc, SlotDoc, plain};
use crate::parts::ffn::mixture::Expert;
use crate::parts::position::scaling::Scaling;
use crate::parts::{Attention, Ffn, Head, Norm, OwnPart, Position, init, mask};
use crate::source::Span;
use crate::spec::is_part;
use crate::syntax::tree::{Entry, Kind, Node};

/// Fields by name, in the order in which they are read.
pub type Fields = IndexMap<String, Form>;

/// A value in a normal form.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// A word, a number, a text or a list.
    Word {
        /// The value as a node of the spec's tree.
        node: Node,
        /// Whether it is derived from other fields, so that a spec may leave it out.
        follows: bool,
    },
    /// A part with its fields.
    Part(String, Fields),
    /// Fields that belong to no part, such as `bias: {qkv: false, out: true}`.
    Record(Fields),
    /// A value for each named block.
    Each(Fields),
}

impl Form {
    /// A word that is not derived from other fields.
    pub fn word(text: impl Into<String>) -> Form {
        Form::Word { node: plain(text), follows: false }
    }

    /// Whether this is a word that is derived from other fields.
    pub fn follows(&self) -> bool {
        matches!(self, Form::Word { follows: true, .. })
    }

    /// The form in which a word that is derived from other fields, here or in a block, is given instead.
    pub fn given(&self) -> Form {
        match self {
            Form::Word { node, .. } => Form::Word { node: node.clone(), follows: false },
            Form::Each(values) => Form::Each(values.iter().map(|(k, v)| (k.clone(), v.given())).collect()),
            Form::Part(..) | Form::Record(_) => self.clone(),
        }
    }

    /// The fields of a part or a record.
    pub fn fields(&self) -> Option<&Fields> {
        match self {
            Form::Part(_, fields) | Form::Record(fields) => Some(fields),
            Form::Word { .. } | Form::Each(_) => None,
        }
    }

    pub(super) fn fields_mut(&mut self) -> Option<&mut Fields> {
        match self {
            Form::Part(_, fields) | Form::Record(fields) => Some(fields),
            Form::Word { .. } | Form::Each(_) => None,
        }
    }

    /// What is inside: fields, or the values of the named blocks.
    pub fn inside(&self) -> Option<&Fields> {
        match self {
            Form::Part(_, inside) | Form::Record(inside) | Form::Each(inside) => Some(inside),
            Form::Word { .. } => None,
        }
    }

    fn inside_mut(&mut self) -> Option<&mut Fields> {
        match self {
            Form::Part(_, inside) | Form::Record(inside) | Form::Each(inside) => Some(inside),
            Form::Word { .. } => None,
        }
    }

    /// Whether the author wrote the word at a path.
    pub(super) fn is_written(&self, path: &[String]) -> bool {
        // Only what an author wrote has a place.
        matches!(self.get(path), Some(Form::Word { node, .. }) if node.span != Span::default())
    }

    /// Notes which fields of a part the author wrote, by giving their words a place.
    pub(super) fn note_written(&mut self, places: &Places) {
        for (key, field) in self.fields_mut().into_iter().flatten() {
            if let Form::Word { node, .. } = field
                && places.has(key)
            {
                node.span = places.of(key);
            }
        }
    }

    /// Marks the fields of a part of the spec's own that have their defaults.
    pub(super) fn note_followers(&mut self, part: &OwnPart) {
        for (key, field) in self.fields_mut().into_iter().flatten() {
            if let Form::Word { follows, .. } = field {
                *follows = part.follows.contains(key);
            }
        }
    }

    /// The value at a path of the names of fields and, where blocks differ, of blocks.
    pub fn get(&self, path: &[String]) -> Option<&Form> {
        path.iter().try_fold(self, |form, key| form.inside()?.get(key))
    }

    /// A path as `--set` takes it: it contains the names of parts, except those that are implied, and the name of a
    /// block before its fields.
    pub fn spelled(&self, path: &[String]) -> String {
        let mut words: Vec<&str> = Vec::new();
        let mut block = None;
        let mut at = Some(self);
        for key in path {
            match at {
                Some(Form::Part(name, _)) if !is_implied(name) => words.extend([name.as_str(), key]),
                Some(Form::Each(_)) => block = Some(key),
                Some(Form::Part(..) | Form::Record(_) | Form::Word { .. }) | None => words.push(key),
            }
            at = at.and_then(|form| form.inside()?.get(key));
        }
        // Only what is in a stack differs between blocks, and the first word is the stack.
        match (block, words.split_first()) {
            (Some(block), Some((stack, rest))) => {
                [&[stack, "blocks", block.as_str()], rest].concat().join(".")
            }
            (_, _) => words.join("."),
        }
    }

    /// Sets or removes the value at a path. Does nothing if a part of the path is missing.
    pub fn put(&mut self, path: &[String], value: Option<Form>) {
        let Some((last, parent)) = path.split_last() else { return };
        let Some(fields) = self.at(parent).and_then(Form::inside_mut) else { return };
        match value {
            Some(value) => {
                fields.insert(last.clone(), value);
            }
            None => {
                fields.shift_remove(last);
            }
        }
    }

    pub(super) fn at(&mut self, path: &[String]) -> Option<&mut Form> {
        path.iter().try_fold(self, |form, key| form.inside_mut()?.get_mut(key))
    }

    /// The form of a node, in which these parts may be of the spec's own.
    pub(super) fn from_node(node: &Node, own: &Definitions) -> Form {
        let fields = |entries: &[Entry]| -> Fields {
            entries.iter().map(|e| (e.key.clone(), Form::from_node(&e.value, own))).collect()
        };
        match &node.kind {
            Kind::Map(entries) => match entries.as_slice() {
                // A map with one key is a part only if the key names one: `{qkv: false}` is a record.
                [only] if (is_part(&only.key) || own.has(&only.key)) && only.value.entries().is_some() => {
                    Form::Part(only.key.clone(), fields(only.value.entries().unwrap_or(&[])))
                }
                all => Form::Record(fields(all)),
            },
            Kind::Scalar(_) | Kind::List(_) | Kind::Null | Kind::Delete => {
                Form::Word { node: node.clone(), follows: false }
            }
        }
    }
}

/// The part with this name, in any slot.
pub fn part(name: &str) -> Option<PartDoc> {
    SLOTS.iter().find_map(|slot| slot().parts.into_iter().find(|p| p.name == name))
}

/// Whether the part's fields may be written without its name.
fn is_implied(name: &str) -> bool {
    SLOTS.iter().any(|slot| slot().implied == Some(name))
}

const SLOTS: [fn() -> SlotDoc; 9] = [
    Norm::documentation,
    Position::documentation,
    Scaling::documentation,
    Attention::documentation,
    Ffn::documentation,
    Expert::documentation,
    mask::MaskPart::documentation,
    Head::documentation,
    init::Distribution::documentation,
];

/// The tree of a form, without the values that are derived from others.
pub fn node(form: &Form) -> Node {
    let Form::Record(fields) = form else { return value(form, None) };
    let entries = fields.iter().map(|(key, form)| match (key.as_str(), form) {
        ("encoder" | "decoder", Form::Record(fields)) => entry(key, stack_node(fields)),
        _ => entry(key, value(form, None)),
    });
    Node::map(entries.collect(), Span::default())
}

/// Fields of a stack that do not belong to its blocks.
const OF_STACK: &[&str] = &["embed", "layers", "share", "pattern", "runs", "final_norm"];

fn stack_node(fields: &Fields) -> Node {
    let (own, of_block): (Vec<_>, Vec<_>) =
        fields.iter().partition(|(key, _)| OF_STACK.contains(&key.as_str()));
    let mut entries: Vec<Entry> = own.iter().map(|(key, form)| entry(key, value(form, None))).collect();
    let names = blocks(fields);
    // The fields that all blocks share are written in the stack; each block has only what differs.
    let (varied, shared): (Vec<_>, Vec<_>) =
        of_block.into_iter().partition(|(_, form)| varies(form) && !names.is_empty());
    entries.extend(shared.into_iter().map(|(key, form)| entry(key, value(form, None))));
    let block = |name: &String| {
        let here = |form: &Form| !matches!(form, Form::Each(values) if !values.contains_key(name));
        let own = varied.iter().filter(|(_, form)| here(form));
        entry(
            name,
            Node::map(own.map(|(key, form)| entry(key, value(form, Some(name)))).collect(), Span::default()),
        )
    };
    if !names.is_empty() {
        entries.push(entry("blocks", Node::map(names.iter().map(block).collect(), Span::default())));
    }
    Node::map(entries, Span::default())
}

/// Whether the form has a value somewhere that varies between blocks.
fn varies(form: &Form) -> bool {
    matches!(form, Form::Each(_)) || form.fields().is_some_and(|fields| fields.values().any(varies))
}

/// The names of the blocks in a pattern or in runs, each once.
fn blocks(fields: &Fields) -> Vec<String> {
    fn collect(node: &Node, names: &mut Vec<String>) {
        match &node.kind {
            Kind::List(items) => items.iter().for_each(|item| collect(item, names)),
            Kind::Scalar(s) if !names.contains(&s.text) => names.push(s.text.clone()),
            Kind::Map(_) => node.get("cycle").into_iter().for_each(|cycle| collect(cycle, names)),
            Kind::Scalar(_) | Kind::Null | Kind::Delete => {}
        }
    }
    let mut names = Vec::new();
    for key in ["pattern", "runs"] {
        if let Some(Form::Word { node, .. }) = fields.get(key) {
            collect(node, &mut names);
        }
    }
    names
}

/// The tree of a value as the named block has it.
fn value(form: &Form, block: Option<&str>) -> Node {
    let map = |fields: &Fields| {
        let is_given = |form: &Form| !matches!(form, Form::Word { follows: true, .. });
        let entries = fields.iter().filter(|(_, form)| is_given(form));
        Node::map(entries.map(|(key, form)| entry(key, value(form, block))).collect(), Span::default())
    };
    match form {
        // A place would only say that the author wrote the field.
        Form::Word { node, .. } => Node { span: Span::default(), ..node.clone() },
        Form::Part(name, fields) => Node::map(vec![entry(name, map(fields))], Span::default()),
        Form::Record(fields) => map(fields),
        Form::Each(values) => {
            // Without a block, as after a knob that removed the pattern, the first value is used for all.
            let own = block.and_then(|name| values.get(name)).or(values.values().next());
            own.map_or_else(|| plain("none"), |form| value(form, block))
        }
    }
}
