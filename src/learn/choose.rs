//! Chooses the next token from its scores: penalties, temperature, truncation, sampling.
//!
//! Everything is computed on the host in double precision, so that a seed gives the same text on every
//! device whose scores are the same.

use std::cmp::Ordering;
use std::collections::BTreeMap;

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
    /// Always the best token: nothing is drawn, so the seed has no effect.
    pub const GREEDY: Self =
        Self { temperature: 0.0, top_k: None, top_p: None, min_p: None, repetition_penalty: 1.0 };
}

/// Chooses among `scores`, one for each token; `seen` are the tokens so far. Returns the token and the
/// logarithm of its probability before truncation; `None` if every score is NaN.
pub fn choose(scores: &[f32], seen: &[u32], how: &Sampling, stream: &mut Stream) -> Option<(u32, f64)> {
    let mut scores: Vec<f64> = scores.iter().map(|s| f64::from(*s)).collect();
    // Before penalties, so that the reported probability is the model's own.
    let (most, log_sum) = log_sum(&scores);
    let plain: BTreeMap<usize, f64> = penalized(seen, how, &scores)
        // Only the scores that change are kept, not a second copy for all of a vocabulary.
        .map(|(token, score)| (token, std::mem::replace(&mut scores[token], score)))
        .collect();
    let given = |token: usize| {
        let score = plain.get(&token).copied().unwrap_or_else(|| scores[token]);
        Some((u32::try_from(token).ok()?, score - most - log_sum))
    };
    if how.temperature == 0.0 {
        // Limits of the greedy choice would change nothing: the best token passes all of them.
        let tokens = (0..scores.len()).filter(|i| !scores[*i].is_nan());
        return given(tokens.min_by(|a, b| better(&scores, *a, *b))?);
    }
    // The filters are applied in the order of Hugging Face's library: temperature, `top_k`, `top_p`, `min_p`.
    let mut best = Best::new(&scores);
    // At least one token must be left to choose.
    best.truncate(how.top_k.unwrap_or(usize::MAX).max(1));
    let largest = scores[best.get(0)?];
    // With the largest score subtracted, no exponential overflows, and the best token has the weight 1.
    let weight = |token: usize| ((scores[token] - largest) / how.temperature).exp();
    // What is chosen among is a prefix of the tokens in order, of this length and this total weight.
    let (mut kept, mut total) = (best.len(), best.order.iter().map(|token| weight(*token)).sum::<f64>());
    if let Some(share) = how.top_p {
        let (mut count, mut sum) = (0, 0.0);
        // The best token is kept in any case; with a share of 0 nothing would be left.
        // The token that crosses the share is kept, too, as in the paper: the set must reach the share.
        while count < kept && (count == 0 || sum < share * total) {
            sum += best.get(count).map_or(0.0, weight);
            count += 1;
        }
        (kept, total) = (count, sum);
    }
    if let Some(share) = how.min_p {
        let (mut count, mut sum) = (0, 0.0);
        while let Some(weight) = best.get(count).filter(|_| count < kept).map(weight)
            && (count == 0 || weight >= share)
        {
            sum += weight;
            count += 1;
        }
        (kept, total) = (count, sum);
    }
    // One draw for each token, so that the stream's later numbers do not depend on the limits.
    let mut at = stream.uniform() * total;
    for i in 0..kept {
        let token = best.get(i)?;
        at -= weight(token);
        if at < 0.0 {
            return given(token);
        }
    }
    // Rounding can leave a remainder after the last token.
    given(best.get(kept - 1)?)
}

/// The tokens that are penalized, each with its new score.
fn penalized(seen: &[u32], how: &Sampling, scores: &[f64]) -> impl Iterator<Item = (usize, f64)> + use<> {
    let by = how.repetition_penalty;
    let mut tokens: Vec<usize> =
        if by == 1.0 { Vec::new() } else { seen.iter().map(|t| *t as usize).collect() };
    tokens.sort_unstable();
    tokens.dedup();
    // A token that occurred several times is penalised once, as by Hugging Face's library.
    let changed = |token: usize| {
        let score = scores.get(token)?;
        // A negative score is multiplied: divided, it would rise, and the penalty would be a reward.
        Some((token, score * if *score > 0.0 { by.recip() } else { by }))
    };
    tokens.into_iter().filter_map(changed).collect::<Vec<_>>().into_iter()
}

/// The order of tokens by their scores, the best first. Equal scores are ordered by id, because the sorts
/// below are not stable.
fn better(scores: &[f64], a: usize, b: usize) -> Ordering {
    scores[b].total_cmp(&scores[a]).then(a.cmp(&b))
}

/// The tokens in the order of their scores, the best first. Only those that are asked for are sorted: with
/// `top_p` usually a few dozen of the tens of thousands of a vocabulary.
// On burn's GPU backends a sort has no kernel and would read the scores back to the host, too.
struct Best<'a> {
    scores: &'a [f64],
    order: Vec<usize>,
    /// How many at the beginning are sorted.
    sorted: usize,
}

impl<'a> Best<'a> {
    /// How many are sorted first. Each time that more are needed, their number doubles.
    const FEW: usize = 64;

    fn new(scores: &'a [f64]) -> Self {
        let order = (0..scores.len()).filter(|i| !scores[*i].is_nan()).collect();
        Self { scores, order, sorted: 0 }
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    /// Keeps only the best `count` tokens, in no particular order yet.
    fn truncate(&mut self, count: usize) {
        if count < self.order.len() {
            // Partitions in linear time. Which of the kept ones is best is found when it is asked for.
            self.order.select_nth_unstable_by(count, |a, b| better(self.scores, *a, *b));
            self.order.truncate(count);
        }
    }

    /// The token with the rank `at`, counted from 0; `None` if there are fewer tokens.
    fn get(&mut self, at: usize) -> Option<usize> {
        while at >= self.sorted && self.sorted < self.order.len() {
            let rest = self.order.split_at_mut(self.sorted).1;
            // Twice as many each time, so that there are few partitions even if all tokens are asked for.
            let count = self.sorted.max(Self::FEW).min(rest.len());
            if count < rest.len() {
                rest.select_nth_unstable_by(count, |a, b| better(self.scores, *a, *b));
            }
            rest[..count].sort_unstable_by(|a, b| better(self.scores, *a, *b));
            self.sorted += count;
        }
        self.order.get(at).copied()
    }
}

/// The largest score, and the logarithm of the sum of the exponentials of all scores, with the largest one
/// subtracted.
fn log_sum(scores: &[f64]) -> (f64, f64) {
    // Without the largest score, exponentials of scores from about 710 on would be infinite.
    let most = scores.iter().copied().filter(|s| !s.is_nan()).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().filter(|s| !s.is_nan()).map(|s| (s - most).exp()).sum();
    (most, sum.ln())
}

/// The log-softmax of scores, in which those that are NaN take no part.
pub fn logs(scores: &[f64]) -> Vec<f64> {
    let (most, log_sum) = log_sum(scores);
    scores.iter().map(|s| s - most - log_sum).collect()
}
