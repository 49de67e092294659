//! Pools a sequence into one vector: `[B, T, D]` → `[B, D]`. The mask is `[B, T]`, 1 = keep; without one,
//! every position is kept.

use burn::prelude::*;

/// The vector of the first position, which padding after the text does not change: a class token.
pub fn pool_first(x: Tensor<3>) -> Tensor<2> {
    x.narrow(1, 0, 1).squeeze_dim(1)
}

/// The last position that is kept, or the first one if all are padding.
pub fn pool_last(x: Tensor<3>, keep: Option<Tensor<2, Int>>) -> Tensor<2> {
    let [batch, length, width] = x.dims();
    let Some(keep) = keep else { return x.narrow(1, length - 1, 1).squeeze_dim(1) };
    let positions = Tensor::<1, Int>::arange(0..length as i64, &x.device()).unsqueeze::<2>();
    // Padding may be on either side, so the number of kept positions does not say which the last one is.
    let last = (keep * positions).max_dim(1);
    x.gather(1, last.reshape([batch, 1, 1]).expand([batch, 1, width])).squeeze_dim(1)
}

/// The mean over the positions that are kept, or zeros if all are padding.
pub fn pool_mean(x: Tensor<3>, keep: Option<Tensor<2, Int>>) -> Tensor<2> {
    let Some(keep) = keep else { return x.mean_dim(1).squeeze_dim(1) };
    let keep = keep.float().cast(x.dtype()).unsqueeze_dim::<3>(2);
    // At least one, so that a sequence of padding gives zeros and not NaN.
    let count = keep.clone().sum_dim(1).clamp_min(1.0);
    ((x * keep).sum_dim(1) / count).squeeze_dim(1)
}

/// The largest value of each feature over the positions that are kept, or zeros if all are padding.
pub fn pool_max(x: Tensor<3>, keep: Option<Tensor<2, Int>>) -> Tensor<2> {
    let Some(keep) = keep else { return x.max_dim(1).squeeze_dim(1) };
    let [batch, length, width] = x.dims();
    let lowest = x.dtype().finfo().map_or(f64::from(f32::MIN), |float| float.min);
    let padding = keep.clone().equal_elem(0).unsqueeze_dim::<3>(2).expand([batch, length, width]);
    let empty = keep.max_dim(1).equal_elem(0).expand([batch, width]);
    x.mask_fill(padding, lowest).max_dim(1).squeeze_dim::<2>(1).mask_fill(empty, 0.0)
}
