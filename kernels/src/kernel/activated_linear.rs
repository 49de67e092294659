//! Linear layers followed by an activation, which is applied while the numbers of the product are in the cache.

use burn::prelude::*;

use crate::backend;
pub use crate::backend::Activation;

/// An activation of `x weight + bias`: `[.., in]`, weight `[in, out]`, bias `[out]` → `[.., out]`. All rows are multiplied
/// as one matrix.
pub fn activated_linear_of<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
) -> Tensor<D> {
    backend::linear(x, weight, bias, Some(activation))
}

/// Gelu of a linear layer: `[.., in]` → `[.., out]`
pub fn project_gelu<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    project_activated(layer, x, Activation::Gelu)
}

/// The approximation of gelu by the hyperbolic tangent, of a linear layer: `[.., in]` → `[.., out]`
pub fn project_gelu_tanh<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    project_activated(layer, x, Activation::GeluTanh)
}

/// The approximation of gelu by the logistic function, of a linear layer: `[.., in]` → `[.., out]`
pub fn project_quick_gelu<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    project_activated(layer, x, Activation::QuickGelu)
}

/// `y sigmoid(y)` for the result `y` of a linear layer: `[.., in]` → `[.., out]`
pub fn project_silu<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    project_activated(layer, x, Activation::Silu)
}

fn project_activated<const D: usize>(layer: &nn::Linear, x: Tensor<D>, activation: Activation) -> Tensor<D> {
    let bias = layer.bias.as_ref().map(|bias| bias.val());
    activated_linear_of(x, layer.weight.val(), bias, activation)
}
