//! What the kernels compute, in burn's own operations: the implementation for every backend that has no
//! better one.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use burn::backend::Backend;
use burn::backend::tensor::FloatTensor;

use super::Activation;

/// `sqrt(2/pi)`, the factor inside of the hyperbolic tangent.
const ROOT: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
const CUBIC: f64 = 0.044_715;

/// The factor of quick gelu.
const QUICK: f64 = 1.702;

pub fn activate<B: Backend>(x: FloatTensor<B>, activation: Activation) -> FloatTensor<B> {
    let factor = match activation {
        Activation::Gelu => return B::gelu(x),
        Activation::GeluTanh => {
            let tanh = B::float_tanh(inner::<B>(x.clone()));
            let half = B::float_mul_scalar(x, 0.5.into());
            return B::float_mul(half, B::float_add_scalar(tanh, 1.0.into()));
        }
        Activation::QuickGelu => QUICK,
        Activation::Silu => 1.0,
    };
    let sigmoid = B::sigmoid(B::float_mul_scalar(x.clone(), factor.into()));
    B::float_mul(x, sigmoid)
}

pub fn activate_backward<B: Backend>(
    x: FloatTensor<B>,
    gradient: FloatTensor<B>,
    activation: Activation,
) -> FloatTensor<B> {
    let factor = match activation {
        Activation::Gelu => return B::gelu_backward(x, gradient),
        // (1 + t) / 2 + x/2 (1 - t²) y', where t = tanh(y) and y' = sqrt(2/pi) (1 + 3 * 0.044715 x²)
        Activation::GeluTanh => {
            let tanh = B::float_tanh(inner::<B>(x.clone()));
            let square = B::float_mul(x.clone(), x.clone());
            let slope = B::float_mul_scalar(square, (3.0 * CUBIC * ROOT).into());
            let slope = B::float_add_scalar(slope, ROOT.into());
            let rest = B::float_neg(B::float_mul(tanh.clone(), tanh.clone()));
            let rest = B::float_mul(B::float_mul(B::float_add_scalar(rest, 1.0.into()), slope), x);
            let sum = B::float_add(B::float_add_scalar(tanh, 1.0.into()), rest);
            return B::float_mul(B::float_mul_scalar(sum, 0.5.into()), gradient);
        }
        Activation::QuickGelu => QUICK,
        Activation::Silu => 1.0,
    };
    // s + y s (1 - s), where s = sigmoid(y) and y = factor x
    let y = B::float_mul_scalar(x, factor.into());
    let s = B::sigmoid(y.clone());
    let rest = B::float_add_scalar(B::float_neg(s.clone()), 1.0.into());
    let slope = B::float_mul(B::float_add_scalar(B::float_mul(y, rest), 1.0.into()), s);
    B::float_mul(slope, gradient)
}

/// `sqrt(2/pi) (x + 0.044715 x³)`
fn inner<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let square = B::float_mul(x.clone(), x.clone());
    let factor = B::float_add_scalar(B::float_mul_scalar(square, CUBIC.into()), 1.0.into());
    B::float_mul_scalar(B::float_mul(x, factor), ROOT.into())
}
