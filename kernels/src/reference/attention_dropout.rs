//! Attention with dropout of its weights, in separate operations.

use burn::prelude::*;
use burn::tensor::ops::AttentionModuleOptions;

use super::attention::attention;
use super::attention_weights::attention_weights;

/// [`crate::attention_with_dropout`], which keeps all weights in memory, `[B, H, T, K]`.
pub fn attention_with_dropout(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
    dropout: &nn::Dropout,
) -> Tensor<4> {
    if q.device().is_autodiff() {
        dropout.forward(attention_weights(q, k, mask, bias, None, options)).matmul(v)
    } else {
        attention(q, k, v, mask, bias, options)
    }
}
