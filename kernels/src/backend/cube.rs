//! CubeCL's backends.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;

use super::fused::MayFuse;
use super::{Activation, Kernels, default};

impl MayFuse for Cube {}

impl Kernels for Cube {
    fn kernel_activate_backward(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        match activation {
            Activation::Gelu => gelu_backward(x, gradient),
            Activation::GeluTanh | Activation::QuickGelu | Activation::Silu => {
                default::activate_backward::<Self>(x, gradient, activation)
            }
        }
    }
}

/// CubeCL's backends do not define the gradient of gelu, and burn's default is that of the approximation with
/// tanh, which is off by up to 1e-3 (`gelu_backward` in ops/activation.rs of burn-backend 0.22.1). This is
/// the exact one: `(1 + erf(x / sqrt(2))) / 2 + x exp(-x²/2) / sqrt(2 pi)`.
fn gelu_backward(x: FloatTensor<Cube>, gradient: FloatTensor<Cube>) -> FloatTensor<Cube> {
    let erf = Cube::float_erf(Cube::float_mul_scalar(x.clone(), FRAC_1_SQRT_2.into()));
    let below = Cube::float_mul_scalar(Cube::float_add_scalar(erf, 1.0.into()), 0.5.into());
    let square = Cube::float_mul(x.clone(), x.clone());
    let density = Cube::float_exp(Cube::float_mul_scalar(square, (-0.5).into()));
    let density = Cube::float_mul_scalar(density, (1.0 / (2.0 * PI).sqrt()).into());
    Cube::float_mul(gradient, Cube::float_add(below, Cube::float_mul(x, density)))
}
