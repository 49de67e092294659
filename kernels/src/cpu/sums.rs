//! Sums in a fixed order.

use rayon::prelude::*;

use super::LANES;
use super::simd::{Task, run};

/// The sum of the sums of a loop's lanes, in pairs.
#[inline(always)]
pub fn total(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = sums.split_at_mut(half);
        for (a, b) in low.iter_mut().zip(high) {
            *a += *b;
        }
        half /= 2;
    }
    let [sum, ..] = sums;
    sum
}

/// `sum[i] += x[i]`
#[inline(always)]
pub fn add(sum: &mut [f32], x: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += *x;
    }
}

/// How many rows are summed up before their sum is added to that of the others.
const STRIP: usize = 256;
/// The fewest numbers that are worth several threads.
const WORTH: usize = 1 << 16;

/// The sum of the rows of `x [N, D]`, added to `y [D]`. Rows are added in their order, in strips whose sums are added
/// in their order.
pub fn sum_rows(x: &[f32], y: &mut [f32]) {
    let width = y.len().max(1);
    let strips = x.len().div_ceil(STRIP * width);
    if strips < 2 || x.len() < WORTH {
        x.chunks(STRIP * width).for_each(|rows| run(Strip { rows, y: &mut *y }));
        return;
    }
    let mut sums = vec![0.0; strips * width];
    let each = x.par_chunks(STRIP * width).zip(sums.par_chunks_mut(width));
    each.for_each(|(rows, y)| run(Strip { rows, y }));
    sums.chunks(width).for_each(|sum| run(Strip { rows: sum, y: &mut *y }));
}

/// Adds the sum of some rows to `y`.
struct Strip<'a> {
    rows: &'a [f32],
    y: &'a mut [f32],
}

impl Task for Strip<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // A wide row is summed up in pieces that stay in the nearest cache.
        const PIECE: usize = 4096;
        let width = self.y.len().max(1);
        for (i, y) in self.y.chunks_mut(PIECE).enumerate() {
            let mut sum = [0.0; PIECE];
            let sum = sum.get_mut(..y.len()).unwrap_or_default();
            for row in self.rows.chunks_exact(width) {
                let piece = row.get(i * PIECE..).unwrap_or_default();
                sum.iter_mut().zip(piece).for_each(|(sum, x)| *sum += x);
            }
            y.iter_mut().zip(sum).for_each(|(y, sum)| *y += *sum);
        }
    }
}
