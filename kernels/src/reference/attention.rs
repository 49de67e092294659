//! Scaled dot-product attention in separate operations.

use burn::prelude::*;
use burn::tensor::module::attention_fallback;
use burn::tensor::ops::AttentionModuleOptions;

use super::single_precision::in_single_precision;

/// [`crate::attention`] by burn's fallback, which computes scores, weights and their sums one after the
/// other.
pub fn attention(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    in_single_precision(q, k, v, mask, bias, |[q, k, v], mask, bias| {
        attention_fallback(q, k, v, mask, bias, options)
    })
}
