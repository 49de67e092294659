//! Quick gelu by burn's operations.

use burn::prelude::*;
use burn::tensor::activation;

/// `x sigmoid(1.702 x)` (Hendrycks and Gimpel 2016).
pub fn quick_gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * activation::sigmoid(x * 1.702)
}
