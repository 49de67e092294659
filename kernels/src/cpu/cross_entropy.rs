//! Cross entropy and its backward pass, row by row, without a table of logarithms.

use rayon::prelude::*;

use super::LANES;
use super::math::exp;
use super::parallel::Parallel;
use super::simd::{Task, rows_of_share, run};
use super::sums::total;

/// The labels of the rows of scores.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The right class of each row; one beyond the scores gives the loss NaN.
    pub classes: &'a [usize],
    /// The weight of the loss; a row of weight 0 is not read.
    pub weights: &'a [f32],
    /// The share of the probability that is spread evenly over all classes.
    pub smoothing: f32,
}

/// The loss of one row and the logarithm of the sum of its exponentials.
struct Loss<'a> {
    row: &'a [f32],
    class: usize,
    smoothing: f32,
}

impl Task for Loss<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run(self) -> (f32, f32) {
        let Self { row, class, smoothing } = self;
        let (chunks, rest) = row.as_chunks::<LANES>();
        let mut most = [f32::NEG_INFINITY; LANES];
        for x in chunks {
            for (most, x) in most.iter_mut().zip(x) {
                *most = if *x > *most { *x } else { *most };
            }
        }
        let mut largest = f32::NEG_INFINITY;
        for x in most.iter().chain(rest) {
            largest = if *x > largest { *x } else { largest };
        }
        let (mut sums, mut plain) = ([0.0; LANES], [0.0; LANES]);
        for x in chunks {
            for ((x, sum), plain) in x.iter().zip(&mut sums).zip(&mut plain) {
                *sum += exp(x - largest);
                *plain += x - largest;
            }
        }
        let (mut sum, mut plain) = (total(sums), total(plain));
        for x in rest {
            sum += exp(x - largest);
            plain += x - largest;
        }
        // All sums are of differences from the largest score: the loss is a small difference of scores, and
        // if these are large, most of its digits would be lost.
        let log = sum.ln();
        // A class that does not exist, such as a negative one, must not give a loss that looks like any
        // other.
        let own = row.get(class).map_or(f32::NAN, |x| x - largest);
        let mut loss = (1.0 - smoothing) * (log - own);
        // Not added with a factor of zero: if a score is `-inf`, so is their sum, and zero times it is NaN.
        if smoothing > 0.0 {
            loss += smoothing * (log - plain / row.len() as f32);
        }
        (loss, largest + log)
    }
}

/// Some rows of the logits, and where what is computed of each row is written.
struct Share<'a> {
    logits: &'a [f32],
    logs: &'a mut [f32],
    losses: &'a mut [f32],
}

/// The weighted sum of the cross entropies of `logits [N, C]`. The logarithm of the sum of the exponentials
/// of each row is written to `logs [N]`. Losses are added in the order of rows, in double precision.
pub fn cross_entropy(logits: &[f32], rows: Rows<'_>, logs: &mut [f32]) -> f32 {
    let width = logits.len() / logs.len().max(1);
    if width == 0 {
        // Without classes there is no loss.
        return 0.0;
    }
    let mut losses = vec![0.0; logs.len()];
    let count = rows_of_share(width);
    let some = |(i, Share { logits, logs, losses }): (usize, Share<'_>)| {
        let labels = rows.classes.iter().zip(rows.weights).skip(i * count);
        for ((row, (class, weight)), (log, loss)) in
            logits.chunks_exact(width).zip(labels).zip(logs.iter_mut().zip(losses))
        {
            // Padding takes no time, and not even a NaN in its scores has an effect.
            if *weight != 0.0 {
                let found = run(Loss { row, class: *class, smoothing: rows.smoothing });
                (*loss, *log) = (found.0 * weight, found.1);
            }
        }
    };
    let shares = logits.par_chunks(count * width).zip(logs.par_chunks_mut(count));
    let shares = shares.zip(losses.par_chunks_mut(count));
    let shares = shares.map(|((logits, logs), losses)| Share { logits, logs, losses }).enumerate();
    if losses_are_few(logits.len()) {
        shares.with_min_len(usize::MAX).for_each(some)
    } else {
        shares.in_parallel(some)
    }
    losses.iter().map(|loss| f64::from(*loss)).sum::<f64>() as f32
}

/// Whether there are too few numbers for several threads. An iterator that may not be split runs on the
/// thread that calls it.
fn losses_are_few(numbers: usize) -> bool {
    numbers <= 32 * 1024
}

/// The gradient of one row, in its place: `factor * (softmax - target)`.
struct Gradient<'a> {
    row: &'a mut [f32],
    log: f32,
    class: usize,
    smoothing: f32,
    factor: f32,
}

impl Task for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { row, log, class, smoothing, factor } = self;
        let every = smoothing / row.len() as f32;
        let own = row.get(class).copied();
        let (chunks, rest) = row.as_chunks_mut::<LANES>();
        for x in chunks.iter_mut().flatten() {
            *x = factor * (exp(*x - log) - every);
        }
        for x in rest {
            *x = factor * (exp(*x - log) - every);
        }
        if let (Some(own), Some(x)) = (own, row.get_mut(class)) {
            *x = factor * (exp(own - log) - every - (1.0 - smoothing));
        }
    }
}

/// The backward pass of [`cross_entropy`], whose `logs` it is given, from the gradient of the sum. The logits become their
/// gradient.
pub fn cross_entropy_backward(logits: &mut [f32], rows: Rows<'_>, logs: &[f32], gradient: f32) {
    let width = logits.len() / logs.len().max(1);
    if width == 0 {
        return;
    }
    let count = rows_of_share(width);
    let some = |(i, logits): (usize, &mut [f32])| {
        let labels = rows.classes.iter().zip(rows.weights).zip(logs).skip(i * count);
        for (row, ((class, weight), log)) in logits.chunks_exact_mut(width).zip(labels) {
            if *weight == 0.0 {
                // Padding, in which not even a NaN has an effect.
                row.fill(0.0);
                continue;
            }
            let factor = gradient * weight;
            run(Gradient { row, log: *log, class: *class, smoothing: rows.smoothing, factor });
        }
    };
    let are_few = losses_are_few(logits.len());
    let shares = logits.par_chunks_mut(count * width).enumerate();
    if are_few { shares.with_min_len(usize::MAX).for_each(some) } else { shares.in_parallel(some) }
}
