//! Attention weights as grids of heads: one heatmap a head, queries down, keys across.
//!
//! Before there are weights, the masks alone: what the spec lets every query see. Long sequences are
//! averaged down to what a picture can show; their labels give way to numbers.

use super::sites::Site;
use super::{Matrix, Part, Report};
use crate::draw::Figure;
use crate::draw::heatmap::Heatmap;
use crate::draw::scale::Colors;

/// Heads beyond so many of one layer are left out of its grid.
const HEADS: usize = 32;

/// Weights of one layer, a matrix a head.
#[derive(Clone, Debug, PartialEq)]
pub struct Heads {
    /// Where.
    pub site: Site,
    /// One a head, rows are queries.
    pub weights: Vec<Matrix>,
    /// Words of the queries; numbers if there are none.
    pub queries: Vec<String>,
    /// Words of the keys.
    pub keys: Vec<String>,
}

/// What masks hide, one picture for each different one.
pub fn masks(name: &str, sites: &[Site], length: u64) -> Report {
    let mut parts: Vec<Part> = Vec::new();
    let mut kinds: Vec<(&Site, Vec<u64>)> = Vec::new();
    for site in sites {
        let like = kinds.iter_mut().find(|(s, _)| s.kind == site.kind && s.rules == site.rules);
        match like {
            Some((_, layers)) => layers.push(site.layer),
            None => kinds.push((site, vec![site.layer])),
        }
    }
    let mut figures = Vec::new();
    for (site, layers) in &kinds {
        // A blue of the colour scale; what counts is seen or not.
        let value = |q, k| if site.hides(q, k) { None } else { Some(0.35) };
        let rows = (0..length).map(|q| (0..length).map(|k| value(q, k)).collect()).collect();
        let title = format!("{} attention, layers {}", site.kind.word(), ranges(layers));
        let map = Heatmap::new(&title, rows, (0.0, 1.0), Colors::Rising).axes("query", "key");
        figures.push(map.sized((220.0, 220.0), false).figure());
    }
    let text = "Blue pairs are seen, grey ones are hidden by the mask. Padding, which comes with the \
                inputs, hides more.";
    parts.push(Part { title: "Masks".into(), text: text.into(), figures, ..Part::default() });
    let lead = format!("what masks leave of {length} positions, from the spec alone");
    Report { title: format!("{name}: masks"), lead, parts }
}

/// `0–5, 7`; `0, 2, .. 24` where every so many are meant.
fn ranges(layers: &[u64]) -> String {
    let mut steps = layers.windows(2).map(|pair| pair.last().zip(pair.first()).map(|(b, a)| b - a));
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
    if words.len() > 6 {
        words.truncate(6);
        words.push("…".into());
    }
    words.join(", ")
}

/// Grids of heads, a part for each layer.
pub fn grids(name: &str, all: &[Heads]) -> Report {
    let parts = all.iter().map(|heads| {
        let title = format!("{} attention, layer {}", heads.site.kind.word(), heads.site.layer);
        let shown = heads.weights.len().min(HEADS);
        let mut text = format!("Rows are queries, columns keys; a row sums to 1. {}", sharpest(heads));
        if shown < heads.weights.len() {
            text += &format!(" {} more heads are not shown.", heads.weights.len() - shown);
        }
        let figures = heads.weights.iter().take(shown).enumerate();
        let figures = figures.map(|(i, weights)| head(heads, i, weights, i + 1 == shown)).collect();
        Part { title, text, figures, ..Part::default() }
    });
    let lead = "attention weights of every head".to_owned();
    Report { title: format!("{name}: attention"), lead, parts: parts.collect() }
}

/// Which head looks most narrowly, in a sentence.
fn sharpest(heads: &Heads) -> String {
    let entropies = heads.weights.iter().map(entropy).enumerate();
    match entropies.min_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((head, bits)) => format!("Head {head} is the sharpest, {bits:.2} bits a row on average."),
        None => String::new(),
    }
}

/// Mean entropy of the rows, in bits.
fn entropy(weights: &Matrix) -> f64 {
    let bits: f64 = weights.values.iter().filter(|w| **w > 0.0).map(|w| -w * w.log2()).sum();
    bits / weights.rows.max(1) as f64
}

fn head(heads: &Heads, index: usize, weights: &Matrix, has_legend: bool) -> Figure {
    let offset = weights.columns.saturating_sub(weights.rows);
    let is_self = heads.site.kind != super::sites::Kind::Cross;
    let rows = (0..weights.rows).map(|q| {
        let hidden = |k: usize| {
            // Queries of a continued sequence are its last ones.
            is_self && heads.site.hides((q + offset) as u64, k as u64)
        };
        weights.row(q).iter().enumerate().map(|(k, w)| if hidden(k) { None } else { Some(*w) }).collect()
    });
    let map = Heatmap::new(&format!("head {index}"), rows.collect(), (0.0, 1.0), Colors::Rising);
    let labels =
        |words: &[String], count: usize| words.get(..count.min(words.len())).unwrap_or_default().to_vec();
    let (queries, keys) = (labels(&heads.queries, weights.rows), labels(&heads.keys, weights.columns));
    map.labels(&queries, &keys).axes("query", "key").sized((210.0, 210.0), has_legend).figure()
}
