//! Scaled dot-product attention of a few queries, as in decoding: keys and values are read once, where they
//! are, so that a cache need not be copied.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::attention::{Scores, Sizes, Table};
use super::panel::Rows;
use super::parallel::Parallel;
use super::simd::dispatch;

/// The fewest multiplications that are worth several threads.
const WORTH: usize = 256 * 1024;

/// `softmax(scores) v` for `q [B, H, T, D]`, `k [B, H, K, D]` and `v [B, H, K, V]`: `y [B, H, T, V]`. A query
/// that sees no key gets zeros.
pub fn attention(q: &[f32], [k, v]: [Table<'_, f32>; 2], sizes: Sizes, scores: &Scores<'_>, y: &mut [f32]) {
    let Sizes { queries, keys, width, values, .. } = sizes;
    // `y` is empty, or stays the zeros that it begins with because there are no keys.
    if queries == 0 || keys == 0 || width == 0 || values == 0 {
        return;
    }
    let one = |row: &mut Vec<f32>, (head, (y, q)): (usize, (&mut [f32], &[f32]))| {
        let (k, v) = (k.head(head, sizes, keys, width), v.head(head, sizes, keys, values));
        let [k, v] = [k, v].map(|all| Kept { all, latest: None });
        dispatch(OneHead { head, q, k, v, sizes, scores, row, y });
    };
    let size = queries * width;
    // Threads divide the heads and not the keys of one: the bits of a sum follow from how it is divided.
    if q.len() * keys < WORTH {
        let mut row = Vec::new();
        y.chunks_mut(queries * values).zip(q.chunks(size)).enumerate().for_each(|part| one(&mut row, part));
    } else {
        let parts = y.par_chunks_mut(queries * values).zip(q.par_chunks(size)).enumerate();
        parts.in_parallel_init(Vec::new, one);
    }
}

/// The keys or the values of a head, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// Those in memory.
    pub all: Rows<'a>,
    /// The last one, if it is not in memory yet.
    pub latest: Option<&'a [f32]>,
}

impl<'a> Kept<'a> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.count + usize::from(self.latest.is_some())
    }

    #[inline(always)]
    fn of(self, i: usize) -> &'a [f32] {
        match self.latest {
            Some(latest) if i >= self.all.count => latest,
            _ => self.all.of(i),
        }
    }
}

/// Attention of one query of a head, which sees all keys, as [`attention`] computes it. `row` is memory that the next
/// call uses again.
pub fn attention_of_one(
    head: usize,
    q: &[f32],
    [k, v]: [Kept<'_>; 2],
    sizes: Sizes,
    scores: &Scores<'_>,
    row: &mut Vec<f32>,
    y: &mut [f32],
) {
    dispatch(OneHead { head, q, k, v, sizes, scores, row, y });
}

/// Attention of the queries of one head.
struct OneHead<'a> {
    /// Its index among the heads of all sequences.
    head: usize,
    q: &'a [f32],
    k: Kept<'a>,
    v: Kept<'a>,
    sizes: Sizes,
    scores: &'a Scores<'a>,
    /// Room for the scores of a query.
    row: &'a mut Vec<f32>,
    y: &'a mut [f32],
}

impl WithSimd for OneHead<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { head, q, k, v, sizes, scores, row, y } = self;
        let Sizes { keys, width, values, .. } = sizes;
        row.resize(keys, 0.0);
        // Every query reads all keys and values again. With so few queries, putting them into panels first,
        // as `attention` does, would take longer than it saves.
        for (query, (q, y)) in q.chunks_exact(width).zip(y.chunks_exact_mut(values)).enumerate() {
            for (i, score) in row.iter_mut().enumerate() {
                *score = dot(simd, q, k.of(i));
            }
            scores.finish(head, query, sizes, row, &mut []);
            let [_, factor] = scores.weigh(head, sizes, row);
            y.fill(0.0);
            for (i, weight) in row.iter().enumerate() {
                add(simd, *weight, v.of(i), y);
            }
            y.iter_mut().for_each(|y| *y *= factor);
        }
    }
}

/// The dot product, in two vectors of sums, so that an addition need not wait for the one before it.
#[inline(always)]
fn dot<S: Simd>(simd: S, x: &[f32], y: &[f32]) -> f32 {
    let ((x, x_rest), (y, y_rest)) = (S::as_simd_f32s(x), S::as_simd_f32s(y));
    let mut sums = [simd.splat_f32s(0.0); 2];
    for (i, (x, y)) in x.iter().zip(y).enumerate() {
        sums[i % 2] = simd.mul_add_f32s(*x, *y, sums[i % 2]);
    }
    let mut total = if x.is_empty() { 0.0 } else { simd.reduce_sum_f32s(simd.add_f32s(sums[0], sums[1])) };
    for (x, y) in x_rest.iter().zip(y_rest) {
        total = x.mul_add(*y, total);
    }
    total
}

/// `y += factor * x`
#[inline(always)]
fn add<S: Simd>(simd: S, factor: f32, x: &[f32], y: &mut [f32]) {
    let ((x, x_rest), (y, y_rest)) = (S::as_simd_f32s(x), S::as_mut_simd_f32s(y));
    let all = simd.splat_f32s(factor);
    for (y, x) in y.iter_mut().zip(x) {
        *y = simd.mul_add_f32s(all, *x, *y);
    }
    for (y, x) in y_rest.iter_mut().zip(x_rest) {
        *y = factor.mul_add(*x, *y);
    }
}
