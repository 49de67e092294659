//! Gated products in separate operations (Shazeer 2020).

use burn::prelude::*;

use super::gelu::gelu;
use super::gelu_tanh::gelu_tanh;
use super::quick_gelu::quick_gelu;
use super::silu::silu;

/// `silu(gate) * x`, element by element: SwiGLU.
pub fn silu_gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    silu(gate) * x
}

/// `gelu(gate) * x`, element by element: GEGLU.
pub fn gelu_gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    gelu(gate) * x
}

/// `gelu_tanh(gate) * x`, element by element: GEGLU with the approximation of gelu.
pub fn gelu_tanh_gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    gelu_tanh(gate) * x
}

/// `quick_gelu(gate) * x`, element by element.
pub fn quick_gelu_gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    quick_gelu(gate) * x
}
