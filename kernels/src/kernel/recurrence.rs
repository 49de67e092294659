//! Linear recurrences: a state of keys and values that fades, is added to, and is read by queries.
//!
//! `B` sequences, `H` heads, `T` positions, `N` features of a key, `P` of a value. Queries and keys have `H` heads or one
//! that all share. A decay is one factor for a head, `[.., T, 1]`, or one for each feature of a key, `[.., T, N]`; each of
//! its other axes may be 1, too.
//!
//! Whole sequences are computed in chunks: what a position takes from its own chunk is computed for all chunks at once, and
//! only the states between chunks one after the other.

use burn::prelude::*;

use super::cache::KvCache;

/// The positions of a chunk, of which every pair is computed.
const CHUNK: usize = 32;

/// The positions of a chunk in which every position has a state.
const SHORT_CHUNK: usize = 16;

/// `S[t] = decay[t] * S[t-1] + k[t] v[t]ᵀ`, `y[t] = S[t]ᵀ q[t]` (Katharopoulos et al. 2020; with decay Sun et al. 2023), from
/// `q [B, H, T, N]`, `k [B, H, T, N]`, `v [B, H, T, P]`. A cache has the state before the first position and is given the
/// last one, `[B, H, N, P]`. → `[B, H, T, P]`
pub fn recurrence(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    decay: Tensor<4>,
    cache: Option<&mut KvCache>,
) -> Tensor<4> {
    let is_of_heads = decay.dims()[3] == 1;
    let rows = Rows { q, k, v, decay, beta: None };
    run(rows, cache, |rows, state| if is_of_heads { by_pairs(rows, state) } else { by_states(rows, state) })
}

/// The same with the delta rule, which replaces what a key stands for: `S[t] = D + beta[t] k[t] (v[t] - Dᵀ k[t])ᵀ` with
/// `D = decay[t] * S[t-1]` (Schlag et al. 2021; with decay Yang et al. 2024), where `beta` is `[.., T, 1]`.
/// → `[B, H, T, P]`
pub fn delta_recurrence(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    decay: Tensor<4>,
    beta: Tensor<4>,
    cache: Option<&mut KvCache>,
) -> Tensor<4> {
    let is_of_heads = decay.dims()[3] == 1;
    let rows = Rows { q, k, v, decay, beta: Some(beta) };
    run(rows, cache, |rows, state| if is_of_heads { by_pairs(rows, state) } else { by_steps(rows, state) })
}

/// The inputs of a recurrence.
struct Rows {
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    decay: Tensor<4>,
    beta: Option<Tensor<4>>,
}

type Computed = (Tensor<4>, Tensor<4>);

/// Runs a recurrence from the state of the cache, which is zero before the first position.
fn run(
    rows: Rows,
    cache: Option<&mut KvCache>,
    whole: impl FnOnce(Rows, Tensor<4>) -> Computed,
) -> Tensor<4> {
    let ([batch, heads, time, width], features) = (rows.v.dims(), rows.k.dims()[3]);
    let zeros = || Tensor::zeros([batch, heads, features, width], (&rows.v.device(), rows.v.dtype()));
    let mut kept = cache.map(|cache| cache.state::<Tensor<4>>());
    let state = kept.as_mut().and_then(|kept| kept.take()).unwrap_or_else(zeros);
    let (y, state) = if time == 1 { by_steps(rows, state) } else { whole(rows, state) };
    if let Some(kept) = kept {
        *kept = Some(state);
    }
    y
}

/// One position after the other.
fn by_steps(rows: Rows, mut state: Tensor<4>) -> Computed {
    let time = rows.v.dims()[2];
    let mut results = Vec::with_capacity(time);
    // What does not depend on time has one row.
    let at = |x: &Tensor<4>, t: usize| if x.dims()[2] == 1 { x.clone() } else { x.clone().narrow(2, t, 1) };
    let column = |x: &Tensor<4>, t: usize| at(x, t).swap_dims(2, 3);
    for t in 0..time {
        let (k, v) = (column(&rows.k, t), at(&rows.v, t));
        let faded = state * column(&rows.decay, t);
        let added = match &rows.beta {
            Some(beta) => (v - (faded.clone() * k.clone()).sum_dim(2)) * at(beta, t),
            None => v,
        };
        state = faded + k * added;
        results.push((state.clone() * column(&rows.q, t)).sum_dim(2));
    }
    (Tensor::cat(results, 2), state)
}

/// Chunks of a sequence: `[B, H, T, X]` as `[B, H, M, C, X]`, where what is missing in the last one is `fill`.
fn chunks(x: Tensor<4>, time: usize, size: usize, fill: f64) -> Tensor<5> {
    let [batch, heads, known, width] = x.dims();
    let x = if known < time { x.expand([batch, heads, time, width]) } else { x };
    let count = time.div_ceil(size);
    let missing = count * size - time;
    let x = if missing == 0 {
        x
    } else {
        let rest = Tensor::full([batch, heads, missing, width], fill, (&x.device(), x.dtype()));
        Tensor::cat(vec![x, rest], 2)
    };
    x.reshape([batch, heads, count, size, width])
}

/// The positions of chunks one after the other, without those that were missing.
fn joined(y: Tensor<5>, time: usize) -> Tensor<4> {
    let [batch, heads, count, size, width] = y.dims();
    y.reshape([batch, heads, count * size, width]).narrow(2, 0, time)
}

/// All heads of queries or keys that are shared.
fn of_heads(x: Tensor<4>, heads: usize) -> Tensor<4> {
    let [batch, known, time, width] = x.dims();
    if known == heads { x } else { x.expand([batch, heads, time, width]) }
}

/// With one decay for a head, a position takes from an earlier one of its chunk what attention without a softmax would,
/// times the decays between both.
fn by_pairs(rows: Rows, mut state: Tensor<4>) -> Computed {
    let [_, heads, time, width] = rows.v.dims();
    let size = time.min(CHUNK);
    let (q, k) = (of_heads(rows.q, heads), of_heads(rows.k, heads));
    let (q, k) = (chunks(q, time, size, 0.0), chunks(k, time, size, 0.0));
    let v = chunks(rows.v, time, size, 0.0);
    let (between, since) = decays(chunks(rows.decay, time, size, 1.0));
    let count = v.dims()[2];

    // What is added at each position, without and with the state before its chunk.
    let (added, taken) = match rows.beta {
        None => (v, None),
        Some(beta) => {
            let beta = chunks(beta, time, size, 0.0);
            let pairs = k.clone().matmul(k.clone().swap_dims(3, 4)) * between.clone() * beta.clone();
            let features = k.dims()[4];
            let solved =
                substituted(pairs, Tensor::cat(vec![v * beta.clone(), k.clone() * since.clone() * beta], 4));
            let taken = solved.clone().narrow(4, width, features);
            (solved.narrow(4, 0, width), Some(taken))
        }
    };
    // The decays from each position to the end of its chunk, and those of whole chunks.
    let after = between.clone().narrow(3, size - 1, 1).swap_dims(3, 4);
    let keys = (k.clone() * after).swap_dims(3, 4);
    let through = since.clone().narrow(3, size - 1, 1);

    let at = |x: &Tensor<5>, m: usize| x.clone().narrow(2, m, 1).squeeze_dim::<4>(2);
    let (mut starts, mut all_added) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for m in 0..count {
        let added = match &taken {
            Some(taken) => at(&added, m) - at(taken, m).matmul(state.clone()),
            None => at(&added, m),
        };
        starts.push(state.clone());
        state = state * at(&through, m) + at(&keys, m).matmul(added.clone());
        all_added.push(added);
    }
    let (starts, added) = (Tensor::stack::<5>(starts, 2), Tensor::stack::<5>(all_added, 2));
    let scores = q.clone().matmul(k.swap_dims(3, 4)) * between;
    let y = scores.matmul(added) + (q * since).matmul(starts);
    (joined(y, time), state)
}

/// The products of the decays after each position up to each later one of the same chunk, `[.., C, C]` with zeros where
/// the second one is earlier, and those from the beginning of the chunk, `[.., C, 1]`.
fn decays(decay: Tensor<5>) -> (Tensor<5>, Tensor<5>) {
    let [batch, heads, count, size, _] = decay.dims();
    let options = (&decay.device(), decay.dtype());
    let mut row = Tensor::zeros([batch, heads, count, 1, size], options);
    let mut product = Tensor::ones([batch, heads, count, 1, 1], options);
    let identity = Tensor::<2>::eye(size, &decay.device()).cast(decay.dtype());
    let (mut rows, mut products) = (Vec::with_capacity(size), Vec::with_capacity(size));
    for i in 0..size {
        let factor = decay.clone().narrow(3, i, 1);
        // Products and not exponentials of sums of logarithms, so that a decay may be zero or negative.
        row = row * factor.clone() + identity.clone().narrow(0, i, 1).unsqueeze::<5>();
        product = product * factor;
        rows.push(row.clone());
        products.push(product.clone());
    }
    (Tensor::cat(rows, 3), Tensor::cat(products, 3))
}

/// The solution `x` of `x[i] = right[i] - sum_(j<i) pairs[i, j] x[j]`, row by row.
fn substituted(pairs: Tensor<5>, right: Tensor<5>) -> Tensor<5> {
    let size = right.dims()[3];
    let mut solved = right.clone().narrow(3, 0, 1);
    for i in 1..size {
        let known = pairs.clone().narrow(3, i, 1).narrow(4, 0, i).matmul(solved.clone());
        let next = right.clone().narrow(3, i, 1) - known;
        solved = Tensor::cat(vec![solved, next], 3);
    }
    solved
}

/// With a decay for each feature, every position has its state, as it is without those before its chunk.
fn by_states(rows: Rows, mut state: Tensor<4>) -> Computed {
    let [batch, heads, time, width] = rows.v.dims();
    let size = time.min(SHORT_CHUNK);
    let features = rows.k.dims()[3];
    let options = (&rows.v.device(), rows.v.dtype());
    let (q, k) = (chunks(rows.q, time, size, 0.0), chunks(rows.k, time, size, 0.0));
    let (v, decay) = (chunks(rows.v, time, size, 0.0), chunks(rows.decay, time, size, 1.0));
    let count = v.dims()[2];

    let column = |x: &Tensor<5>, i: usize| x.clone().narrow(3, i, 1).swap_dims(3, 4);
    let mut own = Tensor::<5>::zeros([batch, heads, count, features, width], options);
    let mut through = Tensor::<5>::ones([1, 1, 1, features, 1], options);
    let (mut results, mut reads) = (Vec::with_capacity(size), Vec::with_capacity(size));
    for i in 0..size {
        let (decay, q) = (column(&decay, i), column(&q, i));
        own = own * decay.clone() + column(&k, i) * v.clone().narrow(3, i, 1);
        through = through * decay;
        results.push((own.clone() * q.clone()).sum_dim(3));
        reads.push(q * through.clone());
    }
    let at = |x: &Tensor<5>, m: usize| {
        // What is the same for all chunks has one of them.
        let m = if x.dims()[2] == 1 { 0 } else { m };
        x.clone().narrow(2, m, 1).squeeze_dim::<4>(2)
    };
    let mut starts = Vec::with_capacity(count);
    for m in 0..count {
        starts.push(state.clone());
        state = state * at(&through, m) + at(&own, m);
    }
    let starts = Tensor::stack::<5>(starts, 2);
    let of_start = |read: Tensor<5>| (starts.clone() * read).sum_dim(3);
    let results = results.into_iter().zip(reads).map(|(own, read)| own + of_start(read)).collect();
    (joined(Tensor::cat(results, 3), time), state)
}
