//! Attention weights as grids of heads: one heatmap per head, with queries as rows and keys as columns.
//!
//! Without weights, only the masks are shown: which keys the spec lets every query see. Long sequences are
//! averaged to fit a picture, and their labels become numbers.

use super::sites::Site;
use super::{Matrix, Part, Report};
use crate::draw::Figure;
use crate::draw::heatmap::Heatmap;
use crate::draw::scale::Colors;
use crate::ir::op::MaskRule;
use crate::report::number;

/// The most heads of one layer in a grid; the text says how many more there are.
const HEADS: usize = 32;

/// The attention weights of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Heads {
    /// The attention that has them.
    pub site: Site,
    /// One matrix per head, whose rows are queries.
    pub weights: Vec<Matrix>,
    /// The index of the first head.
    pub first: usize,
    /// Labels of the queries; numbers if empty.
    pub queries: Vec<String>,
    /// Labels of the keys; numbers if empty.
    pub keys: Vec<String>,
}

/// The number of cells along each side of a mask's picture.
const CELLS: u64 = 32;
/// The number of positions along each side of a cell whose pairs are tested.
const LOOKS: u64 = 8;
/// How dark a cell is if all of its pairs are seen: a blue of the colour scale.
const SEEN: f64 = 0.35;

/// What masks hide: pictures of each different mask, at lengths at which every rule is visible. `context`
/// is the longest sequence of the model.
pub fn masks(name: &str, sites: &[Site], context: u64) -> Report {
    let mut kinds: Vec<(&Site, Vec<u64>)> = Vec::new();
    for site in sites {
        // Most layers of a model have the same mask, so one picture is enough for all of them.
        let is_like = |s: &Site| s.kind == site.kind && s.rules == site.rules && s.sizes == site.sizes;
        match kinds.iter_mut().find(|(s, _)| is_like(s)) {
            Some((_, layers)) => layers.push(site.layer),
            None => kinds.push((site, vec![site.layer])),
        }
    }
    let shown: Vec<Vec<u64>> = kinds.iter().map(|(site, _)| lengths(site, context)).collect();
    // A mask whose rules have no size is drawn as large as the others, to be compared with them.
    let largest = shown.iter().flatten().copied().max().unwrap_or(CELLS.min(context));
    let (mut figures, mut rows) = (Vec::new(), Vec::new());
    for ((site, layers), lengths) in kinds.iter().zip(shown) {
        let lengths = if lengths.is_empty() { vec![largest] } else { lengths };
        let layer = if layers.len() == 1 { "layer" } else { "layers" };
        let title = format!("{} attention, {layer} {}", site.kind.word(), ranges(layers));
        for length in lengths {
            // Sizes that do not depend on the inputs, such as those of an image, are drawn as they are.
            let [queries, keys] = site.sizes.map(|size| size.unwrap_or(length));
            figures.push(mask(site, &title, queries, keys));
            let rules: Vec<String> = site.rules.iter().flat_map(MaskRule::words).collect();
            let rules = if rules.is_empty() { "sees everything".to_owned() } else { rules.join(", ") };
            let positions = number::exact(u128::from(queries.max(keys)));
            rows.push(vec![title.clone(), rules, positions]);
        }
    }
    // An image has as many positions as the spec says, so nothing of it is padding.
    let has_padding = sites.iter().any(|site| site.sizes.contains(&None));
    let text = if has_padding { "Padding, which depends on the inputs, hides more." } else { "" }.to_owned();
    let legend = "Blue pairs are seen, grey ones are hidden by the mask. A cell that covers several \
        positions is violet if only some of its pairs are seen."
        .to_owned();
    let header = ["attention", "mask", "positions shown"].map(str::to_owned).to_vec();
    let table = Some((header, rows));
    let part = Part { title: "Masks".into(), text, legend, figures, table, ..Part::default() };
    let lead = "what masks leave, from the spec alone".to_owned();
    Report { title: format!("{name}: masks"), lead, parts: vec![part] }
}

/// The lengths at which the rules of a mask are visible: a rule's size is at least that of a cell, and the
/// rule hides something. Empty if no rule has a size within the context.
fn lengths(site: &Site, context: u64) -> Vec<u64> {
    let sizes = site.rules.iter().flat_map(|rule| {
        let window = rule.window.into_iter().flat_map(|window| [window.side(), window.side()]);
        window.chain(rule.chunk).chain(rule.prefix)
    });
    // A rule as long as the context hides nothing in it.
    let mut sizes: Vec<u64> = sizes.filter(|size| *size < context).collect();
    sizes.sort_unstable();
    // The lengths, each with the smallest size that is visible at it.
    let mut lengths: Vec<(u64, u64)> = Vec::new();
    for size in sizes {
        // At twice its size, about half of what a rule decides is beyond it.
        let wanted = size.saturating_mul(2).max(CELLS).min(context);
        match lengths.last_mut() {
            // The same picture shows both rules, as long as the smaller one is at least a cell.
            Some((length, least)) if step(wanted) <= *least => *length = wanted,
            _ => lengths.push((wanted, size)),
        }
    }
    lengths.into_iter().map(|(length, _)| length).collect()
}

/// The number of positions that a cell covers.
fn step(length: u64) -> u64 {
    length.div_ceil(CELLS).max(1)
}

/// The picture of one mask.
fn mask(site: &Site, title: &str, queries: u64, keys: u64) -> Figure {
    let (down, across) = (step(queries), step(keys));
    // The positions of a cell that are tested.
    let looks = |cell: u64, step: u64, length: u64| {
        let first = cell * step;
        let count = step.min(length.saturating_sub(first));
        // A cell of a long sequence covers many pairs: a picture of a million positions would test 10^12.
        let looks = count.min(LOOKS);
        // The middles of equal parts of the cell.
        (0..looks).map(move |i| first + (2 * i + 1) * count / (2 * looks))
    };
    let seen = |row: u64, column: u64| {
        let (mut seen, mut all) = (0u32, 0u32);
        for q in looks(row, down, queries) {
            for k in looks(column, across, keys) {
                seen += u32::from(!site.hides(q, k));
                all += 1;
            }
        }
        // A cell without a value is grey, the colour of what is hidden.
        (seen > 0).then(|| SEEN * f64::from(seen) / f64::from(all.max(1)))
    };
    let columns = keys.div_ceil(across);
    let rows = (0..queries.div_ceil(down)).map(|q| (0..columns).map(|k| seen(q, k)).collect()).collect();
    let map = Heatmap::new(title, rows, (0.0, 1.0), Colors::Rising).axes("query", "key");
    map.each_cell_covers(down, across).sized((220.0, 220.0), false).figure()
}

/// Ranges of layers, `0–5, 7`, or `0, 2, .. 24` for regular steps.
fn ranges(layers: &[u64]) -> String {
    let mut steps = layers.windows(2).map(|pair| pair.last().zip(pair.first()).map(|(b, a)| b - a));
    // Patterns such as `[local, global]` leave every second layer to each mask.
    if let ([first, second, .., last], Some(step)) = (layers, steps.next())
        && step > Some(1)
        && layers.len() > 3
        && steps.all(|other| other == step)
    {
        return format!("{first}, {second}, .. {last}");
    }
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for layer in layers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *layer => *last = *layer,
            Some((_, last)) if *last == *layer => {}
            _ => runs.push((*layer, *layer)),
        }
    }
    let words = runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}–{b}") });
    let mut words: Vec<String> = words.collect();
    // A heading has one line.
    if words.len() > 6 {
        words.truncate(6);
        words.push("…".into());
    }
    words.join(", ")
}

/// Grids of heads, one part per layer. A layer is taken from the iterator only after the one before has been
/// drawn, so that the weights of one layer are in memory at a time.
///
/// # Errors
/// The first error of a layer.
pub fn grids<E>(name: &str, all: impl IntoIterator<Item = Result<Heads, E>>) -> Result<Report, E> {
    let parts = all.into_iter().map(|heads| {
        let heads = &heads?;
        let title = heads.site.title();
        let shown = heads.weights.len().min(HEADS);
        // A sink takes a part of every row, and has no column.
        let sum = if heads.has_sinks() {
            "a row sums to less than 1, and the rest is the sink's"
        } else {
            "a row sums to 1"
        };
        let most = largest(heads.weights.iter().take(shown));
        let mut legend = format!("Rows are queries, columns keys; {sum}.");
        if most < 1.0 {
            legend += &format!(" The colours end at {most:.2}; larger weights have the last one.");
        }
        let mut text = sharpest(heads);
        if shown < heads.weights.len() {
            text += &format!(" {} more heads are not shown.", heads.weights.len() - shown);
        }
        let figures = heads.weights.iter().take(shown).enumerate();
        let figures =
            // All heads have the same colours, so the last one has the legend for all.
            figures.map(|(i, weights)| head(heads, heads.first + i, weights, most, i + 1 == shown)).collect();
        let header = ["head", "mean entropy of a row in bits"].map(str::to_owned).to_vec();
        let rows = heads.entropies().take(shown);
        let rows = rows.map(|(head, bits)| vec![head.to_string(), format!("{bits:.2}")]).collect();
        Ok(Part { title, text, legend, figures, table: Some((header, rows)), ..Part::default() })
    });
    let lead = "attention weights of every head".to_owned();
    Ok(Report { title: format!("{name}: attention"), lead, parts: parts.collect::<Result<_, E>>()? })
}

/// The weight at which the colours of some heads end. It is 1, unless nine of ten queries give no key half of their
/// attention: of a hundred keys that get equal shares none would have another colour than 0.
fn largest<'a>(heads: impl Iterator<Item = &'a Matrix>) -> f64 {
    let rows = heads.flat_map(|weights| (0..weights.rows).map(|row| weights.row(row)));
    let mut most: Vec<f64> = rows.map(|row| row.iter().fold(0f64, |most, w| most.max(*w))).collect();
    most.sort_by(f64::total_cmp);
    match most.get(most.len() * 9 / 10) {
        // In hundredths, as the legend says it.
        Some(most) if *most < 0.5 => (most * 100.0).ceil().max(1.0) / 100.0,
        Some(_) | None => 1.0,
    }
}

impl Heads {
    /// Whether a sink takes a part of every row.
    fn has_sinks(&self) -> bool {
        self.site.op.as_ref().is_some_and(|op| op.has_sinks)
    }

    /// The index of every head with the mean entropy of its rows in bits.
    fn entropies(&self) -> impl Iterator<Item = (usize, f64)> {
        let has_sinks = self.has_sinks();
        self.weights.iter().enumerate().map(move |(i, weights)| (self.first + i, entropy(weights, has_sinks)))
    }
}

/// A sentence about the head with the sharpest attention.
fn sharpest(heads: &Heads) -> String {
    let with_sink = if heads.has_sinks() { ", with the sink's share," } else { "" };
    match heads.entropies().min_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((_, bits)) if heads.weights.len() == 1 => {
            format!("The mean entropy of a row{with_sink} is {bits:.2} bits.")
        }
        Some((head, bits)) => {
            let mean = format!("Head {head} is the sharpest, with {bits:.2} bits per row on average");
            format!("{mean}{}.", with_sink.trim_end_matches(','))
        }
        None => String::new(),
    }
}

/// The mean entropy of the rows in bits. What a row lacks to 1 is a weight, too, if it is that of a sink.
fn entropy(weights: &Matrix, has_sinks: bool) -> f64 {
    // `w log2 w` goes to 0 with `w`, where the logarithm has no value.
    let bits_of = |w: f64| if w > 0.0 { -w * w.log2() } else { 0.0 };
    let bits: f64 = weights.values.iter().map(|w| bits_of(*w)).sum();
    let of_sinks: f64 = (0..if has_sinks { weights.rows } else { 0 })
        .map(|row| bits_of(1.0 - weights.row(row).iter().sum::<f64>()))
        .sum();
    // A row that sees nothing counts with 0 bits.
    // Rows with a single weight of 1 have `-0`, and nobody reads a sign before 0.
    ((bits + of_sinks) / weights.rows.max(1) as f64).abs()
}

/// The heatmap of one head, `[T, K]`. The keys that a mask hides have no value.
fn head(heads: &Heads, index: usize, weights: &Matrix, most: f64, has_legend: bool) -> Figure {
    let offset = weights.columns.saturating_sub(weights.rows);
    let is_self = heads.site.kind != super::sites::Kind::Cross;
    let rows = (0..weights.rows).map(|q| {
        // A hidden key is grey and not the colour of 0, which a key that is seen may have, too.
        let hidden = |k: usize| {
            // The queries of a continued sequence are its last positions.
            is_self && heads.site.hides((q + offset) as u64, k as u64)
        };
        weights.row(q).iter().enumerate().map(|(k, w)| if hidden(k) { None } else { Some(*w) }).collect()
    });
    let map = Heatmap::new(&format!("head {index}"), rows.collect(), (0.0, most), Colors::Rising);
    let labels =
        |words: &[String], count: usize| words.get(..count.min(words.len())).unwrap_or_default().to_vec();
    let (queries, keys) = (labels(&heads.queries, weights.rows), labels(&heads.keys, weights.columns));
    map.labels(&queries, &keys).axes("query", "key").sized((210.0, 210.0), has_legend).figure()
}
