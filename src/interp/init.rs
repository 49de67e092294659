//! Computes the initial values of parameters from an [`Init`], on the host, in double precision that is
//! rounded to single at the end.
//!
//! Element `i` of a parameter is a function of seed, path and `i` alone, so the number of threads does not
//! change it.

use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use super::random::{Stream, unit};
use crate::ir::Init;

/// The initial values of a parameter, in the order and shape of files: `shape` is `[out, in, ..]`.
pub fn start(init: &Init, shape: &[usize], seed: u64, path: &str) -> Vec<f32> {
    let stream = Stream::new(seed, path);
    let n = shape.iter().product();
    let (fan_in, fan_out) = fans(shape);
    let normal = |std: f64| fill(n, |block| normals(&stream, block).map(|x| (x * std) as f32));
    let uniform =
        |bound: f64| fill(n, |block| stream.block(block, 0).map(|b| ((2.0 * unit(b) - 1.0) * bound) as f32));
    match init {
        Init::Zeros => vec![0.0; n],
        Init::Ones => vec![1.0; n],
        Init::Constant(c) => vec![*c as f32; n],
        Init::Normal { std } => normal(*std),
        Init::TruncatedNormal { std, cut } => {
            let element = |i: u64| (truncated(&stream, i, *cut) * std) as f32;
            fill(n, |block| [0, 1, 2, 3].map(|lane| element(4 * block + lane)))
        }
        Init::Uniform { bound } => uniform(*bound),
        Init::XavierUniform { gain } => uniform(gain * (6.0 / (fan_in + fan_out)).sqrt()),
        Init::XavierNormal { gain } => normal(gain * (2.0 / (fan_in + fan_out)).sqrt()),
        Init::KaimingUniform { gain } => uniform(gain * (3.0 / fan_in).sqrt()),
        Init::KaimingNormal { gain } => normal(gain / fan_in.sqrt()),
        Init::Logarithms { gain } => {
            let row = shape.last().copied().unwrap_or(1).max(1);
            (0..n).map(|i| (gain * ((i % row + 1) as f64).ln()) as f32).collect()
        }
        Init::Orthogonal { gain } => {
            let rows = shape.first().copied().unwrap_or(1).max(1);
            orthogonal(fill(n, |block| normals(&stream, block)), rows, n / rows)
                .into_iter()
                .map(|x| (x * gain) as f32)
                .collect()
        }
    }
}

/// `fan_in` and `fan_out` of a shape `[out, in, ..]`; the axes after the second multiply both.
fn fans(shape: &[usize]) -> (f64, f64) {
    let field: usize = shape.iter().skip(2).product();
    match shape {
        [] => (1.0, 1.0),
        [n] => (*n as f64, *n as f64),
        [output, input, ..] => ((input * field) as f64, (output * field) as f64),
    }
}

fn normals(stream: &Stream, block: u64) -> [f64; 4] {
    let [a, b, c, d] = stream.block(block, 0);
    let ([w, x], [y, z]) = (Stream::normals([a, b]), Stream::normals([c, d]));
    [w, x, y, z]
}

/// A standard normal number within `± cut`. Proposals come from the normal distribution, or from the
/// uniform one if the cut is so narrow that normal proposals would rarely fall inside.
fn truncated(stream: &Stream, element: u64, cut: f64) -> f64 {
    for attempt in 1..=1000 {
        // Each attempt has its own lane, so a refused one does not shift the numbers of later elements.
        let [a, b, c, _] = stream.block(element, attempt);
        if cut >= 1.0 {
            let [x, _] = Stream::normals([a, b]);
            if x.abs() <= cut {
                return x;
            }
        } else {
            let x = (2.0 * unit(a) - 1.0) * cut;
            if unit(c) <= (-0.5 * x * x).exp() {
                return x;
            }
        }
    }
    // At least three of five proposals are accepted, so a thousand are never refused in a row.
    0.0
}

/// `n` numbers, four per block, computed by all cores.
fn fill<T: Copy + Default + Send>(n: usize, block: impl Fn(u64) -> [T; 4] + Sync) -> Vec<T> {
    let mut values = vec![T::default(); n];
    let write = |first: usize, part: &mut [T]| {
        for (i, four) in part.chunks_mut(4).enumerate() {
            let made = block((first / 4 + i) as u64);
            for (to, from) in four.iter_mut().zip(made) {
                *to = from;
            }
        }
    };
    // Every block is a function of its index alone, so parts can be filled in any order.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // A thread's part begins with a block, so that its numbers do not depend on the number of threads. Fewer
    // than 2^16 numbers are not worth the start of a thread.
    let size = n.div_ceil(threads).next_multiple_of(4).max(1 << 16);
    if n <= size {
        write(0, &mut values);
    } else {
        let parts = Mutex::new(values.chunks_mut(size).enumerate());
        let work = || {
            let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((i, part)) = next() {
                write(i * size, part);
            }
        };
        std::thread::scope(|scope| {
            // Where no more threads can be started, the others have more to do.
            let started = (1..threads).map(|_| Builder::new().spawn_scoped(scope, work).is_ok());
            let _ = started.take_while(|started| *started).count();
            work();
        });
    }
    values
}

/// Orthonormal rows (or columns, if there are more rows than columns) from a matrix of normal numbers, by
/// the Gram-Schmidt process, applied twice for accuracy.
fn orthogonal(normal: Vec<f64>, rows: usize, columns: usize) -> Vec<f64> {
    let (count, width, transposed) =
        if rows <= columns { (rows, columns, false) } else { (columns, rows, true) };
    // The shorter side has as many orthonormal vectors; those of the longer side could not be independent.
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
    for vector in normal.chunks(width.max(1)).take(count) {
        let mut v = vector.to_vec();
        for _ in 0..2 {
            for earlier in &basis {
                let dot: f64 = v.iter().zip(earlier).map(|(a, b)| a * b).sum();
                v.iter_mut().zip(earlier).for_each(|(a, b)| *a -= dot * b);
            }
        }
        // Never zero: there are no more random vectors than they have numbers, so they are independent.
        let norm = v.iter().map(|a| a * a).sum::<f64>().sqrt();
        v.iter_mut().for_each(|a| *a /= norm);
        basis.push(v);
    }
    if !transposed {
        return basis.concat();
    }
    (0..rows).flat_map(|row| basis.iter().map(move |v| v[row])).collect()
}
