//! Cross entropy.

use burn::prelude::*;

use crate::backend;

/// The weighted sum of the cross entropies of `logits [N, C]` with a class for each row: classes and weights
/// `[N, 1]` → `[1]`. The share `smoothing` of the probability is spread evenly over all classes (Szegedy et
/// al. 2016): the loss of a row is `-(1 - smoothing) log p(class) - smoothing mean(log p)`.
pub fn cross_entropy(
    logits: Tensor<2>,
    classes: Tensor<2, Int>,
    weights: Tensor<2>,
    smoothing: f64,
) -> Tensor<1> {
    backend::cross_entropy(logits, classes, weights, smoothing)
}
