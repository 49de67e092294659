//! Linear layers followed by an activation, in separate operations.

use burn::prelude::*;

use super::gelu::gelu;
use super::gelu_tanh::gelu_tanh;
use super::linear::project;
use super::quick_gelu::quick_gelu;
use super::silu::silu;

/// Gelu of a linear layer: `[.., in]` → `[.., out]`
pub fn project_gelu<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    gelu(project(layer, x))
}

/// The approximation of gelu by the hyperbolic tangent, of a linear layer: `[.., in]` → `[.., out]`
pub fn project_gelu_tanh<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    gelu_tanh(project(layer, x))
}

/// The approximation of gelu by the logistic function, of a linear layer: `[.., in]` → `[.., out]`
pub fn project_quick_gelu<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    quick_gelu(project(layer, x))
}

/// `y sigmoid(y)` for the result `y` of a linear layer: `[.., in]` → `[.., out]`
pub fn project_silu<const D: usize>(layer: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    silu(project(layer, x))
}
