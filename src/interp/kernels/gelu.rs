//! Gelu with its own gradient on every backend.

use std::f64::consts::FRAC_1_SQRT_2;

use burn::prelude::*;
use burn::tensor::activation;

/// `x/2 (1 + erf(x / sqrt(2)))` (Hendrycks and Gimpel 2016).
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    // Burn differentiates the approximation with tanh instead, off by up to 1e-3, wherever a backend brings
    // no gradient of its own (gelu_backward in ops/activation.rs of burn-backend 0.22.1). All of CubeCL's
    // bring none, Flex and LibTorch do. The gradient of erf is exact everywhere.
    let device = x.device();
    if device.is_autodiff() && format!("{device:?}").contains("Cube") {
        return x.clone() * ((x * FRAC_1_SQRT_2).erf() + 1.0) * 0.5;
    }
    activation::gelu(x)
}
