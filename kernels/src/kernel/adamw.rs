//! AdamW (Loshchilov and Hutter 2019).

use burn::prelude::*;

use crate::backend;
pub use crate::backend::AdamW;

/// A step of AdamW for a parameter `x`, its gradient, and the moving averages `first` of the gradient and
/// `second` of its square, all of the same shape: the new `[x, first, second]`. With the learning rate `r`,
///
/// `x (1 - r decay) - r (first / (1 - beta_1^time)) / (sqrt(second / (1 - beta_2^time)) + eps)`
pub fn adamw<const D: usize>([x, gradient, first, second]: [Tensor<D>; 4], step: AdamW) -> [Tensor<D>; 3] {
    backend::adamw([x, gradient, first, second], step)
}
