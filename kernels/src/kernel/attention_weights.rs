//! The weights of scaled dot-product attention, for dropout, sinks and pictures.

use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::ops::AttentionModuleOptions;

use super::score_weights::score_weights;

/// `softmax(q k^T * scale, softcapped, biased, masked)`: `q [B, H, T, D]`, `k [B, H, K, D]` →
/// `[B, H, T, K]`, computed in single precision. The mask is true where a key is hidden; a query that sees no key
/// gets zeros. Sinks `[H]` are the score of one more key in each head; its weight is left out of the result. Causal:
/// the last query sees all keys.
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
