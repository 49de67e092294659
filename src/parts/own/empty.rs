//! What is computed of nothing: at padding, sums over other positions have nothing to add up.
//!
//! With padding before a text, `cumsum(x) / cumsum(0 * x + 1)` is `0 / 0` there. Such a number is hidden from every other
//! position by a weight of 0, and 0 times no number is no number: it would spoil the whole text, and its gradient. So
//! padding is replaced by 1 where a number is divided by what may be 0 for this reason, or where its root or its logarithm
//! is computed. What is 0 for another reason is the author's, at padding as elsewhere.

use std::collections::BTreeSet;

use super::lower::{Lowered, Lowering};
use super::value::Wide;
use crate::ir::op::{Activation, Elementary, Neutral, Op, padded};
use crate::ir::{Node, ValueId};

/// Whether a function, or its gradient, is no number at 0.
fn undefined_at_zero(function: Elementary) -> bool {
    match function {
        Elementary::Log | Elementary::Sqrt | Elementary::Reciprocal => true,
        Elementary::Exp
        | Elementary::Square
        | Elementary::Abs
        | Elementary::Sign
        | Elementary::Sin
        | Elementary::Cos
        | Elementary::Softplus
        | Elementary::Floor => false,
    }
}

impl Lowering<'_> {
    /// The value with numbers at padding of which the function is one, too.
    pub(super) fn fit_for(&mut self, function: Elementary, x: &Wide) -> Lowered<Wide> {
        if undefined_at_zero(function) { self.unless_empty(x) } else { Ok(x.clone()) }
    }

    /// The value with 1 at padding, if it may be 0 there.
    pub(super) fn unless_empty(&mut self, x: &Wide) -> Lowered<Wide> {
        let Some(stack) = self.site.stack.filter(|_| x.pairs.is_none()) else { return Ok(x.clone()) };
        let ty = self.b.ty(x.id);
        let is_of_stack = ty.shape.iter().rev().nth(1) == Some(&stack.scope.sequence.queries());
        if padded(ty).is_none() || !is_of_stack || !self.may_be_empty(x.id) {
            return Ok(x.clone());
        }
        let Some(mask) = self.padding_mask()? else { return Ok(x.clone()) };
        let id = self.b.op("divisor", Op::HidePadding { neutral: Neutral::One }, &[x.id, mask])?;
        Ok(Wide { id, ..x.clone() })
    }

    /// Whether a value may be 0 at padding, because it is computed from other positions and padding sees none of them.
    pub(super) fn may_be_empty(&self, id: ValueId) -> bool {
        let mut emptied: BTreeSet<ValueId> = self.emptied.clone();
        for node in self.b.nodes() {
            let is_one = reads_others(&node.op) || node.inputs.iter().any(|id| emptied.contains(id));
            if is_one && !is_above_zero(node) {
                emptied.extend(node.outputs.iter().copied());
            }
        }
        emptied.contains(&id)
    }
}

/// Whether an op reads other positions, and leaves out padding. A part that is called may do so.
fn reads_others(op: &Op) -> bool {
    matches!(
        op,
        Op::Earlier { .. }
            | Op::CumulativeSum { .. }
            | Op::CausalConv { .. }
            | Op::Recurrence { .. }
            | Op::Attention(_)
            | Op::MatMul { .. }
            | Op::Hide { .. }
            | Op::HidePadding { neutral: Neutral::Zero }
            | Op::Call { .. }
    )
}

/// Whether the result of an op is not 0 where its inputs are.
fn is_above_zero(node: &Node) -> bool {
    matches!(&node.op, Op::Shift { by } if *by != 0.0)
        || matches!(&node.op, Op::Clamp { min: Some(min), .. } if *min > 0.0)
        || matches!(
            &node.op,
            Op::Elementary(Elementary::Exp | Elementary::Cos | Elementary::Softplus)
                | Op::Activate(Activation::Sigmoid)
                | Op::Softmax
                | Op::HidePadding { neutral: Neutral::One }
        )
}
