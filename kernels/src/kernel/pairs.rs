//! Numbers for every query and key, `[B, H, T, K]`.

use burn::prelude::*;

/// The same numbers for every example of a batch: `x [1, H, T, K], like [B, ..]` → `[B, H, T, K]`
pub fn for_batch<const D: usize>(x: Tensor<4>, like: Tensor<D>) -> Tensor<4> {
    let [_, heads, queries, keys] = x.dims();
    x.expand([like.dims()[0], heads, queries, keys])
}

/// Scores with the lowest number where `mask` is true, so that a softmax gives hidden keys the weight 0.
pub fn hide_scores(scores: Tensor<4>, mask: Option<Tensor<4, Bool>>) -> Tensor<4> {
    match mask {
        // Not `-inf`: softmax of nothing else is NaN.
        Some(mask) => {
            let shape = scores.dims();
            scores.mask_fill(mask.expand(shape), f32::MIN)
        }
        None => scores,
    }
}

/// Weights with 0 where `mask` is true.
pub fn hide_weights(weights: Tensor<4>, mask: Option<Tensor<4, Bool>>) -> Tensor<4> {
    match mask {
        Some(mask) => {
            let shape = weights.dims();
            weights.mask_fill(mask.expand(shape), 0.0)
        }
        None => weights,
    }
}

/// For every query and key, the feature number `center + query - key` of the query, or the first or the last one:
/// `x [B, H, T, R]` or `[B, H, 1, R]` → `[B, H, T, K]`. The first query is at position `start`.
pub fn by_distance(x: Tensor<4>, start: usize, queries: usize, keys: usize, center: usize) -> Tensor<4> {
    let [batch, heads, _, features] = x.dims();
    let at = |query: usize, key: usize| feature(center + start + query, key, features);
    let index: Vec<i64> = (0..queries).flat_map(|query| (0..keys).map(move |key| at(query, key))).collect();
    let index = Tensor::<2, Int>::from_data(TensorData::new(index, [queries, keys]), &x.device());
    let index = index.unsqueeze::<4>().expand([batch, heads, queries, keys]);
    x.expand([batch, heads, queries, features]).gather(3, index)
}

/// As [`by_distance`], of the features of keys: `x [B, H, K, R]` or `[B, H, 1, R]` → `[B, H, T, K]`.
pub fn by_distance_of_keys(
    x: Tensor<4>,
    start: usize,
    queries: usize,
    keys: usize,
    center: usize,
) -> Tensor<4> {
    let [batch, heads, _, features] = x.dims();
    let at = |query: usize, key: usize| feature(center + start + query, key, features);
    let index: Vec<i64> = (0..keys).flat_map(|key| (0..queries).map(move |query| at(query, key))).collect();
    let index = Tensor::<2, Int>::from_data(TensorData::new(index, [keys, queries]), &x.device());
    let index = index.unsqueeze::<4>().expand([batch, heads, keys, queries]);
    x.expand([batch, heads, keys, features]).gather(3, index).swap_dims(2, 3)
}

/// The number of a feature, `to - from`, of which there are `features`.
fn feature(to: usize, from: usize, features: usize) -> i64 {
    to.saturating_sub(from).min(features.saturating_sub(1)) as i64
}
