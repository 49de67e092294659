//! Gated products: the activation of one half of a layer's features, times the other half (Shazeer 2020).

use burn::prelude::*;

use crate::backend::{self, Activation};

/// `silu(gate) * x`, element by element, of tensors of the same shape: SwiGLU.
pub fn silu_gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    backend::gate(gate, x, Activation::Silu)
}

/// `gelu(gate) * x`, element by element, of tensors of the same shape: GEGLU.
pub fn gelu_gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    backend::gate(gate, x, Activation::Gelu)
}

/// `gelu_tanh(gate) * x`, element by element, of tensors of the same shape: GEGLU with the approximation of gelu.
pub fn gelu_tanh_gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    backend::gate(gate, x, Activation::GeluTanh)
}

/// `quick_gelu(gate) * x`, element by element, of tensors of the same shape.
pub fn quick_gelu_gate<const D: usize>(gate: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    backend::gate(gate, x, Activation::QuickGelu)
}
