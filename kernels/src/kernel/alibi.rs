//! ALiBi (Press et al. 2021).

use burn::prelude::*;

/// The slopes of `n` heads: `scale * 2^(-max * i / n)`, with `i` from 1. If `n` is not a power of two, the
/// slopes of the next lower power are followed by every second one of the next higher power, as in BLOOM and
/// MPT.
pub fn alibi_slopes(heads: usize, max: f64, scale: f64) -> Vec<f64> {
    let below = 1usize << heads.checked_ilog2().unwrap_or(0);
    let slope = |i: usize, n: usize| scale * 2f64.powf(-max * i as f64 / n as f64);
    let first = (1..=below.min(heads)).map(|i| slope(i, below));
    let rest = (below..heads).map(|head| slope(2 * (head - below) + 1, 2 * below));
    first.chain(rest).collect()
}

/// `-slope * |query - key|` as `[1, H, T, K]`; the first query is at position `start`.
pub fn alibi_bias(slopes: &[f64], start: usize, queries: usize, keys: usize, device: &Device) -> Tensor<4> {
    let distances: Vec<f32> = (start..start + queries)
        .flat_map(|query| (0..keys).map(move |key| -(query.abs_diff(key) as f32)))
        .collect();
    let distances = Tensor::<4>::from_data(TensorData::new(distances, [1, 1, queries, keys]), device);
    let slopes: Vec<f32> = slopes.iter().map(|slope| *slope as f32).collect();
    let heads = slopes.len();
    distances * Tensor::<4>::from_data(TensorData::new(slopes, [1, heads, 1, 1]), device)
}
