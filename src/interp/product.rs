//! Products with the matrices of the weights, whether they are packed or not.

use burn::prelude::*;
use trafoc_kernels::{self as kernels, activated_linear_of, dropout, linear_of, unembed};

use super::Fault;
use super::pointwise::activate;
use super::value::{Ranked, map};
use super::weights::Weights;
use crate::ir::op::Activation;

/// A linear layer with a matrix of the weights, and with its low-rank change if there is one; `then` is applied to its result.
pub(super) fn linear(
    weights: &Weights,
    matrix: usize,
    bias: Option<Tensor<1>>,
    then: Option<Activation>,
    x: Ranked<Float>,
    training: bool,
) -> Result<Ranked<Float>, Fault> {
    // Packed or not is decided here, so that plans and the instructions of a model do not depend on it.
    let packed = weights.packed(matrix);
    let Some(change) = weights.change(matrix) else {
        return Ok(map!(x, x => match (packed, then.and_then(kernel)) {
            (Some(packed), None) => packed.apply(x, bias),
            (Some(packed), Some(then)) => packed.apply_activated(x, bias, then),
            (None, None) => linear_of(x, whole(weights, matrix)?, bias),
            (None, Some(then)) => activated_linear_of(x, whole(weights, matrix)?, bias, then),
        }));
    };
    Ok(map!(x, x => {
        let y = match packed {
            Some(packed) => packed.apply(x.clone(), bias),
            None => linear_of(x.clone(), whole(weights, matrix)?, bias),
        };
        // Two thin products instead of one with `W + a b`: the matrix stays frozen, and dropout applies to the input of the
        // change alone.
        let seen = if training { dropout(x, change.dropout) } else { x };
        let y = y + linear_of(linear_of(seen, change.a, None), change.b, None);
        match then {
            Some(then) => activate(then, y),
            None => y,
        }
    }))
}

/// The activation of the kernels; `None` for one that is not fused with what comes before it.
fn kernel(activation: Activation) -> Option<kernels::Activation> {
    match activation {
        Activation::Gelu => Some(kernels::Activation::Gelu),
        Activation::GeluTanh => Some(kernels::Activation::GeluTanh),
        Activation::QuickGelu => Some(kernels::Activation::QuickGelu),
        Activation::Silu => Some(kernels::Activation::Silu),
        Activation::Relu | Activation::Relu2 | Activation::Tanh | Activation::Sigmoid => None,
    }
}

/// The products of vectors with all rows of a table of the weights.
pub(super) fn logits(weights: &Weights, table: usize, x: Ranked<Float>) -> Result<Ranked<Float>, Fault> {
    Ok(map!(x, x => match weights.packed(table) {
        Some(packed) => packed.apply(x, None),
        None => unembed(x, whole(weights, table)?),
    }))
}

/// A matrix of the weights as a tensor, if it is not packed.
fn whole(weights: &Weights, matrix: usize) -> Result<Tensor<2>, Fault> {
    weights.matrices.get(matrix).map(|p| p.val()).ok_or_else(no_parameter)
}

pub(super) fn no_parameter() -> Fault {
    Fault("the weights are not those of the graph".into())
}
