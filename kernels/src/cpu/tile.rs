//! The left matrix of a product, copied into tiles.

use rayon::prelude::*;

use super::gemm_block::ROWS;
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

/// Copies `count` rows of the left matrix from `first` on into tiles, each `[K, ROWS]`. The last one is filled up with
/// numbers that no result contains.
pub fn tile(left: Left<'_>, sizes: Sizes, first: usize, count: usize, tiles: &mut [f32], is_shared: bool) {
    let depth = sizes.depth;
    let each = |(i, tile): (usize, &mut [f32])| {
        let from = first + i * ROWS;
        let count = (first + count).saturating_sub(from).min(ROWS);
        match left {
            Left::Rows(x) => {
                let x = x.get(from * depth..(from + count) * depth).unwrap_or_default();
                run(OfRows { x, depth, tile });
            }
            Left::Columns(x) => run(OfColumns { x, width: sizes.rows, first: from, count, tile }),
        }
    };
    // The size of a tile, which is at least one number for `chunks_mut`.
    let size = (ROWS * depth).max(1);
    if is_shared {
        tiles.par_chunks_mut(size).enumerate().with_min_len(4).for_each(each);
    } else {
        tiles.chunks_mut(size).enumerate().for_each(each);
    }
}

/// Fills a tile from rows.
struct OfRows<'a> {
    /// At most [`ROWS`] rows.
    x: &'a [f32],
    depth: usize,
    tile: &'a mut [f32],
}

impl Task for OfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // A line of a cache, in which the numbers of a row follow each other.
        const LINE: usize = 16;
        let Self { x, depth, tile } = self;
        let (tile, _) = tile.as_chunks_mut::<ROWS>();
        let mut rows: [&[f32]; ROWS] = [&[]; ROWS];
        // Beyond the last row the first one is repeated.
        rows.iter_mut().for_each(|row| *row = x.get(..depth).unwrap_or_default());
        rows.iter_mut().zip(x.chunks_exact(depth)).for_each(|(row, x)| *row = x);
        for (i, tile) in tile.chunks_mut(LINE).enumerate() {
            let mut lines = [[0.0; LINE]; ROWS];
            for (line, row) in lines.iter_mut().zip(rows) {
                let row = row.get(i * LINE..).unwrap_or_default();
                match row.first_chunk() {
                    // A constant length is copied with vector instructions.
                    Some(row) => *line = *row,
                    None => line.iter_mut().zip(row).for_each(|(to, x)| *to = *x),
                }
            }
            for (k, to) in tile.iter_mut().enumerate() {
                for (to, line) in to.iter_mut().zip(&lines) {
                    *to = line[k];
                }
            }
        }
    }
}

/// Fills a tile from columns.
struct OfColumns<'a> {
    x: &'a [f32],
    /// The columns of `x`.
    width: usize,
    first: usize,
    count: usize,
    tile: &'a mut [f32],
}

impl Task for OfColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, width, first, count, tile } = self;
        let (tile, _) = tile.as_chunks_mut::<ROWS>();
        for (to, row) in tile.iter_mut().zip(x.chunks_exact(width)) {
            let from = row.get(first..first + count).unwrap_or_default();
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
