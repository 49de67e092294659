//! The innermost part of a product of matrices: some rows times a panel of columns, whose sums stay in registers.

use pulp::Simd;

use super::ahead::Ahead;
use crate::backend::packed::NARROW;

/// The rows that are computed at a time. With two vectors of columns their sums take 24 of the 32 registers of AVX-512.
pub const ROWS: usize = 12;

/// How much of the inner axis is summed up before its sum is added to that of what comes before: as many rows of
/// a panel fit a core's second cache together with a tile.
pub const DEPTH: usize = 512;

/// What is added to the product of a part of the inner axis.
#[derive(Clone, Copy)]
pub struct Add<'a> {
    /// Whether the result has the sums of the parts before this one.
    pub sums: bool,
    /// The bias from this panel on, with the last part.
    pub bias: Option<&'a [f32]>,
}

/// Some rows of the left matrix, for a part of the inner axis.
trait Rows {
    /// How long the part is.
    fn depth(&self) -> usize;

    /// The number of a row for an index of the inner axis.
    fn at(&self, k: usize, row: usize) -> f32;
}

/// Rows in a tile, from `from` on.
#[derive(Clone, Copy)]
struct Tiled<'a> {
    tile: &'a [[f32; ROWS]],
    from: usize,
}

impl Rows for Tiled<'_> {
    #[inline(always)]
    fn depth(&self) -> usize {
        self.tile.len()
    }

    #[inline(always)]
    fn at(&self, k: usize, row: usize) -> f32 {
        self.tile[k][self.from + row]
    }
}

/// Rows where they are.
#[derive(Clone, Copy)]
struct InPlace<'a, const R: usize>([&'a [f32]; R]);

impl<'a, const R: usize> InPlace<'a, R> {
    /// Beyond the last row it is repeated.
    #[inline(always)]
    fn new(Unmoved { x: rows, depth, start, part }: Unmoved<'a>) -> Self {
        let mut found: [&[f32]; R] = [&[]; R];
        let last = (rows.len() / depth.max(1)).saturating_sub(1);
        for (i, found) in found.iter_mut().enumerate() {
            let from = i.min(last) * depth + start;
            *found = rows.get(from..from + part).unwrap_or_default();
        }
        Self(found)
    }
}

impl<const R: usize> Rows for InPlace<'_, R> {
    #[inline(always)]
    fn depth(&self) -> usize {
        // They have the same length, which the compiler has to see.
        self.0.iter().map(|row| row.len()).min().unwrap_or_default()
    }

    #[inline(always)]
    fn at(&self, k: usize, row: usize) -> f32 {
        self.0[row][k]
    }
}

/// The product of a tile with a panel, for the columns of the result from `at` on.
#[inline(always)]
pub fn block<S: Simd>(
    simd: S,
    tile: &[[f32; ROWS]],
    panel: &[[f32; NARROW]],
    y: &mut [&mut [f32]],
    at: usize,
    add: Add<'_>,
) {
    // With constant numbers of rows and of vectors the compiler unrolls the loops over them, and their sums stay in
    // registers: 32 with AVX-512, 16 otherwise.
    if S::F32_LANES >= 16 {
        let rows = Tiled { tile, from: 0 };
        match y.len() {
            ..=4 => sums::<S, _, 4, 2>(simd, rows, panel, y, at, add, || ()),
            5..=8 => sums::<S, _, 8, 2>(simd, rows, panel, y, at, add, || ()),
            _ => sums::<S, _, ROWS, 2>(simd, rows, panel, y, at, add, || ()),
        }
    } else {
        for (i, y) in y.chunks_mut(ROWS / 2).enumerate() {
            let rows = Tiled { tile, from: i * (ROWS / 2) };
            sums::<S, _, { ROWS / 2 }, 2>(simd, rows, panel, y, at, add, || ());
        }
    }
}

/// Some rows where they are, for a part of the inner axis.
#[derive(Clone, Copy)]
pub struct Unmoved<'a> {
    /// The rows, each of `depth` numbers.
    pub x: &'a [f32],
    /// How long rows are.
    pub depth: usize,
    /// Where the part begins.
    pub start: usize,
    /// How long it is.
    pub part: usize,
}

/// The product of rows that are read where they are.
#[inline(always)]
pub fn block_in_place<S: Simd>(
    simd: S,
    rows: Unmoved<'_>,
    panel: &[[f32; NARROW]],
    y: &mut [&mut [f32]],
    at: usize,
    add: Add<'_>,
    ahead: &mut Ahead<'_, f32>,
) {
    if S::F32_LANES >= 16 {
        // One row of the panel after the other is fetched.
        let fetch = || ahead.next(NARROW);
        match y.len() {
            1 => sums::<S, _, 1, 2>(simd, InPlace::<1>::new(rows), panel, y, at, add, fetch),
            2..=4 => sums::<S, _, 4, 2>(simd, InPlace::<4>::new(rows), panel, y, at, add, fetch),
            5..=8 => sums::<S, _, 8, 2>(simd, InPlace::<8>::new(rows), panel, y, at, add, fetch),
            _ => sums::<S, _, ROWS, 2>(simd, InPlace::<ROWS>::new(rows), panel, y, at, add, fetch),
        }
    } else {
        const HALF: usize = ROWS / 2;
        let chunks = rows.x.chunks((HALF * rows.depth).max(1)).zip(y.chunks_mut(HALF));
        for (i, (x, y)) in chunks.enumerate() {
            let rows = Unmoved { x, ..rows };
            // The second rows find the panel in the cache.
            let fetch = || {
                if i == 0 {
                    ahead.next(NARROW)
                }
            };
            match y.len() {
                1 => sums::<S, _, 1, 4>(simd, InPlace::<1>::new(rows), panel, y, at, add, fetch),
                _ => sums::<S, _, HALF, 2>(simd, InPlace::<HALF>::new(rows), panel, y, at, add, fetch),
            }
        }
    }
}

/// The product of `R` rows with a panel, `V` vectors of columns at a time, which calls `meanwhile` once for every row of the panel.
#[inline(always)]
fn sums<S: Simd, A: Rows, const R: usize, const V: usize>(
    simd: S,
    rows: A,
    panel: &[[f32; NARROW]],
    y: &mut [&mut [f32]],
    at: usize,
    add: Add<'_>,
    mut meanwhile: impl FnMut(),
) {
    let width = V * S::F32_LANES;
    let columns = y.first().map_or(0, |row| row.len()).saturating_sub(at).min(NARROW);
    for (i, first) in (0..columns).step_by(width).enumerate() {
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        for (k, b) in panel.iter().enumerate().take(rows.depth()) {
            if i == 0 {
                meanwhile();
            }
            let b = S::as_simd_f32s(b).0;
            let mut vectors = [simd.splat_f32s(0.0); V];
            for (v, vector) in vectors.iter_mut().enumerate() {
                *vector = b[i * V + v];
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let a = simd.splat_f32s(rows.at(k, r));
                for (sum, b) in sums.iter_mut().zip(vectors) {
                    *sum = simd.mul_add_f32s(a, b, *sum);
                }
            }
        }
        let bias = add.bias.map(|bias| bias.get(first..).unwrap_or_default());
        for (row, sums) in y.iter_mut().zip(sums) {
            let to = row.get_mut(at + first..(at + first + width).min(at + columns)).unwrap_or_default();
            // All vectors, so that their sums are written from registers.
            if let Some(to) = S::as_mut_simd_f32s(to).0.first_chunk_mut::<V>() {
                let bias = bias.and_then(|bias| S::as_simd_f32s(bias).0.first_chunk::<V>());
                for (v, (to, sum)) in to.iter_mut().zip(sums).enumerate() {
                    let sum = if add.sums { simd.add_f32s(*to, sum) } else { sum };
                    *to = bias.map_or(sum, |bias| simd.add_f32s(sum, bias[v]));
                }
                continue;
            }
            let mut found = [0.0; NARROW];
            for (to, sum) in S::as_mut_simd_f32s(&mut found).0.iter_mut().zip(sums) {
                *to = sum;
            }
            for (v, (to, sum)) in to.iter_mut().zip(found).enumerate() {
                let sum = if add.sums { *to + sum } else { sum };
                *to = bias.and_then(|bias| bias.get(v)).map_or(sum, |bias| sum + bias);
            }
        }
    }
}
