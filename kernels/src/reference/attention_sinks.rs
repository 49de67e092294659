//! Attention with a score for attending to nothing, in separate operations.

use burn::prelude::*;
use burn::tensor::ops::AttentionModuleOptions;

use super::attention_weights::attention_weights;

/// [`crate::attention`] with the scores `sinks [H]` of one more key in each head, whose value is zero.
pub fn attention_with_sinks(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    sinks: Tensor<1>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    attention_weights(q, k, mask, bias, Some(sinks), options).matmul(v)
}
