//! Scaled dot-product attention (Vaswani et al. 2017) and its backward pass in tiles of queries, as Dao et
//! al. (2022) compute them: of the scores only those of one tile exist at a time, and the backward pass
//! computes them once more.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::LANES;
use super::dropout::Dropout;
use super::math::{exp, tanh};
use super::panel::{Left, Panels, Rows, product};
use super::parallel::Parallel;
use super::simd::{Task, dispatch, run};
use super::sums::total;

/// How many scores are computed at a time: 1 MiB, which stay in the cache of a core until the next product
/// reads them.
const TILE: usize = 256 * 1024;
/// How many queries are computed at a time, at most and at least. Both are multiples of the rows that
/// [`product`] computes together.
const MOST: usize = 60;
const FEWEST: usize = 12;
/// The fewest multiplications that are worth several threads.
const WORTH: usize = 64 * 1024;

/// The sizes of attention over all heads of all sequences.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Heads of one sequence.
    pub heads: usize,
    /// Queries of one head.
    pub queries: usize,
    /// Keys of one head.
    pub keys: usize,
    /// Features of a query and a key.
    pub width: usize,
    /// Features of a value.
    pub values: usize,
}

impl Sizes {
    /// How many queries are computed at a time. This depends on the number of keys alone.
    fn tile(self) -> usize {
        // The backward pass adds to the gradients of keys tile by tile, so the bits of a head's gradient must
        // not follow from how many heads or sequences there are.
        (TILE / self.keys.max(1)).clamp(FEWEST, MOST)
    }

    /// How far rows of scores are from each other. If that were a power of two, the same columns of all rows
    /// would compete for the same few lines of a cache.
    fn stride(self) -> usize {
        self.keys.next_multiple_of(LANES) + LANES
    }
}

/// A number or a flag for each score, `[B, H, T, K]`. All axes but the last may have any stride.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a, T> {
    /// The numbers from the first one on.
    pub numbers: &'a [T],
    /// How far sequences, heads and queries are from each other.
    pub strides: [usize; 3],
}

impl<'a, T> Table<'a, T> {
    fn row(&self, head: usize, query: usize, sizes: Sizes) -> &'a [T] {
        let [of_batch, of_head, of_query] = self.strides;
        let (batch, head) = (head / sizes.heads, head % sizes.heads);
        let first = batch * of_batch + head * of_head + query * of_query;
        self.numbers.get(first..first + sizes.keys).unwrap_or_default()
    }
}

impl<'a> Table<'a, f32> {
    /// The rows of a head, `[N, D]`, of queries, keys or values.
    pub fn head(&self, head: usize, sizes: Sizes, count: usize, width: usize) -> Rows<'a> {
        let [of_batch, of_head, stride] = self.strides;
        let first = head / sizes.heads * of_batch + head % sizes.heads * of_head;
        Rows { numbers: self.numbers.get(first..).unwrap_or_default(), stride, count, width }
    }
}

/// How the product of a query and a key becomes a score.
#[derive(Clone, Copy, Debug)]
pub struct Scores<'a> {
    /// The factor on the products of queries and keys.
    pub scale: f32,
    /// Bounds the scaled products: `cap * tanh(x / cap)`.
    pub softcap: Option<f32>,
    /// Whether keys after a query are hidden. The last query sees all keys.
    pub is_causal: bool,
    /// Not 0 where a key is hidden.
    pub mask: Option<Table<'a, u8>>,
    /// Added to the scores, after the softcap.
    pub bias: Option<Table<'a, f32>>,
    /// For each head of a sequence the score of one more key, whose value is zero.
    pub sinks: Option<&'a [f32]>,
    /// Which weights are dropped.
    pub dropout: Option<Dropout>,
}

impl Scores<'_> {
    /// How many keys a query may see.
    #[inline(always)]
    fn seen(&self, query: usize, sizes: Sizes) -> usize {
        // Keys in excess of queries are earlier ones, from a cache.
        let last = (query + 1 + sizes.keys).saturating_sub(sizes.queries);
        if self.is_causal { last.min(sizes.keys) } else { sizes.keys }
    }

    /// Turns the products of a query with keys into scores, and those of hidden keys into `-inf`. If there is
    /// a softcap, its derivative is written to `slopes`.
    #[inline(always)]
    pub fn finish(&self, head: usize, query: usize, sizes: Sizes, row: &mut [f32], slopes: &mut [f32]) {
        let seen = self.seen(query, sizes).min(row.len());
        let (row, hidden) = row.split_at_mut(seen);
        hidden.fill(f32::NEG_INFINITY);
        match self.softcap {
            None => {
                for x in &mut *row {
                    *x *= self.scale;
                }
            }
            Some(cap) => {
                let factor = self.scale / cap;
                for x in &mut *row {
                    *x = tanh(*x * factor);
                }
                for (slope, x) in slopes.iter_mut().zip(&*row) {
                    // `1 - tanh²`, before the tangent is multiplied by the cap.
                    *slope = x.mul_add(-x, 1.0);
                }
                for x in &mut *row {
                    *x *= cap;
                }
            }
        }
        if let Some(bias) = self.bias {
            for (x, bias) in row.iter_mut().zip(bias.row(head, query, sizes)) {
                *x += *bias;
            }
        }
        if let Some(mask) = self.mask {
            for (x, hidden) in row.iter_mut().zip(mask.row(head, query, sizes)) {
                *x = if *hidden == 0 { *x } else { f32::NEG_INFINITY };
            }
        }
    }

    /// Turns the scores of a query into weights that have yet to be divided by their sum. Returns the largest score, which
    /// was subtracted from all, and one over the sum.
    #[inline(always)]
    pub fn weigh(&self, head: usize, sizes: Sizes, row: &mut [f32]) -> [f32; 2] {
        let sink = self.sink(head, sizes);
        let most = match (largest(row), sink) {
            (most, Some(sink)) if sink > most => sink,
            (most, _) => most,
        };
        let sum = weights(row, most) + sink.map_or(0.0, |sink| exp(sink - most));
        [most, if sum == 0.0 { 0.0 } else { 1.0 / sum }]
    }

    /// The factors by which dropout multiplies the weights of a query, which are written to `to`; none without dropout.
    #[inline(always)]
    fn factors<'b>(&self, head: usize, query: usize, sizes: Sizes, to: &'b mut [f32]) -> &'b [f32] {
        let Some(dropout) = self.dropout else { return &[] };
        dropout.factors(head * sizes.queries + query, to);
        to
    }

    /// The score of the sink of a head, whose index is that among the heads of all sequences.
    #[inline(always)]
    fn sink(&self, head: usize, sizes: Sizes) -> Option<f32> {
        self.sinks.and_then(|sinks| sinks.get(head % sizes.heads)).copied()
    }
}

/// The largest number of a row, or 0 if there is none above `-inf`.
#[inline(always)]
fn largest(row: &[f32]) -> f32 {
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut most = [f32::NEG_INFINITY; LANES];
    for x in chunks {
        for (most, x) in most.iter_mut().zip(x) {
            // `f32::max` takes several instructions for its rule about NaN. Here NaN is left out, and
            // reaches the result through the sum of the weights.
            *most = if *x > *most { *x } else { *most };
        }
    }
    let mut all = f32::NEG_INFINITY;
    for x in most.iter().chain(rest) {
        all = if *x > all { *x } else { all };
    }
    // `-inf - -inf` would be NaN, while `e^-inf` is the zero that a hidden key gets.
    if all == f32::NEG_INFINITY { 0.0 } else { all }
}

/// Turns scores into `e^(score - most)` and returns their sum.
#[inline(always)]
fn weights(row: &mut [f32], most: f32) -> f32 {
    let (chunks, rest) = row.as_chunks_mut::<LANES>();
    let mut sums = [0.0; LANES];
    for x in chunks {
        for (sum, x) in sums.iter_mut().zip(x) {
            *x = exp(*x - most);
            *sum += *x;
        }
    }
    // Filled up with scores of hidden keys, whose weights are zero: one number at a time, these would take as long as
    // all others of a short row.
    let mut last = filled(rest, f32::NEG_INFINITY);
    for (sum, x) in sums.iter_mut().zip(&mut last) {
        *x = exp(*x - most);
        *sum += *x;
    }
    rest.iter_mut().zip(last).for_each(|(x, weight)| *x = weight);
    total(sums)
}

/// Multiplies the first numbers by as many factors as there are.
#[inline(always)]
fn multiply(x: &mut [f32], factors: &[f32]) {
    for (x, factor) in x.iter_mut().zip(factors) {
        *x *= *factor;
    }
}

/// Fewer than [`LANES`] numbers, filled up with this one.
#[inline(always)]
fn filled(x: &[f32], with: f32) -> [f32; LANES] {
    let mut found = [with; LANES];
    found.iter_mut().zip(x).for_each(|(to, x)| *to = *x);
    found
}

/// Keys or values of a head, prepared for products.
struct Pack<'a, const N: usize>([(&'a mut Panels, Rows<'a>, bool); N]);

impl<const N: usize> Task for Pack<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (panels, x, is_turned) in self.0 {
            if is_turned { panels.set_columns(x) } else { panels.set_rows(x) }
        }
    }
}

/// A head's share of the inputs.
#[derive(Clone, Copy)]
struct Head<'a> {
    index: usize,
    sizes: Sizes,
    scores: &'a Scores<'a>,
    /// Whether a hidden key may be left out, because all values are finite: its weight of zero times infinity
    /// would not be zero.
    skips: bool,
}

impl Head<'_> {
    /// How many keys a tile that ends before query `end` needs.
    #[inline(always)]
    fn needs(&self, end: usize) -> usize {
        if self.skips { self.scores.seen(end - 1, self.sizes) } else { self.sizes.keys }
    }
}

/// One tile of the forward pass.
struct Forward<'a> {
    head: Head<'a>,
    first: usize,
    q: Rows<'a>,
    k: &'a Panels,
    v: &'a Panels,
    y: &'a mut [f32],
    /// For each query the largest score, and one over the sum of the weights.
    norms: &'a mut [[f32; 2]],
    table: &'a mut Vec<f32>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { head, first, q, k, v, y, norms, table } = self;
        let sizes = head.sizes;
        let rows = norms.len();
        let (keys, stride) = (head.needs(first + rows), sizes.stride());
        // Scores of an earlier tile may be left in it. The product overwrites all that are read.
        table.resize((rows + usize::from(head.scores.dropout.is_some())) * stride, 0.0);
        let (table, factors) = table.split_at_mut(rows * stride);
        if keys == 0 {
            y.fill(0.0);
            norms.fill([0.0; 2]);
            return;
        }
        product(simd, q.left(), k, [rows, sizes.width, keys], (table, stride), false);
        for (i, (row, norm)) in table.chunks_exact_mut(stride).zip(&mut *norms).enumerate() {
            let (row, _) = row.split_at_mut(keys);
            head.scores.finish(head.index, first + i, sizes, row, &mut []);
            *norm = head.scores.weigh(head.index, sizes, row);
            // After the sum of the weights, which are those without dropout.
            multiply(row, head.scores.factors(head.index, first + i, sizes, factors));
        }
        product(simd, Left::Rows(table, stride), v, [rows, keys, sizes.values], (y, sizes.values), false);
        // The results are divided by the sums, and not the weights, of which there are usually more.
        for (y, [_, factor]) in y.chunks_exact_mut(sizes.values).zip(norms) {
            for y in y {
                *y *= *factor;
            }
        }
    }
}

/// `softmax(scores) v` for `q [B, H, T, D]`, `k [B, H, K, D]` and `v [B, H, K, V]`: `y [B, H, T, V]`, and for
/// each query the largest score and one over the sum of the weights. A query that sees no key gets zeros.
pub fn attention(
    [q, k, v]: [Table<'_, f32>; 3],
    sizes: Sizes,
    scores: &Scores<'_>,
    y: &mut [f32],
    norms: &mut [[f32; 2]],
) {
    let Sizes { queries, keys, width, values, .. } = sizes;
    if queries == 0 || keys == 0 || width == 0 || values == 0 {
        // Sums of nothing, if there is a result.
        y.fill(0.0);
        return;
    }
    let tile = sizes.tile();
    let one = |(index, (y, norms)): (usize, (&mut [f32], &mut [[f32; 2]]))| {
        let q = q.head(index, sizes, queries, width);
        let (k, v) = (k.head(index, sizes, keys, width), v.head(index, sizes, keys, values));
        let (mut turned, mut plain) = (Panels::default(), Panels::default());
        run(Pack([(&mut turned, k, true), (&mut plain, v, false)]));
        // Keys need not be finite here: the scores of hidden ones are overwritten before anything is computed
        // of them.
        let head = Head { index, sizes, scores, skips: is_finite(v) };
        let of_tile = |table: &mut Vec<f32>, (i, (y, norms)): (usize, (&mut [f32], &mut [[f32; 2]]))| {
            let q = q.part(i * tile, tile);
            dispatch(Forward { head, first: i * tile, q, k: &turned, v: &plain, y, norms, table });
        };
        // Heads and tiles are both divided among threads: a batch has many heads, a long sequence many tiles.
        if queries * keys * width < WORTH {
            let mut table = Vec::new();
            let tiles = y.chunks_mut(tile * values).zip(norms.chunks_mut(tile)).enumerate();
            tiles.for_each(|tile| of_tile(&mut table, tile));
        } else {
            let tiles = y.par_chunks_mut(tile * values).zip(norms.par_chunks_mut(tile)).enumerate();
            tiles.in_parallel_init(Vec::new, of_tile);
        }
    };
    if norms.len() * width * keys < WORTH {
        y.chunks_mut(queries * values).zip(norms.chunks_mut(queries)).enumerate().for_each(one);
    } else {
        y.par_chunks_mut(queries * values).zip(norms.par_chunks_mut(queries)).enumerate().in_parallel(one);
    }
}

/// Whether all numbers are finite.
fn is_finite(x: Rows<'_>) -> bool {
    struct Sum<'a>(Rows<'a>);

    impl Task for Sum<'_> {
        type Output = bool;

        #[inline(always)]
        fn run(self) -> bool {
            let (mut sums, mut sum) = ([0.0; LANES], 0.0);
            for row in self.0.all() {
                let (chunks, rest) = row.as_chunks::<LANES>();
                for x in chunks {
                    for (sum, x) in sums.iter_mut().zip(x) {
                        // Zero times infinity or NaN is NaN, and with it the sum.
                        *sum += x * 0.0;
                    }
                }
                sum = rest.iter().fold(sum, |sum, x| sum + x * 0.0);
            }
            total(sums) + sum == 0.0
        }
    }

    run(Sum(x))
}

/// The buffers of a backward pass that are reused.
#[derive(Default)]
struct Buffers {
    weights: Vec<f32>,
    slopes: Vec<f32>,
    factors: Vec<f32>,
    gradients: Vec<f32>,
    q: Panels,
    gradient: Panels,
}

/// One tile of the backward pass. With the weights `p`, the gradient of a score is `p (x - sum(p x))`, where
/// `x` is the product of the gradient and a value, times the factor by which dropout multiplied the weight.
struct Backward<'a> {
    head: Head<'a>,
    first: usize,
    q: Rows<'a>,
    /// The gradient of the result.
    gradient: Rows<'a>,
    norms: &'a [[f32; 2]],
    k: &'a Panels,
    turned: &'a Panels,
    v: &'a Panels,
    of_q: &'a mut [f32],
    /// The gradients of keys and values, to which those of this tile are added.
    of_k: &'a mut [f32],
    of_v: &'a mut [f32],
    /// The gradient of the bias, `[T, K]`, empty if it is not wanted.
    of_bias: &'a mut [f32],
    /// The gradient of the sink, to which that of this tile is added.
    of_sink: &'a mut f32,
    buffers: &'a mut Buffers,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { head, first, q, gradient, norms, k, turned, v, of_q, of_k, of_v, .. } = self;
        let Self { of_bias, of_sink, buffers, .. } = self;
        let (sizes, scores) = (head.sizes, head.scores);
        let (rows, width, values) = (norms.len(), sizes.width, sizes.values);
        let (keys, stride) = (head.needs(first + rows), sizes.stride());
        if keys == 0 {
            return;
        }
        let Buffers { weights, slopes, factors, gradients, q: q_panels, gradient: gradient_panels } = buffers;
        for buffer in [&mut *weights, gradients] {
            buffer.resize(rows * stride, 0.0);
        }
        if scores.softcap.is_some() {
            slopes.resize(rows * stride, 0.0);
        }
        if scores.dropout.is_some() {
            factors.resize(stride, 0.0);
        }
        product(simd, q.left(), turned, [rows, width, keys], (weights, stride), false);
        product(simd, gradient.left(), v, [rows, values, keys], (gradients, stride), false);
        let sink = scores.sink(head.index, sizes);
        let each = weights.chunks_exact_mut(stride).zip(gradients.chunks_exact_mut(stride)).zip(norms);
        for (i, ((p, x), [most, factor])) in each.enumerate() {
            let ((p, _), (x, _)) = (p.split_at_mut(keys), x.split_at_mut(keys));
            let slopes = slopes.get_mut(i * stride..i * stride + keys).unwrap_or_default();
            scores.finish(head.index, first + i, sizes, p, slopes);
            // `x` is the gradient of the weight that was multiplied by the factor.
            let factors = scores.factors(head.index, first + i, sizes, factors);
            multiply(x, factors);
            let ((ps, p_rest), (xs, x_rest)) = (p.as_chunks_mut::<LANES>(), x.as_chunks::<LANES>());
            let mut sums = [0.0; LANES];
            for (p, x) in ps.iter_mut().zip(xs) {
                for ((p, x), sum) in p.iter_mut().zip(x).zip(&mut sums) {
                    // A query that sees no key has the factor 0, and no gradient.
                    *p = exp(*p - most) * factor;
                    *sum = p.mul_add(*x, *sum);
                }
            }
            let (mut p_last, x_last) = (filled(p_rest, f32::NEG_INFINITY), filled(x_rest, 0.0));
            for ((p, x), sum) in p_last.iter_mut().zip(x_last).zip(&mut sums) {
                *p = exp(*p - most) * factor;
                *sum = p.mul_add(x, *sum);
            }
            p_rest.iter_mut().zip(p_last).for_each(|(p, weight)| *p = weight);
            let sum = total(sums);
            if let Some(sink) = sink {
                // The value of the sink is zero, and so is its product with the gradient.
                *of_sink -= exp(sink - most) * factor * sum;
            }
            for (x, p) in x.iter_mut().zip(&*p) {
                *x = *p * (*x - sum);
            }
            // The values were multiplied by what dropout made of the weights.
            multiply(p, factors);
            // The bias is added after scale and softcap, so its gradient is taken before theirs.
            for (of_bias, x) in of_bias.iter_mut().skip((first + i) * sizes.keys).zip(&*x) {
                *of_bias = *x;
            }
            // Without a softcap there are no slopes, and this changes nothing.
            for (x, slope) in x.iter_mut().zip(&*slopes) {
                *x *= *slope;
            }
            for x in x {
                *x *= scores.scale;
            }
        }
        q_panels.set_rows(q);
        gradient_panels.set_rows(gradient);
        product(
            simd,
            Left::Columns(weights, stride),
            gradient_panels,
            [keys, rows, values],
            (of_v, values),
            true,
        );
        product(simd, Left::Columns(gradients, stride), q_panels, [keys, rows, width], (of_k, width), true);
        product(simd, Left::Rows(gradients, stride), k, [rows, keys, width], (of_q, width), false);
    }
}

/// The gradients of queries, keys, values and the bias.
pub struct Gradients<'a> {
    /// `[B, H, T, D]`
    pub q: &'a mut [f32],
    /// `[B, H, K, D]`
    pub k: &'a mut [f32],
    /// `[B, H, K, V]`
    pub v: &'a mut [f32],
    /// `[B, H, T, K]`, empty if it is not wanted.
    pub bias: &'a mut [f32],
    /// That of the sinks, apart for each sequence: `[B, H]`, empty if it is not wanted.
    pub sinks: &'a mut [f32],
}

/// The backward pass of [`attention`], whose `norms` it is given, from the `gradient` of its result. All of
/// `to` are zeros before.
pub fn attention_backward(
    [q, k, v]: [Table<'_, f32>; 3],
    sizes: Sizes,
    scores: &Scores<'_>,
    norms: &[[f32; 2]],
    gradient: Table<'_, f32>,
    to: Gradients<'_>,
) {
    let Sizes { queries, keys, width, values, .. } = sizes;
    if queries == 0 || keys == 0 || width == 0 || values == 0 {
        return;
    }
    let tile = sizes.tile();
    let heads = to.q.len() / (queries * width);
    let of_heads = |numbers, size: usize| {
        let mut parts: Vec<&mut [f32]> = <[f32]>::chunks_mut(numbers, size).collect();
        // Where the gradient is not wanted, each head gets an empty slice.
        parts.resize_with(heads, Default::default);
        parts
    };
    let (biases, sinks) = (of_heads(to.bias, queries * keys), of_heads(to.sinks, 1));
    let one = |(index, to): (usize, Gradients<'_>)| {
        let q = q.head(index, sizes, queries, width);
        let gradient = gradient.head(index, sizes, queries, values);
        let (k, v) = (k.head(index, sizes, keys, width), v.head(index, sizes, keys, values));
        let norms = norms.chunks(queries).nth(index).unwrap_or_default();
        let mut panels: [Panels; 3] = Default::default();
        let [turned, of_keys, of_values] = &mut panels;
        run(Pack([(turned, k, true), (of_keys, k, false), (of_values, v, true)]));
        let [turned, of_keys, of_values] = &panels;
        // The backward pass multiplies keys, too, with the zeros of hidden ones.
        let head = Head { index, sizes, scores, skips: is_finite(k) && is_finite(v) };
        // The tiles of a head follow each other on one thread, because all add to the same gradients of keys
        // and values, and sums in another order would have other bits.
        let (mut buffers, mut of_sink) = (Buffers::default(), 0.0);
        for (i, (of_q, norms)) in to.q.chunks_mut(tile * width).zip(norms.chunks(tile)).enumerate() {
            dispatch(Backward {
                head,
                first: i * tile,
                q: q.part(i * tile, tile),
                gradient: gradient.part(i * tile, tile),
                norms,
                k: of_keys,
                turned,
                v: of_values,
                of_q,
                of_k: &mut *to.k,
                of_v: &mut *to.v,
                of_bias: &mut *to.bias,
                of_sink: &mut of_sink,
                buffers: &mut buffers,
            });
        }
        to.sinks.fill(of_sink);
    };
    let (of_q, of_k, of_v) = (
        to.q.par_chunks_mut(queries * width),
        to.k.par_chunks_mut(keys * width),
        to.v.par_chunks_mut(keys * values),
    );
    let all = of_q.zip(of_k).zip(of_v).zip(biases).zip(sinks);
    let all = all.map(|((((q, k), v), bias), sinks)| Gradients { q, k, v, bias, sinks }).enumerate();
    // An iterator that may not be split runs on the thread that calls it.
    if norms.len() * width * keys < WORTH {
        all.with_min_len(heads.max(1)).for_each(one)
    } else {
        all.in_parallel(one)
    }
}
