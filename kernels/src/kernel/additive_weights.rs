//! The weights of additive attention (Bahdanau, Cho and Bengio 2015).

use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::ops::AttentionModuleOptions;

use super::score_weights::score_weights;

/// `softmax(scale * w · tanh(q + k))` for every query and key of a head: `q [B, H, T, D]`, `k [B, H, K, D]`,
/// `w [H, D]` → `[B, H, T, K]`. Softcap, bias, mask and sinks work as in `attention_weights`. The sums of
/// each query and each key, `[B, H, T, K, D]`, are all in memory at the same time.
pub fn additive_weights(
    q: Tensor<4>,
    k: Tensor<4>,
    w: Tensor<2>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    sinks: Option<Tensor<1>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    let ([heads, width], dtype) = (w.dims(), q.dtype());
    let hidden = (q.unsqueeze_dim::<5>(3) + k.unsqueeze_dim::<5>(2)).tanh();
    // A product with one column instead of `(hidden * w).sum`, which would be another tensor of that size.
    let scores = hidden.matmul(w.reshape([1, heads, 1, width, 1])).squeeze_dim::<4>(4);
    let scores = scores.cast(DType::F32) * options.scale.unwrap_or(1.0);
    score_weights(scores, mask, bias, sinks, options).cast(dtype)
}
