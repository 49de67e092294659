//! Dropout in training.

use burn::prelude::*;
use burn::tensor::Distribution;

/// Sets elements to zero with probability `p` and divides the others by `1 - p`. On devices without autodiff
/// it returns `x` unchanged.
pub fn dropout<const D: usize>(x: Tensor<D>, p: f64) -> Tensor<D> {
    if p == 0.0 || !x.device().is_autodiff() {
        return x;
    }
    let kept = x.random_like(Distribution::Bernoulli(1.0 - p));
    // The mean stays the same, so inference needs no factor.
    x * kept * (1.0 / (1.0 - p))
}
