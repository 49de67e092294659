//! An approximation of gelu by the hyperbolic tangent (Hendrycks and Gimpel 2016).

use burn::prelude::*;

use crate::backend::{self, Activation};

/// `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x³)))`
pub fn gelu_tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    backend::activate(x, Activation::GeluTanh)
}
