//! Chooses the next token from its scores: penalties, temperature, truncation, sampling.
//!
//! Everything is computed on the host in double precision, so that a seed gives the same text on every
//! device whose scores are the same.

use super::random::Stream;

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Scores are divided by it; 0 selects the best token.
    pub temperature: f64,
    /// Only this many of the best tokens are considered.
    pub top_k: Option<usize>,
    /// Only the smallest set of best tokens with this total probability is considered (Holtzman et al.
    /// 2020).
    pub top_p: Option<f64>,
    /// Only tokens with at least this share of the best token's probability are considered.
    pub min_p: Option<f64>,
    /// Positive scores of tokens that have already occurred are divided by it, negative ones are multiplied
    /// (Keskar et al. 2019); 1 has no effect.
    pub repetition_penalty: f64,
}

impl Sampling {
    /// Always the best token.
    pub const GREEDY: Self =
        Self { temperature: 0.0, top_k: None, top_p: None, min_p: None, repetition_penalty: 1.0 };
}

/// Chooses among `scores`, one for each token; `seen` are the tokens so far. Returns the token and the
/// logarithm of its probability before truncation; `None` if every score is NaN.
pub fn choose(scores: &[f32], seen: &[u32], how: &Sampling, stream: &mut Stream) -> Option<(u32, f64)> {
    let mut scores: Vec<f64> = scores.iter().map(|s| f64::from(*s)).collect();
    let plain = logs(&scores);
    if how.repetition_penalty != 1.0 {
        let mut seen = seen.to_vec();
        seen.sort_unstable();
        seen.dedup();
        for token in seen {
            if let Some(score) = scores.get_mut(token as usize) {
                *score *= if *score > 0.0 { how.repetition_penalty.recip() } else { how.repetition_penalty };
            }
        }
    }
    let mut order: Vec<usize> = (0..scores.len()).filter(|i| !scores[*i].is_nan()).collect();
    // Equal scores are ordered by id, so that the choice is defined.
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    let first = *order.first()?;
    let given = |token: usize| Some((u32::try_from(token).ok()?, plain[token]));
    if how.temperature == 0.0 {
        return given(first);
    }
    order.truncate(how.top_k.unwrap_or(usize::MAX).max(1));
    let best = scores[first];
    let mut weights: Vec<f64> = order.iter().map(|i| ((scores[*i] - best) / how.temperature).exp()).collect();
    if let Some(share) = how.top_p {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let mut kept = 0;
        while kept < weights.len() && (kept == 0 || sum < share * total) {
            sum += weights[kept];
            kept += 1;
        }
        weights.truncate(kept);
    }
    if let Some(share) = how.min_p {
        let kept = weights.iter().take_while(|w| **w >= share).count().max(1);
        weights.truncate(kept);
    }
    let mut at = stream.uniform() * weights.iter().sum::<f64>();
    for (token, weight) in order.iter().zip(&weights) {
        at -= weight;
        if at < 0.0 {
            return given(*token);
        }
    }
    // Rounding can leave a remainder after the last token.
    given(order[weights.len() - 1])
}

/// The log-softmax of scores, in which those that are NaN take no part.
pub fn logs(scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().copied().filter(|s| !s.is_nan()).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().filter(|s| !s.is_nan()).map(|s| (s - most).exp()).sum();
    scores.iter().map(|s| s - most - sum.ln()).collect()
}
