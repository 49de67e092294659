//! Layer norm (Ba, Kiros and Hinton 2016) and RMS norm (Zhang and Sennrich 2019), row by row.

use rayon::prelude::*;

use super::LANES;
use super::parallel::Parallel;
use super::simd::{Task, rows_of_share, run};
use super::sums::{add, total};
use crate::backend::Norm;

/// How many rows are summed up for the gradient of a weight before their sum is added to that of the others.
const BLOCK: usize = 64;

/// What a row is normalised with: `(x - mean) * factor`.
#[derive(Clone, Copy)]
struct Scale {
    mean: f32,
    factor: f32,
}

/// The sum of a row.
#[inline(always)]
fn sum(x: &[f32]) -> f32 {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for x in chunks {
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum += x;
        }
    }
    rest.iter().fold(total(sums), |sum, x| sum + x)
}

/// The sum of the squares of `x - mean`.
#[inline(always)]
fn squares(x: &[f32], mean: f32) -> f32 {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for x in chunks {
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum = (x - mean).mul_add(x - mean, *sum);
        }
    }
    rest.iter().fold(total(sums), |sum, x| (x - mean).mul_add(x - mean, sum))
}

impl Scale {
    /// The scale of a row. The variance is the mean square of the differences from the mean, which does not
    /// cancel.
    #[inline(always)]
    fn of(norm: Norm, x: &[f32]) -> Self {
        let count = x.len() as f32;
        let (mean, eps) = match norm {
            Norm::Layer { eps } => (sum(x) / count, eps),
            Norm::Rms { eps } => (0.0, eps),
        };
        // One quotient for a row, so that each number takes a product.
        Self { mean, factor: 1.0 / (squares(x, mean) / count + eps as f32).sqrt() }
    }
}

/// `y = (x - mean) * factor * weight + bias` for one row.
#[inline(always)]
fn normalize(norm: Norm, x: &[f32], weight: &[f32], bias: &[f32], y: &mut [f32]) {
    let scale = Scale::of(norm, x);
    let numbers = x.iter().zip(weight).zip(y);
    // Two loops, so that neither has a condition inside.
    if bias.is_empty() {
        for ((x, weight), y) in numbers {
            *y = (x - scale.mean) * scale.factor * weight;
        }
    } else {
        for (((x, weight), y), bias) in numbers.zip(bias) {
            *y = ((x - scale.mean) * scale.factor).mul_add(*weight, *bias);
        }
    }
}

/// The norm of each row of `x`.
struct Forward<'a> {
    norm: Norm,
    x: &'a [f32],
    weight: &'a [f32],
    /// Empty if the norm has no bias.
    bias: &'a [f32],
    y: &'a mut [f32],
}

impl Task for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { norm, x, weight, bias, y } = self;
        for (x, y) in x.chunks_exact(weight.len()).zip(y.chunks_exact_mut(weight.len())) {
            normalize(norm, x, weight, bias, y);
        }
    }
}

/// The norm of each row of a residual sum.
struct OfSum<'a> {
    norm: Norm,
    /// One of the terms, which becomes the sum.
    sum: &'a mut [f32],
    term: &'a [f32],
    weight: &'a [f32],
    /// Empty if the norm has no bias.
    bias: &'a [f32],
    y: &'a mut [f32],
}

impl Task for OfSum<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { norm, sum, term, weight, bias, y } = self;
        let width = weight.len();
        let rows = sum.chunks_exact_mut(width).zip(term.chunks_exact(width)).zip(y.chunks_exact_mut(width));
        for ((sum, term), y) in rows {
            sum.iter_mut().zip(term).for_each(|(sum, x)| *sum += x);
            normalize(norm, sum, weight, bias, y);
        }
    }
}

/// The norm of the rows of `x [N, D]` with `weight [D]` and `bias [D]`, which is empty if there is none. The
/// norm of a row depends on this row only.
pub fn norm(norm: Norm, x: &[f32], weight: &[f32], bias: &[f32], y: &mut [f32]) {
    if weight.is_empty() {
        return;
    }
    let share = rows_of_share(weight.len()) * weight.len();
    // Waking another thread takes longer than a share.
    if y.len() <= 2 * share {
        run(Forward { norm, x, weight, bias, y });
    } else {
        let shares = x.par_chunks(share).zip(y.par_chunks_mut(share));
        shares.in_parallel(|(x, y)| run(Forward { norm, x, weight, bias, y }));
    }
}

/// Adds `term [N, D]` to the rows of `sum [N, D]`, and writes the norm of the rows of this sum to `y [N, D]`: the same
/// bits as a sum and [`norm`] one after the other. A row is normalised while it is in the cache.
pub fn add_norm(norm: Norm, sum: &mut [f32], term: &[f32], weight: &[f32], bias: &[f32], y: &mut [f32]) {
    if weight.is_empty() {
        return;
    }
    let share = rows_of_share(weight.len()) * weight.len();
    if y.len() <= 2 * share {
        run(OfSum { norm, sum, term, weight, bias, y });
    } else {
        let shares = sum.par_chunks_mut(share).zip(term.par_chunks(share)).zip(y.par_chunks_mut(share));
        shares.in_parallel(|((sum, term), y)| run(OfSum { norm, sum, term, weight, bias, y }));
    }
}

/// The gradients of some rows. With `n = (x - mean) * factor` and `g = gradient * weight` that of `x` is
/// `factor * (g - mean(g) - n * mean(g * n))`, where RMS norm has no `mean(g)`.
struct Backward<'a> {
    norm: Norm,
    x: &'a [f32],
    weight: &'a [f32],
    /// The gradient of the result, which becomes that of `x`.
    gradient: &'a mut [f32],
    /// The gradients of the weight and of the bias, to which those of these rows are added.
    of_weight: &'a mut [f32],
    of_bias: &'a mut [f32],
}

impl Task for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { norm, x, weight, gradient, of_weight, of_bias } = self;
        let width = weight.len();
        for (x, gradient) in x.chunks_exact(width).zip(gradient.chunks_exact_mut(width)) {
            // Two sums over the row are part of each of its numbers, so the row is read twice.
            let Scale { mean, factor } = Scale::of(norm, x);
            let ((xs, x_rest), (weights, weight_rest)) =
                (x.as_chunks::<LANES>(), weight.as_chunks::<LANES>());
            let (gradients, gradient_rest) = gradient.as_chunks::<LANES>();
            let (mut plain, mut along) = ([0.0; LANES], [0.0; LANES]);
            for ((x, weight), gradient) in xs.iter().zip(weights).zip(gradients) {
                let numbers = x.iter().zip(weight).zip(gradient).zip(&mut plain).zip(&mut along);
                for ((((x, weight), gradient), plain), along) in numbers {
                    let g = gradient * weight;
                    *plain += g;
                    *along = ((x - mean) * factor).mul_add(g, *along);
                }
            }
            let (mut plain, mut along) = (total(plain), total(along));
            for ((x, weight), gradient) in x_rest.iter().zip(weight_rest).zip(gradient_rest) {
                let g = gradient * weight;
                plain += g;
                along = ((x - mean) * factor).mul_add(g, along);
            }
            let plain = match norm {
                Norm::Layer { .. } => plain / width as f32,
                Norm::Rms { .. } => 0.0,
            };
            let along = along / width as f32;
            if !of_bias.is_empty() {
                // Before the gradient of the result is overwritten by that of `x`.
                add(of_bias, gradient);
            }
            for (((x, weight), gradient), of_weight) in
                x.iter().zip(weight).zip(gradient).zip(&mut *of_weight)
            {
                let n = (x - mean) * factor;
                *of_weight = n.mul_add(*gradient, *of_weight);
                *gradient = factor * n.mul_add(-along, gradient.mul_add(*weight, -plain));
            }
        }
    }
}

/// The backward pass of [`norm`]: `gradient` of the result becomes that of `x`, and the gradients of the
/// weight and of the bias are written to `of_weight` and `of_bias`, of which the second is empty if there is
/// no bias. These are sums over blocks of rows, added in their order.
pub fn norm_backward(
    norm: Norm,
    x: &[f32],
    weight: &[f32],
    gradient: &mut [f32],
    of_weight: &mut [f32],
    of_bias: &mut [f32],
) {
    let (width, both) = (weight.len(), of_weight.len() + of_bias.len());
    if width == 0 {
        return;
    }
    // Blocks of a fixed size and not one for each thread, so that the sums do not depend on their number.
    let block = BLOCK * width;
    let mut sums = vec![0.0; gradient.len().div_ceil(block) * both];
    let one = |((x, gradient), sums): ((&[f32], &mut [f32]), &mut [f32])| {
        let (of_weight, of_bias) = sums.split_at_mut(width);
        run(Backward { norm, x, weight, gradient, of_weight, of_bias });
    };
    if gradient.len() <= 2 * block {
        x.chunks(block).zip(gradient.chunks_mut(block)).zip(sums.chunks_mut(both)).for_each(one);
    } else {
        let blocks = x.par_chunks(block).zip(gradient.par_chunks_mut(block)).zip(sums.par_chunks_mut(both));
        blocks.in_parallel(one);
    }
    of_weight.fill(0.0);
    of_bias.fill(0.0);
    for sums in sums.chunks(both) {
        let (weight, bias) = sums.split_at(width);
        add(of_weight, weight);
        add(of_bias, bias);
    }
}
