//! Attention masks: true where a key is hidden.

use burn::prelude::*;

/// The mask `[1, 1, T, K]` that is true where `hidden(query, key)` is true. Query and key are given by their
/// positions in the sequence; the first query is at position `start`.
pub fn mask_by(
    start: usize,
    queries: usize,
    keys: usize,
    device: &Device,
    hidden: impl Fn(usize, usize) -> bool,
) -> Tensor<4, Bool> {
    // Computed on the host, where a rule is written once for counts, pictures and every backend.
    let hidden = &hidden;
    let values: Vec<bool> =
        (start..start + queries).flat_map(|query| (0..keys).map(move |key| hidden(query, key))).collect();
    Tensor::from_data(TensorData::new(values, [1, 1, queries, keys]), device)
}

/// The mask that hides padding from every query: `keep [B, K]`, 0 for padding, → `[B, 1, 1, K]`.
pub fn padding_mask(keep: Tensor<2, Int>) -> Tensor<4, Bool> {
    let [batch, keys] = keep.dims();
    keep.equal_elem(0).reshape([batch, 1, 1, keys])
}

/// A mask that hides what either mask hides. An absent mask hides nothing.
pub fn either_mask(a: Option<Tensor<4, Bool>>, b: Option<Tensor<4, Bool>>) -> Option<Tensor<4, Bool>> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let (left, right) = (a.dims(), b.dims());
            let shape: [usize; 4] = std::array::from_fn(|i| left[i].max(right[i]));
            Some(a.expand(shape).bool_or(b.expand(shape)))
        }
        (a, b) => a.or(b),
    }
}
