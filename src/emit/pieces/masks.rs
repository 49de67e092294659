//! Masks of which one is always there.

use burn::prelude::*;

/// Hidden in either mask; where the second is absent, by the first alone.
pub fn hide_also(mask: Tensor<4, Bool>, other: Option<Tensor<4, Bool>>) -> Tensor<4, Bool> {
    let Some(other) = other else { return mask };
    let (left, right) = (mask.dims(), other.dims());
    let shape: [usize; 4] = std::array::from_fn(|i| left[i].max(right[i]));
    mask.expand(shape).bool_or(other.expand(shape))
}
