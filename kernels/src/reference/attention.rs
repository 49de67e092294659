//! Scaled dot-product attention in separate operations.

use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::module::attention_fallback;
use burn::tensor::ops::AttentionModuleOptions;

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
    let ([batch, heads, queries, _], keys) = (q.dims(), k.dims()[2]);
    let scores = [batch, heads, queries, keys];
    let mask = mask.map(|mask| mask.expand(scores));
    let bias = bias.map(|bias| bias.cast(DType::F32).expand(scores));
    let dtype = q.dtype();
    let (q, k, v) = (q.cast(DType::F32), k.cast(DType::F32), v.cast(DType::F32));
    attention_fallback(q, k, v, mask, bias, options).cast(dtype)
}
