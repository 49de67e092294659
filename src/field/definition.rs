//! Parts that a spec defines itself, as far as their texts tell: inputs, fields and terms.
//!
//! A slot asks the [`Context`](super::Context) whether a word is the name of such a part. What the terms mean
//! is the business of the catalogue of parts, which also checks the definitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::source::Span;
use crate::syntax::equation::{PART_PARAMS, Statement, Term};
use crate::syntax::expr::Expr;
use crate::syntax::merge::DEFINITIONS;
use crate::syntax::tree::{Entry, Kind, Node, Style};

/// The definition of a part.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name under `parts`.
    pub name: String,
    /// The place of the name.
    pub span: Span,
    /// The inputs with their places.
    pub inputs: Vec<(String, Span)>,
    /// The fields in order; a default may use those before it.
    pub fields: Vec<OwnField>,
    /// The tensors that get names, in order.
    pub body: Vec<Statement>,
    /// What the part returns: the last line, which has no name.
    pub result: Term,
    /// The slot that a part of the library is made for, which is not the only one that may have it; `None` for those of
    /// authors.
    pub slot: Option<&'static str>,
}

/// A field of a defined part.
#[derive(Clone, Debug)]
pub struct OwnField {
    /// The name, which is a key where the part is used.
    pub name: String,
    /// The place of the name in the definition.
    pub span: Span,
    /// The value if the key is absent, which also decides what kind of value the field has.
    pub default: OwnDefault,
}

/// The value of a field that is not given.
#[derive(Clone, Debug)]
pub enum OwnDefault {
    /// The field is a number that must be given.
    Required,
    /// A number: an expression of sizes of the spec and of earlier fields.
    Number(Expr),
    /// `true` or `false`
    Truth(bool),
    /// The name of an activation.
    Word(String, Span),
}

impl OwnField {
    /// The line of the text that declares it: `hidden = 4 * d_model`.
    pub fn line(&self) -> String {
        let default = match &self.default {
            OwnDefault::Required => "required".to_owned(),
            OwnDefault::Number(expression) => expression.to_string(),
            OwnDefault::Truth(truth) => truth.to_string(),
            OwnDefault::Word(word, _) => word.clone(),
        };
        format!("{} = {default}", self.name)
    }
}

/// Definitions are equal if they have the same name and say the same.
// Texts are compared, because terms carry their places, which differ between equal definitions.
impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.lines() == other.lines() && self.header() == other.header()
    }
}

impl Definition {
    /// The lines of the text: the fields, the tensors, and the result.
    pub fn lines(&self) -> Vec<String> {
        let fields = self.fields.iter().map(OwnField::line);
        let tensors = self.body.iter().map(|s| format!("{} = {}", s.target, s.value));
        let mut lines: Vec<String> = fields.chain(tensors).collect();
        let result = self.result.to_string();
        // After another line, a minus would subtract the result from what is there.
        let is_joined = result.starts_with('-') && !lines.is_empty();
        lines.push(if is_joined { format!("({result})") } else { result });
        lines
    }

    fn header(&self) -> Vec<&str> {
        self.inputs.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The entry under `parts`, which reads back as an equal definition.
    pub fn encode(&self) -> Entry {
        let header = self.header();
        let first = (header != PART_PARAMS).then(|| format!("({}):", header.join(", ")));
        let lines: Vec<String> = first.into_iter().chain(self.lines()).collect();
        let value = Node::scalar(lines.join("\n"), Style::Block, Span::default());
        Entry { key: self.name.clone(), key_span: Span::default(), value }
    }
}

/// The parts that a spec defines, those of the files that it uses, and those of the library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// The sound ones, in the order of the spec.
    pub all: Vec<Arc<Definition>>,
    /// The names of those with an error, which has been reported.
    pub broken: Vec<String>,
    /// Those with an error whose fields are known all the same.
    pub with_fields: Vec<Arc<Definition>>,
    /// Whether there may be others, in a file that could not be read, which has been reported.
    pub may_be_more: bool,
    /// The names of those that are not the spec's own, so that not all of them need be used.
    pub shared: BTreeSet<String>,
}

impl Definitions {
    /// The definition of that name, if it is sound.
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.all.iter().find(|definition| definition.name == name)
    }

    /// The definition of that name as far as its fields are concerned, even if it has an error.
    pub fn fields_of(&self, name: &str) -> Option<&Arc<Definition>> {
        self.get(name).or_else(|| self.with_fields.iter().find(|definition| definition.name == name))
    }

    /// Whether there is a part of that name, even one with an error.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some() || self.broken.iter().any(|broken| broken == name)
    }

    /// All names, of sound definitions first.
    pub fn names(&self) -> Vec<&str> {
        self.all.iter().map(|d| d.name.as_str()).chain(self.broken.iter().map(String::as_str)).collect()
    }

    /// The names of those that may be meant by a word in a slot: the spec's own, and those of the library that are made for
    /// it.
    pub fn made_for(&self, slot: &str) -> Vec<&str> {
        let is_other = |name: &str| {
            let made_for = self.get(name).and_then(|definition| definition.slot);
            // An expert is one of several feed-forward parts.
            made_for.is_some_and(|made_for| made_for != slot && (made_for, slot) != ("ffn", "expert"))
        };
        self.names().into_iter().filter(|name| !is_other(name)).collect()
    }

    /// The names of the spec's own, for lists that would be long with a whole library in them.
    pub fn own_names(&self) -> Vec<&str> {
        self.names().into_iter().filter(|name| !self.shared.contains(*name)).collect()
    }

    /// Those of the spec, and of the others those that something uses: what the spec needs to be complete by
    /// itself.
    pub fn complete(&self, is_used: &dyn Fn(&str) -> bool) -> Self {
        let is_kept = |name: &str| !self.shared.contains(name) || is_used(name);
        Self {
            all: self.all.iter().filter(|d| is_kept(&d.name)).cloned().collect(),
            broken: self.broken.clone(),
            with_fields: self.with_fields.clone(),
            may_be_more: self.may_be_more,
            shared: BTreeSet::new(),
        }
    }
}

/// An entry among the used parts that marks a file which could not be read: its key is the path of the file. No text
/// has such an entry, because its key and its value have the same place.
pub fn unread_file(path: &Node) -> Entry {
    let value = Node { kind: Kind::List(Vec::new()), span: path.span };
    Entry { key: path.text().unwrap_or_default().to_owned(), key_span: path.span, value }
}

/// Whether an entry among the used parts marks a file that could not be read.
pub fn is_unread_file(entry: &Entry) -> bool {
    matches!(entry.value.kind, Kind::List(_)) && entry.key_span == entry.value.span
}

/// The names of the parts in a tree that has not been decoded: those that it defines, and those of the files
/// that it uses.
pub fn names_in(tree: &Node) -> impl Iterator<Item = &str> {
    let entries = DEFINITIONS.iter().flat_map(|key| tree.get(key).and_then(Node::entries).unwrap_or(&[]));
    entries.map(|e| e.key.as_str())
}
