//! Attention with a score for attending to nothing.

use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::ops::AttentionModuleOptions;

use super::single_precision::in_single_precision;
use crate::backend;

/// [`crate::attention`] with the scores `sinks [H]` of one more key in each head, whose value is zero (gpt-oss 2025; Xiao
/// et al. 2024 describe why).
pub fn attention_with_sinks(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    sinks: Tensor<1>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    in_single_precision(q, k, v, mask, bias, |[q, k, v], mask, bias| {
        backend::attention(q, k, v, mask, bias, Some(sinks.cast(DType::F32)), options)
    })
}
