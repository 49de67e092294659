//! The rotation of rotary positions (Su et al. 2021).

use burn::prelude::*;

use crate::backend::{self, Pairing};

/// Rotates feature `i` with `i + n/2` among the first `n = 2 * pairs` features: `[B, H, T, D]`, tables
/// `[T, pairs]`. The other features stay unchanged.
pub fn rotate_half(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>) -> Tensor<4> {
    backend::rotate(x, cos, sin, Pairing::Half)
}

/// Rotates feature `2i` with `2i + 1` among the first `2 * pairs` features: `[B, H, T, D]`, tables
/// `[T, pairs]`. The other features stay unchanged.
pub fn rotate_interleaved(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>) -> Tensor<4> {
    backend::rotate(x, cos, sin, Pairing::Interleaved)
}
