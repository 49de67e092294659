//! ALiBi (Press et al. 2021).

use burn::prelude::*;

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
