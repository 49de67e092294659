//! Sums in a fixed order.

use super::LANES;

/// The sum of the sums of a loop's lanes, in pairs.
#[inline(always)]
pub fn total(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = sums.split_at_mut(half);
        for (a, b) in low.iter_mut().zip(high) {
            *a += *b;
        }
        half /= 2;
    }
    let [sum, ..] = sums;
    sum
}

/// `sum[i] += x[i]`
#[inline(always)]
pub fn add(sum: &mut [f32], x: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += *x;
    }
}
