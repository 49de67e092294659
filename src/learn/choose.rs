//! Chooses the next token from its scores: penalties, temperature, truncation, sampling.
//!
//! Everything is computed on the host, and probabilities in double precision, so that a seed gives the same text on every
//! device whose scores are the same.

use std::borrow::Cow;
use std::cmp::Ordering;

use trafoc_kernels::{largest_score, sum_exp};

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
    // Before penalties, so that the reported probability is the model's own.
    let (most, log_sum) = log_sum(scores);
    let given = |token: usize| {
        Some((u32::try_from(token).ok()?, f64::from(*scores.get(token)?) - f64::from(most) - log_sum))
    };
    let scores = &*penalized(scores, seen, how);
    let largest = largest_score(scores);
    // Of equal scores the first one is the best, as in the order below.
    let best = scores.iter().position(|score| *score == largest)?;
    if how.temperature == 0.0 {
        // Limits of the greedy choice would change nothing: the best token passes all of them.
        return given(best);
    }
    let among = Among { scores, largest, temperature: how.temperature };
    // One draw for each token, so that the stream's later numbers do not depend on the limits.
    let drawn = stream.uniform();
    let chosen = if how.top_k.is_none() && how.top_p.is_none() && how.min_p.is_none() {
        among.draw(drawn)
    } else {
        let kept: Vec<_> = among.kept(how).into_iter().map(|token| (token, among.weight(token))).collect();
        let total: f64 = kept.iter().map(|(_, weight)| weight).sum();
        first_beyond(kept, drawn * total).ok()
    };
    // Rounding can leave a remainder after the last token.
    given(chosen.unwrap_or(best))
}

/// The scores, with a penalty for tokens that have occurred. Those of a whole vocabulary are copied only if one changes.
fn penalized<'a>(scores: &'a [f32], seen: &[u32], how: &Sampling) -> Cow<'a, [f32]> {
    let by = how.repetition_penalty;
    let mut scores = Cow::Borrowed(scores);
    if by == 1.0 {
        return scores;
    }
    let mut tokens: Vec<usize> = seen.iter().map(|t| *t as usize).collect();
    tokens.sort_unstable();
    // A token that occurred several times is penalised once, as by Hugging Face's library.
    tokens.dedup();
    for token in tokens {
        let Some(score) = scores.to_mut().get_mut(token) else { continue };
        // A negative score is multiplied: divided, it would rise, and the penalty would be a reward.
        *score = (f64::from(*score) * if *score > 0.0 { by.recip() } else { by }) as f32;
    }
    scores
}

/// The tokens among which one is drawn.
struct Among<'a> {
    scores: &'a [f32],
    largest: f32,
    temperature: f64,
}

impl Among<'_> {
    /// How many tokens are passed over at once.
    const MANY: usize = 1024;

    /// What the probability of a token is proportional to; 0 where the score is NaN. With the largest score subtracted, no
    /// exponential overflows, and the best token has the weight 1.
    fn weight(&self, token: usize) -> f64 {
        let score = self.scores.get(token).copied().filter(|score| !score.is_nan());
        score.map_or(0.0, |s| ((f64::from(s) - f64::from(self.largest)) / self.temperature).exp())
    }

    /// The weight of some tokens together.
    fn sum(&self, scores: &[f32]) -> f64 {
        sum_exp(scores, self.largest, self.temperature)
    }

    /// The token at this share of the total weight, in the order of ids; `None` if rounding leaves a remainder after the
    /// last one.
    fn draw(&self, share: f64) -> Option<usize> {
        let sums: Vec<f64> = self.scores.chunks(Self::MANY).map(|scores| self.sum(scores)).collect();
        let mut at = share * sums.iter().sum::<f64>();
        for (i, sum) in sums.into_iter().enumerate() {
            if at >= sum {
                at -= sum;
                continue;
            }
            let tokens = i * Self::MANY..self.scores.len().min((i + 1) * Self::MANY);
            match first_beyond(tokens.map(|token| (token, self.weight(token))), at) {
                Ok(token) => return Some(token),
                Err(rest) => at = rest,
            }
        }
        None
    }

    /// The tokens that the limits leave, in the order of ids, at least the best one. The limits are applied in the order of
    /// Hugging Face's library: `top_k`, `top_p`, `min_p`.
    fn kept(&self, how: &Sampling) -> Vec<usize> {
        let mut best = Best::new(self.scores);
        let mut kept = best.len();
        let mut total = None;
        if let Some(count) = how.top_k {
            // At least one token must be left to choose.
            best.truncate(count.max(1));
            kept = best.len();
            total = Some(best.order.iter().map(|token| self.weight(*token)).sum());
        }
        if let Some(share) = how.top_p {
            let total: f64 = total.unwrap_or_else(|| self.sum(self.scores));
            let (mut count, mut sum) = (0, 0.0);
            // The best token is kept in any case; with a share of 0 nothing would be left.
            // The token that crosses the share is kept, too, as in the paper: the set must reach the share.
            while count < kept && (count == 0 || sum < share * total) {
                sum += best.get(count).map_or(0.0, |token| self.weight(token));
                count += 1;
            }
            kept = count;
        }
        if let Some(share) = how.min_p {
            let mut count = 0;
            while let Some(token) = best.get(count).filter(|_| count < kept)
                && (count == 0 || self.weight(token) >= share)
            {
                count += 1;
            }
            kept = count;
        }
        let mut tokens = best.order;
        tokens.truncate(kept);
        tokens.sort_unstable();
        tokens
    }
}

/// The first token at which the sum of the weights exceeds `at`, or what is left of `at` after the last one.
fn first_beyond(weights: impl IntoIterator<Item = (usize, f64)>, mut at: f64) -> Result<usize, f64> {
    for (token, weight) in weights {
        at -= weight;
        if at < 0.0 {
            return Ok(token);
        }
    }
    Err(at)
}

/// The order of tokens by their scores, none of which is NaN, the best first. Equal scores are ordered by id, because the
/// sorts below are not stable.
fn better(scores: &[f32], a: usize, b: usize) -> Ordering {
    scores[b].partial_cmp(&scores[a]).unwrap_or(Ordering::Equal).then(a.cmp(&b))
}

/// The tokens in the order of their scores, the best first. Only those that are asked for are sorted: with
/// `top_p` usually a few dozen of the tens of thousands of a vocabulary.
// On burn's GPU backends a sort has no kernel and would read the scores back to the host, too.
struct Best<'a> {
    scores: &'a [f32],
    order: Vec<usize>,
    /// How many at the beginning are sorted.
    sorted: usize,
}

impl<'a> Best<'a> {
    /// How many are sorted first. Each time that more are needed, their number doubles.
    const FEW: usize = 64;

    fn new(scores: &'a [f32]) -> Self {
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

/// The largest score, and the logarithm of the sum of the exponentials of all scores with the largest one subtracted.
fn log_sum(scores: &[f32]) -> (f32, f64) {
    let most = largest_score(scores);
    (most, sum_exp(scores, most, 1.0).ln())
}

/// The log-softmax of scores in double precision, in which those that are NaN take no part.
pub fn logs(scores: &[f32]) -> Vec<f64> {
    let (most, log_sum) = log_sum(scores);
    scores.iter().map(|s| f64::from(*s) - f64::from(most) - log_sum).collect()
}
