//! AdamW (Loshchilov and Hutter 2019), all of it in one pass over a parameter.

use rayon::prelude::*;

use super::LANES;
use super::parallel::Parallel;
use super::simd::{SHARE, Task, run};
use crate::backend::AdamW;

/// A share of a parameter, its gradient and both moments.
struct Update<'a> {
    step: AdamW,
    x: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

/// The numbers of a step in single precision.
#[derive(Clone, Copy)]
struct Factors {
    betas: [f32; 2],
    /// `1 - beta` of both.
    others: [f32; 2],
    corrections: [f32; 2],
    eps: f32,
    kept: f32,
    rate: f32,
}

impl Factors {
    /// The operations are those of burn's optimizer, each rounded by itself, without a fused multiply-add.
    #[inline(always)]
    fn update(self, x: &mut f32, gradient: f32, first: &mut f32, second: &mut f32) {
        let ([beta_1, beta_2], [other_1, other_2]) = (self.betas, self.others);
        *first = *first * beta_1 + gradient * other_1;
        *second = *second * beta_2 + gradient * gradient * other_2;
        let [of_first, of_second] = self.corrections;
        let delta = (*first / of_first) / ((*second / of_second).sqrt() + self.eps);
        *x = *x * self.kept - delta * self.rate;
    }
}

impl Task for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { step, x, gradient, first, second } = self;
        let [beta_1, beta_2] = step.betas;
        let factors = Factors {
            betas: step.betas,
            others: [1.0 - beta_1, 1.0 - beta_2],
            corrections: step.corrections(),
            eps: step.eps,
            kept: step.kept() as f32,
            rate: step.rate as f32,
        };
        let ((xs, x_rest), (gradients, gradient_rest)) =
            (x.as_chunks_mut::<LANES>(), gradient.as_chunks::<LANES>());
        let ((firsts, first_rest), (seconds, second_rest)) =
            (first.as_chunks_mut::<LANES>(), second.as_chunks_mut::<LANES>());
        for (((x, gradient), first), second) in xs.iter_mut().zip(gradients).zip(firsts).zip(seconds) {
            for (((x, gradient), first), second) in x.iter_mut().zip(gradient).zip(first).zip(second) {
                factors.update(x, *gradient, first, second);
            }
        }
        let rest = x_rest.iter_mut().zip(gradient_rest).zip(first_rest).zip(second_rest);
        for (((x, gradient), first), second) in rest {
            factors.update(x, *gradient, first, second);
        }
    }
}

/// Updates a parameter `x` and both of its moments in place.
pub fn adamw(step: AdamW, x: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32]) {
    // As in [`super::simd::share`]: waking another thread takes longer than a share.
    if x.len() <= 2 * SHARE {
        run(Update { step, x, gradient, first, second });
    } else {
        let shares = x.par_chunks_mut(SHARE).zip(gradient.par_chunks(SHARE));
        let shares = shares.zip(first.par_chunks_mut(SHARE)).zip(second.par_chunks_mut(SHARE));
        shares
            .in_parallel(|(((x, gradient), first), second)| run(Update { step, x, gradient, first, second }));
    }
}
