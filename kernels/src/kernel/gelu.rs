//! Gelu, with the forward and backward pass that suits the backend.

use burn::prelude::*;

use crate::backend;

/// `x/2 (1 + erf(x / sqrt(2)))` (Hendrycks and Gimpel 2016).
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    backend::gelu(x)
}
