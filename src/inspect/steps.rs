//! Attention of one head, step by step with its numbers: `softmax(Q Kᵀ · scale, masked) V` (Vaswani et al.
//! 2017), or with additive scores `w · tanh(q + k)` instead of `Q Kᵀ` (Bahdanau et al. 2015).
//!
//! Queries, keys and values come from a run. Every step after them is computed here from its definition,
//! and the resulting weights and outputs are compared with those of the run.

use super::sites::Site;
use super::{Matrix, Part, Report};
use crate::draw::Figure;
use crate::draw::comparison::listed;
use crate::draw::heatmap::Heatmap;
use crate::draw::scale::Colors;
use crate::ir::factor::Root;
use crate::ir::op::{Attention, Score};

/// The values of one head in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The attention of the head.
    pub site: Site,
    /// The parameters of the attention.
    pub op: Attention,
    /// The index of the head.
    pub index: u64,
    /// The queries that the op reads, `[T, D]`: already rotated if positions are rotary.
    pub queries: Matrix,
    /// The keys that the op reads, `[K, D]`: already rotated if positions are rotary.
    pub keys: Matrix,
    /// The values that the op reads, `[K, V]`.
    pub values: Matrix,
    /// The bias that a positional scheme adds to the scores, `[T, K]`, if any.
    pub bias: Option<Matrix>,
    /// The vector `w` of additive scores; empty for dot products.
    pub score: Vec<f64>,
    /// The score of the sink, if there is one.
    pub sink: Option<f64>,
    /// The weights that the run computed, `[T, K]`.
    pub weights: Matrix,
    /// The outputs that the run computed, `[T, V]`.
    pub outputs: Matrix,
    /// Labels of the queries; numbers if empty.
    pub query_words: Vec<String>,
    /// Labels of the keys; numbers if empty.
    pub key_words: Vec<String>,
}

/// Every step of a head; each is `[T, K]` except the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// `Q Kᵀ`, or the additive scores.
    pub products: Matrix,
    /// The products times the scale of the op.
    pub scaled: Matrix,
    /// The scores after softcap and bias; the scaled products if there is neither.
    pub scores: Matrix,
    /// Whether a key is hidden from a query, in row-major order.
    pub hidden: Vec<bool>,
    /// `exp(score - greatest score of the row)`, 0 if hidden.
    pub exponentials: Matrix,
    /// What the exponentials of a row are divided by: their sum, and with a sink also the exponential of the
    /// sink's score.
    pub sums: Vec<f64>,
    /// The exponentials divided by the sum of their row.
    pub weights: Matrix,
    /// `weights V`, `[T, V]`.
    pub outputs: Matrix,
}

/// Computes the steps of a head.
pub fn computed(head: &Head) -> Steps {
    // In double precision, so that a difference from the run shows the rounding of the run.
    let (rows, columns) = (head.queries.rows, head.keys.rows);
    let map = |from: &Matrix, f: &dyn Fn(usize, f64) -> f64| Matrix {
        values: from.values.iter().enumerate().map(|(i, v)| f(i, *v)).collect(),
        ..*from
    };
    let op = &head.op;
    let products = match op.score {
        Score::Dot => head.queries.times(&head.keys.transposed()),
        Score::Additive => additive(&head.queries, &head.keys, &head.score),
    };
    // The order is that of the kernel: scale, softcap, bias, mask.
    let scaled = map(&products, &|_, v| v * *op.scale);
    let capped = map(&scaled, &|_, v| op.softcap.map_or(v, |cap| cap * (v / cap).tanh()));
    let scores = match &head.bias {
        Some(bias) => map(&capped, &|i, v| v + bias.values.get(i).copied().unwrap_or(0.0)),
        None => capped,
    };
    // Masks and padding give a weight of exactly 0. In single precision, so does a score that is more than
    // about 100 below the greatest; such a key is shown as hidden, too.
    let hidden: Vec<bool> = head.weights.values.iter().map(|w| *w == 0.0).collect();
    let is_hidden = |i: usize| hidden.get(i).copied().unwrap_or(false);
    let greatest = |row: usize| {
        let seen = scores.row(row).iter().enumerate().filter(|(k, _)| !is_hidden(row * columns + k));
        // A sink takes part in the maximum, too: it may be greater than every score.
        let sink = head.sink.unwrap_or(f64::NEG_INFINITY);
        seen.fold(sink, |most, (_, score)| most.max(*score))
    };
    let most: Vec<f64> = (0..rows).map(greatest).collect();
    let of_row = |i: usize| most.get(i / columns.max(1)).copied().unwrap_or(0.0);
    let exponentials = map(&scores, &|i, v| if is_hidden(i) { 0.0 } else { (v - of_row(i)).exp() });
    let sum = |row: usize| {
        // A sink takes part in the sum like a key, but has no value.
        let sink = head.sink.map_or(0.0, |sink| (sink - of_row(row * columns)).exp());
        exponentials.row(row).iter().sum::<f64>() + sink
    };
    let sums: Vec<f64> = (0..rows).map(sum).collect();
    let weights = map(&exponentials, &|i, v| {
        let sum = sums.get(i / columns.max(1)).copied().unwrap_or(0.0);
        // A row in which every key is hidden has no exponentials.
        if sum > 0.0 { v / sum } else { 0.0 }
    });
    let outputs = weights.times(&head.values);
    Steps { products, scaled, scores, hidden, exponentials, sums, weights, outputs }
}

/// `w · tanh(q + k)` for every query and key.
fn additive(queries: &Matrix, keys: &Matrix, w: &[f64]) -> Matrix {
    let score = |query: usize, key: usize| {
        let sums = queries.row(query).iter().zip(keys.row(key)).map(|(q, k)| (q + k).tanh());
        sums.zip(w).map(|(t, w)| t * w).sum()
    };
    let pairs = (0..queries.rows).flat_map(|query| (0..keys.rows).map(move |key| (query, key)));
    Matrix::new(queries.rows, keys.rows, pairs.map(|(query, key)| score(query, key)).collect())
}

/// The largest absolute difference of two matrices.
pub fn difference(a: &Matrix, b: &Matrix) -> f64 {
    a.values.iter().zip(&b.values).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()))
}

/// The steps as pictures and numbers; those of one query are written in full.
pub fn steps(name: &str, head: &Head, query: usize) -> Report {
    let found = computed(head);
    let op = &head.op;
    let width = head.queries.columns;
    let (q, k) = (&head.query_words, &head.key_words);
    let features: [&str; 2] = ["position", "feature"];
    let of = |title: &str, m: &Matrix, words: &[String]| signed(title, m, None, (words, &[]), features);
    let pairs: [&str; 2] = ["query", "key"];
    let scores = |title: &str, m: &Matrix, hidden| signed(title, m, hidden, (q, k), pairs);
    let mut text = "Every position has a query (what it looks for), a key (what it is found by) and a value \
                (what it contributes). They are three projections of the same inputs, or in cross attention of two."
        .to_owned();
    if !head.site.prepared.is_empty() {
        // Otherwise the numbers would be taken for the projections.
        text +=
            &format!(" Queries and keys are shown as attention reads them: {}.", listed(&head.site.prepared));
    }
    let mut parts = vec![Part {
        title: "1. Queries, keys and values".into(),
        text,
        facts: vec![
            ("width of a query and a key".into(), width.to_string()),
            ("width of a value".into(), head.values.columns.to_string()),
        ],
        figures: vec![
            of("Queries Q", &head.queries, q),
            of("Keys K", &head.keys, k),
            of("Values V", &head.values, k),
        ],
        ..Part::default()
    }];
    // In the spec of a run every default is written out, and the scale is a number: the usual one is known by
    // its value.
    let usual = (width as f64).sqrt().recip();
    let scale = match op.scale.root() {
        Some(Root { of, is_inverse: true }) => format!("1/√{of} = {:.4}", *op.scale),
        Some(Root { of, is_inverse: false }) => format!("√{of} = {:.4}", *op.scale),
        None if width > 1 && (*op.scale - usual).abs() <= 1e-6 * usual => {
            format!("1/√{width} = {:.4}", *op.scale)
        }
        None => format!("{:.4}", *op.scale),
    };
    let (title, mut text) = match op.score {
        Score::Dot => (
            "Q Kᵀ",
            format!(
                "A score is the dot product of a query and a key, times {scale}. Without a scale, wider \
                    queries would give larger scores, and softmax would select a single key."
            ),
        ),
        Score::Additive => (
            "w · tanh(q + k)",
            format!(
                "A score is computed from the sum of a query and a key: the dot product of a learned vector \
                    w and tanh of the sum, times {scale}."
            ),
        ),
    };
    // Nothing is hidden yet in these: the mask is the next step.
    let mut figures = vec![scores(title, &found.products, None), scores("scaled", &found.scaled, None)];
    if let Some(cap) = op.softcap {
        text += &format!(" Scores are bounded by ±{cap}: {cap} · tanh(score / {cap}).");
    }
    if head.bias.is_some() {
        text += " A bias that depends on the positions is added.";
    }
    if op.softcap.is_some() || head.bias.is_some() {
        figures.push(scores("as softmax gets them", &found.scores, None));
    }
    let title = "2. Scores".into();
    parts.push(Part { title, text, facts: vec![("scale".into(), scale)], figures, ..Part::default() });
    let any_hidden = found.hidden.iter().any(|h| *h);
    let text = if any_hidden {
        "Masks and padding hide pairs: their score becomes −∞ and their weight 0."
    } else {
        "Nothing is hidden: every query sees every key."
    };
    let softmax = match head.sink {
        None => "Softmax, exp(score) divided by the sum of its row, gives weights that sum to 1.",
        Some(_) => {
            "Softmax divides exp(score) by the sum of its row and the exponential of the sink's score: the weights \
                sum to less than 1, and the rest is the sink's, which has no value."
        }
    };
    let masked = scores("masked scores", &found.scores, Some(&found.hidden));
    let weights = weights(&found, (q, k));
    parts.push(Part {
        title: "3. Mask and softmax".into(),
        text: format!("{text} {softmax}"),
        legend: if any_hidden { "Hidden pairs are grey.".into() } else { String::new() },
        figures: vec![masked, weights],
        ..Part::default()
    });
    parts.push(one_query(head, &found, query));
    parts.push(Part {
        title: "5. Outputs".into(),
        text: "An output is the weighted mean of the values: weights · V. The weights and outputs above are \
                computed from Q, K and V by these steps; the run computed its own in single precision."
            .into(),
        facts: vec![
            (
                "largest difference of a weight from the run's".into(),
                small(difference(&found.weights, &head.weights)),
            ),
            ("largest difference of an output".into(), small(difference(&found.outputs, &head.outputs))),
        ],
        figures: vec![of("Outputs", &found.outputs, q)],
        ..Part::default()
    });
    let place = format!("{}, head {}", head.site.title(), head.index);
    Report { title: format!("{name}: attention step by step"), lead: place, parts }
}

/// The arithmetic for one query, key by key.
fn one_query(head: &Head, found: &Steps, query: usize) -> Part {
    let word = |words: &[String], i: usize| words.get(i).cloned().unwrap_or_else(|| i.to_string());
    let columns = head.keys.rows;
    let product = match head.op.score {
        Score::Dot => "q · k",
        Score::Additive => "w · tanh(q + k)",
    };
    let header = ["key", product, "scaled", "score", "exp(score − max)", "weight"];
    let number = |m: &Matrix, key: usize| format!("{:.4}", m.at(query, key)).replace('-', "−");
    let rows: Vec<Vec<String>> = (0..columns)
        .map(|key| {
            let is_hidden = found.hidden.get(query * columns + key).copied().unwrap_or(false);
            let score = if is_hidden { "−∞".to_owned() } else { number(&found.scores, key) };
            let name = format!("{key} {}", word(&head.key_words, key));
            let name = if head.key_words.is_empty() { key.to_string() } else { name };
            let [product, scaled] = [&found.products, &found.scaled].map(|m| number(m, key));
            vec![name, product, scaled, score, number(&found.exponentials, key), number(&found.weights, key)]
        })
        .collect();
    let written = |value: f64| format!("{value:.4}").replace('-', "−");
    let sum: f64 = found.exponentials.row(query).iter().sum();
    let mut facts = vec![("sum of the exponentials".to_owned(), written(sum))];
    if let Some(sink) = head.sink {
        let whole = found.sums.get(query).copied().unwrap_or(sum);
        facts.insert(0, ("score of the sink, which takes weight away".to_owned(), written(sink)));
        facts.push(("exponential of the sink".to_owned(), written(whole - sum)));
        facts.push(("divided by: the sum with the sink".to_owned(), written(whole)));
    }
    let weights = found.weights.row(query).iter().sum::<f64>();
    facts.push(("sum of the weights".to_owned(), written(weights)));
    // A few numbers are enough to compare the output with one's own.
    let first: Vec<String> =
        found.outputs.row(query).iter().take(6).map(|v| format!("{v:.4}").replace('-', "−")).collect();
    let more = if found.outputs.columns > first.len() { ", …" } else { "" };
    facts.push(("output".to_owned(), format!("[{}{more}]", first.join(", "))));
    let name = match head.query_words.get(query) {
        Some(word) => format!("{query} ({word})"),
        None => query.to_string(),
    };
    Part {
        title: format!("4. One query: position {name}"),
        text: "Its row of every matrix above, key by key. The column max is the greatest score of the row; \
            subtracting it changes no weight and keeps exp from overflowing."
            .into(),
        facts,
        table: Some((header.map(str::to_owned).to_vec(), rows)),
        ..Part::default()
    }
}

/// A matrix with signed values, with numbers in its cells if they fit.
fn signed(
    title: &str,
    matrix: &Matrix,
    hidden: Option<&Vec<bool>>,
    (rows, columns): (&[String], &[String]),
    axes: [&str; 2],
) -> Figure {
    let is_hidden = |i: usize| hidden.and_then(|h| h.get(i)).copied().unwrap_or(false);
    let most = matrix.values.iter().fold(0f64, |most, v| most.max(v.abs()));
    // A range without width would divide by 0.
    let most = if most > 0.0 { most } else { 1.0 };
    let values = (0..matrix.rows).map(|r| {
        let row = matrix.row(r).iter().enumerate();
        row.map(|(c, v)| Some(*v).filter(|_| !is_hidden(r * matrix.columns + c))).collect()
    });
    Heatmap::new(title, values.collect(), (-most, most), Colors::Signed)
        .labels(rows, columns)
        .axes(axes[0], axes[1])
        .sized((330.0, 330.0), true)
        .numbered("−∞")
        .figure()
}

/// The weights `[T, K]`, in which hidden keys have no value.
fn weights(found: &Steps, (rows, columns): (&[String], &[String])) -> Figure {
    let wide = found.weights.columns;
    let values = (0..found.weights.rows).map(|r| {
        let row = found.weights.row(r).iter().enumerate();
        row.map(|(c, v)| Some(*v).filter(|_| !found.hidden.get(r * wide + c).copied().unwrap_or(false)))
            .collect()
    });
    Heatmap::new("weights", values.collect(), (0.0, 1.0), Colors::Rising)
        .labels(rows, columns)
        .axes("query", "key")
        .sized((330.0, 330.0), true)
        .numbered("0")
        .figure()
}

/// A difference in two digits; `0` only if there is none at all.
fn small(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.1e}").replace('-', "−") }
}
