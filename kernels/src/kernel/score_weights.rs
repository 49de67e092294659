//! Attention weights from scores, which can be dot products or additive scores.

use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::activation::softmax;
use burn::tensor::ops::AttentionModuleOptions;

/// The softmax over the keys of `scores [B, H, T, K]`, which are scaled already and in single precision.
/// Before it, the scores are softcapped, `bias` is added, and hidden keys are masked. `mask` is true where a
/// key is hidden; a query that sees no key gets zeros. `sinks [H]` are the scores of one more key in each
/// head, whose weight is not part of the result. With `is_causal`, the last query sees all keys.
pub fn score_weights(
    mut scores: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    sinks: Option<Tensor<1>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    let ([batch, heads, queries, keys], device) = (scores.dims(), scores.device());
    // Before the mask: the tangent would turn hidden scores into `-cap`, a score like any other.
    if let Some(cap) = options.softcap {
        scores = (scores / cap).tanh() * cap;
    }
    if let Some(bias) = bias {
        scores = scores + bias.cast(DType::F32);
    }
    let padded = mask.is_some();
    let mut hidden = mask.map(|mask| mask.expand([batch, heads, queries, keys]));
    if options.is_causal {
        let future = Tensor::<2, Bool>::tril_mask([queries, keys], keys as i64 - queries as i64, &device)
            .unsqueeze::<4>()
            .expand([batch, heads, queries, keys]);
        hidden = Some(match hidden {
            Some(hidden) => hidden.bool_or(future),
            None => future,
        });
    }
    if let Some(hidden) = hidden.clone() {
        // Not `-inf`: softmax of nothing else is NaN, and a mask afterwards would not remove it from the
        // gradients.
        scores = scores.mask_fill(hidden, f32::MIN);
    }
    let weights = match sinks {
        Some(sinks) => {
            let sinks = sinks.cast(DType::F32).reshape([1, heads, 1, 1]).expand([batch, heads, queries, 1]);
            softmax(Tensor::cat(vec![scores, sinks], 3), 3).narrow(3, 0, keys)
        }
        None => softmax(scores, 3),
    };
    // If all keys of a query are hidden, softmax gives each of them the same weight instead of 0. A causal
    // mask alone hides no query's own key.
    match hidden {
        Some(hidden) if padded => weights.mask_fill(hidden, 0.0),
        Some(_) | None => weights,
    }
}
