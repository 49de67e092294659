//! Layer normalisation (Ba et al. 2016) and batch normalisation (Ioffe and Szegedy 2015) of the same
//! numbers: the input of one of the model's norms for a batch.
//!
//! Both subtract a mean and divide by `sqrt(variance + eps)`. LayerNorm computes them over the features of
//! one token, BatchNorm over all tokens of the batch for one feature, so with BatchNorm a token's result
//! depends on the other examples. Learned weights and biases, which both have, are left out.

use super::sites::NormKind;
use super::{Matrix, Part, Report};
use crate::draw::Figure;
use crate::draw::heatmap::Heatmap;
use crate::draw::scale::Colors;

/// The input of a norm, without padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The path of the norm.
    pub path: String,
    /// The kind of norm in the model.
    pub kind: NormKind,
    /// One row per token, one column per feature.
    pub rows: Matrix,
    /// The example of each row, in order.
    pub examples: Vec<usize>,
    /// The labels of the rows; numbers if empty.
    pub words: Vec<String>,
    /// What the norm adds to the variance, so that it never divides by zero.
    pub eps: f64,
}

/// The mean and the variance of some numbers; the divisor of the variance is their count.
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    // In two passes: the difference of the mean square and the squared mean would lose its digits where the
    // mean is large.
    (mean, values.map(|v| (v - mean).powi(2)).sum::<f64>() / count)
}

/// Subtracts the mean of each row and divides by its standard deviation.
pub fn layer_norm(rows: &Matrix, eps: f64) -> Matrix {
    let normed = |row: &[f64]| {
        let (mean, variance) = moments(row.iter().copied());
        row.iter().map(|v| (v - mean) / (variance + eps).sqrt()).collect::<Vec<f64>>()
    };
    Matrix { values: (0..rows.rows).flat_map(|r| normed(rows.row(r))).collect(), ..*rows }
}

/// Subtracts the mean of each column and divides by its standard deviation, as in training, where both are
/// those of the batch.
pub fn batch_norm(rows: &Matrix, eps: f64) -> Matrix {
    // The same computation over the other axis.
    layer_norm(&rows.transposed(), eps).transposed()
}

impl Batch {
    /// The rows of one example.
    fn of(&self, example: usize) -> Matrix {
        let own = self.examples.iter().enumerate().filter(|(_, e)| **e == example).map(|(row, _)| row);
        let values: Vec<f64> = own.flat_map(|row| self.rows.row(row).iter().copied()).collect();
        Matrix { rows: values.len() / self.rows.columns.max(1), columns: self.rows.columns, values }
    }

    /// The rows of one example, from a matrix computed for all rows.
    fn part(&self, of: &Matrix, example: usize) -> Matrix {
        Batch { rows: of.clone(), ..self.clone() }.of(example)
    }
}

/// Both norms of a batch.
pub fn norms(name: &str, batch: &Batch) -> Report {
    let by_layer = layer_norm(&batch.rows, batch.eps);
    let by_batch = batch_norm(&batch.rows, batch.eps);
    // Rows are in the order of examples, which are counted from 0.
    let count = batch.examples.last().map_or(0, |last| last + 1);
    let (tokens, width) = (batch.rows.rows, batch.rows.columns);
    let all = [("input", &batch.rows), ("LayerNorm", &by_layer), ("BatchNorm", &by_batch)];
    let header = ["", "a token's mean", "a token's deviation", "a feature's mean", "a feature's deviation"];
    let rows = all.iter().map(|(name, matrix)| {
        let [token_mean, token_spread] = ranges(matrix);
        let [feature_mean, feature_spread] = ranges(&matrix.transposed());
        vec![(*name).to_owned(), token_mean, token_spread, feature_mean, feature_spread]
    });
    let table = Some((header.map(str::to_owned).to_vec(), rows.collect()));
    let most = all.iter().skip(1).flat_map(|(_, m)| &m.values).fold(0f64, |most, v| most.max(v.abs()));
    let own = batch.rows.values.iter().fold(0f64, |most, v| most.max(v.abs()));
    // The norms share one range, so that they can be compared; the input has its own.
    let figures = all
        .iter()
        .zip([own, most, most])
        .map(|((name, matrix), range)| map(name, matrix, batch, if range > 0.0 { range } else { 1.0 }));
    let own_norm = match batch.kind {
        NormKind::LayerNorm => "The model has a LayerNorm here",
        NormKind::RmsNorm => "The model itself has an RMSNorm here, which subtracts no mean",
    };
    let first = Part {
        title: "One batch, two norms".into(),
        text: format!(
            "Rows are tokens, columns features. LayerNorm gives every row mean 0 and deviation 1, \
                BatchNorm every column. {own_norm}; learned weights and biases are left out. A range is \
                from the smallest to the largest."
        ),
        facts: vec![
            ("norm".into(), batch.path.clone()),
            ("examples".into(), count.to_string()),
            ("tokens, without padding".into(), tokens.to_string()),
            ("features".into(), width.to_string()),
        ],
        figures: figures.collect(),
        table,
        ..Part::default()
    };
    let parts = vec![
        first,
        alone_and_in_batch(batch, &by_layer, &by_batch, count),
        one_token(batch, &by_layer, &by_batch),
    ];
    let lead = "LayerNorm next to BatchNorm on the same batch".to_owned();
    Report { title: format!("{name}: norms"), lead, parts }
}

/// By how much the result of an example changes if it is computed alone.
fn alone_and_in_batch(batch: &Batch, by_layer: &Matrix, by_batch: &Matrix, count: usize) -> Part {
    let title = "Alone and in the batch".to_owned();
    if count < 2 {
        let text = "The batch has one example, so there is no other that BatchNorm could depend on. Give \
                    several to see it.";
        return Part { title, text: text.into(), ..Part::default() };
    }
    let header = ["example", "tokens", "change of LayerNorm", "change of BatchNorm"];
    let rows = (0..count).map(|example| {
        let alone = batch.of(example);
        let change = |whole: &Matrix, alone: &Matrix| {
            let within = batch.part(whole, example);
            let apart = within.values.iter().zip(&alone.values).map(|(a, b)| (a - b).abs());
            format!("{:.4}", apart.fold(0f64, f64::max))
        };
        vec![
            example.to_string(),
            alone.rows.to_string(),
            change(by_layer, &layer_norm(&alone, batch.eps)),
            change(by_batch, &batch_norm(&alone, batch.eps)),
        ]
    });
    Part {
        title,
        text: "The largest change of a number when an example is normalised without the others. LayerNorm \
            gives the same result, whatever else is in the batch; BatchNorm does not, which is why it \
            needs running means for inference, and why models of texts, whose lengths differ, use \
            LayerNorm."
            .into(),
        table: Some((header.map(str::to_owned).to_vec(), rows.collect())),
        ..Part::default()
    }
}

/// The first features of the first token, as numbers.
fn one_token(batch: &Batch, by_layer: &Matrix, by_batch: &Matrix) -> Part {
    const SHOWN: usize = 6;
    let (mean, variance) = moments(batch.rows.row(0).iter().copied());
    let number = |v: f64| format!("{v:.4}").replace('-', "−");
    let rows = (0..batch.rows.columns.min(SHOWN)).map(|feature| {
        let column = (0..batch.rows.rows).map(|r| batch.rows.at(r, feature));
        let (own_mean, own_variance) = moments(column);
        let all = [batch.rows.at(0, feature), by_layer.at(0, feature), own_mean, own_variance.sqrt()];
        let numbers = all.into_iter().chain([by_batch.at(0, feature)]).map(number);
        std::iter::once(feature.to_string()).chain(numbers).collect()
    });
    let header =
        ["feature", "input", "LayerNorm", "mean in the batch", "deviation in the batch", "BatchNorm"];
    let word = batch.words.first().map_or(String::new(), |word| format!(" ({word})"));
    Part {
        title: format!("The first token{word} in numbers"),
        text: format!(
            "LayerNorm uses the token's own mean, {}, and deviation, {}, for all features; BatchNorm uses \
                those of each feature over the batch.",
            number(mean),
            number(variance.sqrt())
        ),
        table: Some((header.map(str::to_owned).to_vec(), rows.collect())),
        ..Part::default()
    }
}

/// The smallest and the largest mean of a row, and those of its standard deviation.
fn ranges(matrix: &Matrix) -> [String; 2] {
    let all = (0..matrix.rows).map(|r| moments(matrix.row(r).iter().copied()));
    let range = |values: &dyn Fn((f64, f64)) -> f64| {
        let found = all.clone().map(values);
        let low = found.clone().fold(f64::INFINITY, f64::min);
        let high = found.fold(f64::NEG_INFINITY, f64::max);
        let number = |v: f64| {
            let text = format!("{v:.2}");
            // A mean of zero may come out as a tiny negative number.
            if text == "-0.00" { "0.00".to_owned() } else { text.replace('-', "−") }
        };
        // Compared as they are shown, because rounding makes most ranges of LayerNorm a single number.
        if number(low) == number(high) {
            number(low)
        } else {
            format!("{} … {}", number(low), number(high))
        }
    };
    [range(&|(mean, _)| mean), range(&|(_, variance)| variance.sqrt())]
}

/// A heatmap of tokens by features, with colours for `-most` to `most`.
fn map(title: &str, matrix: &Matrix, batch: &Batch, most: f64) -> Figure {
    let values = (0..matrix.rows).map(|r| matrix.row(r).iter().map(|v| Some(*v)).collect()).collect();
    Heatmap::new(title, values, (-most, most), Colors::Signed)
        .labels(&batch.words, &[])
        .axes("token", "feature")
        .sized((270.0, 420.0), true)
        .figure()
}
