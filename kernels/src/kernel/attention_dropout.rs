//! Attention with dropout of its weights.

use burn::prelude::*;
use burn::tensor::ops::AttentionModuleOptions;

use super::attention::attention;
use super::single_precision::in_single_precision;
use crate::{backend, reference};

/// [`attention`] with dropout applied to its weights `[B, H, T, K]`. Dropout is active only on devices with
/// autodiff, and not in a module that is frozen.
pub fn attention_with_dropout(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
    dropout: &nn::Dropout,
) -> Tensor<4> {
    if !q.device().is_autodiff() || !dropout.training.is_enabled() {
        return attention(q, k, v, mask, bias, options);
    }
    // Elsewhere all weights are in memory, with dropout or without.
    let Some(dropped) = backend::dropout(dropout.prob, [&q, &k, &v]) else {
        return reference::attention_dropout::attention_with_dropout(q, k, v, mask, bias, options, dropout);
    };
    in_single_precision(q, k, v, mask, bias, |qkv, mask, bias| {
        backend::attention_with_dropout(qkv, mask, bias, options, dropped)
    })
}
