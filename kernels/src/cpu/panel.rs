//! Products of small matrices, as attention needs them: each number is one sum in the order of the inner
//! axis, in parts of a fixed length, so its bits do not depend on which rows and columns are computed
//! together.

use pulp::Simd;

use super::LANES;
use super::sums::add;
use super::tile::turn;

/// How many rows are computed at a time: with their sums, one row of a panel and one number, they fit the 16
/// registers of AVX2.
const ROWS: usize = 6;

/// A matrix `[K, N]` for the right side of a product, in panels of [`LANES`] columns, the last of which is
/// filled up with zeros. A panel is `[K, LANES]`.
#[derive(Debug, Default)]
pub struct Panels {
    numbers: Vec<f32>,
    depth: usize,
}

impl Panels {
    /// The panels of a matrix by rows, `[K, N]`.
    #[inline(always)]
    pub fn set_rows(&mut self, x: Rows<'_>) {
        let depth = x.count;
        self.resize(depth, x.width);
        for (k, row) in x.all().enumerate() {
            for (chunk, panel) in row.chunks(LANES).zip(self.numbers.chunks_exact_mut(depth * LANES)) {
                let Some(to) = panel.as_chunks_mut::<LANES>().0.get_mut(k) else { continue };
                // A constant length is copied with vector instructions.
                match chunk.first_chunk() {
                    Some(chunk) => *to = *chunk,
                    None => {
                        *to = [0.0; LANES];
                        to.iter_mut().zip(chunk).for_each(|(to, x)| *to = *x);
                    }
                }
            }
        }
    }

    /// The panels of the transpose of a matrix by rows, `[N, K]`.
    #[inline(always)]
    pub fn set_columns(&mut self, x: Rows<'_>) {
        let depth = x.width;
        self.resize(depth, x.count);
        let mut rows = x.all();
        for panel in self.numbers.chunks_exact_mut((depth * LANES).max(1)) {
            let mut columns: [&[f32]; LANES] = [&[]; LANES];
            columns.iter_mut().zip(&mut rows).for_each(|(column, row)| *column = row);
            turn(&columns, panel.as_chunks_mut().0);
        }
    }

    /// Makes room for a matrix of this size. What the room contains is arbitrary.
    #[inline(always)]
    fn resize(&mut self, depth: usize, columns: usize) {
        self.depth = depth;
        self.numbers.resize(columns.div_ceil(LANES) * LANES * depth, 0.0);
    }

    /// A panel's rows from `start` on.
    #[inline(always)]
    fn part(&self, panel: usize, start: usize, rows: usize) -> Option<&[[f32; LANES]]> {
        let (chunks, _) = self.numbers.as_chunks::<LANES>();
        let first = panel * self.depth + start;
        chunks.get(first..first + rows)
    }
}

/// A matrix by rows, `[N, D]`, whose rows are `stride` numbers apart.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The numbers from the first row on.
    pub numbers: &'a [f32],
    /// How far rows are from each other.
    pub stride: usize,
    /// `N`
    pub count: usize,
    /// `D`
    pub width: usize,
}

impl<'a> Rows<'a> {
    /// A row.
    #[inline(always)]
    pub fn of(self, i: usize) -> &'a [f32] {
        self.numbers.get(i * self.stride..i * self.stride + self.width).unwrap_or_default()
    }

    /// The rows in their order.
    #[inline(always)]
    pub fn all(self) -> impl Iterator<Item = &'a [f32]> {
        (0..self.count).map(move |i| self.of(i))
    }

    /// At most `count` rows from `first` on.
    #[inline(always)]
    pub fn part(self, first: usize, count: usize) -> Self {
        let count = count.min(self.count.saturating_sub(first));
        Self { numbers: self.numbers.get(first * self.stride..).unwrap_or_default(), count, ..self }
    }

    /// As the left side of a product.
    #[inline(always)]
    pub fn left(self) -> Left<'a> {
        Left::Rows(self.numbers, self.stride)
    }
}

/// The left side of a product: `[M, K]`.
#[derive(Clone, Copy)]
pub enum Left<'a> {
    /// By rows, each `stride` numbers after the last one.
    Rows(&'a [f32], usize),
    /// By columns, each `stride` numbers after the last one.
    Columns(&'a [f32], usize),
}

impl<'a> Left<'a> {
    /// The columns from `first` on.
    #[inline(always)]
    fn after(self, first: usize) -> Self {
        match self {
            Self::Rows(x, stride) => Self::Rows(x.get(first..).unwrap_or_default(), stride),
            Self::Columns(x, stride) => Self::Columns(x.get(first * stride..).unwrap_or_default(), stride),
        }
    }

    /// The rows from `first` on.
    #[inline(always)]
    fn from(self, first: usize) -> Self {
        match self {
            Self::Rows(x, stride) => Self::Rows(x.get(first * stride..).unwrap_or_default(), stride),
            Self::Columns(x, stride) => Self::Columns(x.get(first..).unwrap_or_default(), stride),
        }
    }
}

/// How much of the inner axis is summed up before the sum is added to that of what comes before, so that
/// panels stay in the cache of a core.
const DEPTH: usize = 256;

/// `c = a b` or, if `adds`, `c += a b`, for the first `rows` rows of `a` and the first `depth` of the inner
/// axis. A row of `c` begins `stride` numbers after the last one and has `columns` numbers.
#[inline(always)]
pub fn product<S: Simd>(
    simd: S,
    a: Left<'_>,
    b: &Panels,
    [rows, depth, columns]: [usize; 3],
    (c, stride): (&mut [f32], usize),
    adds: bool,
) {
    let panels = columns.div_ceil(LANES);
    let (down, across) = (rows.div_ceil(ROWS), panels);
    let mut start = 0;
    while start < depth {
        let part = (depth - start).min(DEPTH);
        let a = a.after(start);
        // The loop over the longer side is the outer one, so that the shorter side stays in the cache.
        for i in 0..down * across {
            let (block, p) = if rows > columns { (i / across, i % across) } else { (i % down, i / down) };
            let Some(panel) = b.part(p, start, part) else { return };
            let (first, width) = (block * ROWS, (columns - p * LANES).min(LANES));
            let (a, left) = (a.from(first), rows - first);
            let Some(c) = c.get_mut(first * stride + p * LANES..) else { return };
            // Every part after the first is added to the sum of those before it.
            let (c, adds) = ((c, stride, width), adds || start > 0);
            // With a constant number of rows the compiler unrolls the loop over them, and their sums stay in
            // registers.
            match left {
                1 => block_of::<S, 1>(simd, a, panel, c, adds),
                2 => block_of::<S, 2>(simd, a, panel, c, adds),
                3 => block_of::<S, 3>(simd, a, panel, c, adds),
                4 => block_of::<S, 4>(simd, a, panel, c, adds),
                5 => block_of::<S, 5>(simd, a, panel, c, adds),
                // Rows beyond these are those of later blocks.
                _ => block_of::<S, ROWS>(simd, a, panel, c, adds),
            }
        }
        start += part;
    }
}

/// The product of `M` rows with a panel. The sums are vectors, which stay in registers.
#[inline(always)]
fn block_of<S: Simd, const M: usize>(
    simd: S,
    a: Left<'_>,
    panel: &[[f32; LANES]],
    (c, stride, width): (&mut [f32], usize, usize),
    adds: bool,
) {
    let mut found = [[0.0; LANES]; M];
    for part in 0..LANES / S::F32_LANES {
        let mut sums = [simd.splat_f32s(0.0); M];
        match a {
            Left::Rows(a, step) => {
                let mut rows: [&[f32]; M] = [&[]; M];
                for (i, row) in rows.iter_mut().enumerate() {
                    // Slices of the same length as the panel, so that the loop below needs no check of
                    // bounds.
                    *row = a.get(i * step..i * step + panel.len()).unwrap_or_default();
                }
                if rows.iter().any(|row| row.len() != panel.len()) {
                    return;
                }
                for k in 0..panel.len() {
                    let b = S::as_simd_f32s(&panel[k]).0[part];
                    for i in 0..M {
                        sums[i] = simd.mul_add_f32s(simd.splat_f32s(rows[i][k]), b, sums[i]);
                    }
                }
            }
            Left::Columns(a, step) => {
                for (b, a) in panel.iter().zip(a.chunks(step)) {
                    let b = S::as_simd_f32s(b).0[part];
                    let Some(a) = a.first_chunk::<M>() else { break };
                    for i in 0..M {
                        sums[i] = simd.mul_add_f32s(simd.splat_f32s(a[i]), b, sums[i]);
                    }
                }
            }
        }
        for (found, sum) in found.iter_mut().zip(sums) {
            S::as_mut_simd_f32s(found).0[part] = sum;
        }
    }
    for (i, found) in found.iter().enumerate() {
        let Some(c) = c.get_mut(i * stride..i * stride + width) else { return };
        // A whole chunk has a constant length, so that it is copied or added with vector instructions.
        match (c.first_chunk_mut::<LANES>(), adds) {
            (Some(c), true) => add(c, found),
            (Some(c), false) => *c = *found,
            (None, true) => add(c, found),
            (None, false) => c.copy_from_slice(&found[..width]),
        }
    }
}
