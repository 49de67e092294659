//! Linear layers on rows.

use burn::prelude::*;

/// A linear layer applied to the last axis: `[.., in]` → `[.., out]`
pub fn project<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    let bias = layer.bias.as_ref().map(|bias| bias.val());
    linear_of(x, layer.weight.val(), bias)
}
