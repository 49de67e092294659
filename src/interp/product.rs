//! Products with the matrices of the weights, whether they are packed or not.

use burn::prelude::*;
use trafoc_kernels::{dropout, linear_of, unembed};

use super::Fault;
use super::value::{Ranked, map};
use super::weights::Weights;

/// A linear layer with a matrix of the weights, and with its low-rank change if there is one.
pub(super) fn linear(
    weights: &Weights,
    matrix: usize,
    bias: Option<Tensor<1>>,
    x: Ranked<Float>,
    training: bool,
) -> Result<Ranked<Float>, Fault> {
    let change = weights.change(matrix);
    Ok(map!(x, x => {
        // Packed or not is decided here, so that plans and the instructions of a model do not depend on it.
        let y = match weights.packed(matrix) {
            Some(packed) => packed.apply(x.clone(), bias),
            None => linear_of(x.clone(), whole(weights, matrix)?, bias),
        };
        match change {
            None => y,
            // Two thin products instead of one with `W + a b`: the matrix stays frozen, and dropout applies
            // to the input of the change alone.
            Some(change) => {
                let seen = if training { dropout(x, change.dropout) } else { x };
                y + linear_of(linear_of(seen, change.a, None), change.b, None)
            }
        }
    }))
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
