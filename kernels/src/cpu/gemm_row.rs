//! The product of a single row with a packed matrix in single precision, as in decoding. It takes as long as reading the
//! matrix does, and several panels at a time are read faster than one: a processor fetches several streams ahead.

use pulp::{Simd, WithSimd};

use super::gemm_block::DEPTH;
use super::simd::dispatch;
use crate::backend::packed::NARROW;

/// How many panels are read at a time.
const PANELS: usize = 4;

/// Columns of the product of `x [K]` with a matrix in panels, from this panel on, as many as `y` has: the same bits as
/// those of [`gemm`](super::gemm::gemm). `bias` is that of all columns.
pub fn columns(x: &[f32], numbers: &[f32], first: usize, bias: Option<&[f32]>, y: &mut [f32]) {
    let (rows, _) = numbers.as_chunks::<NARROW>();
    let rows = rows.get(first * x.len()..).unwrap_or_default();
    let bias = bias.map(|bias| bias.get(first * NARROW..).unwrap_or_default());
    dispatch(Columns { x, rows, bias, y });
}

struct Columns<'a> {
    x: &'a [f32],
    /// The panels, each `[K, NARROW]`.
    rows: &'a [[f32; NARROW]],
    bias: Option<&'a [f32]>,
    y: &'a mut [f32],
}

impl WithSimd for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, rows, mut bias, y } = self;
        if x.is_empty() {
            y.fill(0.0);
            y.iter_mut().zip(bias.unwrap_or_default()).for_each(|(y, bias)| *y = *bias);
            return;
        }
        let groups = y.chunks_mut(PANELS * NARROW).zip(rows.chunks(PANELS * x.len()));
        for (y, rows) in groups {
            let mut panels = rows.chunks(x.len());
            // With a constant number of panels the compiler keeps their sums in registers.
            if S::F32_LANES >= 16 && y.len() > (PANELS - 1) * NARROW {
                let mut all: [&[[f32; NARROW]]; PANELS] = [&[]; PANELS];
                all.iter_mut().zip(panels).for_each(|(to, panel)| *to = panel);
                sums::<S, PANELS, 2>(simd, x, all, bias, y);
            } else {
                let mut bias = bias;
                for y in y.chunks_mut(NARROW) {
                    let panel = [panels.next().unwrap_or_default()];
                    match S::F32_LANES {
                        16.. => sums::<S, 1, 2>(simd, x, panel, bias, y),
                        8.. => sums::<S, 1, 4>(simd, x, panel, bias, y),
                        4.. => sums::<S, 1, 8>(simd, x, panel, bias, y),
                        _ => sums::<S, 1, NARROW>(simd, x, panel, bias, y),
                    }
                    bias = bias.map(|bias| bias.get(NARROW..).unwrap_or_default());
                }
            }
            bias = bias.map(|bias| bias.get(PANELS * NARROW..).unwrap_or_default());
        }
    }
}

/// The product with `P` panels of `V` vectors.
#[inline(always)]
fn sums<S: Simd, const P: usize, const V: usize>(
    simd: S,
    x: &[f32],
    panels: [&[[f32; NARROW]]; P],
    bias: Option<&[f32]>,
    y: &mut [f32],
) {
    let mut totals = [[simd.splat_f32s(0.0); V]; P];
    for (i, x) in x.chunks(DEPTH).enumerate() {
        let mut sums = [[simd.splat_f32s(0.0); V]; P];
        // They have the length of this part of the row, which the compiler has to see.
        let rows = panels.map(|panel| panel.get(i * DEPTH..i * DEPTH + x.len()).unwrap_or_default());
        if rows.iter().any(|rows| rows.len() != x.len()) {
            return;
        }
        for (k, x) in x.iter().enumerate() {
            let x = simd.splat_f32s(*x);
            for (sums, rows) in sums.iter_mut().zip(&rows) {
                for (sum, b) in sums.iter_mut().zip(S::as_simd_f32s(&rows[k]).0) {
                    *sum = simd.mul_add_f32s(x, *b, *sum);
                }
            }
        }
        // A sum that begins with the zero of another one could differ from it in the sign of a zero.
        for (total, sum) in totals.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
            *total = if i == 0 { *sum } else { simd.add_f32s(*total, *sum) };
        }
    }
    for (p, (total, y)) in totals.iter().zip(y.chunks_mut(NARROW)).enumerate() {
        let mut found = [0.0; NARROW];
        for (to, total) in S::as_mut_simd_f32s(&mut found).0.iter_mut().zip(total) {
            *to = *total;
        }
        match bias.and_then(|bias| bias.get(p * NARROW..)) {
            Some(bias) => y.iter_mut().zip(found).zip(bias).for_each(|((y, sum), bias)| *y = sum + bias),
            None => y.iter_mut().zip(found).for_each(|(y, sum)| *y = sum),
        }
    }
}
