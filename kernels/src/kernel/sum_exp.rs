//! Sums of exponentials, for the probabilities of scores that are on the host.

/// The largest of `scores [V]`; NaN takes no part, and of no score it is `-inf`.
pub fn largest_score(scores: &[f32]) -> f32 {
    #[cfg(feature = "flex")]
    return crate::cpu::sum_exp::largest_score(scores);
    #[cfg(not(feature = "flex"))]
    return scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
}

/// `sum(exp((scores - largest) / temperature))` of `scores [V]` in double precision, in which NaN takes no part. With the
/// largest score subtracted, no exponential overflows.
pub fn sum_exp(scores: &[f32], largest: f32, temperature: f64) -> f64 {
    #[cfg(feature = "flex")]
    return crate::cpu::sum_exp::sum_exp(scores, largest, temperature);
    #[cfg(not(feature = "flex"))]
    {
        let numbers = scores.iter().filter(|score| !score.is_nan());
        numbers.map(|score| ((f64::from(*score) - f64::from(largest)) / temperature).exp()).sum()
    }
}
