//! Linear layers, computed as one matrix product over all rows.

use burn::prelude::*;

use crate::backend;

/// `x weight + bias`: `[.., in]`, weight `[in, out]`, bias `[out]` → `[.., out]`. All rows are multiplied as
/// one matrix. Burn's own layer may multiply sequence by sequence; in training, the weight then has a
/// gradient for each sequence, `[B, in, out]`, until these are added up (burn-dispatch 0.22.1 leaves `linear`
/// at its default, which autodiff treats as a broadcast product).
pub fn linear_of<const D: usize>(x: Tensor<D>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<D> {
    backend::linear(x, weight, bias, None)
}

/// A linear layer applied to the last axis: `[.., in]` → `[.., out]`
// Emitted models call this: their fields are burn's layers, whose own `forward` is not used.
pub fn project<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    let bias = layer.bias.as_ref().map(|bias| bias.val());
    linear_of(x, layer.weight.val(), bias)
}
