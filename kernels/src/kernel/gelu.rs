//! Gelu (Hendrycks and Gimpel 2016).

use burn::prelude::*;

use crate::backend::{self, Activation};

/// `x/2 (1 + erf(x / sqrt(2)))`
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    backend::activate(x, Activation::Gelu)
}
