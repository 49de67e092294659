//! Functions of one number in single precision. Each has no branch, so that loops over them become vector
//! instructions, and each is compared with double precision over all kinds of numbers in the tests.

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// The logarithm of 2 as a sum of two numbers: a multiple of the first by a small integer is exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// `1.5 * 2^23`: a number that is added to this and subtracted again is rounded to an integer.
const ROUNDS: f32 = 12_582_912.0;

/// `e^x` within 2 units of the last place, also where the result is subnormal (Cody and Waite 1980). NaN
/// gives NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Beyond these the result is infinite or zero. A comparison with NaN is false, so NaN stays.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x.mul_add(LOG2_E, ROUNDS);
    let n = shifted - ROUNDS;
    let r = n.mul_add(-LN_2[1], n.mul_add(-LN_2[0], x));
    // The Taylor series: on |r| <= ln(2) / 2 its seventh remainder is below a quarter of the last place.
    let mut p = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = r.mul_add(p, c);
    }
    // 2^n in two factors, because one would overflow near the largest numbers and lose subnormal ones.
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUNDS.to_bits() as i32);
    let half = n >> 1;
    p * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `2^n` for `n` from -126 to 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// The logistic function `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    // Where the exponential is infinite, the quotient is the zero that it should be.
    1.0 / (1.0 + exp(-x))
}

/// The distribution function of the standard normal distribution, `(1 + erf(x / sqrt(2))) / 2`, and its
/// density. Both are exact to a few units of the last place, also far from zero, where `1 + erf` would
/// cancel.
#[inline(always)]
pub fn normal(x: f32) -> (f32, f32) {
    let a = x.abs();
    // Farther out, both are zero.
    let a = if a > 15.0 { 15.0 } else { a };
    // e^(-a²/2), with the part of the square that is rounded away.
    let square = a * a;
    let rest = a.mul_add(a, -square);
    let e = exp(-0.5 * square);
    let e = e.mul_add(-0.5 * rest, e);
    // The tail above `a` is e^(-a²/2) u P(u) with u = 1 / (1 + 0.3 a). P was fitted to double precision with
    // a relative error below 4e-9.
    let u = 1.0 / a.mul_add(0.3, 1.0);
    let mut p = -0.020_630_056;
    for c in [
        0.112_472_63,
        -0.228_303_9,
        0.191_909_8,
        -0.079_532_17,
        0.096_217_84,
        0.078_367_54,
        0.110_240_4,
        0.119_571_19,
        0.119_686_72,
    ] {
        p = u.mul_add(p, c);
    }
    let tail = e * u * p;
    let below = if x < 0.0 { tail } else { 1.0 - tail };
    // 1 / sqrt(2 pi)
    (below, 0.398_942_3 * e)
}

/// The hyperbolic tangent, within 2 units of the last place.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    // Near zero an odd polynomial, which was fitted to double precision: there (1 - e) / (1 + e) would
    // cancel.
    let square = x * x;
    let mut p = -0.005_514_525;
    for c in [0.020_468_397, -0.053_687_472, 0.133_308_19, -0.333_332_6] {
        p = square.mul_add(p, c);
    }
    let near = (x * square).mul_add(p, x);
    let e = exp(-2.0 * a);
    let far = ((1.0 - e) / (1.0 + e)).copysign(x);
    if a < 0.65 { near } else { far }
}
