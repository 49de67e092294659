//! Gelu from the error function.

use std::f64::consts::FRAC_1_SQRT_2;

use burn::prelude::*;

/// `x/2 (1 + erf(x / sqrt(2)))` (Hendrycks and Gimpel 2016).
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * ((x * FRAC_1_SQRT_2).erf() + 1.0) * 0.5
}
