//! Finds the most probable answer, given the scores of its first and its last token.

use super::choose::logs;

/// The most tokens of an answer, as in BERT's code.
pub const LONGEST: usize = 30;

/// The most probable answer among the tokens of `range`: its first and last token (inclusive), and the
/// logarithm of its probability, `log p(first) + log p(last)`, where both are probabilities over all
/// tokens. `None` if there is no token.
pub fn best(start: &[f32], end: &[f32], range: std::ops::Range<usize>) -> Option<([usize; 2], f64)> {
    // Over all tokens, as in training, where the question and special tokens compete with the context.
    let (start, end) = (logs(start), logs(end));
    let mut found: Option<([usize; 2], f64)> = None;
    // Taken separately, the best first and the best last token may be in the wrong order, or one of them may
    // be in the question.
    for first in range.clone() {
        for last in first..range.end.min(first.saturating_add(LONGEST)) {
            let (Some(a), Some(b)) = (start.get(first), end.get(last)) else { continue };
            let score = a + b;
            // Of equally probable answers the first one in the text wins, because it must be exceeded.
            if !score.is_nan() && found.is_none_or(|(_, best)| score > best) {
                found = Some(([first, last], score));
            }
        }
    }
    found
}
