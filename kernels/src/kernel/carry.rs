//! A backward pass that begins with gradients which are known already.

use burn::prelude::*;

use crate::backend;

/// The same numbers as another value of the tape, whose gradient is summed by itself before it is passed on to
/// `x`.
pub fn alias<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    backend::alias(x)
}

/// `root [1]`, whose backward pass reaches `x` as well, without adding to its gradient. If `x` has no
/// gradient, it is `root` as it was.
pub fn reach<const D: usize>(root: Tensor<1>, x: Tensor<D>) -> Tensor<1> {
    backend::reach(root, x)
}

/// `root [1]`, whose backward pass begins with `gradient` as the gradient of `x`. What the rest of the pass
/// finds for `x` is added to it, one summand after the other, as if all had been found in one pass. If `x`
/// has no gradient, it is `root` as it was.
pub fn carry<const D: usize>(root: Tensor<1>, x: Tensor<D>, gradient: Tensor<D>) -> Tensor<1> {
    backend::carry(root, x, gradient)
}
