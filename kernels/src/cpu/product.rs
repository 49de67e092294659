//! Products of one row with a matrix, as in decoding. They take as long as reading the matrix does.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::simd::{dispatch, share_rows};

/// The fewest multiplications that are worth several threads.
const WORTH: usize = 256 * 1024;
/// How many rows of a matrix are summed up before their sum is added to that of the others.
const STRIP: usize = 96;
/// The width from which on four rows of a matrix are read at a time. Narrower ones are faster one after the
/// other.
const WIDE: usize = 1024;
/// How many dot products a thread computes at a time.
const DOTS: usize = 64;

/// `y = x b` for a matrix `b [K, N]` whose rows follow each other: the sum of its rows, each times a number
/// of `x [K]`. The matrix is read in its order, in strips of rows, whose sums are added in their order.
pub fn sum_of_rows(x: &[f32], b: &[f32], y: &mut [f32]) {
    let n = y.len();
    if n == 0 {
        return;
    }
    let strips = x.len().div_ceil(STRIP);
    if strips < 2 {
        // The sum of the only strip is the result, so it needs no other memory.
        y.fill(0.0);
        dispatch(Strip { x, rows: b, y });
    } else {
        let mut sums = vec![0.0; strips * n];
        let strips = x.chunks(STRIP).zip(b.chunks(STRIP * n)).zip(sums.chunks_mut(n));
        if x.len() * n < WORTH {
            strips.for_each(|((x, rows), y)| dispatch(Strip { x, rows, y }));
        } else {
            let strips = x.par_chunks(STRIP).zip(b.par_chunks(STRIP * n)).zip(sums.par_chunks_mut(n));
            strips.for_each(|((x, rows), y)| dispatch(Strip { x, rows, y }));
        }
        for (i, part) in sums.chunks(n).enumerate() {
            if i == 0 { y.copy_from_slice(part) } else { add(y, part) }
        }
    }
}

/// Adds a bias to every row of `y [M, N]`.
pub fn add_to_rows(y: &mut [f32], bias: &[f32]) {
    let n = bias.len().max(1);
    share_rows(y, n, |rows| rows.chunks_mut(n).for_each(|row| add(row, bias)));
}

fn add(y: &mut [f32], x: &[f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}

/// Adds a few rows to `y`, each times a number.
struct Strip<'a> {
    x: &'a [f32],
    rows: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for Strip<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, rows, y } = self;
        let n = y.len();
        let (ys, y_rest) = S::as_mut_simd_f32s(y);
        // With four rows at a time, the sums are read and written a quarter as often.
        let (fours, _) = x.split_at(if n < WIDE { 0 } else { x.len() }).0.as_chunks::<4>();
        for ([p, q, r, s], rows) in fours.iter().zip(rows.chunks_exact(4 * n)) {
            let (ab, cd) = rows.split_at(2 * n);
            let ((a, b), (c, d)) = (ab.split_at(n), cd.split_at(n));
            let ((a, a_rest), (b, b_rest)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
            let ((c, c_rest), (d, d_rest)) = (S::as_simd_f32s(c), S::as_simd_f32s(d));
            let (vp, vq) = (simd.splat_f32s(*p), simd.splat_f32s(*q));
            let (vr, vs) = (simd.splat_f32s(*r), simd.splat_f32s(*s));
            for ((((y, a), b), c), d) in ys.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let sum = simd.mul_add_f32s(vq, *b, simd.mul_add_f32s(vp, *a, *y));
                *y = simd.mul_add_f32s(vs, *d, simd.mul_add_f32s(vr, *c, sum));
            }
            for ((((y, a), b), c), d) in y_rest.iter_mut().zip(a_rest).zip(b_rest).zip(c_rest).zip(d_rest) {
                *y = s.mul_add(*d, r.mul_add(*c, q.mul_add(*b, p.mul_add(*a, *y))));
            }
        }
        let done = 4 * fours.len();
        let (x, rows) = (x.split_at(done).1, rows.split_at(done * n).1);
        for (x, row) in x.iter().zip(rows.chunks_exact(n)) {
            let v = simd.splat_f32s(*x);
            let (row, row_rest) = S::as_simd_f32s(row);
            for (y, b) in ys.iter_mut().zip(row) {
                *y = simd.mul_add_f32s(v, *b, *y);
            }
            for (y, b) in y_rest.iter_mut().zip(row_rest) {
                *y = x.mul_add(*b, *y);
            }
        }
    }
}

/// `y[j] = x · b[j]` for the rows of `b [N, K]`, with `x [K]`.
pub fn dots(x: &[f32], b: &[f32], y: &mut [f32]) {
    let k = x.len();
    if k == 0 {
        y.fill(0.0);
    } else if k * y.len() < WORTH {
        dispatch(Dots { x, rows: b, y });
    } else {
        // Each product is computed whole by one thread, so threads do not change its bits.
        let some = y.par_chunks_mut(DOTS).zip(b.par_chunks(DOTS * k));
        some.for_each(|(y, rows)| dispatch(Dots { x, rows, y }));
    }
}

/// The dot products of `x` with some rows.
struct Dots<'a> {
    x: &'a [f32],
    rows: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, rows, y } = self;
        for (row, y) in rows.chunks_exact(x.len()).zip(y) {
            *y = dot(simd, x, row);
        }
    }
}

/// The dot product, in four vectors of sums, so that an addition need not wait for the one before it.
#[inline(always)]
fn dot<S: Simd>(simd: S, x: &[f32], y: &[f32]) -> f32 {
    let zero = simd.splat_f32s(0.0);
    let mut sums = [zero; 4];
    let ((x, x_rest), (y, y_rest)) = (S::as_simd_f32s(x), S::as_simd_f32s(y));
    let ((xs, x_few), (ys, y_few)) = (x.as_chunks::<4>(), y.as_chunks::<4>());
    for (x, y) in xs.iter().zip(ys) {
        for ((x, y), sum) in x.iter().zip(y).zip(&mut sums) {
            *sum = simd.mul_add_f32s(*x, *y, *sum);
        }
    }
    let [mut sum, second, third, fourth] = sums;
    for (x, y) in x_few.iter().zip(y_few) {
        sum = simd.mul_add_f32s(*x, *y, sum);
    }
    let sum = simd.add_f32s(simd.add_f32s(sum, second), simd.add_f32s(third, fourth));
    let mut total = simd.reduce_sum_f32s(sum);
    for (x, y) in x_rest.iter().zip(y_rest) {
        total = x.mul_add(*y, total);
    }
    total
}
