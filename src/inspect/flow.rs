//! How attention carries information to one position: layer by layer, and multiplied over all layers.
//!
//! Rollout (Abnar and Zuidema 2020): a layer mixes positions by `(A + I) / 2`, the mean of its heads and
//! the residual path, where `A` is the mean over attentions that the layer adds up in parallel; the product
//! over layers says how much of every input position arrives.

use super::attention::Heads;
use super::{Matrix, Part, Report};
use crate::draw::chart::{Axis, Chart, Series};
use crate::draw::heatmap::Heatmap;
use crate::draw::scale::Colors;
use crate::draw::text::{fit, width};
use crate::draw::theme::SERIES;
use crate::draw::{Anchor, Canvas, Figure};

/// Strands for a smaller share of attention are not drawn: with one for every pair, a picture would be a solid
/// area.
const FAINT: f64 = 0.03;
/// Where attention is spread out, a strand is drawn from this part of the largest one of its layer.
const OF_LARGEST: f64 = 0.5;
/// The most strands of a layer: of equal shares of a long sequence, all are as large as the largest.
const STRANDS: usize = 150;
/// The most positions side by side; of a longer sequence, those around the target are shown.
const POSITIONS: usize = 40;

/// A step on the way through a stack: the parallel attentions of one layer.
struct Step {
    /// `layer 3`, or `layer 3.0` if other attentions of the layer follow these.
    name: String,
    /// The mean over the attentions of the mean over their heads.
    mean: Matrix,
}

/// The steps of a stack. Attentions of one layer that do not read each other's results are one step; those
/// that do follow each other.
fn steps(layers: &[Heads]) -> Vec<Step> {
    let place = |heads: &Heads| (heads.site.layer, heads.site.round);
    let mut sorted: Vec<&Heads> = layers.iter().collect();
    // The sort is stable and the runs of equal keys are steps, so `layers` may be in any order.
    sorted.sort_by_key(|heads| place(heads));
    let step = |parallel: &[&Heads]| {
        let (layer, round) = parallel.first().map(|heads| place(heads)).unwrap_or_default();
        let has_others = layers.iter().any(|heads| heads.site.layer == layer && heads.site.round != round);
        let name = if has_others { format!("layer {layer}.{round}") } else { format!("layer {layer}") };
        let means: Vec<Matrix> = parallel.iter().map(|heads| Matrix::mean(&heads.weights)).collect();
        Step { name, mean: Matrix::mean(&means) }
    };
    sorted.chunk_by(|a, b| place(a) == place(b)).map(step).collect()
}

/// How much of every input position has reached every position after each step, from first to last. A step is
/// a layer, unless attentions of one layer follow each other.
pub fn rollout(layers: &[Heads]) -> Vec<Matrix> {
    rolled(&steps(layers))
}

/// The products of the mixing matrices `(A + I) / 2` up to every step.
fn rolled(steps: &[Step]) -> Vec<Matrix> {
    let mut all: Vec<Matrix> = Vec::new();
    for step in steps {
        let mut mixed = step.mean.clone();
        for (i, value) in mixed.values.iter_mut().enumerate() {
            let is_own = i / mixed.columns.max(1) == i % mixed.columns.max(1);
            *value = 0.5 * *value + if is_own { 0.5 } else { 0.0 };
        }
        let through = match all.last() {
            // A layer reads what the ones before it give, so it is the left factor.
            Some(before) => mixed.times(before),
            None => mixed,
        };
        all.push(through);
    }
    all
}

/// How much of every input position has reached one position after each step, from first to last: its rows of
/// [`rollout`], without the products of whole matrices, which take long for thousands of positions.
fn arrivals(steps: &[Step], target: usize) -> Vec<Vec<f64>> {
    let size = steps.first().map_or(0, |step| step.mean.columns);
    let alone: Vec<f64> = (0..size).map(|i| if i == target { 1.0 } else { 0.0 }).collect();
    let back = |row: Vec<f64>, step: &Step| {
        // Half of what a position has comes from itself, half from where it looks.
        let mut before: Vec<f64> = row.iter().map(|share| 0.5 * share).collect();
        for (to, share) in row.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            for (sum, weight) in before.iter_mut().zip(step.mean.row(to)) {
                *sum += 0.5 * share * weight;
            }
        }
        before
    };
    // From the last layer to the first, one row is multiplied with a matrix. Products of whole matrices would
    // take as many times longer as there are positions.
    (1..=steps.len()).map(|n| steps.iter().take(n).rev().fold(alone.clone(), back)).collect()
}

/// The flow to one position through the self-attention layers of one stack.
pub fn flow(name: &str, layers: &[Heads], target: usize) -> Report {
    let words = layers.first().map(|l| l.queries.clone()).unwrap_or_default();
    let size = layers.first().and_then(|l| l.weights.first()).map_or(0, |m| m.rows);
    let word = |i: usize| words.get(i).cloned().unwrap_or_else(|| i.to_string());
    let steps = steps(layers);
    let arrivals = arrivals(&steps, target);
    let arrived: Vec<Vec<Option<f64>>> =
        arrivals.iter().rev().map(|row| row.iter().map(|v| Some(*v)).collect()).collect();
    // The colours cover at least 5 %, so that shares which are all tiny do not look large.
    let most = arrivals.iter().flatten().fold(0.05f64, |a, b| a.max(*b));
    let rows: Vec<String> = steps.iter().rev().map(|step| step.name.clone()).collect();
    let columns: Vec<String> = (0..size).map(word).collect();
    let only = only(layers);
    let title = match only {
        Some(layer) => format!("Rollout: what has arrived after layer {layer}"),
        None => "Rollout: what has arrived after each layer".to_owned(),
    };
    let map = Heatmap::new(&title, arrived, (0.0, most), Colors::Rising)
        .labels(&rows, &columns)
        .axes("", "input position")
        .sized((560.0, 260.0), true);
    let whose = match layers.first() {
        Some(heads) if heads.weights.len() == 1 => format!("attention of head {}", heads.first),
        Some(_) | None => "attention, averaged over heads,".to_owned(),
    };
    let (strands, left_out) = strands(&steps, target, &columns);
    // A path that fades ends in the picture, which would otherwise look as if nothing came from there.
    let faint = match left_out {
        share if share < 0.0005 => String::new(),
        share => format!(
            " Strands below {:.0} % of the target's attention are left out, or below half of the largest of their \
                layer if that is less: {:.1} % of all in the layer where they are most, so a path may begin above the \
                input.",
            100.0 * FAINT,
            100.0 * share
        ),
    };
    let window = window(target, columns.len());
    let far = if window.len() < columns.len() {
        format!(
            " Strands between other positions than {} to {} are left out, too.",
            window.start,
            window.end - 1
        )
    } else {
        String::new()
    };
    let curves_show = match (only, stride(steps.len())) {
        (Some(0), _) => "The curve shows what that position itself attends to.".to_owned(),
        (Some(layer), _) => format!(
            "The curve shows what that position itself attends to. The input is that of layer {layer}, which the layers \
             before it have mixed already."
        ),
        (None, stride) => {
            let lines = match (steps.len(), stride) {
                (_, 1) => "one line for each layer".to_owned(),
                (all, stride) => format!("one line for each of {} of the {all} layers", all.div_ceil(stride)),
            };
            format!(
                "The curves show what that position itself attends to in every layer: one line for each of the \
                 positions that get most, and {lines}."
            )
        }
    };
    let legend = format!(
        "Strands show {whose} on the paths that end at position {}; thicker is more.{faint}{far} {curves_show}",
        words.get(target).map_or(target.to_string(), |word| format!("{target} ({word})"))
    );
    let text = match only {
        Some(layer) => format!(
            "The rollout adds the residual path, (A + I) / 2: how much of every position of its input has arrived after \
             layer {layer}."
        ),
        None => "The rollout adds the residual path, (A + I) / 2 per layer, and multiplies the layers: how much of \
                 every input position has arrived."
            .to_owned(),
    };
    let mut figures = vec![strands];
    figures.extend(curves(&steps, target, size, &words));
    figures.push(map.figure());
    let mut shares: Vec<(usize, f64)> =
        arrivals.last().map(|row| row.iter().copied().enumerate().collect()).unwrap_or_default();
    // Equal shares in the order of positions, so that the report is always the same.
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let facts =
        shares.iter().take(5).map(|(i, v)| (format!("from {}", named(&words, *i)), format!("{v:.3}")));
    let part = Part {
        title: format!("Flow to position {target}"),
        text,
        legend,
        facts: facts.collect(),
        figures,
        ..Part::default()
    };
    // An encoder-decoder has two stacks, each with words of its own.
    let kind = layers.first().map_or("self", |heads| heads.site.kind.word());
    let lead = match only {
        Some(layer) => format!("{kind} attention of layer {layer} to one position"),
        None => format!("{kind} attention over the layers to one position"),
    };
    Report { title: format!("{name}: flow"), lead, parts: vec![part] }
}

/// A position with its word, if it has one.
fn named(words: &[String], position: usize) -> String {
    words.get(position).map_or(position.to_string(), |word| format!("{position} {word}"))
}

/// The layer, if all attention is that of one.
fn only(layers: &[Heads]) -> Option<u64> {
    let (first, rest) = layers.split_first()?;
    rest.iter().all(|heads| heads.site.layer == first.site.layer).then_some(first.site.layer)
}

/// The attention of the target, layer by layer: one line for each of the positions that get most, and one
/// line per layer along the positions. Of a single step, the latter alone.
fn curves(steps: &[Step], target: usize, count: usize, words: &[String]) -> Vec<Figure> {
    let rows: Vec<&Matrix> = steps.iter().map(|step| &step.mean).collect();
    let most = |position: &usize| rows.iter().fold(0f64, |most, m| most.max(m.at(target, *position)));
    let mut shown: Vec<usize> = (0..count).filter(|p| most(p) > 0.0).collect();
    shown.sort_by(|a, b| most(b).total_cmp(&most(a)).then(a.cmp(b)));
    shown.truncate(SERIES);
    // They are chosen by their attention, and drawn in the order of positions.
    shown.sort_unstable();
    let attention = Axis::linear("attention").including(0.0);
    // Names such as `layer 3.0` say that attentions of one layer follow each other.
    let along = if steps.iter().any(|step| step.name.contains('.')) { "step" } else { "layer" };
    let title = "What the target attends to, layer by layer";
    let mut by_layer = Chart::new(title, Axis::whole(along), attention.clone());
    for position in shown {
        let points = rows.iter().enumerate().map(|(layer, m)| (layer as f64, m.at(target, position)));
        by_layer = by_layer.with(Series::line(&named(words, position), points.collect()).marked());
    }
    let is_one = steps.len() < 2;
    let title = if is_one { "What the target attends to" } else { "The same along the positions" };
    let mut by_position = Chart::new(title, Axis::whole("input position"), attention);
    for step in steps.iter().step_by(stride(steps.len())) {
        let matrix = &step.mean;
        let points = matrix.row(target).iter().enumerate().map(|(k, v)| (k as f64, *v));
        by_position = by_position.with(Series::line(&step.name, points.collect()));
    }
    // A line needs two points.
    let by_layer = Some(by_layer.figure()).filter(|_| !is_one);
    by_layer.into_iter().chain([by_position.figure()]).collect()
}

/// Of more layers than the theme has colours, evenly spaced ones are shown: the distance from one to the next.
fn stride(layers: usize) -> usize {
    layers.div_ceil(SERIES).max(1)
}

/// The positions that are drawn: of a long sequence, those up to the target.
fn window(target: usize, count: usize) -> std::ops::Range<usize> {
    let first = target.saturating_sub(POSITIONS - 1).min(count.saturating_sub(POSITIONS));
    first..(first + POSITIONS).min(count)
}

/// Layers as rows of labels, with lines between them as thick as the attention on paths to the target;
/// and the share of the attention that is not drawn, in the layer where it is largest.
fn strands(steps: &[Step], target: usize, words: &[String]) -> (Figure, f64) {
    let count = words.len();
    let shown = window(target, count);
    let first = shown.start;
    // Wide enough for the words, but never wider than the page: long words are cut.
    let widest = words.iter().fold(0f64, |w, t| w.max(width(t, 11.0))).clamp(16.0, 64.0);
    let wide = (widest + 12.0).min((900.0 / shown.len().max(1) as f64).max(22.0));
    let (left, top, row) = (74.0, 44.0, 66.0);
    let place = |position: usize, level: usize| {
        let x = left + wide * (position.saturating_sub(first) as f64 + 0.5);
        (x, top + row * (steps.len().saturating_sub(level)) as f64)
    };
    let mut canvas = Canvas::default();
    let title = "Attention on the way to the target";
    canvas.text((14.0, 20.0), Anchor::Start, "label strong fill-ink", title);
    // How much of the target's attention passes through every position of a level.
    let mut weight = vec![0.0; count];
    if let Some(slot) = weight.get_mut(target) {
        *slot = 1.0;
    }
    // From the top: what a lower level carries depends on how much of it is still on its way to the target.
    let mut left_out = 0f64;
    for (level, step) in steps.iter().enumerate().rev() {
        let matrix = &step.mean;
        let mut below = vec![0.0; count];
        // From where, to where, and how much.
        let mut seen: Vec<(usize, usize, f64)> = Vec::new();
        let mut faint = 0.0;
        for (query, through) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            for (key, share) in matrix.row(query).iter().enumerate() {
                let carried = through * share;
                if let Some(slot) = below.get_mut(key) {
                    *slot += carried;
                }
                if shown.contains(&query) && shown.contains(&key) {
                    seen.push((key, query, carried));
                } else if carried < FAINT {
                    // What is larger leads to positions that are not shown, which is told by itself.
                    faint += carried;
                }
            }
        }
        // Equal ones in the order of positions, so that the picture is always the same.
        seen.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.1, a.0).cmp(&(b.1, b.0))));
        let largest = seen.first().map_or(0.0, |(_, _, carried)| *carried);
        let least = FAINT.min(OF_LARGEST * largest);
        let fits = |(_, _, carried): &&(usize, usize, f64)| *carried > 0.0 && *carried >= least;
        let drawn = seen.iter().take(STRANDS).take_while(fits).count();
        let (strong, weak) = seen.split_at(drawn);
        // In the order of positions, as the lines above and below.
        let mut strong = strong.to_vec();
        strong.sort_by_key(|(key, query, _)| (*query, *key));
        for (key, query, carried) in strong {
            let (from, to) = (place(key, level), place(query, level + 1));
            strand(&mut canvas, (from.0, from.1 - 14.0), (to.0, to.1 + 6.0), carried);
        }
        faint += weak.iter().map(|(_, _, carried)| carried).sum::<f64>();
        left_out = left_out.max(faint);
        weight = below;
    }
    for level in 0..=steps.len() {
        let y = place(first, level).1;
        let step = level.checked_sub(1).and_then(|before| steps.get(before));
        let name = step.map_or("input", |step| step.name.as_str());
        canvas.text((left - 10.0, y), Anchor::End, "small fill-muted", name);
        for position in shown.clone() {
            let is_target = level == steps.len() && position == target;
            if level != 0 && level != steps.len() {
                canvas.circle((place(position, level).0, y - 4.0), 2.2, "fill-muted");
                continue;
            }
            let word = fit(words.get(position).map_or("", String::as_str), 11.0, wide - 2.0);
            let class = if is_target { "small strong fill-changed" } else { "small fill-ink" };
            canvas.text((place(position, level).0, y), Anchor::Middle, class, &word);
        }
    }
    // With few words, the title is wider than the picture.
    // The width of a text is that of one font, so there is some room for another.
    let across = (left + wide * shown.len() as f64 + 16.0).max(14.0 + width(title, 13.0) * 1.1 + 8.0);
    let size = (across, top + row * steps.len() as f64 + 20.0);
    let figure = Figure::new(
        canvas,
        size,
        "Attention flow",
        "Words of the input below, the target above, lines between layers.",
    );
    (figure, left_out)
}

/// A curve whose thickness is a share.
fn strand(canvas: &mut Canvas, from: (f64, f64), to: (f64, f64), share: f64) {
    // Even the thinnest strand must be seen.
    let half = 0.4 + 2.6 * share.min(1.0);
    let (wide, high) = (to.0 - from.0, to.1 - from.1);
    // A smoothstep, so that strands leave and arrive vertically.
    let bend = |t: f64| t * t * (3.0 - 2.0 * t);
    let along = |t: f64, side: f64| {
        // Across the direction of the strand: beside it, one that is nearly horizontal would be a hair.
        let (dx, dy) = (wide * 6.0 * t * (1.0 - t), high);
        let length = dx.hypot(dy).max(1e-9);
        let (x, y) = (from.0 + wide * bend(t), from.1 + high * t);
        (x - side * half * dy / length, y + side * half * dx / length)
    };
    let steps = (0..=12).map(|i| f64::from(i) / 12.0);
    let left = steps.clone().map(|t| along(t, -1.0));
    let right = steps.rev().map(|t| along(t, 1.0));
    let outline: Vec<(f64, f64)> = left.chain(right).collect();
    canvas.area(&outline, "fill-series-0");
}
