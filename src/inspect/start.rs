//! Initial values of parameters: the standard deviation that a spec declares compared with that of the
//! actual values, and its effect on activations with depth.

use super::sites::Stack;
use super::{Part, Report};
use crate::draw::bars::Bars;
use crate::draw::chart::{Axis, Chart, Series};
use crate::ir::paths::{FoldedParameter, elements, folded};
use crate::ir::{Init, Verified};
use crate::report::number;

/// A parameter, its declared distribution in a form without fans, and the path of its first copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// The parameter, with equal ones of a stack folded.
    pub parameter: FoldedParameter,
    /// The standard deviation that the spec declares.
    pub declared: f64,
    /// The path of the first of its copies.
    pub first: String,
    /// The distribution without fans, so that any part of the tensor can be sampled.
    pub plain: Init,
}

/// All parameters of a model.
pub fn started(graph: &Verified) -> Vec<Started> {
    folded(graph)
        .into_iter()
        .map(|parameter| {
            let (declared, plain) = spread(&parameter.parameter.init, &parameter.parameter.shape);
            // The copies of a folded parameter are drawn from the same distribution, so one of them is
            // enough.
            let first = parameter.path.replace('*', "0");
            Started { parameter, declared, first, plain }
        })
        .collect()
}

/// The standard deviation of a distribution over a tensor with this shape, and the same distribution
/// without reference to the shape. For orthogonal matrices the deviation is `gain / sqrt(longer side)`.
pub fn spread(init: &Init, shape: &[u64]) -> (f64, Init) {
    // The further axes of a convolution, its receptive field, count for both fans.
    let field: f64 = shape.iter().skip(2).map(|n| *n as f64).product();
    let (fan_in, fan_out) = match shape {
        [] => (1.0, 1.0),
        [n] => (*n as f64, *n as f64),
        [output, input, ..] => (*input as f64 * field, *output as f64 * field),
    };
    let normal = |std: f64| (std, Init::Normal { std });
    // The variance of a uniform distribution in `±bound` is `bound² / 3`.
    let uniform = |bound: f64| (bound / 3f64.sqrt(), Init::Uniform { bound });
    match init {
        Init::Zeros | Init::Ones | Init::Constant(_) => (0.0, init.clone()),
        Init::Normal { std } => normal(*std),
        Init::TruncatedNormal { std, cut } => (std * truncated(*cut), init.clone()),
        Init::Uniform { bound } => uniform(*bound),
        Init::XavierUniform { gain } => uniform(gain * (6.0 / (fan_in + fan_out)).sqrt()),
        Init::XavierNormal { gain } => normal(gain * (2.0 / (fan_in + fan_out)).sqrt()),
        Init::KaimingUniform { gain } => uniform(gain * (3.0 / fan_in).sqrt()),
        Init::KaimingNormal { gain } => normal(gain / fan_in.sqrt()),
        Init::Logarithms { gain } => (gain * of_logarithms(shape.last().copied().unwrap_or(1)), init.clone()),
        // The rows (or columns) have length `gain`, so the mean square of their entries is `gain² / longer
        // side`.
        Init::Orthogonal { gain } => (gain / fan_in.max(fan_out).sqrt(), init.clone()),
    }
}

/// The standard deviation of the logarithms of 1 to `n`.
fn of_logarithms(n: u64) -> f64 {
    // Of very many the logarithms are those of a uniform distribution, whose standard deviation is 1.
    const MANY: u64 = 1_000_000;
    if n > MANY {
        return 1.0;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    for i in 1..=n {
        let log = (i as f64).ln();
        sum += log;
        squares += log * log;
    }
    let count = n.max(1) as f64;
    (squares / count - (sum / count).powi(2)).max(0.0).sqrt()
}

/// The standard deviation of a standard normal distribution truncated to `± cut`, by Simpson's rule.
fn truncated(cut: f64) -> f64 {
    // Beyond twelve standard deviations, the density is less than the rounding of an `f64`.
    let cut = cut.min(12.0);
    // An even number, as the rule needs.
    let steps = 400;
    let h = 2.0 * cut / f64::from(steps);
    let (mut mass, mut second) = (0.0, 0.0);
    for i in 0..=steps {
        let x = -cut + h * f64::from(i);
        // Simpson's weights 1, 4, 2, 4, .., 4, 1; their common factor cancels out.
        let weight = if i == 0 || i == steps { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
        let density = (-0.5 * x * x).exp();
        mass += weight * density;
        second += weight * density * x * x;
    }
    if mass > 0.0 { (second / mass).sqrt() } else { 0.0 }
}

/// The report. `sampled` returns the sampled standard deviation of a parameter, if there is one; `depth`
/// has the variance of the output of each layer, with its stack and its index there.
pub fn report(
    name: &str,
    parameters: &[Started],
    sampled: &[Option<f64>],
    depth: &[(Stack, u64, f64)],
) -> Report {
    let mut rows = Vec::new();
    let mut bars: Vec<(String, f64, f64)> = Vec::new();
    for (i, one) in parameters.iter().enumerate() {
        let drawn = sampled.get(i).copied().flatten();
        let shape: Vec<String> = one.parameter.parameter.shape.iter().map(u64::to_string).collect();
        rows.push(vec![
            one.parameter.path.clone(),
            format!("[{}]", shape.join(", ")),
            number::exact(one.parameter.count),
            words(&one.parameter.parameter.init),
            format!("{:.5}", one.declared),
            drawn.map_or("–".to_owned(), |s| format!("{s:.5}")),
        ]);
        // Constants have no deviation, and a single number has none that could be measured.
        if one.declared > 0.0 && elements(&one.parameter.parameter.shape) > 1 {
            bars.push((one.parameter.path.clone(), one.declared, drawn.unwrap_or(0.0)));
        }
    }
    // A chart of more could not be read; the table lists all.
    bars.truncate(40);
    let mut figures = Vec::new();
    if !bars.is_empty() {
        let names = bars.iter().map(|b| b.0.clone()).collect();
        let word = |v: f64| if v == 0.0 { String::new() } else { format!("{v:.4}") };
        let mut chart = Bars::new("Standard deviation of initial values", "standard deviation", names, word)
            .with("declared", bars.iter().map(|b| b.1).collect());
        if sampled.iter().any(Option::is_some) {
            chart = chart.with("drawn", bars.iter().map(|b| b.2).collect());
        }
        figures.push(chart.figure());
    }
    let header = ["parameter", "shape", "copies", "initial values", "declared", "drawn"];
    let text = "The standard deviation that the spec declares, compared with that of the initial values; \
        one tensor of every kind is sampled.";
    let mut parts = vec![Part {
        title: "Parameters".into(),
        text: text.into(),
        figures,
        table: Some((header.map(str::to_owned).to_vec(), rows)),
        ..Part::default()
    }];
    if !depth.is_empty() {
        parts.push(by_depth(depth));
    }
    let lead = "declared and actual standard deviation of every parameter".to_owned();
    Report { title: format!("{name}: initialisation"), lead, parts }
}

/// Four significant digits: `0.3126`, `4.127e-4`.
fn digits(x: f64) -> String {
    if (1e-2..1e4).contains(&x) { format!("{x:.4}") } else { format!("{x:.3e}") }
}

/// The variance of the residual stream after every layer, for each stack by itself.
fn by_depth(depth: &[(Stack, u64, f64)]) -> Part {
    let mut chart = Chart::new(
        "Activations by depth",
        Axis::whole("layer"),
        Axis::linear("variance of the residual stream").including(0.0),
    );
    let mut facts = Vec::new();
    let stacks: Vec<&[(Stack, u64, f64)]> = depth.chunk_by(|a, b| a.0 == b.0).collect();
    for layers in &stacks {
        let [first, rest @ ..] = layers else { continue };
        let word = first.0.word();
        let fact = |(_, index, v): &(Stack, u64, f64)| (format!("{word} layer {index}"), digits(*v));
        facts.push(fact(first));
        if let Some(last) = rest.last() {
            facts.push(fact(last));
            let name = if stacks.len() > 1 { format!("growth in the {word}") } else { "growth".to_owned() };
            // Bounded, because embeddings that start with zeros have no variance.
            facts.push((name, format!("× {:.2}", last.2 / first.2.max(1e-12))));
        }
        let points = layers.iter().map(|(_, index, v)| (*index as f64, *v)).collect();
        chart = chart.with(Series::line(if stacks.len() > 1 { word } else { "" }, points));
    }
    Part {
        title: "Activations by depth".into(),
        text: "Variance of every layer's output for random tokens, before any training.".into(),
        facts,
        figures: vec![chart.figure()],
        ..Part::default()
    }
}

/// A distribution in words. Its standard deviation has a column of its own.
fn words(init: &Init) -> String {
    match init {
        Init::Zeros => "zeros".into(),
        Init::Ones => "ones".into(),
        Init::Constant(c) => format!("constant {c}"),
        Init::Normal { .. } => "normal".into(),
        Init::TruncatedNormal { cut, .. } => format!("normal, cut at {cut} std"),
        Init::Uniform { bound } => format!("uniform ± {bound:.4}"),
        Init::XavierUniform { .. } => "xavier_uniform".into(),
        Init::XavierNormal { .. } => "xavier_normal".into(),
        Init::KaimingUniform { .. } => "kaiming_uniform".into(),
        Init::KaimingNormal { .. } => "kaiming_normal".into(),
        Init::Orthogonal { .. } => "orthogonal".into(),
        Init::Logarithms { .. } => "logarithms of 1, 2, ...".into(),
    }
}
