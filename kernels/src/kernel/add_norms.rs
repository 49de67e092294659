//! A residual sum and its norm: the values on both sides of the step "Add & Norm" (Vaswani et al. 2017).

use burn::prelude::*;
use burn::tensor::DType;

use super::norms::{layer_norm_of, ones};
use crate::backend::{self, Norm};

/// [`layer_norm_of`] of `x + residual`, and this sum: two tensors of the same shape → two of that shape.
pub fn add_layer_norm_of<const D: usize>(
    x: Tensor<D>,
    residual: Tensor<D>,
    weight: Option<Tensor<1>>,
    bias: Option<Tensor<1>>,
    eps: f64,
) -> (Tensor<D>, Tensor<D>) {
    // In any other type the sum is rounded before the norm is taken in single precision.
    if x.dtype() != DType::F32 {
        let sum = x + residual;
        return (layer_norm_of(sum.clone(), weight, bias, eps), sum);
    }
    let weight = weight.unwrap_or_else(|| ones(&x)).cast(DType::F32);
    let bias = bias.map(|bias| bias.cast(DType::F32));
    backend::add_norm([x, residual], weight, bias, Norm::Layer { eps })
}

/// [`rms_norm_of`](super::rms_norm_of) of `x + residual`, and this sum: two tensors of the same shape → two of that shape.
pub fn add_rms_norm_of<const D: usize>(
    x: Tensor<D>,
    residual: Tensor<D>,
    weight: Option<Tensor<1>>,
    eps: f64,
) -> (Tensor<D>, Tensor<D>) {
    let weight = weight.unwrap_or_else(|| ones(&x));
    backend::add_norm([x, residual], weight, None, Norm::Rms { eps })
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
