//! The weights of scaled dot-product attention, for dropout, sinks and pictures.

use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::ops::AttentionModuleOptions;

use super::score_weights::score_weights;

/// `softmax(scale * q k^T)`: `q [B, H, T, D]`, `k [B, H, K, D]` → `[B, H, T, K]`, with the softmax in single
/// precision. Before it, the scores are softcapped, `bias` is added, and hidden keys are masked. `mask` is
/// true where a key is hidden; a query that sees no key gets zeros. `sinks [H]` are the scores of one more
/// key in each head, whose weight is not part of the result. With `is_causal`, the last query sees all keys.
pub fn attention_weights(
    q: Tensor<4>,
    k: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    sinks: Option<Tensor<1>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    let (width, dtype) = (q.dims()[3], q.dtype());
    let scale = options.scale.unwrap_or(1.0 / (width as f64).sqrt());
    let scores = q.matmul(k.swap_dims(2, 3)).cast(DType::F32) * scale;
    score_weights(scores, mask, bias, sinks, options).cast(dtype)
}
