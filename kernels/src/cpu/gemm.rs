//! Products of matrices, in blocks that stay in the caches of a core (Goto and van de Geijn 2008).
//!
//! The right matrix is read in panels of [`NARROW`] columns, the left one [`ROWS`] rows at a time: from tiles, in which
//! the numbers follow each other in the order in which they are read, or where they are if there are few rows. Every
//! number of the result is the sum over the inner axis in its order, in parts of [`DEPTH`] whose sums are added in their
//! order. So its bits depend neither on the number of threads nor on which other rows are computed, nor on whether the
//! right matrix was packed before.

use std::cell::Cell;
use std::ops::Range;

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::activation::activate_in_place;
use super::ahead::{Ahead, fetch};
use super::gemm_block::{Add, DEPTH, ROWS, Unmoved, block, block_in_place};
use super::gemm_row;
use super::packed::{bf16, int4, int8, times};
use super::parallel::Parallel;
use super::simd::dispatch;
pub use super::tile::{Left, Sizes};
use super::tile::{Tiles, turn};
use crate::backend::Activation;
use crate::backend::packed::{BLOCK, HALF, NARROW, Numbers, Packed, WIDTH};

/// How many numbers are in tiles at a time: 2 MiB, so that a long inner axis takes no more memory.
const ROOM: usize = 1 << 19;
/// How many rows are in tiles at a time: a part of the inner axis takes 768 KiB of a core's second cache, and panels the rest.
const MOST: usize = 32 * ROWS;
/// How many sums stay in that cache while the parts of the inner axis are added to them: 256 KiB.
const SUMS: usize = 1 << 16;
/// From how many rows on they are copied into tiles. A few rows take less time than copying them.
const TILES_FROM: usize = 2 * ROWS;
/// How many rows a thread gets at least, where each has rows of its own.
const APART: usize = 10 * ROWS;
/// The fewest multiplications that are worth several threads.
const WORTH: usize = 1 << 18;
/// How many panels are copied at a time if the right matrix is not packed.
const TOGETHER: usize = 4;
/// How many parts there are for each thread at most, so that one that is late does not keep the others waiting.
const PARTS: usize = 4;
/// The multiplications of a part for which it is worth making more than one for each thread.
const ENOUGH: usize = 1 << 21;

/// The right matrix of a product, `[K, N]`.
#[derive(Clone, Copy)]
pub enum Right<'a> {
    /// By rows, `[K, N]`.
    Rows(&'a [f32]),
    /// By columns, which are the rows of `[N, K]`.
    Columns(&'a [f32]),
    /// In panels already.
    Packed(&'a Packed),
}

/// What follows on a product, while its numbers are in the cache.
#[derive(Clone, Copy, Default)]
pub struct After<'a> {
    /// Added to each row, `[N]`.
    pub bias: Option<&'a [f32]>,
    /// Applied to each number of the sum.
    pub then: Option<Activation>,
}

impl After<'_> {
    /// Applies the activation, if there is one.
    fn activate(self, y: &mut [f32]) {
        if let Some(activation) = self.then {
            activate_in_place(activation, y);
        }
    }
}

/// `y = f(left right + bias)`: `[M, K]`, `[K, N]`, bias `[N]` → `[M, N]`
pub fn gemm(left: Left<'_>, right: Right<'_>, sizes: Sizes, after: After<'_>, y: &mut [f32]) {
    let Sizes { rows, depth, columns } = sizes;
    if rows == 0 || columns == 0 {
        return;
    }
    if depth == 0 {
        // A sum of nothing.
        for y in y.chunks_mut(columns) {
            y.fill(0.0);
            y.iter_mut().zip(after.bias.unwrap_or_default()).for_each(|(y, bias)| *y = *bias);
            after.activate(y);
        }
        return;
    }
    let is_shared = rows * depth * columns >= WORTH && rayon::current_num_threads() > 1;
    match (left, right) {
        // One column is also a row.
        (Left::Rows(x) | Left::Columns(x), Right::Rows(rows)) if sizes.rows == 1 => {
            row(x, rows, after, y, is_shared);
        }
        (Left::Rows(x), _) if rows < TILES_FROM => {
            multiply(Source::Rows(x), right, sizes, after, y, is_shared);
        }
        _ => in_tiles(left, right, sizes, after, y, is_shared),
    }
}

/// The product of a left matrix that is copied into tiles, some rows at a time.
fn in_tiles(
    left: Left<'_>,
    right: Right<'_>,
    sizes: Sizes,
    after: After<'_>,
    y: &mut [f32],
    is_shared: bool,
) {
    let Sizes { rows, depth, columns } = sizes;
    let threads = if is_shared { rayon::current_num_threads() } else { 1 };
    // Every thread gets rows of its own, as many as the others, where there are enough for that.
    let apart = rows >= threads * APART;
    let chunks = if apart { rows.div_ceil(MOST).next_multiple_of(threads) } else { rows.div_ceil(MOST) };
    let most = rows.div_ceil(chunks).next_multiple_of(ROWS);
    let part = |(i, y): (usize, &mut [f32]), is_shared: bool| {
        let here = y.len() / columns;
        let length = (ROOM / here.next_multiple_of(ROWS) / DEPTH).max(1) * DEPTH;
        for start in (0..depth).step_by(length) {
            let span = [start, (start + length).min(depth)];
            with_memory(&TILES, Tiles::size(here, span[1] - start), |memory| {
                let tiles = Tiles::copy(left, sizes, [i * most, here], span, memory, is_shared);
                multiply(Source::Tiles(tiles), right, sizes, after, y, is_shared);
            });
        }
    };
    if apart && is_shared {
        y.par_chunks_mut(most * columns).enumerate().in_parallel(|chunk| part(chunk, false));
    } else {
        y.chunks_mut(most * columns).enumerate().for_each(|chunk| part(chunk, is_shared));
    }
}

/// The product of one row `x [K]` with a matrix by rows, which is read in their order: the sum of the rows, each times
/// a number.
fn row(x: &[f32], rows: &[f32], after: After<'_>, y: &mut [f32], is_shared: bool) {
    let columns = y.len();
    let part = |(i, y): (usize, &mut [f32])| {
        let from = i * PIECE;
        let bias = after.bias.map(|bias| bias.get(from..).unwrap_or_default());
        dispatch(Row { x, rows, columns, from, bias, y });
        after.activate(y);
    };
    if is_shared {
        y.par_chunks_mut(PIECE).enumerate().in_parallel(part);
    } else {
        y.chunks_mut(PIECE).enumerate().for_each(part);
    }
}

/// How many columns of a row are computed at a time: their sums stay in the nearest cache.
const PIECE: usize = 512;

/// Some columns of the product of a row.
struct Row<'a> {
    x: &'a [f32],
    rows: &'a [f32],
    columns: usize,
    /// The first column.
    from: usize,
    bias: Option<&'a [f32]>,
    y: &'a mut [f32],
}

impl WithSimd for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, rows, columns, from, bias, y } = self;
        let width = y.len();
        let mut memory = [0.0; PIECE];
        let Some(sums) = memory.get_mut(..width) else { return };
        y.fill(0.0);
        let parts = x.chunks(DEPTH).zip(rows.chunks(DEPTH * columns));
        for (i, (x, rows)) in parts.enumerate() {
            sums.fill(0.0);
            let (fours, rest) = x.as_chunks::<4>();
            let mut rows =
                rows.chunks_exact(columns).map(|row| row.get(from..from + width).unwrap_or_default());
            // With four rows at a time, the sums are read and written a quarter as often.
            for x in fours {
                let some =
                    [rows.next(), rows.next(), rows.next(), rows.next()].map(Option::unwrap_or_default);
                add_rows(simd, x, some, sums);
            }
            for (x, row) in rest.iter().zip(rows) {
                add_rows(simd, &[*x], [row], sums);
            }
            let is_first = i == 0;
            y.iter_mut().zip(&*sums).for_each(|(y, sum)| *y = if is_first { *sum } else { *y + sum });
        }
        if let Some(bias) = bias {
            y.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
        }
    }
}

/// Adds rows to the sums, each times a number, in their order.
#[inline(always)]
fn add_rows<S: Simd, const N: usize>(simd: S, x: &[f32; N], rows: [&[f32]; N], sums: &mut [f32]) {
    let width = sums.len();
    if rows.iter().any(|row| row.len() != width) {
        return;
    }
    let mut factors = [simd.splat_f32s(0.0); N];
    factors.iter_mut().zip(x).for_each(|(factor, x)| *factor = simd.splat_f32s(*x));
    let (whole, rest) = S::as_mut_simd_f32s(sums);
    let mut vectors: [&[S::f32s]; N] = [&[]; N];
    for (vectors, row) in vectors.iter_mut().zip(rows) {
        *vectors = &S::as_simd_f32s(row).0[..whole.len()];
    }
    for (i, to) in whole.iter_mut().enumerate() {
        let mut sum = *to;
        for (factor, row) in factors.iter().zip(&vectors) {
            sum = simd.mul_add_f32s(*factor, row[i], sum);
        }
        *to = sum;
    }
    let done = width - rest.len();
    for (i, to) in (done..).zip(rest) {
        for (x, row) in x.iter().zip(&rows) {
            *to = x.mul_add(row[i], *to);
        }
    }
}

/// The number of parts into which a product is divided that takes this many multiplications.
fn parts(multiplications: usize) -> usize {
    let threads = rayon::current_num_threads();
    (multiplications / ENOUGH).clamp(threads, PARTS * threads)
}

/// Divides the product of these tiles with the right matrix among threads.
fn multiply(
    left: Source<'_>,
    right: Right<'_>,
    sizes: Sizes,
    after: After<'_>,
    y: &mut [f32],
    is_shared: bool,
) {
    let Sizes { depth, columns, .. } = sizes;
    let part = |left, first, y: &mut [&mut [f32]]| {
        let size = if matches!(left, Source::Tiles(_)) { TOGETHER } else { 1 };
        with_memory(&PANEL, DEPTH * NARROW * size, |memory| {
            dispatch(Part { left, right, sizes, first, after, y, memory });
        });
    };
    if y.len() == columns {
        let part = |first, y: &mut [f32]| match (left, right) {
            (Source::Rows(x), Right::Packed(packed)) if let Numbers::F32(numbers) = packed.numbers() => {
                gemm_row::columns(x, numbers, first, after.bias, y);
                after.activate(y);
            }
            _ => part(left, first, &mut [y]),
        };
        // A row is divided without a list of rows.
        if is_shared {
            let width = columns.div_ceil(NARROW).div_ceil(parts(depth * columns)) * NARROW;
            let pieces = y.par_chunks_mut(width).enumerate();
            pieces.in_parallel(|(i, y)| part(i * width / NARROW, y));
        } else {
            part(0, y);
        }
        return;
    }
    if !is_shared {
        let mut rows: Vec<&mut [f32]> = y.chunks_mut(columns).collect();
        part(left, 0, &mut rows);
        return;
    }
    // Columns are divided first, so that each panel is read by one thread. Where there are too few of them, rows
    // are divided, too.
    let panels = columns.div_ceil(NARROW);
    let all = y.len() / columns;
    let parts = parts(all * depth * columns);
    // A part has two tiles at least, since it may copy a panel for itself.
    let of_rows = parts.div_ceil(panels).min(all.div_ceil(2 * ROWS)).max(1);
    let height = all.div_ceil(of_rows).div_ceil(ROWS) * ROWS;
    let width = panels.div_ceil(parts.div_ceil(of_rows)).max(1);
    let mut parts: Vec<(usize, usize, Vec<&mut [f32]>)> = Vec::new();
    for (i, y) in y.chunks_mut(height * columns).enumerate() {
        let from = parts.len();
        parts.extend((0..panels).step_by(width).map(|first| (i, first, Vec::with_capacity(height))));
        for row in y.chunks_mut(columns) {
            for (part, piece) in parts.iter_mut().skip(from).zip(row.chunks_mut(width * NARROW)) {
                part.2.push(piece);
            }
        }
    }
    parts.into_par_iter().in_parallel(|(i, first, mut y)| {
        part(left.after(i * height, depth), first, &mut y);
    });
}

thread_local! {
    /// The tiles of the last product, whose memory the next one uses.
    static TILES: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
    /// The rows of a panel that is not packed.
    static PANEL: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// The numbers of a cache line.
const LINE: usize = 16;

/// Calls `f` with memory for `len` numbers that begins with a cache line, which a thread keeps for its next call. Its content is arbitrary.
fn with_memory<T>(
    kept: &'static std::thread::LocalKey<Cell<Vec<f32>>>,
    len: usize,
    f: impl FnOnce(&mut [f32]) -> T,
) -> T {
    // While this thread waits for others it may begin another product, which then finds nothing kept.
    let mut memory = kept.take();
    if memory.len() < len + LINE {
        memory.resize(len + LINE, 0.0);
    }
    // A vector that lies in two cache lines takes twice the time to read.
    let from = memory.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
    let found = f(memory.get_mut(from..from + len).unwrap_or_default());
    kept.set(memory);
    found
}

/// The product of some rows with some panels.
struct Part<'a, 'y> {
    left: Source<'a>,
    right: Right<'a>,
    sizes: Sizes,
    /// The index of the first panel.
    first: usize,
    after: After<'a>,
    /// The columns of the panels in every row of the result.
    y: &'a mut [&'y mut [f32]],
    /// Memory for the rows of a panel that is not packed.
    memory: &'a mut [f32],
}

/// The rows of the left matrix.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// Copied into tiles.
    Tiles(Tiles<'a>),
    /// The rows as they are, `[M, K]`.
    Rows(&'a [f32]),
}

impl<'a> Source<'a> {
    /// The rows from the first one of a tile on.
    fn after(self, rows: usize, depth: usize) -> Self {
        match self {
            Self::Tiles(tiles) => Self::Tiles(tiles.after(rows)),
            Self::Rows(x) => Self::Rows(x.get(rows * depth..).unwrap_or_default()),
        }
    }
}

impl WithSimd for Part<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { left, right, sizes, first, after, y, memory } = self;
        let depth = sizes.depth;
        let size = (ROWS * depth).max(1);
        let panels = y.first().map_or(0, |row| row.len()).div_ceil(NARROW);
        let [begin, end] = match left {
            Source::Tiles(tiles) => tiles.span(),
            Source::Rows(_) => [0, depth],
        };
        let is_whole = end >= depth;
        // The parts of the inner axis are added up for a group of panels before the next group, so that the group's sums stay
        // in the cache.
        let group = match left {
            Source::Tiles(_) if depth > DEPTH || after.then.is_some() => {
                (SUMS / NARROW / y.len().max(1)).clamp(1, panels.max(1))
            }
            _ => 1,
        };
        // A few rows read panels one after the other as they are in memory.
        let mut ahead = match (left, right) {
            (Source::Rows(_), Right::Packed(packed)) if let Numbers::F32(numbers) = packed.numbers() => {
                Ahead::new(numbers, first * NARROW * depth)
            }
            _ => Ahead::none(),
        };
        // Panels that have to be copied are copied some at a time, so that rows are read a longer piece at a time.
        if let (Source::Tiles(tiles), Right::Rows(x)) = (left, right) {
            for some in (0..panels).step_by(TOGETHER) {
                let some = some..(some + TOGETHER).min(panels);
                for start in (begin..end).step_by(DEPTH) {
                    let part = (end - start).min(DEPTH);
                    let bias = after.bias.filter(|_| start + part >= depth);
                    let (copied, _) = memory.as_chunks_mut::<NARROW>();
                    copy_panels(x, sizes, first + some.start..first + some.end, start, part, copied);
                    for (tile, y) in tiles.part(start, part).zip(y.chunks_mut(ROWS)) {
                        for (i, panel) in some.clone().zip(copied.chunks(part.max(1))) {
                            let bias = bias.map(|bias| bias.get((first + i) * NARROW..).unwrap_or_default());
                            block(simd, tile, panel, y, i * NARROW, Add { sums: start > 0, bias });
                        }
                    }
                }
                if is_whole {
                    activate_panels(after, some, y);
                }
            }
            return;
        }
        for some in (0..panels).step_by(group) {
            let some = some..(some + group).min(panels);
            for start in (begin..end).step_by(DEPTH) {
                let part = (end - start).min(DEPTH);
                let is_last = start + part >= end;
                let bias = after.bias.filter(|_| start + part >= depth);
                for i in some.clone() {
                    let (panel, at) = (first + i, i * NARROW);
                    let bias = bias.map(|bias| bias.get(panel * NARROW..).unwrap_or_default());
                    let add = Add { sums: start > 0, bias };
                    let rows = rows_of_panel(right, sizes, panel, start, part, memory);
                    let next = match (i + 1 < some.end, is_last) {
                        (true, _) => (panel + 1, start),
                        (false, false) => (first + some.start, start + part),
                        (false, true) => (panel + 1, begin),
                    };
                    match left {
                        Source::Tiles(tiles) => {
                            let next = Next::new(right, sizes, next);
                            let count = next.count.div_ceil(y.len().div_ceil(ROWS));
                            for ((i, tile), y) in tiles.part(start, part).enumerate().zip(y.chunks_mut(ROWS))
                            {
                                next.fetch(i * count, count);
                                block(simd, tile, rows, y, at, add);
                            }
                        }
                        Source::Rows(x) => {
                            for (i, y) in y.chunks_mut(ROWS).enumerate() {
                                let x = x.get(i * size.min(x.len())..).unwrap_or_default();
                                let x = x.get(..y.len() * depth).unwrap_or_default();
                                let mut none = Ahead::none();
                                let ahead = if i == 0 { &mut ahead } else { &mut none };
                                let unmoved = Unmoved { x, depth, start, part };
                                block_in_place(simd, unmoved, rows, y, at, add, ahead);
                            }
                        }
                    }
                }
            }
            if is_whole {
                activate_panels(after, some, y);
            }
        }
    }
}

/// Applies the activation to the columns of these panels.
fn activate_panels(after: After<'_>, panels: Range<usize>, y: &mut [&mut [f32]]) {
    if after.then.is_none() {
        return;
    }
    for row in y {
        let end = (panels.end * NARROW).min(row.len());
        after.activate(row.get_mut(panels.start * NARROW..end).unwrap_or_default());
    }
}

/// Copies `part` rows from `start` on of at most [`TOGETHER`] panels of a matrix by rows, one panel after the other.
#[inline(always)]
fn copy_panels(
    x: &[f32],
    sizes: Sizes,
    some: Range<usize>,
    start: usize,
    part: usize,
    memory: &mut [[f32; NARROW]],
) {
    let mut panels: [&mut [[f32; NARROW]]; TOGETHER] = Default::default();
    for (to, panel) in panels.iter_mut().zip(memory.chunks_mut(part.max(1))).take(some.len()) {
        *to = panel;
    }
    for (k, row) in x.chunks_exact(sizes.columns).skip(start).take(part).enumerate() {
        let row = row.get(some.start * NARROW..).unwrap_or_default();
        for (panel, from) in panels.iter_mut().zip(row.chunks(NARROW)) {
            let Some(to) = panel.get_mut(k) else { continue };
            match from.first_chunk::<NARROW>() {
                Some(from) => *to = *from,
                // The columns after the last one are computed and not written.
                None => to.iter_mut().zip(from).for_each(|(to, x)| *to = *x),
            }
        }
    }
}

/// The part of a panel that is multiplied next, as slices of numbers that follow each other.
struct Next<'a> {
    numbers: &'a [f32],
    /// How far slices are from each other, how long they are, and how many there are.
    stride: usize,
    width: usize,
    count: usize,
}

impl<'a> Next<'a> {
    #[inline(always)]
    fn new(right: Right<'a>, sizes: Sizes, (panel, start): (usize, usize)) -> Self {
        let depth = sizes.depth;
        let part = (depth - start.min(depth)).min(DEPTH);
        let from = panel * NARROW;
        let (numbers, first, stride, width, count) = match right {
            // The processor reads rows that are far from each other faster without help.
            Right::Rows(_) => (&[][..], 0, 0, 0, 0),
            Right::Columns(x) => (x, from * depth + start, depth, part, NARROW),
            Right::Packed(packed) => match packed.numbers() {
                Numbers::F32(x) => (&x[..], from * depth + start * NARROW, NARROW, NARROW, part),
                _ => (&[][..], 0, 0, 0, 0),
            },
        };
        Self { numbers: numbers.get(first..).unwrap_or_default(), stride, width, count }
    }

    /// Asks the processor to read some slices into its second cache while it computes.
    #[inline(always)]
    fn fetch(&self, first: usize, count: usize) {
        for i in first..(first + count).min(self.count) {
            let slice = self.numbers.get(i * self.stride..).unwrap_or_default();
            fetch(slice.get(..self.width).unwrap_or_default());
        }
    }
}

/// `part` rows of a panel from `start` on. Those of a matrix that is not packed, and of one in fewer bits, are
/// copied to `memory`.
#[inline(always)]
fn rows_of_panel<'a>(
    right: Right<'a>,
    sizes: Sizes,
    panel: usize,
    start: usize,
    part: usize,
    memory: &'a mut [f32],
) -> &'a [[f32; NARROW]] {
    let (memory, _) = memory.as_chunks_mut::<NARROW>();
    let memory = memory.get_mut(..part).unwrap_or_default();
    let from = panel * NARROW;
    // The rows of one in fewer bits are wider, and `of_wide` is where the panel begins in them.
    let padded = sizes.depth.div_ceil(BLOCK) * BLOCK;
    let (first_wide, of_wide) = (from / WIDTH * padded + start, from % WIDTH);
    match right {
        Right::Rows(x) => copy_panels(x, sizes, panel..panel + 1, start, part, memory),
        Right::Columns(x) => {
            let mut columns: [&[f32]; NARROW] = [&[]; NARROW];
            for (column, x) in columns.iter_mut().zip(x.chunks_exact(sizes.depth).skip(from)) {
                *column = x.get(start..start + part).unwrap_or_default();
            }
            turn(&columns, memory);
        }
        Right::Packed(packed) => match packed.numbers() {
            Numbers::F32(numbers) => {
                let (rows, _) = numbers.as_chunks::<NARROW>();
                let first = panel * sizes.depth + start;
                return rows.get(first..first + part).unwrap_or_default();
            }
            Numbers::Bf16(numbers) => {
                let rows = numbers.as_chunks::<WIDTH>().0.iter().skip(first_wide);
                for (to, row) in memory.iter_mut().zip(rows) {
                    *to = half_of(bf16(row), of_wide);
                }
            }
            Numbers::Int8(integers, scales) => {
                let mut rows = integers.as_chunks::<WIDTH>().0.iter().skip(first_wide);
                let scales = scales.as_chunks::<WIDTH>().0.iter().skip(first_wide / BLOCK);
                for (block, scales) in memory.chunks_mut(BLOCK).zip(scales) {
                    let scales = bf16(scales);
                    for (to, row) in block.iter_mut().zip(&mut rows) {
                        *to = half_of(times(int8(row), &scales), of_wide);
                    }
                }
            }
            Numbers::Int4(pairs, scales) => {
                let mut rows = pairs.as_chunks::<HALF>().0.iter().skip(first_wide);
                let scales = scales.as_chunks::<WIDTH>().0.iter().skip(first_wide / BLOCK);
                for (block, scales) in memory.chunks_mut(BLOCK).zip(scales) {
                    let scales = bf16(scales);
                    for (to, row) in block.iter_mut().zip(&mut rows) {
                        *to = half_of(times(int4(row), &scales), of_wide);
                    }
                }
            }
        },
    }
    memory
}

/// The columns from `from` on of a row that is wider.
#[inline(always)]
fn half_of(row: [f32; WIDTH], from: usize) -> [f32; NARROW] {
    row.get(from..).and_then(|row| row.first_chunk()).copied().unwrap_or([0.0; NARROW])
}
