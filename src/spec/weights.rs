//! `weights:` describes the names and the layout of the tensors in an author's own checkpoint.
//!
//! ```yaml
//! weights:
//!   token_embedding: embed.tokens
//!   blocks.layer_{i}:
//!     into: decoder.blocks.{i}
//!     attn.qkv: {fuse: [attention.query, attention.key, attention.value]}
//!     attn.tril: none
//! ```
//! Rows are like those of a Hugging Face family ([`crate::names`]). A parameter that no row names is
//! expected under its own path, so a checkpoint of trafoc can be loaded too. Formulas can use the values of
//! the spec by path: `groups: = decoder.attention.heads`.

use crate::field::value::Shape;
use crate::field::{Context, Value};
use crate::ir::paths::join;
use crate::names::check::check_variables;
use crate::names::{Names, read_rows};
use crate::syntax::tree::{Entry, Kind, Node};

/// A spec's own names of tensors.
#[derive(Clone, Debug)]
pub struct Weights {
    node: Node,
    names: Names,
}

/// Equal if they have the same content, whatever their places.
impl PartialEq for Weights {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl Value for Weights {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        // With an empty prefix, a parameter that no row names is looked for under its own path.
        let names = Names { paths: Some(String::new()), ..read_rows(node, cx) };
        check_variables(&names, cx.sink());
        Some(Self { node: node.clone(), names })
    }
    fn encode(&self) -> Node {
        self.node.clone()
    }
    fn describe() -> Shape {
        Shape::Any
    }
}

impl Weights {
    /// The names in the form in which they are applied.
    pub fn names(&self) -> &Names {
        &self.names
    }
}

/// The rows of `weights` for a model that has lost some of its parameters: their tensors become `none`, which
/// means that they are not used. Returns the names of these tensors too.
pub fn without(rows: &Node, is_lost: &dyn Fn(&str) -> bool) -> (Node, Vec<String>) {
    let mut lost = Vec::new();
    let base = rows.get("into").and_then(Node::text).unwrap_or_default();
    let rows = kept(rows, ("", base), is_lost, &mut lost);
    (rows, lost)
}

fn kept(
    rows: &Node,
    (tensors, into): (&str, &str),
    is_lost: &dyn Fn(&str) -> bool,
    lost: &mut Vec<String>,
) -> Node {
    let row = |entry: &Entry| {
        let name = join(tensors, &entry.key);
        if let Some(base) = entry.value.get("into").and_then(Node::text) {
            let base = join(into, base);
            return Entry { value: kept(&entry.value, (&name, &base), is_lost, lost), ..entry.clone() };
        }
        // `into` is not the name of a tensor.
        if entry.key == "into" || !leads(&entry.value).iter().any(|path| is_lost(&join(into, path))) {
            return entry.clone();
        }
        lost.push(name);
        // `none` and no absence: without a row, the tensor of the checkpoint would be one that nothing knows.
        Entry { value: Node::plain("none", entry.value.span), ..entry.clone() }
    };
    match rows.entries() {
        Some(entries) => Node::map(entries.iter().map(row).collect(), rows.span),
        None => rows.clone(),
    }
}

/// The paths of the parameters that a row leads to.
fn leads(row: &Node) -> Vec<&str> {
    match &row.kind {
        Kind::Scalar(scalar) => vec![scalar.text.as_str()],
        Kind::List(items) => items.iter().filter_map(Node::text).collect(),
        Kind::Map(_) => {
            ["to", "fuse", "copy"].into_iter().filter_map(|key| row.get(key)).flat_map(leads).collect()
        }
        Kind::Null | Kind::Delete => Vec::new(),
    }
}
