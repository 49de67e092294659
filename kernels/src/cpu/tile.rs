//! The left matrix of a product, copied into tiles.

use rayon::prelude::*;

use super::gemm_block::{DEPTH, ROWS};
use super::parallel::Parallel;
use super::simd::{Task, run};

/// The left matrix of a product, `[M, K]`.
#[derive(Clone, Copy)]
pub enum Left<'a> {
    /// By rows, `[M, K]`.
    Rows(&'a [f32]),
    /// By columns, which are the rows of `[K, M]`.
    Columns(&'a [f32]),
}

/// The sizes of a product.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// `M`, the rows of the left matrix and of the result.
    pub rows: usize,
    /// `K`, which is summed over.
    pub depth: usize,
    /// `N`, the columns of the right matrix and of the result.
    pub columns: usize,
}

/// How many tiles are filled at a time, so that all of a cache line that is read is used.
const TOGETHER: usize = 4;

/// Some rows of the left matrix in tiles of [`ROWS`] rows, for each part of the inner axis of [`DEPTH`] all tiles one after
/// the other, each `[part, ROWS]`. So what is multiplied at a time is together in memory.
#[derive(Clone, Copy)]
pub struct Tiles<'a> {
    numbers: &'a [f32],
    /// Where the first part begins and the last one ends.
    span: [usize; 2],
    /// The rows of all tiles.
    height: usize,
    /// The first row, which is that of a tile.
    first: usize,
}

impl<'a> Tiles<'a> {
    /// How many numbers the tiles of `count` rows have for a span of the inner axis.
    pub fn size(count: usize, span: usize) -> usize {
        count.next_multiple_of(ROWS) * span
    }

    /// Copies `count` rows from `first` on, for a span of the inner axis that begins with a part, to `memory`, which has
    /// the [`size`](Self::size) for that. The last tile is filled up with numbers that no result contains.
    pub fn copy(
        left: Left<'_>,
        sizes: Sizes,
        [first, count]: [usize; 2],
        span: [usize; 2],
        memory: &'a mut [f32],
        is_shared: bool,
    ) -> Self {
        let Sizes { rows, depth, .. } = sizes;
        let height = count.next_multiple_of(ROWS).max(1);
        // Some tiles of a part of the inner axis.
        let some = |start: usize, part: usize, i: usize, tiles: &mut [f32]| {
            let from = first + i * TOGETHER * ROWS;
            let count = (first + count).saturating_sub(from).min(TOGETHER * ROWS);
            match left {
                Left::Rows(x) => {
                    let x = x.get(from * depth..(from + count) * depth).unwrap_or_default();
                    let tiles = tiles.chunks_mut((part * ROWS).max(1));
                    for (tile, x) in tiles.zip(x.chunks((ROWS * depth).max(1))) {
                        run(OfRows { x, depth, start, part, tile });
                    }
                }
                Left::Columns(x) => {
                    let x = x.get(start * rows..).unwrap_or_default();
                    run(OfColumns { x, width: rows, first: from, count, part, tiles });
                }
            }
        };
        let size = |part: usize| (part * TOGETHER * ROWS).max(1);
        if is_shared {
            memory.par_chunks_mut(DEPTH * height).enumerate().in_parallel(|(p, tiles)| {
                let part = tiles.len() / height;
                let tiles = tiles.par_chunks_mut(size(part)).enumerate();
                tiles.in_parallel(|(i, tiles)| some(span[0] + p * DEPTH, part, i, tiles));
            });
        } else {
            for (p, tiles) in memory.chunks_mut(DEPTH * height).enumerate() {
                let part = tiles.len() / height;
                for (i, tiles) in tiles.chunks_mut(size(part)).enumerate() {
                    some(span[0] + p * DEPTH, part, i, tiles);
                }
            }
        }
        Self { numbers: memory, span, height, first: 0 }
    }

    /// From this row on, the first one of a tile.
    pub fn after(self, rows: usize) -> Self {
        Self { first: self.first + rows, ..self }
    }

    /// Where the inner axis begins and ends here.
    pub fn span(self) -> [usize; 2] {
        self.span
    }

    /// The tiles of a part of the inner axis.
    #[inline(always)]
    pub fn part(self, start: usize, part: usize) -> impl Iterator<Item = &'a [[f32; ROWS]]> {
        let start = start - self.span[0];
        let from = start * self.height + part * self.first;
        let numbers = self.numbers.get(from..(start + part) * self.height).unwrap_or_default();
        numbers.as_chunks::<ROWS>().0.chunks(part.max(1))
    }
}

/// Fills a tile from rows.
struct OfRows<'a> {
    /// At most [`ROWS`] rows.
    x: &'a [f32],
    depth: usize,
    /// The part of the inner axis.
    start: usize,
    part: usize,
    tile: &'a mut [f32],
}

impl Task for OfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, depth, start, part, tile } = self;
        let (tile, _) = tile.as_chunks_mut::<ROWS>();
        let mut rows: [&[f32]; ROWS] = [&[]; ROWS];
        // Beyond the last row the first one is repeated.
        rows.iter_mut().for_each(|row| *row = x.get(start..start + part).unwrap_or_default());
        for (row, x) in rows.iter_mut().zip(x.chunks_exact(depth)) {
            *row = x.get(start..start + part).unwrap_or_default();
        }
        turn(&rows, tile);
    }
}

/// Writes columns as rows: `N` slices of length `K` → `[K, N]`, where `N` is a multiple of four.
#[inline(always)]
pub fn turn<const N: usize>(columns: &[&[f32]; N], rows: &mut [[f32; N]]) {
    // Blocks of four columns and eight rows, which the compiler keeps in registers.
    const WIDTH: usize = 4;
    const HEIGHT: usize = 8;
    let (blocks, rest) = rows.as_chunks_mut::<HEIGHT>();
    let done = blocks.len() * HEIGHT;
    for (i, block) in blocks.iter_mut().enumerate() {
        for (j, some) in columns.as_chunks::<WIDTH>().0.iter().enumerate() {
            let mut square = [&[0.0; HEIGHT]; WIDTH];
            for (to, column) in square.iter_mut().zip(some) {
                *to = column.get(i * HEIGHT..).and_then(|x| x.first_chunk()).unwrap_or(&[0.0; HEIGHT]);
            }
            for (k, row) in block.iter_mut().enumerate() {
                let numbers: [f32; WIDTH] = std::array::from_fn(|n| square[n][k]);
                row[j * WIDTH..(j + 1) * WIDTH].copy_from_slice(&numbers);
            }
        }
    }
    for (k, row) in (done..).zip(rest) {
        row.iter_mut().zip(columns).for_each(|(to, column)| *to = column.get(k).copied().unwrap_or_default());
    }
}

/// Fills tiles from columns.
struct OfColumns<'a> {
    x: &'a [f32],
    /// The columns of `x`.
    width: usize,
    first: usize,
    /// At most [`TOGETHER`] times [`ROWS`].
    count: usize,
    part: usize,
    /// At most [`TOGETHER`] tiles.
    tiles: &'a mut [f32],
}

impl Task for OfColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, width, first, count, part, tiles } = self;
        let mut each: [&mut [[f32; ROWS]]; TOGETHER] = Default::default();
        for (to, tile) in each.iter_mut().zip(tiles.chunks_mut((part * ROWS).max(1))) {
            *to = tile.as_chunks_mut().0;
        }
        for (k, row) in x.chunks_exact(width).take(part).enumerate() {
            let row = row.get(first..first + count).unwrap_or_default();
            for (tile, from) in each.iter_mut().zip(row.chunks(ROWS)) {
                let Some(to) = tile.get_mut(k) else { continue };
                // A constant length is copied with vector instructions.
                match from.first_chunk::<ROWS>() {
                    Some(from) => *to = *from,
                    None => {
                        *to = [0.0; ROWS];
                        to.iter_mut().zip(from).for_each(|(to, x)| *to = *x);
                    }
                }
            }
        }
    }
}
