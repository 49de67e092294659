//! The values of a spec by path, which formulas of `weights` use.

use super::{ModelSpec, is_part};
use crate::diag::Sink;
use crate::ir::Graph;
use crate::ir::paths::join;
use crate::names::check::{Keys, check};
use crate::names::json;
use crate::syntax::tree::{Kind, Node};

impl ModelSpec {
    /// The values that formulas of `weights` can use: every value of the spec by its path, with and without
    /// the names of parts on the way.
    pub fn keys(&self) -> Keys {
        let mut keys = Keys::default();
        // The rows of `weights` are what the values are for, and no values themselves.
        let spec = Self { weights: None, ..self.clone() };
        collect(&spec.encode(), "", "", &mut keys);
        keys
    }

    /// Reports every row of `weights` that leads to no parameter of the spec's graph.
    pub fn check_weights(&self, graph: &Graph, sink: &mut Sink) {
        if let Some(weights) = &self.weights {
            check(weights.names(), graph, &self.keys(), sink);
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
                // Without the names of parts two paths may be the same; the first value keeps it.
                keys.0.entry(name.to_owned()).or_insert_with(|| json::of(node));
            }
        }
        // Formulas have no use for lists, and a decoded spec has nothing left to delete.
        Kind::List(_) | Kind::Delete => {}
    }
}
