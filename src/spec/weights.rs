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

use super::{ModelSpec, is_part};
use crate::diag::Sink;
use crate::field::value::Shape;
use crate::field::{Context, Value};
use crate::ir::Graph;
use crate::ir::paths::join;
use crate::names::check::{Keys, check};
use crate::names::{Names, json, read_rows};
use crate::syntax::tree::{Kind, Node};

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
        let names = Names { or_paths: true, ..read_rows(node, cx) };
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

impl ModelSpec {
    /// The values that formulas of `weights` can use: every value of the spec by its path, with and without
    /// the names of parts on the way.
    pub fn keys(&self) -> Keys {
        let mut keys = Keys::default();
        let spec = Self { weights: None, ..self.clone() };
        collect(&spec.encode(), "", "", &mut keys);
        keys
    }

    /// Reports every row of `weights` that leads to no parameter of the spec's graph.
    pub fn check_weights(&self, graph: &Graph, sink: &mut Sink) {
        if let Some(weights) = &self.weights {
            check(&weights.names, graph, &self.keys(), sink);
        }
    }
}

fn collect(node: &Node, path: &str, short: &str, keys: &mut Keys) {
    match &node.kind {
        Kind::Map(entries) => {
            for e in entries {
                let short = if is_part(&e.key) { short.to_owned() } else { join(short, &e.key) };
                collect(&e.value, &join(path, &e.key), &short, keys);
            }
        }
        Kind::Scalar(_) | Kind::Null => {
            for name in [path, short] {
                keys.0.entry(name.to_owned()).or_insert_with(|| json::of(node));
            }
        }
        Kind::List(_) | Kind::Delete => {}
    }
}
