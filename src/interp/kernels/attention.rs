//! Scaled dot-product attention in one operation.

use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::module::{attention as fused, attention_fallback};
use burn::tensor::ops::AttentionModuleOptions;

/// `softmax(q k^T * scale, softcapped, biased, masked) v`: `q [B, H, T, D]`, `k [B, H, K, D]`,
/// `v [B, H, K, V]` → `[B, H, T, V]`. The mask is true where a key is hidden; a query that sees no key
/// gets zeros. Causal: the last query sees all keys. Computed in single precision.
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
    // LibTorch's own attention is handed the mask as it is, though it attends where that is true, and no
    // softcap; its causal mask begins at the first key instead of ending at the last, and it takes no
    // mask beside it (`attention` in ops/module.rs of burn-tch 0.22.1).
    let place = format!("{:?}", q.device());
    if place.contains("LibTorch") {
        return attention_fallback(q, k, v, mask, bias, options).cast(dtype);
    }
    // Flex takes a query whose scores are all NaN for one that sees no key (ops/attention.rs of burn-flex
    // 0.22.1). Zero for each query, NaN where it or a key is not finite.
    let zero = place.contains("Flex").then(|| {
        let of_keys = k.clone().detach().sum_dim(3).sum_dim(2);
        (q.clone().detach().sum_dim(3) + of_keys).mul_scalar(0.0)
    });
    let y = fused(q, k, v, mask, bias, options);
    zero.into_iter().fold(y, |y, zero| y + zero).cast(dtype)
}
