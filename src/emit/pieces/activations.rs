//! Nonlinearities that are more than one call.

use burn::prelude::*;
use burn::tensor::activation;

/// `x sigmoid(1.702 x)`
pub fn quick_gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * activation::sigmoid(x * 1.702)
}
