//! What is known about one word, and the documentation of fields on one line.

use schemars::JsonSchema;
use serde::Serialize;

use crate::field::value::{DefaultDoc, Field};
use crate::syntax::tree::{Kind, Node};

/// What a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// A slot, which holds one of several parts.
    Slot,
    /// A part of a slot.
    Part,
    /// A key of a spec or of a recipe.
    Key,
    /// A word that a key takes.
    Word,
    /// An equation of the prelude, such as `pre_norm`.
    Wiring,
    /// A function of expressions.
    Function,
    /// A layer or an op that the equation of a part calls.
    Call,
    /// What several places of a spec have in common: expressions, equations.
    Subject,
}

/// One item of the language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Topic {
    /// What the word names.
    pub sort: Sort,
    /// The last segment of the path, or the word itself: `kv_heads`.
    pub name: String,
    /// The path, such as `decoder.attention.kv_heads`.
    pub path: String,
    /// What it is for, in plain sentences on one line.
    pub doc: String,
    /// Which values are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes: Option<String>,
    /// The value if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// A part of one's own in which it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// What computes the same in PyTorch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pytorch: Option<String>,
    /// Parts of a slot, fields of a part, words of a choice, or lines of an equation, each with its
    /// description.
    pub items: Vec<Item>,
    /// Every segment of the path, including parts that may be left out.
    #[serde(skip)]
    pub(super) chain: Vec<String>,
}

/// A line below a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Item {
    /// The name of the item.
    pub name: String,
    /// Its description in one line, with the default if it has one.
    pub doc: String,
}

/// A field in one line: its description and its default.
pub fn said(field: &Field) -> String {
    match field.default {
        DefaultDoc::Required => format!("{} Must be given.", with_rules(field)),
        DefaultDoc::Absent => with_rules(field),
        DefaultDoc::Value(_) | DefaultDoc::Formula(_) => {
            format!("{} Default: {}.", with_rules(field), default(field.default).unwrap_or_default())
        }
    }
}

/// The documentation of a field and its rules, on one line.
pub fn with_rules(field: &Field) -> String {
    let rules = field.own_rules().map(|rule| format!(" {}", rule.sentence()));
    rules.fold(tidy(field.doc), |doc, rule| doc + &rule)
}

/// Documentation on one line.
pub fn tidy(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of a field that is not given, in words.
pub fn default(default: DefaultDoc) -> Option<String> {
    match default {
        DefaultDoc::Required => Some("none; it must be given".to_owned()),
        DefaultDoc::Absent => None,
        DefaultDoc::Value(value) => Some(flow(&value())),
        DefaultDoc::Formula(formula) => Some(formula.to_owned()),
    }
}

/// A node on one line: `{bias: true}`.
pub fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "null".to_owned(),
        Kind::Delete => "!delete".to_owned(),
        Kind::Scalar(s) => s.text.trim().replace('\n', "; "),
        Kind::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Kind::Map(entries) => {
            let inner: Vec<String> =
                entries.iter().map(|e| format!("{}: {}", e.key, flow(&e.value))).collect();
            format!("{{{}}}", inner.join(", "))
        }
    }
}
