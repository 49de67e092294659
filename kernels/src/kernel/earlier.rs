//! Values of earlier positions, and sums over a few of them.

use burn::prelude::*;

use super::cache::{KvCache, State};

/// The value `by` positions before each one of `x [.., T, D]`, or zeros where there is none. A cache has the positions
/// before the first one and is given the last ones. → `[.., T, D]`
pub fn earlier<const D: usize>(x: Tensor<D>, by: usize, cache: Option<&mut KvCache>) -> Tensor<D>
where
    Tensor<D>: State,
{
    let time = x.dims()[D - 2];
    preceded(x, by, cache).narrow(D - 2, 0, time)
}

/// A convolution of each feature over the present position and those before it, with zeros before the first:
/// `y[t] = sum_j w[j] x[t - W + 1 + j]` with `x [B, T, D]` and weights `w [D, 1, W]`. A cache has the positions before
/// the first one and is given the last ones. → `[B, T, D]`
pub fn causal_conv(x: Tensor<3>, w: Tensor<3>, cache: Option<&mut KvCache>) -> Tensor<3> {
    let (time, [features, _, width]) = (x.dims()[1], w.dims());
    let known = preceded(x, width - 1, cache);
    let tap =
        |j: usize| known.clone().narrow(1, j, time) * w.clone().narrow(2, j, 1).reshape([1, 1, features]);
    (1..width).fold(tap(0), |sum, j| sum + tap(j))
}

/// The sum over all positions so far, for each position of `x [.., T, D]`. A cache has the sum of those before the first
/// one and is given the last sum. → `[.., T, D]`
pub fn cumulative_sum<const D: usize>(x: Tensor<D>, cache: Option<&mut KvCache>) -> Tensor<D>
where
    Tensor<D>: State,
{
    let (axis, time) = (D - 2, x.dims()[D - 2]);
    let sum = x.cumsum(axis);
    let Some(cache) = cache else { return sum };
    let state = cache.state::<Tensor<D>>();
    let sum = match state.take() {
        Some(before) => sum + before,
        None => sum,
    };
    *state = Some(sum.clone().narrow(axis, time - 1, 1));
    sum
}

/// `x [.., T, D]` with the `more` positions before it, which are zeros if there are none. → `[.., more + T, D]`
fn preceded<const D: usize>(x: Tensor<D>, more: usize, cache: Option<&mut KvCache>) -> Tensor<D>
where
    Tensor<D>: State,
{
    if more == 0 {
        return x;
    }
    let axis = D - 2;
    let mut before = x.dims();
    before[axis] = more;
    let zeros = || Tensor::zeros(before, (&x.device(), x.dtype()));
    let Some(cache) = cache else { return Tensor::cat(vec![zeros(), x], axis) };
    let state = cache.state::<Tensor<D>>();
    let known = state.take().unwrap_or_else(zeros);
    let all = Tensor::cat(vec![known, x], axis);
    *state = Some(all.clone().narrow(axis, all.dims()[axis] - more, more));
    all
}
