//! Attention heads as an axis.

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

/// Each head `times` in a row, for queries that share keys: `[B, H, T, D]` → `[B, H * times, T, D]`
// Burn's attention takes fewer heads of keys than of queries on Flex alone, and not while training: there
// the fallback runs (`attention` in ops/module.rs of burn-autodiff 0.22.1), whose product of matrices mixes
// them up without a word.
pub fn repeat_heads(x: Tensor<4>, times: usize) -> Tensor<4> {
    let [batch, heads, length, width] = x.dims();
    x.unsqueeze_dim::<5>(2).expand([batch, heads, times, length, width]).reshape([
        batch,
        heads * times,
        length,
        width,
    ])
}
