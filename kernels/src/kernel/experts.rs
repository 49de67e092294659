//! Mixtures of experts: each expert is applied to its own tokens only.

use burn::prelude::*;
use burn::tensor::IndexingUpdateOp;

/// `sum over experts e of weights[.., e] * expert_e(x)`: `x [B, T, D]`, `weights [B, T, E]` → `[B, T, D]`.
/// `apply(e, rows [N, D])` computes expert `e` for the `N` tokens whose weight for it is not zero. To find
/// these tokens, the weights are read back to the host.
pub fn mix_experts(
    x: Tensor<3>,
    weights: Tensor<3>,
    mut apply: impl FnMut(usize, Tensor<2>) -> Tensor<2>,
) -> Tensor<3> {
    let [batch, length, width] = x.dims();
    let (tokens, experts) = (batch * length, weights.dims()[2]);
    let device = x.device();
    let rows = x.reshape([tokens, width]);
    let weights = weights.reshape([tokens, experts]);
    // The tokens of an expert are collected into one matrix: a product with many rows is faster than many
    // products with one, and an expert is not computed for the tokens that did not choose it.
    let mut tokens_of = vec![Vec::new(); experts];
    for (i, weight) in weights.to_data().iter::<f32>().enumerate() {
        if weight != 0.0 {
            tokens_of[i % experts].push((i / experts) as i64);
        }
    }
    let mut sum = rows.zeros_like();
    for (expert, tokens) in tokens_of.into_iter().enumerate() {
        if tokens.is_empty() {
            continue;
        }
        let count = tokens.len();
        let tokens = Tensor::<1, Int>::from_data(TensorData::new(tokens, [count]), &device);
        let weight = weights.clone().narrow(1, expert, 1).select(0, tokens.clone());
        let y = apply(expert, rows.clone().select(0, tokens.clone())) * weight;
        sum = sum.select_assign(0, tokens, y, IndexingUpdateOp::Add);
    }
    sum.reshape([batch, length, width])
}
