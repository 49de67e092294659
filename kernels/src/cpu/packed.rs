//! Products of a few rows with a matrix whose weights are packed. They take as long as reading the matrix
//! does, so it is read once for several rows.

use std::array;

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::ahead::Ahead;
use super::nibbles::Tables;
use super::parallel::Parallel;
use super::simd::dispatch;
use crate::backend::packed::{BLOCK, HALF, Numbers, Packed, WIDTH, upper};

/// The fewest multiplications that are worth several threads.
const WORTH: usize = 256 * 1024;
/// How many bytes a thread reads at a time, about.
const READ: usize = 64 * 1024;
/// How many rows are multiplied at once.
const ROWS: usize = 4;

/// `y = x b + bias` for rows `x [M, K]` and a packed matrix `b [K, N]`: `y [M, N]`. A sum over the inputs is
/// that of its blocks, in their order, so the bits of a row do not depend on the other rows.
pub fn product(x: &[f32], packed: &Packed, bias: Option<&[f32]>, y: &mut [f32]) {
    let (k, n) = (packed.inputs(), packed.outputs());
    if n == 0 || y.is_empty() {
        return;
    }
    let rows = y.len() / n;
    if k == 0 {
        // A sum of nothing.
        y.fill(0.0);
    }
    // Whole panels of about `READ` bytes together.
    let panels = READ.div_ceil(packed.bytes().div_ceil(n.div_ceil(WIDTH)).max(1));
    let is_shared = x.len() * n >= WORTH;
    // The sums of a single row have the order of `y`, so they are written there without a copy.
    if rows == 1 {
        let each = |(i, y): (usize, &mut [f32])| columns_of_row(x, packed, i * panels, bias, y);
        if is_shared {
            y.par_chunks_mut(panels * WIDTH).enumerate().in_parallel(each);
        } else {
            y.chunks_mut(panels * WIDTH).enumerate().for_each(each);
        }
        return;
    }
    // For each panel its outputs for the first row, then for the second one, and so on. In `y` the outputs of
    // a panel are in different rows, and threads could not divide it.
    let mut sums = vec![0.0; n.div_ceil(WIDTH) * WIDTH * rows];
    let each = |(i, sums): (usize, &mut [f32])| dispatch(Sums { x, k, packed, first: i * panels, sums });
    if is_shared {
        sums.par_chunks_mut(panels * WIDTH * rows).enumerate().in_parallel(each);
    } else {
        sums.chunks_mut(panels * WIDTH * rows).enumerate().for_each(each);
    }
    for (row, y) in y.chunks_mut(n).enumerate() {
        for (panel, y) in sums.chunks(WIDTH * rows).zip(y.chunks_mut(WIDTH)) {
            y.iter_mut().zip(panel.iter().skip(row * WIDTH)).for_each(|(y, sum)| *y = *sum);
        }
        if let Some(bias) = bias {
            y.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
        }
    }
}

/// Columns of the product of one row `x [K]` with a packed matrix, from this panel on, as many as `y` has: the same
/// bits as those of [`product`]. `bias` is that of all columns.
pub fn columns_of_row(x: &[f32], packed: &Packed, first: usize, bias: Option<&[f32]>, y: &mut [f32]) {
    dispatch(Sums { x, k: packed.inputs(), packed, first, sums: y });
    if let Some(bias) = bias.and_then(|bias| bias.get(first * WIDTH..)) {
        y.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
    }
}

/// The products of all rows with some panels.
struct Sums<'a> {
    x: &'a [f32],
    k: usize,
    packed: &'a Packed,
    /// The index of the first panel among those of the matrix.
    first: usize,
    /// Its sums and those of the panels that follow, as many as there are here, each `[M, WIDTH]`. With one
    /// row these are the result itself, so the last panel may be cut off.
    sums: &'a mut [f32],
}

impl WithSimd for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, k, packed, first, sums } = self;
        let rows = x.len() / k.max(1);
        for (panel, sums) in (first..).zip(sums.chunks_mut(rows.max(1) * WIDTH)) {
            for (i, x) in x.chunks(ROWS * k.max(1)).enumerate() {
                let Some((_, to)) = sums.split_at_mut_checked(i * ROWS * WIDTH) else { continue };
                // With a constant number of rows the compiler keeps their sums in registers.
                match x.len() / k.max(1) {
                    1 => sums_of::<S, 1>(simd, x, k, packed, panel, to),
                    2 => sums_of::<S, 2>(simd, x, k, packed, panel, to),
                    3 => sums_of::<S, 3>(simd, x, k, packed, panel, to),
                    _ => sums_of::<S, ROWS>(simd, x, k, packed, panel, to),
                }
            }
        }
    }
}

/// The products of `R` rows with a panel.
#[inline(always)]
fn sums_of<S: Simd, const R: usize>(
    simd: S,
    x: &[f32],
    k: usize,
    packed: &Packed,
    panel: usize,
    to: &mut [f32],
) {
    let mut rows: [&[f32]; R] = [&[]; R];
    rows.iter_mut().zip(x.chunks(k)).for_each(|(row, x)| *row = x);
    let blocks = k.div_ceil(BLOCK);
    let mut totals = [[0.0; WIDTH]; R];
    let from = |size: usize| panel * blocks * size..(panel + 1) * blocks * size;
    match packed.numbers() {
        // [`super::gemm`] multiplies these, also a few rows.
        Numbers::F32(_) => {}
        Numbers::Bf16(numbers) => {
            let mut ahead = Ahead::new(numbers, from(BLOCK * WIDTH).start);
            let numbers = numbers.get(from(BLOCK * WIDTH)).unwrap_or_default();
            for (at, block) in numbers.chunks_exact(BLOCK * WIDTH).enumerate() {
                let rows = rows.map(|row| part(row, at));
                add_block(simd, rows, &mut ahead, block.as_chunks::<WIDTH>().0, bf16, None, &mut totals);
            }
        }
        Numbers::Int8(integers, scales) => {
            let mut ahead = Ahead::new(integers, from(BLOCK * WIDTH).start);
            let integers = integers.get(from(BLOCK * WIDTH)).unwrap_or_default();
            let scales = scales.get(from(WIDTH)).unwrap_or_default().as_chunks::<WIDTH>().0;
            for ((at, block), scales) in integers.chunks_exact(BLOCK * WIDTH).enumerate().zip(scales) {
                let rows = rows.map(|row| part(row, at));
                add_block(
                    simd,
                    rows,
                    &mut ahead,
                    block.as_chunks::<WIDTH>().0,
                    int8,
                    Some(scales),
                    &mut totals,
                );
            }
        }
        Numbers::Int4(pairs, scales) => {
            let mut ahead = Ahead::new(pairs, from(BLOCK * HALF).start);
            let pairs = pairs.get(from(BLOCK * HALF)).unwrap_or_default();
            let scales = scales.get(from(WIDTH)).unwrap_or_default().as_chunks::<WIDTH>().0;
            let tables = Tables::new();
            for ((at, block), scales) in pairs.chunks_exact(BLOCK * HALF).enumerate().zip(scales) {
                let rows = rows.map(|row| part(row, at));
                let (block, scales) = (block.as_chunks::<HALF>().0, Some(scales));
                // The choice is made once for a block, not for every row.
                if let Some(tables) = tables {
                    let unpack = |row: &[u8; HALF]| tables.int4(row);
                    add_block(simd, rows, &mut ahead, block, unpack, scales, &mut totals);
                } else {
                    add_block(simd, rows, &mut ahead, block, int4, scales, &mut totals);
                }
            }
        }
    }
    for (to, total) in to.chunks_mut(WIDTH).zip(totals) {
        to.iter_mut().zip(total).for_each(|(to, total)| *to = total);
    }
}

/// The numbers of a row for a block.
#[inline(always)]
fn part(row: &[f32], block: usize) -> &[f32] {
    let from = block * BLOCK;
    // The last block may have fewer inputs than the matrix, where zeros fill it up.
    row.get(from..(from + BLOCK).min(row.len())).unwrap_or_default()
}

/// Adds the products of `R` rows with a block of a panel, and fetches what comes after it. The sums are multiplied with the scales, once for
/// all inputs of the block.
#[inline(always)]
fn add_block<S: Simd, E, const N: usize, const R: usize>(
    simd: S,
    x: [&[f32]; R],
    ahead: &mut Ahead<'_, E>,
    block: &[[E; N]],
    unpack: impl Fn(&[E; N]) -> [f32; WIDTH],
    scales: Option<&[u16; WIDTH]>,
    totals: &mut [[f32; WIDTH]; R],
) {
    let scales = scales.map(bf16);
    // The sums fit the registers of AVX-512 for four rows, of AVX2 for one.
    let mut sums = [[0.0_f32; WIDTH]; R];
    let len = x.iter().map(|x| x.len()).min().unwrap_or_default();
    let x = x.map(|x| x.get(..len).unwrap_or_default());
    for (k, row) in block.iter().take(len).enumerate() {
        ahead.next(N);
        let row = unpack(row);
        let row = S::as_simd_f32s(&row).0;
        for (sum, x) in sums.iter_mut().zip(&x) {
            let x = simd.splat_f32s(x[k]);
            for (sum, b) in S::as_mut_simd_f32s(sum).0.iter_mut().zip(row) {
                *sum = simd.mul_add_f32s(x, *b, *sum);
            }
        }
    }
    for (total, sum) in totals.iter_mut().zip(&sums) {
        match &scales {
            Some(scales) => {
                for ((total, sum), scale) in total.iter_mut().zip(sum).zip(scales) {
                    *total = sum.mul_add(*scale, *total);
                }
            }
            None => total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum),
        }
    }
}

/// The numbers of a row of a panel, or its scales, which have the same format.
#[inline(always)]
pub fn bf16(row: &[u16; WIDTH]) -> [f32; WIDTH] {
    // Of a copy the compiler knows that nothing else writes to it, and the numbers stay in registers.
    let row = *row;
    array::from_fn(|i| upper(row[i]))
}

/// The integers of a row of a panel.
#[inline(always)]
pub fn int8(row: &[i8; WIDTH]) -> [f32; WIDTH] {
    // Of a copy the compiler knows that nothing else writes to it, and the numbers stay in registers.
    let row = *row;
    array::from_fn(|i| f32::from(row[i]))
}

/// The integers of a row of a panel, two in a byte: the lower halves first, then the upper ones.
#[inline(always)]
pub fn int4(row: &[u8; HALF]) -> [f32; WIDTH] {
    let mut out = [0.0; WIDTH];
    let (low, high) = out.split_at_mut(HALF);
    low.iter_mut().zip(row).for_each(|(y, pair)| *y = f32::from((pair & 15) as i8 - 8));
    high.iter_mut().zip(row).for_each(|(y, pair)| *y = f32::from((pair >> 4) as i8 - 8));
    out
}

/// A row of integers times the scales of its outputs.
#[inline(always)]
pub fn times(mut row: [f32; WIDTH], scales: &[f32; WIDTH]) -> [f32; WIDTH] {
    row.iter_mut().zip(scales).for_each(|(y, scale)| *y *= scale);
    row
}
