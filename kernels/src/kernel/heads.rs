//! Splits features into attention heads, merges them again, and repeats heads.

use burn::prelude::*;

/// `[B, T, H * D]` → `[B, H, T, D]`
pub fn split_heads(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, length, width] = x.dims();
    x.reshape([batch, length, heads, width / heads]).swap_dims(1, 2)
}

/// `[B, H, T, D]` → `[B, T, H * D]`
pub fn merge_heads(x: Tensor<4>) -> Tensor<3> {
    let [batch, heads, length, width] = x.dims();
    x.swap_dims(1, 2).reshape([batch, length, heads * width])
}

/// Repeats each head `times` in a row, so that several query heads can share one head of keys and values:
/// `[B, H, T, D]` → `[B, H * times, T, D]`
// Only on Flex does burn's attention accept fewer key heads than query heads, and even there not while
// training: autodiff runs the fallback (`attention` in ops/module.rs of burn-autodiff 0.22.1), whose matrix
// product then combines the wrong heads without an error.
pub fn repeat_heads(x: Tensor<4>, times: usize) -> Tensor<4> {
    let [batch, heads, length, width] = x.dims();
    x.unsqueeze_dim::<5>(2).expand([batch, heads, times, length, width]).reshape([
        batch,
        heads * times,
        length,
        width,
    ])
}
