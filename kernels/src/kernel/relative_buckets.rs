//! Buckets of relative positions (Raffel et al. 2020).

use burn::prelude::*;

/// The bucket of `key - query` as `[T, K]`; the first query is at position `start`. With `bidirectional`, the
/// second half of the buckets is for keys after the query; otherwise all such keys count as distance 0. On
/// each side, half of the buckets contain one distance each, the others grow logarithmically up to
/// `max_distance`, and the last one also contains all longer distances.
pub fn relative_buckets(
    start: usize,
    queries: usize,
    keys: usize,
    buckets: usize,
    max_distance: usize,
    bidirectional: bool,
    device: &Device,
) -> Tensor<2, Int> {
    let one_side = if bidirectional { buckets / 2 } else { buckets };
    let exact = one_side / 2;
    let bucket = move |query: usize, key: usize| {
        let side = if bidirectional && key > query { one_side } else { 0 };
        let distance = if bidirectional { query.abs_diff(key) } else { query.saturating_sub(key) };
        if distance < exact {
            return (side + distance) as i64;
        }
        // Models were trained in single precision, and rounding decides where a bucket begins.
        let log = |x: f32| x.ln();
        let part = log(distance as f32 / exact as f32) / log(max_distance as f32 / exact as f32);
        let far = exact + (part * (one_side - exact) as f32) as usize;
        (side + far.min(one_side - 1)) as i64
    };
    let values: Vec<i64> =
        (start..start + queries).flat_map(|query| (0..keys).map(move |key| bucket(query, key))).collect();
    Tensor::from_data(TensorData::new(values, [queries, keys]), device)
}
