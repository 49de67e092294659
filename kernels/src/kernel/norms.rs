//! Norms over the last axis, with or without parameters.

use burn::prelude::*;
use burn::tensor::DType;

use crate::backend::{self, Norm};

/// `(x - mean) / sqrt(var + eps) * weight + bias`, in single precision; without a weight, the factor is 1.
// The casts are necessary because burn does not promote element types (tracel-ai/burn#3218): if two tensors
// differ in theirs, Flex panics, CubeCL's backends read one type as the other without an error, and only
// LibTorch converts.
pub fn layer_norm_of<const D: usize>(
    x: Tensor<D>,
    weight: Option<Tensor<1>>,
    bias: Option<Tensor<1>>,
    eps: f64,
) -> Tensor<D> {
    let dtype = x.dtype();
    let weight = weight.unwrap_or_else(|| ones(&x)).cast(DType::F32);
    let bias = bias.map(|bias| bias.cast(DType::F32));
    backend::norm(x.cast(DType::F32), weight, bias, Norm::Layer { eps }).cast(dtype)
}

/// `x / sqrt(mean(x^2) + eps) * weight`; without a weight, the factor is 1. The mean is taken in single
/// precision.
pub fn rms_norm_of<const D: usize>(x: Tensor<D>, weight: Option<Tensor<1>>, eps: f64) -> Tensor<D> {
    // A weight of ones changes no bit of the result, and the kernels need only one case.
    let weight = weight.unwrap_or_else(|| ones(&x));
    backend::norm(x, weight, None, Norm::Rms { eps })
}

/// A factor of one for each feature.
pub(super) fn ones<const D: usize>(x: &Tensor<D>) -> Tensor<1> {
    Tensor::ones([x.dims()[D - 1]], (&x.device(), x.dtype()))
}

/// [`layer_norm_of`] with the parameters of a layer, whose `eps` burn does not show.
pub fn layer_norm<const D: usize>(layer: &nn::LayerNorm, x: Tensor<D>, eps: f64) -> Tensor<D> {
    let bias = layer.beta.as_ref().map(|bias| bias.val());
    layer_norm_of(x, Some(layer.gamma.val()), bias, eps)
}

/// [`rms_norm_of`] with the parameters of a layer.
pub fn rms_norm<const D: usize>(layer: &nn::RmsNorm, x: Tensor<D>) -> Tensor<D> {
    rms_norm_of(x, Some(layer.gamma.val()), layer.epsilon)
}
