//! Norms whose stored weight is the difference from one.

use burn::module::Param;
use burn::nn::Initializer;
use burn::prelude::*;

use super::add_norms::{add_layer_norm_of, add_rms_norm_of};
use super::norms::{layer_norm_of, rms_norm_of};

/// `x / sqrt(mean(x²) + eps) * (1 + weight)`
#[derive(Module, Debug)]
pub struct OffsetRmsNorm {
    weight: Param<Tensor<1>>,
    eps: f64,
}

impl OffsetRmsNorm {
    /// The norm with its initial weight of zeros, so that the factor is one.
    pub fn new(width: usize, eps: f64, device: &Device) -> Self {
        Self { weight: Initializer::Zeros.init([width], device), eps }
    }

    /// The norm over the last axis: `[.., width]`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        rms_norm_of(x, Some(self.weight.val() + 1.0), self.eps)
    }

    /// The norm over the last axis of `x + residual`, and this sum: all `[.., width]`.
    pub fn forward_sum<const D: usize>(&self, x: Tensor<D>, residual: Tensor<D>) -> (Tensor<D>, Tensor<D>) {
        add_rms_norm_of(x, residual, Some(self.weight.val() + 1.0), self.eps)
    }
}

/// `(x - mean) / sqrt(var + eps) * (1 + weight) + bias`
#[derive(Module, Debug)]
pub struct OffsetLayerNorm {
    weight: Param<Tensor<1>>,
    bias: Option<Param<Tensor<1>>>,
    eps: f64,
}

impl OffsetLayerNorm {
    /// The norm with its initial weight of zeros, so that the factor is one, and a bias of zeros if
    /// `has_bias`.
    pub fn new(width: usize, has_bias: bool, eps: f64, device: &Device) -> Self {
        let zeros = || Initializer::Zeros.init([width], device);
        Self { weight: zeros(), bias: has_bias.then(zeros), eps }
    }

    /// The norm over the last axis: `[.., width]`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let bias = self.bias.as_ref().map(|bias| bias.val());
        layer_norm_of(x, Some(self.weight.val() + 1.0), bias, self.eps)
    }

    /// The norm over the last axis of `x + residual`, and this sum: all `[.., width]`.
    pub fn forward_sum<const D: usize>(&self, x: Tensor<D>, residual: Tensor<D>) -> (Tensor<D>, Tensor<D>) {
        let bias = self.bias.as_ref().map(|bias| bias.val());
        add_layer_norm_of(x, residual, Some(self.weight.val() + 1.0), bias, self.eps)
    }
}
