//! The largest of some scores and the sum of their exponentials, in double precision. For each token that is generated, both
//! are computed for a whole vocabulary by one thread while the others wait.

use super::LANES;
use super::simd::{Task, run};

/// The largest score; NaN takes no part, and of no score it is `-inf`.
pub fn largest_score(scores: &[f32]) -> f32 {
    run(Largest(scores))
}

struct Largest<'a>(&'a [f32]);

impl Task for Largest<'_> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        let mut most = [f32::NEG_INFINITY; LANES];
        for scores in chunks {
            for (most, x) in most.iter_mut().zip(scores) {
                *most = if *x > *most { *x } else { *most };
            }
        }
        most.iter().chain(rest).fold(f32::NEG_INFINITY, |most, x| if *x > most { *x } else { most })
    }
}

/// `sum(exp((scores - largest) / temperature))`, in which NaN takes no part.
pub fn sum_exp(scores: &[f32], largest: f32, temperature: f64) -> f64 {
    run(Sum { scores, largest: f64::from(largest), temperature })
}

struct Sum<'a> {
    scores: &'a [f32],
    largest: f64,
    temperature: f64,
}

impl Task for Sum<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { scores, largest, temperature } = self;
        // A quotient takes as long as an exponential, and this one changes nothing.
        if temperature == 1.0 {
            sum(scores, |x| f64::from(x) - largest)
        } else {
            sum(scores, |x| (f64::from(x) - largest) / temperature)
        }
    }
}

/// The sum of the exponentials of `exponent` for all scores.
#[inline(always)]
fn sum(scores: &[f32], exponent: impl Fn(f32) -> f64) -> f64 {
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for scores in chunks {
        for (sum, x) in sums.iter_mut().zip(scores) {
            *sum += exp(exponent(*x));
        }
    }
    sums.into_iter().chain(rest.iter().map(|x| exp(exponent(*x)))).sum()
}

/// `e^x` for an `x` that is not positive, within a few units of the last place (Cody and Waite 1980); zero where it
/// is below the smallest normal number, and for NaN. As in [`math`](super::math) there is no branch.
#[inline(always)]
fn exp(x: f64) -> f64 {
    /// The logarithm of 2 as a sum of two numbers: a multiple of the first by a small integer is exact.
    const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    /// `1.5 * 2^52`: a number that is added to this and subtracted again is rounded to an integer.
    const ROUNDS: f64 = 6_755_399_441_055_744.0;
    // The coefficients of the Taylor series, the highest first, after the 13th: on |r| <= ln(2) / 2 the next remainder is
    // below a tenth of the last place.
    const TAYLOR: [f64; 13] = [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let is_normal = x >= -708.0;
    let x = if is_normal { x } else { 0.0 };
    let shifted = x.mul_add(std::f64::consts::LOG2_E, ROUNDS);
    let n = shifted - ROUNDS;
    let r = n.mul_add(-LN_2[1], n.mul_add(-LN_2[0], x));
    let mut p = 1.0 / 6_227_020_800.0;
    for c in TAYLOR {
        p = r.mul_add(p, c);
    }
    let power = shifted.to_bits().wrapping_sub(ROUNDS.to_bits()).wrapping_add(1023) << 52;
    if is_normal { p * f64::from_bits(power) } else { 0.0 }
}
