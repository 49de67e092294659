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
use crate::names::{Names, read_rows};
use crate::syntax::tree::Node;

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
