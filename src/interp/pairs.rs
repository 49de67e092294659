//! Numbers for every query and key that depend on their positions, and those that are hidden.

use burn::prelude::*;
use trafoc_kernels::{
    by_distance, by_distance_of_keys, by_key, each_distance, grid_distance, hide_scores, hide_scores_if_any,
    hide_weights, log_distance,
};

use crate::ir::op::{Distances, Fill};

/// `hide_weights(x, mask)`, `hide_scores(x, mask)` or `hide_scores_if_any(x, mask)`.
pub(super) fn hide(fill: Fill, x: Tensor<4>, mask: Option<Tensor<4, Bool>>) -> Tensor<4> {
    match fill {
        Fill::Zero => hide_weights(x, mask),
        Fill::Lowest => hide_scores(x, mask),
        Fill::LowestIfAny => hide_scores_if_any(x, mask),
    }
}

/// `by_distance(x, start, queries, keys, each_distance(center))` or `by_distance_of_keys`, or with the numbers of
/// `log_distance(center, exact, farthest)` or `grid_distance(center, columns, has_class)`; or `by_key(x, queries, keys, mask)`.
pub(super) fn by_distances(
    x: Tensor<4>,
    span: (usize, usize, usize),
    distances: Distances,
    center: usize,
    of_keys: bool,
    mask: Option<Tensor<4, Bool>>,
) -> Tensor<4> {
    match distances {
        Distances::OfKey => by_key(x, span.1, span.2, mask),
        Distances::Each => chosen(x, span, of_keys, each_distance(center)),
        Distances::Logarithmic { exact, farthest } => {
            chosen(x, span, of_keys, log_distance(center, exact.get() as usize, farthest.get() as usize))
        }
        Distances::Grid { columns, has_class } => {
            chosen(x, span, of_keys, grid_distance(center, columns.get() as usize, has_class))
        }
    }
}

fn chosen(
    x: Tensor<4>,
    (start, queries, keys): (usize, usize, usize),
    of_keys: bool,
    feature: impl Fn(usize, usize, usize) -> i64 + Copy,
) -> Tensor<4> {
    if of_keys {
        by_distance_of_keys(x, start, queries, keys, feature)
    } else {
        by_distance(x, start, queries, keys, feature)
    }
}
