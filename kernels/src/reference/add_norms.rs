//! A residual sum and its norm, one after the other: the step "Add & Norm" (Vaswani et al. 2017).

use burn::prelude::*;

use super::norms::{layer_norm_of, rms_norm_of};

/// [`layer_norm_of`] of `x + residual`, and this sum: two tensors of the same shape → two of that shape.
pub fn add_layer_norm_of<const D: usize>(
    x: Tensor<D>,
    residual: Tensor<D>,
    weight: Option<Tensor<1>>,
    bias: Option<Tensor<1>>,
    eps: f64,
) -> (Tensor<D>, Tensor<D>) {
    let sum = x + residual;
    (layer_norm_of(sum.clone(), weight, bias, eps), sum)
}

/// [`rms_norm_of`] of `x + residual`, and this sum: two tensors of the same shape → two of that shape.
pub fn add_rms_norm_of<const D: usize>(
    x: Tensor<D>,
    residual: Tensor<D>,
    weight: Option<Tensor<1>>,
    eps: f64,
) -> (Tensor<D>, Tensor<D>) {
    let sum = x + residual;
    (rms_norm_of(sum.clone(), weight, eps), sum)
}

/// [`add_layer_norm_of`] with the parameters of a layer, whose `eps` burn does not show.
pub fn add_layer_norm<const D: usize>(
    layer: &nn::LayerNorm,
    x: Tensor<D>,
    residual: Tensor<D>,
    eps: f64,
) -> (Tensor<D>, Tensor<D>) {
    let bias = layer.beta.as_ref().map(|bias| bias.val());
    add_layer_norm_of(x, residual, Some(layer.gamma.val()), bias, eps)
}

/// [`add_rms_norm_of`] with the parameters of a layer.
pub fn add_rms_norm<const D: usize>(
    layer: &nn::RmsNorm,
    x: Tensor<D>,
    residual: Tensor<D>,
) -> (Tensor<D>, Tensor<D>) {
    add_rms_norm_of(x, residual, Some(layer.gamma.val()), layer.epsilon)
}
