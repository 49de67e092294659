//! Scaled dot-product attention in one operation.

use burn::prelude::*;
use burn::tensor::ops::AttentionModuleOptions;

use super::single_precision::in_single_precision;
use crate::backend;

/// `softmax(scale * q k^T) v`: `q [B, H, T, D]`, `k [B, H, K, D]`, `v [B, H, K, V]` → `[B, H, T, V]`,
/// computed in single precision. Before the softmax, the scores are softcapped, `bias` is added, and hidden
/// keys are masked. `mask` is true where a key is hidden; a query that sees no key gets zeros. With
/// `is_causal`, the last query sees all keys.
pub fn attention(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    in_single_precision(q, k, v, mask, bias, |[q, k, v], mask, bias| {
        backend::attention(q, k, v, mask, bias, None, options)
    })
}
