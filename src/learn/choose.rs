//! From the scores of the next token to the next token: penalties, temperature, cuts, a draw.
//!
//! Everything happens on the host in double precision, so that a seed gives the same text on every device
//! whose scores are the same.

use super::random::Stream;

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Scores are divided by it; 0 takes the best token.
    pub temperature: f64,
    /// Only so many of the best tokens.
    pub top_k: Option<usize>,
    /// Only the fewest best tokens that have this probability together (Holtzman et al. 2020).
    pub top_p: Option<f64>,
    /// Only tokens with at least this share of the best one's probability.
    pub min_p: Option<f64>,
    /// Positive scores of tokens that have occurred are divided by it, negative ones multiplied (Keskar et
    /// al. 2019); 1 changes nothing.
    pub repetition_penalty: f64,
}

impl Sampling {
    /// The best token, always.
    pub const GREEDY: Self =
        Self { temperature: 0.0, top_k: None, top_p: None, min_p: None, repetition_penalty: 1.0 };
}

/// Chooses among `scores`, one a token; `seen` are the tokens so far. Gives the token and the logarithm of
/// its probability before any cut. None where no score is a number.
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
    // Equal scores keep the order of their ids.
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
    given(order[weights.len() - 1])
}

/// Logarithms of the softmax.
pub fn logs(scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().copied().filter(|s| !s.is_nan()).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().filter(|s| !s.is_nan()).map(|s| (s - most).exp()).sum();
    scores.iter().map(|s| s - most - sum.ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [f32; 5] = [0.0, 2.0, 1.0, -1.0, 1.9];

    fn drawn(how: Sampling) -> Vec<u32> {
        let mut out: Vec<u32> = (0..2_000)
            .map(|i| choose(&SCORES, &[], &how, &mut Stream::new(3, "sampling", i)).unwrap().0)
            .collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    #[test]
    fn cuts_leave_what_they_say() {
        let warm = Sampling { temperature: 1.0, ..Sampling::GREEDY };
        assert_eq!(drawn(Sampling::GREEDY), [1]);
        assert_eq!(drawn(warm), [0, 1, 2, 3, 4]);
        assert_eq!(drawn(Sampling { top_k: Some(2), ..warm }), [1, 4]);
        // 0.40 and 0.36 are more than 0.7 together.
        assert_eq!(drawn(Sampling { top_p: Some(0.7), ..warm }), [1, 4]);
        assert_eq!(drawn(Sampling { top_p: Some(0.0), ..warm }), [1]);
        // exp(1 - 2) is 0.37 of the best.
        assert_eq!(drawn(Sampling { min_p: Some(0.3), ..warm }), [1, 2, 4]);
        assert_eq!(drawn(Sampling { top_k: Some(1), ..warm }), [1]);
    }

    #[test]
    fn a_penalty_lowers_what_has_been_said() {
        let how = Sampling { repetition_penalty: 2.0, ..Sampling::GREEDY };
        let mut stream = Stream::new(0, "sampling", 0);
        assert_eq!(choose(&SCORES, &[1, 1], &how, &mut stream).unwrap().0, 4);
        assert_eq!(choose(&[-1.0, -1.5], &[0], &how, &mut stream).unwrap().0, 1);
    }

    #[test]
    fn probabilities_are_those_of_the_softmax() {
        let warm = Sampling { temperature: 2.0, ..Sampling::GREEDY };
        let mut counts = [0.0; 5];
        let mut stream = Stream::new(9, "sampling", 0);
        for _ in 0..40_000 {
            counts[choose(&SCORES, &[], &warm, &mut stream).unwrap().0 as usize] += 1.0 / 40_000.0;
        }
        let halves: Vec<f64> = SCORES.iter().map(|s| f64::from(*s) / 2.0).collect();
        for (count, log) in counts.iter().zip(logs(&halves)) {
            assert!((count - log.exp()).abs() < 0.01, "{counts:?}");
        }
    }

    #[test]
    fn nothing_is_chosen_among_no_numbers() {
        let mut stream = Stream::new(0, "sampling", 0);
        assert_eq!(choose(&[f32::NAN], &[], &Sampling::GREEDY, &mut stream), None);
        assert_eq!(choose(&[f32::NAN, 1.0], &[], &Sampling::GREEDY, &mut stream), Some((1, 0.0)));
    }
}
