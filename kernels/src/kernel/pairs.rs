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

/// [`hide_scores`] for queries that may see a key. A query that may see none, as in padding, keeps its scores, so that
/// their largest is one of them and not the lowest number there is.
pub fn hide_scores_if_any(scores: Tensor<4>, mask: Option<Tensor<4, Bool>>) -> Tensor<4> {
    let mask = mask.map(|mask| {
        let sees_none = mask.clone().all_dim(3);
        mask.bool_and(sees_none.bool_not())
    });
    hide_scores(scores, mask)
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

/// `x` with 0 at positions where `mask` is true: `x [B, .., T, D], mask [B, 1, 1, T]` → `[B, .., T, D]`. A mask of more
/// positions ends with these.
pub fn hide_padding<const D: usize>(x: Tensor<D>, mask: Option<Tensor<4, Bool>>) -> Tensor<D> {
    at_padding(x, mask, 0.0)
}

/// As [`hide_padding`], with 1, by which other numbers can be divided.
pub fn one_at_padding<const D: usize>(x: Tensor<D>, mask: Option<Tensor<4, Bool>>) -> Tensor<D> {
    at_padding(x, mask, 1.0)
}

fn at_padding<const D: usize>(x: Tensor<D>, mask: Option<Tensor<4, Bool>>, number: f32) -> Tensor<D> {
    match mask {
        Some(mask) => {
            let shape = x.dims();
            let (all, own) = (mask.dims()[3], shape[D - 2]);
            let mask = mask.narrow(3, all.saturating_sub(own), own);
            let rows: [usize; D] = std::array::from_fn(|i| if i == 0 || i + 2 == D { shape[i] } else { 1 });
            x.mask_fill(mask.reshape(rows).expand(shape), number)
        }
        None => x,
    }
}

/// For every query and key, the feature of the query whose number `feature(query, key, R)` gives, or the first or the
/// last one: `x [B, H, T, R]` or `[B, H, 1, R]` → `[B, H, T, K]`. The first query is at position `start`.
pub fn by_distance(
    x: Tensor<4>,
    start: usize,
    queries: usize,
    keys: usize,
    feature: impl Fn(usize, usize, usize) -> i64 + Copy,
) -> Tensor<4> {
    let [batch, heads, _, features] = x.dims();
    let at = |query: usize, key: usize| within(feature(start + query, key, features), features);
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
    feature: impl Fn(usize, usize, usize) -> i64 + Copy,
) -> Tensor<4> {
    let [batch, heads, _, features] = x.dims();
    if features == 1 {
        let x = x.expand([batch, heads, keys, 1]).swap_dims(2, 3);
        return x.expand([batch, heads, queries, keys]);
    }
    let at = |query: usize, key: usize| within(feature(start + query, key, features), features);
    let index: Vec<i64> = (0..keys).flat_map(|key| (0..queries).map(move |query| at(query, key))).collect();
    let index = Tensor::<2, Int>::from_data(TensorData::new(index, [keys, queries]), &x.device());
    let index = index.unsqueeze::<4>().expand([batch, heads, keys, queries]);
    x.expand([batch, heads, keys, features]).gather(3, index).swap_dims(2, 3)
}

/// For every query and key, the feature of the query whose number is the position of the key in its text: `x [B, H, T, R]` or
/// `[B, H, 1, R]` → `[B, H, T, K]`. Positions at which `mask [B, 1, 1, K]` is true are not counted.
pub fn by_key(x: Tensor<4>, queries: usize, keys: usize, mask: Option<Tensor<4, Bool>>) -> Tensor<4> {
    let [batch, heads, _, features] = x.dims();
    match mask {
        Some(mask) => {
            // Padding before a text has the first feature, which nothing sees.
            let index = mask.bool_not().int().cumsum(3).sub_scalar(1).clamp_min(0);
            let index = index.expand([batch, heads, queries, keys]);
            x.expand([batch, heads, queries, features]).gather(3, index)
        }
        None => x.narrow(3, 0, keys).expand([batch, heads, queries, keys]),
    }
}

/// The number of the nearest of that many features.
fn within(number: i64, features: usize) -> i64 {
    number.clamp(0, features.saturating_sub(1) as i64)
}

/// The number of the feature of a distance: `center + query - key`.
pub fn each_distance(center: usize) -> impl Fn(usize, usize, usize) -> i64 + Copy {
    move |query, key, _| center as i64 + query as i64 - key as i64
}

/// As [`each_distance`] up to the distance `exact`; farther ones share numbers on a logarithmic scale, on which
/// `farthest - 1` has the number `2 exact - 1` (He et al. 2021).
pub fn log_distance(
    center: usize,
    exact: usize,
    farthest: usize,
) -> impl Fn(usize, usize, usize) -> i64 + Copy {
    // In single precision, as the models were trained with.
    let scale = ((farthest as f64 - 1.0) / exact as f64) as f32;
    move |query, key, _| {
        let distance = query as i64 - key as i64;
        let size = distance.abs();
        if size <= exact as i64 {
            return center as i64 + distance;
        }
        let beyond = (size as f32 / exact as f32).ln() / scale.ln() * (exact as f32 - 1.0);
        center as i64 + distance.signum() * (beyond.ceil() as i64 + exact as i64)
    }
}

/// The number of the feature of a distance in a grid, whose rows have `columns` positions each: `2 columns - 1` for
/// each row and 1 for each column. If the first position is none of the grid, the last three features are those
/// from it to the others, from the others to it, and from it to itself (Bao et al. 2021).
pub fn grid_distance(
    center: usize,
    columns: usize,
    has_class: bool,
) -> impl Fn(usize, usize, usize) -> i64 + Copy {
    move |query, key, features| {
        let first = usize::from(has_class);
        match (query < first, key < first) {
            (true, true) => features as i64 - 1,
            (false, true) => features as i64 - 2,
            (true, false) => features as i64 - 3,
            (false, false) => {
                let (query, key) = (query - first, key - first);
                let rows = (query / columns) as i64 - (key / columns) as i64;
                let across = (query % columns) as i64 - (key % columns) as i64;
                center as i64 + rows * (2 * columns as i64 - 1) + across
            }
        }
    }
}
