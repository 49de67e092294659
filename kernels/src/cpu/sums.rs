//! Sums in a fixed order.

use rayon::prelude::*;

use super::LANES;
use super::parallel::Parallel;
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
    each.in_parallel(|(rows, y)| run(Strip { rows, y }));
    sums.chunks(width).for_each(|sum| run(Strip { rows: sum, y: &mut *y }));
}

/// Adds each row of `x [N, D]` to the row of `y [V, D]` with this index, in their order. Rows of an index beyond `y` are
/// left out.
pub fn add_to_rows(x: &[f32], indices: &[usize], width: usize, y: &mut [f32]) {
    let width = width.max(1);
    if x.len() < WORTH {
        run(Rows { x, indices, width, first: 0, y });
        return;
    }
    // Threads divide the rows of `y`, not those of `x`, so the order of each sum stays the same. Each of them looks at all
    // indices, of which there are far fewer than numbers.
    let rows = (y.len() / width).div_ceil(8 * rayon::current_num_threads()).max(1);
    y.par_chunks_mut(rows * width).enumerate().in_parallel(|(i, y)| {
        run(Rows { x, indices, width, first: i * rows, y });
    });
}

/// Adds rows to those of a table that begin with the row `first`.
struct Rows<'a> {
    x: &'a [f32],
    indices: &'a [usize],
    width: usize,
    first: usize,
    y: &'a mut [f32],
}

impl Task for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, indices, width, first, y } = self;
        for (index, x) in indices.iter().zip(x.chunks_exact(width)) {
            let Some(row) = index.checked_sub(first) else { continue };
            // An index may be any number, also one whose product has no room.
            if let Some(sum) = row.checked_mul(width).and_then(|at| y.get_mut(at..)?.get_mut(..width)) {
                add(sum, x);
            }
        }
    }
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
