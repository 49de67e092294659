//! Silu by burn's operations.

use burn::prelude::*;
use burn::tensor::activation;

/// `x sigmoid(x)` (Hendrycks and Gimpel 2016; Ramachandran et al. 2017).
pub fn silu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::silu(x)
}
