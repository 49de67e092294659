//! How a run learned: its loss for each step and smoothed, the metrics during training, the learning rate
//! and the gradients.
//!
//! The loss of a single step comes from few examples and fluctuates; the curve is the mean of neighbouring
//! steps, with a band from the smallest to the largest of them.

use super::{Part, Report};
use crate::diag::count::counted;
use crate::draw::chart::{Axis, Chart, Series};
use crate::report::number::{count, exact};

/// The most points of a curve: each is the mean of some steps, since single ones fluctuate.
const POINTS: usize = 200;
/// The most evaluations in a table.
const ROWS: usize = 30;
/// The number of columns of a curve in text.
const COLUMNS: usize = 40;

/// One step of training, as a run has recorded it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The number of the step, counted from 1.
    pub step: u64,
    /// The mean loss of its predictions, in nats.
    pub loss: f64,
    /// The losses of parts of the model by name, which training adds to that of the predictions.
    pub losses: Vec<(String, f64)>,
    /// The learning rate with which its gradient was applied, as the schedule gives it.
    pub rate: f64,
    /// The norm of the gradient before clipping, if gradients were clipped.
    pub norm: Option<f64>,
    /// The number of tokens that were read.
    pub tokens: u64,
    /// The seconds since training began or was resumed.
    pub seconds: f64,
}

/// A metric that was computed several times.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The name of the metric: `loss`, `accuracy`.
    pub name: String,
    /// The part of the data.
    pub split: String,
    /// Whether a smaller value is better.
    pub falls: bool,
    /// The steps and the values; a value is absent if it was not a number.
    pub points: Vec<(u64, Option<f64>)>,
}

impl Measured {
    /// The step with the best value, and the value.
    pub fn best(&self) -> Option<(u64, f64)> {
        let known = self.points.iter().filter_map(|(step, value)| Some((*step, (*value)?)));
        // Of equal values, the first is the best.
        known.reduce(|best, one| match self.falls {
            true if one.1 < best.1 => one,
            false if one.1 > best.1 => one,
            _ => best,
        })
    }
}

/// What a run has recorded so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// All steps that were recorded, in order.
    pub steps: Vec<Step>,
    /// The metrics; the first one decides which checkpoint is the best.
    pub measured: Vec<Measured>,
    /// The planned number of steps, if it is known.
    pub planned: Option<u64>,
    /// What the run was called with: when, by which version and where, each with its name.
    pub calls: Vec<(String, String)>,
}

impl Course {
    /// Adds a metric that was computed after a step.
    pub fn measure(&mut self, name: &str, split: &str, falls: bool, at: (u64, Option<f64>)) {
        // The same metric on another part of the data is another curve.
        match self.measured.iter_mut().find(|m| m.name == name && m.split == split) {
            Some(known) => known.points.push(at),
            None => {
                let (name, split) = (name.to_owned(), split.to_owned());
                self.measured.push(Measured { name, split, falls, points: vec![at] });
            }
        }
    }

    /// The duration of the training in seconds, including the time before interruptions.
    fn seconds(&self) -> f64 {
        let next = self.steps.iter().skip(1).map(|s| s.seconds).chain([0.0]);
        // The clock restarts when a run is resumed.
        self.steps.iter().zip(next).filter(|(step, next)| *next < step.seconds).map(|(s, _)| s.seconds).sum()
    }
}

/// Summarizes neighbouring steps as one point: the last of them, and the mean, the smallest and the largest
/// value.
fn smoothed(points: &[(u64, f64)], most: usize) -> Vec<(f64, [f64; 3])> {
    // At least one step: without points there are no chunks either.
    let wide = points.len().div_ceil(most.max(1)).max(1);
    // Whole chunks instead of a moving mean, so that each step counts in one point only.
    let merged = points.chunks(wide).filter_map(|chunk| {
        let (last, _) = chunk.last()?;
        let values = chunk.iter().map(|(_, value)| *value);
        let mean = values.clone().sum::<f64>() / chunk.len() as f64;
        let low = values.clone().fold(f64::INFINITY, f64::min);
        Some((*last as f64, [mean, low, values.fold(f64::NEG_INFINITY, f64::max)]))
    });
    merged.collect()
}

/// A curve in one line of text; each character is the mean of some steps.
fn sparkline(points: &[(u64, f64)]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let means: Vec<f64> = smoothed(points, COLUMNS).into_iter().map(|(_, [mean, ..])| mean).collect();
    let (low, high) =
        means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let bar = |value: &f64| {
        // A curve that is constant is drawn as low as possible.
        let share = if high > low { (value - low) / (high - low) } else { 0.0 };
        BARS.get((share * 7.0).round() as usize).copied().unwrap_or('▁')
    };
    means.iter().map(bar).collect()
}

/// A curve of neighbouring steps, with the band between their smallest and largest values.
fn banded(name: &str, points: &[(u64, f64)]) -> Series {
    let merged = smoothed(points, POINTS);
    let line = merged.iter().map(|(x, [mean, ..])| (*x, *mean)).collect();
    // A band of single steps would have no height.
    let has_band = points.len() > merged.len();
    let band = merged.iter().filter(|_| has_band).map(|(x, [_, low, high])| (*x, *low, *high)).collect();
    Series::line(name, line).with_band(band)
}

/// The report on what a run has learned so far.
pub fn training(name: &str, course: &Course) -> Report {
    let losses: Vec<(u64, f64)> = course.steps.iter().map(|s| (s.step, s.loss)).collect();
    let wide = losses.len().div_ceil(POINTS).max(1);
    let mut parts = vec![loss(course, &losses, wide)];
    parts.extend(course.measured.iter().filter(|m| m.name != "loss").map(figure));
    parts.extend(losses_of_parts(course));
    parts.push(rate_and_gradients(course, wide));
    let done = course.steps.last().map_or(0, |s| s.step);
    let lead = match course.planned {
        Some(planned) if planned > done => {
            format!("step {} of {}", exact(u128::from(done)), exact(u128::from(planned)))
        }
        Some(_) | None => counted(exact(u128::from(done)), "step"),
    };
    Report { title: format!("{name}: training"), lead, parts }
}

/// The learning curve, where a point is the mean of `wide` steps, with all evaluations of the loss.
fn loss(course: &Course, losses: &[(u64, f64)], wide: usize) -> Part {
    let mut chart = Chart::new("Loss", Axis::linear("step"), Axis::linear("loss, nats"));
    chart.room = (640.0, 320.0);
    chart = chart.with(banded("in training", losses));
    for measured in course.measured.iter().filter(|m| m.name == "loss") {
        // A chart leaves a gap at NaN, so a curve shows where a metric was not a number.
        let points = measured.points.iter().map(|(step, v)| (*step as f64, v.unwrap_or(f64::NAN)));
        chart = chart.with(Series::line(&format!("measured on {}", measured.split), points.collect()));
    }
    if let Some((step, _)) = course.measured.first().and_then(Measured::best) {
        // The first metric decides, as it does when the best checkpoint is chosen.
        chart = chart.mark_x(step as f64, "best");
    }
    let mut facts: Vec<(String, String)> = Vec::new();
    let mean = |some: &[(u64, f64)]| some.iter().map(|(_, l)| l).sum::<f64>() / some.len().max(1) as f64;
    if let Some((_, first)) = losses.first() {
        // The loss of a single step fluctuates too much to be compared with.
        let last = losses.get(losses.len().saturating_sub(wide.max(10))..).unwrap_or(losses);
        facts.push(("loss of the first step".into(), format!("{first:.4}")));
        facts.push((format!("mean of the last {}", last.len()), format!("{:.4}", mean(last))));
    }
    for measured in &course.measured {
        let place = format!("{} on {}", measured.name, measured.split);
        if let Some((step, value)) = measured.best() {
            facts.push((
                format!("best {place}"),
                format!("{value:.4} after step {}", exact(u128::from(step))),
            ));
        }
        let last = measured.points.last();
        if let Some((_, Some(value))) = last {
            facts.push((format!("last {place}"), format!("{value:.4}")));
        }
    }
    facts.extend(course.calls.iter().cloned());
    let smoothing = match wide {
        1 => "Every step's own loss".to_owned(),
        n => format!("The mean of {n} steps at a time, and a band from the smallest to the largest of them"),
    };
    let text = format!(
        "{smoothing}. A step's loss is computed before the step and with dropout, if the model has any, \
            so the loss of an evaluation may be lower."
    );
    let (sketch, figures) = (sparkline(losses), vec![chart.figure()]);
    let title = "Learning curve".into();
    Part { title, text, facts, sketch, figures, table: table(course), ..Part::default() }
}

/// The losses that parts of the model have, if there are any.
fn losses_of_parts(course: &Course) -> Option<Part> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in course.steps.iter().flat_map(|step| &step.losses) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let points = |name: &str| -> Vec<(u64, f64)> {
        let value = |step: &Step| step.losses.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
        course.steps.iter().filter_map(|step| Some((step.step, value(step)?))).collect()
    };
    let (mut facts, mut figures) = (Vec::new(), Vec::new());
    for name in names {
        let points = points(name);
        if let (Some((_, first)), Some((_, last))) = (points.first(), points.last()) {
            facts.push((name.to_owned(), format!("{first:.4} at first, {last:.4} at last")));
        }
        let chart = Chart::new(name, Axis::linear("step"), Axis::linear(name));
        figures.push(chart.with(banded("", &points)).figure());
    }
    let text = "What training adds to the loss of the predictions, without its weight: the mean over the layers that \
                have it.";
    let part = Part { title: "Losses of parts".into(), text: text.into(), facts, figures, ..Part::default() };
    (!part.figures.is_empty()).then_some(part)
}

/// The picture of another metric, such as accuracy.
fn figure(measured: &Measured) -> Part {
    let points: Vec<(f64, f64)> =
        measured.points.iter().map(|(step, v)| (*step as f64, v.unwrap_or(f64::NAN))).collect();
    let axis = Axis::linear(&measured.name);
    let mut chart =
        Chart::new(&format!("{} on {}", measured.name, measured.split), Axis::linear("step"), axis);
    // A line needs two points.
    if let [(x, y)] = points.as_slice() {
        chart = chart.with(Series::points("", vec![(*x, *y)], vec![format!("{y:.4}")]));
    } else {
        chart = chart.with(Series::line("", points));
    }
    if let Some((step, _)) = measured.best() {
        chart = chart.mark_x(step as f64, "best");
    }
    let better = if measured.falls { "Less is better." } else { "More is better." };
    Part {
        title: format!("{} on {}", measured.name, measured.split),
        text: better.into(),
        figures: vec![chart.figure()],
        ..Part::default()
    }
}

/// All evaluations, or some of them if there are many.
fn table(course: &Course) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let mut steps: Vec<u64> = course.measured.iter().flat_map(|m| m.points.iter().map(|(s, _)| *s)).collect();
    steps.sort_unstable();
    steps.dedup();
    let last = *steps.last()?;
    // The last evaluation is always shown, whether the stride reaches it or not.
    let stride = steps.len().div_ceil(ROWS);
    let header = std::iter::once("step".to_owned());
    let header = header.chain(course.measured.iter().map(|m| format!("{} on {}", m.name, m.split)));
    let shown = steps.into_iter().enumerate().filter(|(i, step)| i % stride == 0 || *step == last);
    let rows = shown.map(|(_, step)| {
        let value = |m: &Measured| {
            let found = m.points.iter().find(|(s, _)| *s == step).and_then(|(_, value)| *value);
            found.map_or("–".to_owned(), |v| format!("{v:.4}"))
        };
        std::iter::once(exact(u128::from(step))).chain(course.measured.iter().map(value)).collect()
    });
    Some((header.collect(), rows.collect()))
}

/// The learning rate, the gradient, and the speed.
fn rate_and_gradients(course: &Course, wide: usize) -> Part {
    let of = |value: fn(&Step) -> Option<f64>| -> Vec<(u64, f64)> {
        course.steps.iter().filter_map(|s| Some((s.step, value(s)?))).collect()
    };
    let rate =
        Chart::new("Learning rate", Axis::linear("step"), Axis::linear("learning rate").including(0.0));
    let mut figures = vec![rate.with(banded("", &of(|s| Some(s.rate)))).figure()];
    let norms = of(|s| s.norm);
    if !norms.is_empty() {
        let chart =
            Chart::new("Gradient before clipping", Axis::linear("step"), Axis::linear("norm").including(0.0));
        figures.push(chart.with(banded("", &norms)).figure());
    }
    let tokens: u64 = course.steps.iter().map(|s| s.tokens).sum();
    let seconds = course.seconds();
    let mut facts = vec![("tokens read".to_owned(), count(u128::from(tokens)))];
    if seconds > 0.0 {
        facts.push(("time in steps".to_owned(), format!("{seconds:.0} s")));
        facts.push(("tokens per second".to_owned(), count((tokens as f64 / seconds) as u128)));
    }
    let text = match wide {
        1 => String::new(),
        n => format!("Means of {n} steps at a time."),
    };
    Part { title: "Learning rate and gradients".into(), text, facts, figures, ..Part::default() }
}
