//! The approximation of gelu by burn's operations.

use burn::prelude::*;
use burn::tensor::activation;

/// `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x³)))` (Hendrycks and Gimpel 2016).
pub fn gelu_tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::gelu_approximate(x)
}
