//! Values of earlier positions, and sums over a few of them.

use burn::prelude::*;

/// For each of the last `T` positions of `all [.., K, D]`, where `x [.., T, D]` tells how many these are: the value
/// `by` positions before it, or zeros where there is none. → `[.., T, D]`
pub fn earlier<const D: usize>(all: Tensor<D>, x: Tensor<D>, by: usize) -> Tensor<D> {
    let time = x.dims()[D - 2];
    recent(all, time, by).narrow(D - 2, 0, time)
}

/// A convolution of each feature over the present position and those before it, with zeros before the first:
/// `y[t] = sum_j w[j] x[t - W + 1 + j]` with weights `w [D, 1, W]`, for each of the last `T` positions of
/// `all [B, K, D]`, where `x [B, T, D]` tells how many these are. → `[B, T, D]`
pub fn causal_conv(all: Tensor<3>, x: Tensor<3>, w: Tensor<3>) -> Tensor<3> {
    let (time, [features, _, width]) = (x.dims()[1], w.dims());
    let recent = recent(all, time, width - 1);
    let tap =
        |j: usize| recent.clone().narrow(1, j, time) * w.clone().narrow(2, j, 1).reshape([1, 1, features]);
    (1..width).fold(tap(0), |sum, j| sum + tap(j))
}

/// The sum over all positions so far, for each of the last `T` positions of `all [.., K, D]`, where `x [.., T, D]` tells
/// how many these are. → `[.., T, D]`
pub fn cumulative_sum<const D: usize>(all: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
    let (known, time) = (all.dims()[D - 2], x.dims()[D - 2]);
    all.cumsum(D - 2).narrow(D - 2, known - time, time)
}

/// The last `time + more` positions of `all [.., K, D]`, preceded by zeros if there are fewer.
fn recent<const D: usize>(all: Tensor<D>, time: usize, more: usize) -> Tensor<D> {
    let axis = D - 2;
    let known = all.dims()[axis];
    let wanted = time + more;
    if known >= wanted {
        return all.narrow(axis, known - wanted, wanted);
    }
    let mut missing = all.dims();
    missing[axis] = wanted - known;
    let zeros = Tensor::zeros(missing, (&all.device(), all.dtype()));
    Tensor::cat(vec![zeros, all], axis)
}
