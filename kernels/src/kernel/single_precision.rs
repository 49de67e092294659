//! Attention in single precision, whatever the type of its inputs.

use burn::prelude::*;
use burn::tensor::DType;

/// Calls `attend` with queries, keys and values `[B, H, T|K, D|V]` in single precision, and with a mask and a
/// bias of the shape of the scores, `[B, H, T, K]`. The result has the type of the queries.
pub fn in_single_precision(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    attend: impl FnOnce([Tensor<4>; 3], Option<Tensor<4, Bool>>, Option<Tensor<4>>) -> Tensor<4>,
) -> Tensor<4> {
    let ([batch, heads, queries, _], keys) = (q.dims(), k.dims()[2]);
    let scores = [batch, heads, queries, keys];
    // Burn documents masks and biases of the shape of the scores only. Expanding them copies nothing on Flex.
    let mask = mask.map(|mask| mask.expand(scores));
    let bias = bias.map(|bias| bias.cast(DType::F32).expand(scores));
    let dtype = q.dtype();
    attend([q, k, v].map(|x| x.cast(DType::F32)), mask, bias).cast(dtype)
}
