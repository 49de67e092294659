//! Routers of mixtures of experts: which experts a token is sent to, and with what weight.

use burn::prelude::*;
use burn::tensor::activation::{sigmoid, softmax};
use burn::tensor::{DType, IndexingUpdateOp};

/// Softmax over all experts, then the best `top_k`: `[B, T, E]` → `[B, T, E]`, zero for the others. `choice`
/// maps affinities to the scores that decide which experts are the best. If `normalize`, the weights of a
/// token are divided by their sum.
pub fn route_softmax(
    scores: Tensor<3>,
    top_k: usize,
    normalize: bool,
    choice: impl Fn(Tensor<3>) -> Tensor<3>,
) -> Tensor<3> {
    let dtype = scores.dtype();
    keep_chosen(softmax(scores.cast(DType::F32), 2).cast(dtype), top_k, normalize, choice)
}

/// A sigmoid for each expert, then the best `top_k` (DeepSeek-V3): `[B, T, E]` → `[B, T, E]`. The arguments
/// are those of [`route_softmax`].
pub fn route_sigmoid(
    scores: Tensor<3>,
    top_k: usize,
    normalize: bool,
    choice: impl Fn(Tensor<3>) -> Tensor<3>,
) -> Tensor<3> {
    keep_chosen(sigmoid(scores), top_k, normalize, choice)
}

/// The best `top_k` by the result of `choice`, then softmax over those (GPT-OSS): `[B, T, E]` → `[B, T, E]`.
pub fn route_softmax_of_chosen(
    scores: Tensor<3>,
    top_k: usize,
    choice: impl Fn(Tensor<3>) -> Tensor<3>,
) -> Tensor<3> {
    let left_out = largest(choice(scores.clone()), top_k).equal_elem(0.0);
    let dtype = scores.dtype();
    // Before the softmax, so that the weights of the chosen experts sum to one.
    let scores = scores.cast(DType::F32).mask_fill(left_out.clone(), f32::MIN);
    softmax(scores, 2).mask_fill(left_out, 0.0).cast(dtype)
}

/// Restricts the choice to the experts of the best `keep` of `groups` groups of equal size, by lowering the
/// scores of all others to the lowest number (DeepSeek-V3): `[B, T, E]` → `[B, T, E]`. The score of a group
/// is the sum of its best `score_of` scores.
pub fn limit_groups(scores: Tensor<3>, groups: usize, keep: usize, score_of: usize) -> Tensor<3> {
    let [batch, length, experts] = scores.dims();
    let size = experts / groups;
    let grouped = scores.clone().reshape([batch, length, groups, size]);
    let of_group = grouped.topk(score_of, 3).sum_dim(3).squeeze_dim::<3>(3);
    let left_out = largest(of_group, keep)
        .equal_elem(0.0)
        .unsqueeze_dim::<4>(3)
        .expand([batch, length, groups, size])
        .reshape([batch, length, experts]);
    let lowest = lowest(scores.dtype());
    scores.mask_fill(left_out, lowest)
}

/// The affinities of the chosen experts, divided by their sum if `normalize`.
fn keep_chosen(
    affinities: Tensor<3>,
    top_k: usize,
    normalize: bool,
    choice: impl Fn(Tensor<3>) -> Tensor<3>,
) -> Tensor<3> {
    let weights = affinities.clone() * largest(choice(affinities), top_k);
    if normalize {
        // Sigmoids of very negative scores are zero, and so may be their sum.
        let sum = weights.clone().sum_dim(2).clamp_min(1e-20);
        weights / sum
    } else {
        weights
    }
}

/// 1 for the `count` largest features, or for all if there are fewer, 0 for the others: `[.., D]` → `[.., D]`, without a
/// gradient.
pub fn largest<const D: usize>(x: Tensor<D>, count: usize) -> Tensor<D> {
    // Which features are the largest changes in steps.
    let x = x.detach();
    // Not a sort, which has no kernel on GPUs: burn would read the numbers back to the host.
    let (best, indices) = x.clone().topk_with_indices(count.min(x.dims()[D - 1]), D - 1);
    x.zeros_like().scatter(D - 1, indices, best.ones_like(), IndexingUpdateOp::Add)
}

/// The lowest number of an element type.
fn lowest(dtype: DType) -> f64 {
    dtype.finfo().map_or(f64::from(f32::MIN), |float| float.min)
}
