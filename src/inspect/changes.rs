//! What training changed: every parameter after it, compared with the one before.

use indexmap::IndexMap;

use super::{Part, Report};
use crate::draw::bars::Bars;
use crate::report::number;

/// A parameter before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The path of the parameter: `decoder.blocks.3.attention.query.weight`.
    pub path: String,
    /// The shape in files.
    pub shape: Vec<usize>,
    /// The sum of the squares of its numbers before; `None` if the model before has no such parameter.
    pub before: Option<f64>,
    /// The sum of the squares of the differences.
    pub by: f64,
    /// The largest absolute difference of one number; NaN if one is NaN.
    pub most: f64,
}

impl Changed {
    /// Compares the numbers of a parameter with as many before, or with none if it was not there.
    pub fn of(path: &str, shape: &[usize], after: &[f32], before: Option<&[f32]>) -> Self {
        let mut changed =
            Self { path: path.to_owned(), shape: shape.to_vec(), before: None, by: 0.0, most: 0.0 };
        let Some(before) = before else { return changed };
        let mut squares = 0.0;
        for (after, before) in after.iter().zip(before) {
            // In double precision: the squares of millions of small changes would be lost in a sum of single
            // precision.
            let (before, difference) = (f64::from(*before), f64::from(*after) - f64::from(*before));
            squares += before * before;
            changed.by += difference * difference;
            // `f64::max` would pass over NaN, and the report would not show it.
            if difference.is_nan() || difference.abs() > changed.most {
                changed.most = difference.abs();
            }
        }
        changed.before = Some(squares);
        changed
    }

    /// The number of its elements.
    fn count(&self) -> u128 {
        self.shape.iter().map(|n| *n as u128).product()
    }

    /// The part of the model that it belongs to: a block of a stack, or the first word of its path.
    fn part(&self) -> String {
        let words: Vec<&str> = self.path.split('.').collect();
        // The number in a path is the index of a block.
        let block = words.iter().position(|word| word.parse::<u64>().is_ok());
        let length = block.map_or(1, |at| at + 1);
        words.get(..length).unwrap_or_default().join(".")
    }
}

/// The length of a change as a share of the length before; infinite if that was 0.
fn share(by: f64, before: f64) -> f64 {
    // Zeros that stayed zeros are unchanged, where the quotient would be NaN.
    if by == 0.0 { 0.0 } else { (by / before).sqrt() }
}

/// A share as a percentage, or in words if it is none.
fn shown(share: f64) -> String {
    match share {
        0.0 => "unchanged".to_owned(),
        share if share.is_nan() => "not a number".to_owned(),
        share if !share.is_finite() => "was 0".to_owned(),
        // In percent with two decimals it would be shown as 0.
        share if share < 1e-4 => format!("{share:.1e}"),
        share => format!("{:.2} %", 100.0 * share),
    }
}

/// A number in four digits.
fn digits(x: f64) -> String {
    if x == 0.0 || (1e-2..1e4).contains(&x) { format!("{x:.4}") } else { format!("{x:.3e}") }
}

/// The report: how far each part and each parameter of `after` is from the same one of `before`.
pub fn report(after: &str, before: &str, all: &[Changed]) -> Report {
    let mut parts: IndexMap<String, (u128, f64, f64)> = IndexMap::new();
    let mut rows = Vec::new();
    let (mut same, mut fresh) = (0u128, 0u128);
    for one in all {
        let shape: Vec<String> = one.shape.iter().map(usize::to_string).collect();
        let cells = match one.before {
            Some(before) => {
                // Sums of squares can be added over parameters, where lengths cannot.
                let part = parts.entry(one.part()).or_default();
                *part = (part.0 + one.count(), part.1 + before, part.2 + one.by);
                same += if one.by == 0.0 { one.count() } else { 0 };
                [digits(before.sqrt()), digits(one.by.sqrt()), digits(one.most), shown(share(one.by, before))]
            }
            None => {
                fresh += one.count();
                ["–".to_owned(), "–".to_owned(), "–".to_owned(), "not there before".to_owned()]
            }
        };
        let first = [one.path.clone(), format!("[{}]", shape.join(", "))];
        rows.push(first.into_iter().chain(cells).collect());
    }
    let count: u128 = all.iter().map(Changed::count).sum();
    let facts = [
        ("parameters", count),
        // A parameter counts as changed as a whole, even if single numbers of it are the same.
        ("changed", count.saturating_sub(same).saturating_sub(fresh)),
        ("unchanged", same),
        ("not there before", fresh),
    ];
    let names: Vec<String> = parts.keys().cloned().collect();
    let shares: Vec<f64> = parts.values().map(|(_, before, by)| share(*by, *before)).collect();
    // A part that was all zeros has changed by an infinite share, which no bar can show.
    let heights: Vec<f64> = shares.iter().map(|share| if share.is_finite() { *share } else { 1.0 }).collect();
    let word = |v: f64| if v == 0.0 { String::new() } else { format!("{:.2} %", 100.0 * v) };
    let chart = Bars::new("Change by part", "length of the change / length before", names, word)
        .with("change", heights);
    let by_part = parts.iter().zip(&shares).map(|((name, (count, before, by)), share)| {
        vec![name.clone(), number::exact(*count), digits(before.sqrt()), digits(by.sqrt()), shown(*share)]
    });
    let header = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let parts = vec![
        Part {
            title: "Parts".into(),
            text:
                "The Euclidean length of the change of all parameters of a part, compared with their length \
                   before."
                    .into(),
            facts: facts.map(|(name, count)| (name.to_owned(), number::exact(count))).to_vec(),
            figures: vec![chart.figure()],
            table: Some((header(&["part", "parameters", "before", "change", "share"]), by_part.collect())),
            ..Part::default()
        },
        Part {
            title: "Parameters".into(),
            text: "The same for every parameter, and the largest change of one number.".into(),
            table: Some((header(&["parameter", "shape", "before", "change", "largest", "share"]), rows)),
            ..Part::default()
        },
    ];
    let lead = format!("how far {after} is from {before}");
    Report { title: format!("{after}: changes"), lead, parts }
}
