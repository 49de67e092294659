//! Metrics: how good outputs are, each computed from its published definition.
//!
//! Losses are in nats. Everything here is arithmetic on outputs; nothing needs a model. To add a metric,
//! add a function here and a row in the recipe's `Metric`.

pub mod answer;
pub mod bleu;

use std::collections::BTreeMap;

/// `exp(loss)`: the number of equally likely tokens that would leave a model as uncertain.
pub fn perplexity(loss: f64) -> f64 {
    loss.exp()
}

/// Bits per character: the sum of all losses over the number of characters, `Σ loss / (ln 2 · characters)`.
/// The losses of end-of-text tokens count in the sum, but these tokens do not count as characters.
pub fn bits_per_character(nats: f64, characters: u64) -> f64 {
    nats / std::f64::consts::LN_2 / characters.max(1) as f64
}

/// The share of pairs whose two members are equal; 0 if there are no pairs.
pub fn accuracy<T: PartialEq>(pairs: &[(T, T)]) -> f64 {
    let right = pairs.iter().filter(|(right, own)| right == own).count();
    right as f64 / pairs.len().max(1) as f64
}

/// How often a class was predicted rightly and wrongly, and how often it was missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Examples of the class that were predicted as such (true positives).
    pub hits: u64,
    /// Examples of other classes that were predicted as this one (false positives).
    pub false_alarms: u64,
    /// Examples of the class that were predicted as another one (false negatives).
    pub misses: u64,
}

impl ClassCounts {
    /// `2 P R / (P + R) = 2 hits / (2 hits + false alarms + misses)`; 0 where the class is neither right
    /// nor predicted anywhere.
    pub fn f1(self) -> f64 {
        let all = 2 * self.hits + self.false_alarms + self.misses;
        2.0 * self.hits as f64 / all.max(1) as f64
    }
}

/// The outcomes for every class, from pairs of the right and the predicted one.
pub fn by_class(pairs: &[(i64, i64)]) -> BTreeMap<i64, ClassCounts> {
    let mut found: BTreeMap<i64, ClassCounts> = BTreeMap::new();
    for (right, own) in pairs {
        if right == own {
            found.entry(*right).or_default().hits += 1;
        } else {
            found.entry(*right).or_default().misses += 1;
            found.entry(*own).or_default().false_alarms += 1;
        }
    }
    found
}

/// The mean F1 of the classes that are right or predicted anywhere; every class has the same weight.
pub fn macro_f1(pairs: &[(i64, i64)]) -> f64 {
    mean(by_class(pairs).into_values().map(ClassCounts::f1))
}

/// The mean F1 of `width` independent classes. The pairs go through the classes of one example after
/// another; 1 means that the class applies.
pub fn macro_f1_of_several(pairs: &[(i64, i64)], width: usize) -> f64 {
    let mut found = vec![ClassCounts::default(); width.max(1)];
    // All classes have a place from the start, since even one that never applies counts in the mean.
    for ((right, own), class) in pairs.iter().zip((0..width.max(1)).cycle()) {
        let Some(of) = found.get_mut(class) else { continue };
        match (*right > 0, *own > 0) {
            (true, true) => of.hits += 1,
            (true, false) => of.misses += 1,
            (false, true) => of.false_alarms += 1,
            (false, false) => {}
        }
    }
    mean(found.into_iter().map(ClassCounts::f1))
}

/// The mean; 0 if there are no values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0u64), |(sum, count), v| (sum + v, count + 1));
    sum / count.max(1) as f64
}
