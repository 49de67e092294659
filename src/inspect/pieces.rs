//! Attention that a part puts together itself: where values are added up, and by which weights.

use crate::ir::op::Fill;
use crate::ir::{Module, Node, Op, ValueId};

/// The weights by which a part adds up values.
pub(super) struct Pieces {
    /// The mask that hides scores.
    pub mask: Option<ValueId>,
    /// Whether the weights are a softmax over the keys, as those of attention.
    pub is_softmax: bool,
}

/// The weights of a node that adds up values by them, as `weigh` does; `None` if it does not.
pub(super) fn pieces(module: &Module, node: &Node) -> Option<Pieces> {
    let Op::MatMul { transposed: false } = node.op else { return None };
    let defining = |id: &ValueId| module.nodes.iter().find(|node| node.outputs.contains(id));
    let mut weights = defining(node.inputs.first()?);
    // None of these changes a weight of a key that is seen.
    while let Some(Node { op: Op::Hide { fill: Fill::Zero } | Op::ForBatch, inputs, .. }) = weights {
        weights = inputs.first().and_then(defining);
    }
    let softmax = weights.filter(|node| node.op == Op::Softmax);
    let scores = softmax.and_then(|node| node.inputs.first()).and_then(defining);
    let hidden = scores.filter(|node| matches!(node.op, Op::Hide { .. }));
    Some(Pieces { mask: hidden.and_then(|node| node.inputs.get(1)).copied(), is_softmax: softmax.is_some() })
}
