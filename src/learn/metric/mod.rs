//! How good outputs are, from the definitions of the figures.
//!
//! Losses come in nats. Everything here is exact arithmetic on what a model has put out; nothing looks
//! at a model. Adding a figure: a function here and a row in the recipe's `Metric`.

pub mod answer;
pub mod bleu;

use std::collections::BTreeMap;

/// `exp(loss)`: as many words a model is as unsure between.
pub fn perplexity(loss: f64) -> f64 {
    loss.exp()
}

/// Bits that code a character: the sum of all losses over the characters, `Σ loss / (ln 2 · characters)`.
/// Marks of an end are paid for and are no characters.
pub fn bits_per_character(nats: f64, characters: u64) -> f64 {
    nats / std::f64::consts::LN_2 / characters.max(1) as f64
}

/// The share of pairs that are equal; 0 of none.
pub fn accuracy<T: PartialEq>(pairs: &[(T, T)]) -> f64 {
    let right = pairs.iter().filter(|(right, own)| right == own).count();
    right as f64 / pairs.len().max(1) as f64
}

/// What was found and missed of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Said and right.
    pub hits: u64,
    /// Said and wrong.
    pub false_alarms: u64,
    /// Right and not said.
    pub misses: u64,
}

impl Found {
    /// `2 P R / (P + R) = 2 hits / (2 hits + false alarms + misses)`; 0 where nothing was right or said.
    pub fn f1(self) -> f64 {
        let all = 2 * self.hits + self.false_alarms + self.misses;
        2.0 * self.hits as f64 / all.max(1) as f64
    }
}

/// What was found of every class, from pairs of the right and the predicted one.
pub fn by_class(pairs: &[(i64, i64)]) -> BTreeMap<i64, Found> {
    let mut found: BTreeMap<i64, Found> = BTreeMap::new();
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

/// The mean F1 of the classes that are right or predicted anywhere, each class counted alike.
pub fn macro_f1(pairs: &[(i64, i64)]) -> f64 {
    mean(by_class(pairs).into_values().map(Found::f1))
}

/// The mean F1 of independent classes, `width` of them in turn for every example, 1 where a class holds.
pub fn macro_f1_of_several(pairs: &[(i64, i64)], width: usize) -> f64 {
    let mut found = vec![Found::default(); width.max(1)];
    for ((right, own), class) in pairs.iter().zip((0..width.max(1)).cycle()) {
        let Some(of) = found.get_mut(class) else { continue };
        match (*right > 0, *own > 0) {
            (true, true) => of.hits += 1,
            (true, false) => of.misses += 1,
            (false, true) => of.false_alarms += 1,
            (false, false) => {}
        }
    }
    mean(found.into_iter().map(Found::f1))
}

/// The mean; 0 of nothing.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0u64), |(sum, count), v| (sum + v, count + 1));
    sum / count.max(1) as f64
}
