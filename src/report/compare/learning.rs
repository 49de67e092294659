//! What models learned from the same data: their loss curves over several seeds, and whether they differ.
//!
//! For each seed, every model is trained on the same examples in the same order, so models are compared
//! seed by seed: what a seed does to all of them (an easy order, for example) cancels. A difference counts
//! if the 95 % interval of the mean of these paired differences (Student's t) does not contain 0; otherwise
//! it is within the noise. A single seed does not show the noise, so nothing is concluded from it. A model
//! that failed with a seed is left out of the comparison, and the report says where and why it failed. A
//! seed that was stopped is shown apart: how far each model came, and the training losses at a step
//! that all of them had reached.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use crate::diag::count::counted;
use crate::report::number;
use crate::report::table::{Align, Column, Table};
use crate::spec::explain::wrapped;

/// The most points of a curve. In a chart, more would be only a few pixels apart.
pub const POINTS: usize = 100;

/// The training loss of a stopped run is the mean over at most this many steps.
const LAST: u64 = 10;

/// Models that were trained in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Learning {
    /// The recipe, as it was named on the command line.
    pub recipe: String,
    /// The part of the data on which the final losses are computed.
    pub split: String,
    /// The number of steps of a run.
    pub steps: u64,
    /// The seeds with which all models that did not fail were trained to the end.
    pub seeds: Vec<u64>,
    /// Whether these are all seeds that were asked for, or every model failed.
    pub complete: bool,
    /// The seed that was stopped before every model finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// One entry per model, in the order of the comparison.
    pub models: Vec<Learned>,
    /// Each model against the first one that did not fail.
    pub differences: Vec<Difference>,
}

impl Learning {
    /// The names of models, wherever they are, to be replaced by other ones.
    pub fn names(&mut self) -> impl Iterator<Item = &mut String> {
        let stopped = self.stopped.iter_mut().flat_map(|stopped| &mut stopped.models);
        let models = self.models.iter_mut().map(|model| &mut model.name);
        let both = self.differences.iter_mut().flat_map(|d| [&mut d.name, &mut d.than]);
        models.chain(stopped.map(|part| &mut part.name)).chain(both)
    }
}

/// What one model learned.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Learned {
    /// The name of the model.
    pub name: String,
    /// The final losses on the split, in nats, in the order of [`Learning::seeds`].
    pub losses: Vec<f64>,
    /// The mean, the smallest and the largest of these.
    pub loss: Option<Point>,
    /// The training loss; if no seed finished, that of the stopped one.
    pub curve: Vec<Point>,
    /// Where it failed. Such a model has no losses, and its curve covers all its seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
}

/// How a model failed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Failed {
    /// The seed with which it failed.
    pub seed: u64,
    /// The number of steps before the failure.
    pub steps: u64,
    /// The reason of the failure.
    pub why: String,
}

/// A seed whose runs were stopped.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Stopped {
    /// The seed, which sets the initial weights, the order of examples and dropout.
    pub seed: u64,
    /// The last step that every model had reached, not counting models that had not begun.
    pub step: u64,
    /// One entry per model that did not fail, in the order of the comparison.
    pub models: Vec<Part>,
}

/// How far one model came.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    /// The name of the model.
    pub name: String,
    /// The number of steps it made before it was stopped.
    pub steps: u64,
    /// The mean training loss of the last steps up to the one that all models had reached.
    pub training_loss: Option<f64>,
}

/// A loss over the seeds, in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// The number of steps before it.
    pub step: u64,
    /// The mean over the seeds.
    pub mean: f64,
    /// The loss of the best seed.
    pub low: f64,
    /// The loss of the worst seed.
    pub high: f64,
}

/// The final loss of one model minus that of the first one, over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The name of the model.
    pub name: String,
    /// The name of the model it is compared with.
    pub than: String,
    /// The mean over the seeds; below 0 the model is better than the other.
    pub mean: f64,
    /// The interval that contains the true mean in 95 of 100 cases; `None` for a single seed.
    pub interval: Option<[f64; 2]>,
    /// Whether the difference may be chance; `None` for a single seed.
    pub noise: Option<bool>,
}

/// A run that finished or was stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The seed of the run.
    pub seed: u64,
    /// The steps, counted from 1, and the training loss of each.
    pub steps: Vec<(u64, f64)>,
    /// The final loss; `None` if the run did not finish.
    pub last: Option<f64>,
    /// Why the run failed, for readers; `None` if it did not.
    pub failed: Option<String>,
}

/// The first failure of a model in the order of its seeds; `None` if no run failed.
fn failed(runs: &[Run]) -> Option<Failed> {
    let of = |run: &Run| {
        let steps = run.steps.last().map_or(0, |(step, _)| *step);
        // `steps` are those recorded, so a model that failed at once has made none.
        Some(Failed { seed: run.seed, steps, why: run.failed.clone()? })
    };
    runs.iter().find_map(of)
}

fn over(step: u64, values: &[f64]) -> Option<Point> {
    let (first, rest) = values.split_first()?;
    let low = rest.iter().fold(*first, |a, b| a.min(*b));
    let high = rest.iter().fold(*first, |a, b| a.max(*b));
    Some(Point { step, mean: values.iter().sum::<f64>() / values.len() as f64, low, high })
}

/// The mean over the seeds at up to [`POINTS`] steps; each point is the mean of the steps since the one
/// before it.
pub fn curve(runs: &[Run]) -> Vec<Point> {
    let last = runs.iter().filter_map(|r| r.steps.last()).map(|(step, _)| *step).max().unwrap_or(0);
    // Long runs have too many steps for a chart, so each point is the mean of several.
    let width = last.div_ceil(POINTS as u64).max(1);
    let mean_of = |run: &Run, from: u64, to: u64| {
        let inside = run.steps.iter().filter(|(step, _)| (from..=to).contains(step));
        let (sum, count) = inside.fold((0.0, 0u64), |(sum, n), (_, loss)| (sum + loss, n.saturating_add(1)));
        (count > 0).then(|| sum / count as f64)
    };
    (0..last.div_ceil(width))
        .filter_map(|i| {
            let before = i.saturating_mul(width);
            let (from, to) = (before.saturating_add(1), before.saturating_add(width).min(last));
            let values: Vec<f64> = runs.iter().filter_map(|run| mean_of(run, from, to)).collect();
            over(to, &values)
        })
        .collect()
}

/// The value of Student's t that 2.5 of 100 samples exceed, for this many degrees of freedom.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    // Beyond the table, its last value makes the interval slightly too wide.
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or(TABLE[19])
}

fn difference(name: &str, than: &str, pairs: &[(f64, f64)]) -> Option<Difference> {
    let differences: Vec<f64> = pairs.iter().map(|(own, other)| own - other).collect();
    let n = differences.len();
    // Without a seed that both finished there is nothing to compare.
    let degrees = n.checked_sub(1)?;
    let mean = differences.iter().sum::<f64>() / n as f64;
    let interval = (degrees > 0).then(|| {
        // Divided by one less than the number of seeds, because the mean was computed from the same numbers.
        let square = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / degrees as f64;
        let reach = student(degrees) * (square / n as f64).sqrt();
        [mean - reach, mean + reach]
    });
    let noise = interval.map(|[low, high]| low <= 0.0 && 0.0 <= high);
    Some(Difference { name: name.to_owned(), than: than.to_owned(), mean, interval, noise })
}

/// The seed that not all models finished, if the first model had begun it.
fn stopped(runs: &[&(String, Vec<Run>)], finished: &[u64]) -> Option<Stopped> {
    let begun = |run: &&Run| !finished.contains(&run.seed) && !run.steps.is_empty();
    let seed = runs.first()?.1.iter().find(begun)?.seed;
    let of = |runs: &[Run]| runs.iter().find(|run| run.seed == seed).map(|run| run.steps.clone());
    let recorded: Vec<(&String, Vec<(u64, f64)>)> =
        runs.iter().map(|(name, runs)| (name, of(runs).unwrap_or_default())).collect();
    let last = |steps: &[(u64, f64)]| steps.last().map_or(0, |(step, _)| *step);
    // The last step of a model that has not begun is zero, at which nothing could be compared.
    let step = recorded.iter().map(|(_, steps)| last(steps)).filter(|step| *step > 0).min()?;
    let models = recorded.iter().map(|(name, steps)| {
        let first = step.saturating_sub(LAST).saturating_add(1);
        // A single step depends on its batch more than on the model, so the mean of the last ones is shown.
        let inside = steps.iter().filter(|(s, _)| (first..=step).contains(s));
        let losses: Vec<f64> = inside.map(|(_, loss)| *loss).collect();
        let training_loss = over(step, &losses).map(|point| point.mean);
        Part { name: (*name).clone(), steps: last(steps), training_loss }
    });
    Some(Stopped { seed, step, models: models.collect() })
}

/// `3, 5 to 9`
fn listed(seeds: &[u64]) -> String {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for seed in seeds {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*seed) => *last = *seed,
            Some(_) | None => spans.push((*seed, *seed)),
        }
    }
    let said = |(first, last): &(u64, u64)| match last.saturating_sub(*first) {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        // Two neighbours are no range to a reader.
        _ => format!("{first} to {last}"),
    };
    spans.iter().map(said).collect::<Vec<_>>().join(", ")
}

impl Learning {
    /// Evaluates the runs of each model; the last run may have been stopped.
    pub fn of(recipe: &str, split: &str, steps: u64, asked: usize, runs: &[(String, Vec<Run>)]) -> Self {
        let ended = |runs: &[Run], seed: u64| runs.iter().any(|r| r.seed == seed && r.last.is_some());
        // A model that failed must not keep the others from being compared.
        let whole: Vec<&(String, Vec<Run>)> = runs.iter().filter(|(_, r)| failed(r).is_none()).collect();
        let mut seeds: Vec<u64> =
            whole.first().map(|(_, r)| r.iter().map(|r| r.seed).collect()).unwrap_or_default();
        seeds.retain(|seed| whole.iter().all(|(_, r)| ended(r, *seed)));
        let stopped = stopped(&whole, &seeds);
        let drawn = |run: &&Run| match &stopped {
            Some(stopped) if seeds.is_empty() => run.seed == stopped.seed,
            Some(_) | None => seeds.contains(&run.seed),
        };
        let models: Vec<Learned> = runs
            .iter()
            .map(|(name, runs)| {
                let name = name.clone();
                if let Some(failed) = failed(runs) {
                    let (losses, curve) = (Vec::new(), curve(runs));
                    return Learned { name, losses, loss: None, curve, failed: Some(failed) };
                }
                let shared: Vec<Run> = runs.iter().filter(drawn).cloned().collect();
                let ended = shared.iter().filter(|r| seeds.contains(&r.seed));
                let losses: Vec<f64> = ended.filter_map(|r| r.last).collect();
                let loss = over(steps, &losses);
                Learned { name, losses, loss, curve: curve(&shared), failed: None }
            })
            .collect();
        let mut differences = Vec::new();
        let compared: Vec<&Learned> = models.iter().filter(|m| m.failed.is_none()).collect();
        if let Some((first, rest)) = compared.split_first() {
            for model in rest {
                // With the same seed, models saw the same data in the same order, so losses are compared in
                // pairs: what makes a seed easy or hard for both does not count.
                let pairs: Vec<(f64, f64)> =
                    model.losses.iter().copied().zip(first.losses.iter().copied()).collect();
                differences.extend(difference(&model.name, &first.name, &pairs));
            }
        }
        let complete = seeds.len() == asked || compared.is_empty();
        let (recipe, split) = (recipe.to_owned(), split.to_owned());
        Self { recipe, split, steps, seeds, complete, stopped, models, differences }
    }

    /// The title, which also says that the training was stopped.
    pub fn title(&self) -> &'static str {
        if self.complete { "what they learned" } else { "what they learned before training was stopped" }
    }

    /// How the models were trained.
    pub fn footnote(&self) -> String {
        let word = if self.seeds.len() == 1 { "seed" } else { "seeds" };
        let steps = crate::diag::count::counted(number::exact(self.steps.into()), "step");
        let mut text = if self.seeds.is_empty() {
            format!("trained by {}: no seed finished its {steps}", self.recipe)
        } else {
            format!(
                "trained by {} for {steps} with {word} {}; the same data in the same order for each seed",
                self.recipe,
                listed(&self.seeds),
            )
        };
        if !self.complete && !self.seeds.is_empty() {
            text += "; stopped before the other seeds";
        }
        text
    }

    /// What follows from the losses, one sentence each.
    pub fn verdicts(&self) -> Vec<String> {
        // The minus sign is as wide as the plus, unlike the hyphen.
        let sign = |n: f64| if n < 0.0 { format!("−{:.4}", -n) } else { format!("+{n:.4}") };
        let said = self.differences.iter().map(|d| {
            let Difference { name, than, mean, interval, noise } = d;
            let mean = sign(*mean);
            match (interval, noise) {
                (Some([low, high]), Some(is_noise)) => {
                    let what = if *is_noise {
                        "within the noise".to_owned()
                    } else {
                        format!("{} learned more", if d.mean < 0.0 { name } else { than })
                    };
                    format!("{name} against {than}: {mean} ({} to {}), {what}", sign(*low), sign(*high))
                }
                (_, _) => format!("{name} against {than}: {mean}; a single seed does not show the noise"),
            }
        });
        let failed = self.models.iter().filter_map(|m| Some((&m.name, m.failed.as_ref()?)));
        let failed = failed.map(|(name, Failed { seed, steps, why })| {
            let steps = counted(number::exact((*steps).into()), "step");
            format!("{name} failed with seed {seed} after {steps}: {why}")
        });
        said.chain(failed).collect()
    }

    /// The columns and rows of a table with one row per model.
    pub fn rows(&self) -> (Vec<Column>, Vec<Vec<String>>) {
        let column = |title: String, align, least| Column { title, align, least };
        let mut columns = vec![Column::names(self.models.iter().map(|model| model.name.as_str()))];
        let titles = ["loss".to_owned(), "best".to_owned(), "worst".to_owned()];
        columns.extend(titles.into_iter().map(|title| column(title, Align::Right, None)));
        let shown = |n: f64| format!("{n:.4}");
        let row = |model: &Learned| {
            let values = match (model.loss, &model.failed) {
                (Some(p), _) => [shown(p.mean), shown(p.low), shown(p.high)],
                // Its losses of other seeds are left out, because the others are compared without it.
                (None, Some(_)) => ["failed", "–", "–"].map(str::to_owned),
                (None, None) => ["–", "–", "–"].map(str::to_owned),
            };
            std::iter::once(model.name.clone()).chain(values).collect()
        };
        (columns, self.models.iter().map(row).collect())
    }

    /// The columns and rows of a table of the stopped seed, one row per model, and its caption.
    pub fn rows_of_stopped(&self) -> Option<(Vec<Column>, Vec<Vec<String>>, String)> {
        let Stopped { seed, step, models } = self.stopped.as_ref()?;
        let column = |title: String, align, least| Column { title, align, least };
        let columns = vec![
            Column::names(models.iter().map(|part| part.name.as_str())),
            column("steps".to_owned(), Align::Right, None),
            column("training loss".to_owned(), Align::Right, None),
        ];
        let row = |part: &Part| {
            let loss = part.training_loss.map_or("–".to_owned(), |loss| format!("{loss:.4}"));
            vec![part.name.clone(), number::exact(part.steps.into()), loss]
        };
        let (first, step) = (step.saturating_sub(LAST).saturating_add(1), *step);
        let mean = if first == step {
            format!("at step {step}")
        } else {
            format!("mean of steps {first} to {step}")
        };
        let all = counted(number::exact(self.steps.into()), "step");
        let about = format!(
            "seed {seed} was stopped before all models had made their {all}; \
            losses {mean}"
        );
        Some((columns, models.iter().map(row).collect(), about))
    }

    /// The caption of the table of losses.
    pub fn caption(&self) -> String {
        format!("final loss on the {} data: mean, best and worst seed", self.split)
    }

    /// The report for a terminal.
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        if !self.seeds.is_empty() {
            let (columns, rows) = self.rows();
            out += &Table { columns, rows, total: Vec::new() }.text(width);
            let _ = writeln!(out, "{}", self.caption());
        }
        wrapped(&self.footnote(), width).iter().for_each(|line| out += &format!("{line}\n"));
        let verdicts = self.verdicts();
        let lines = verdicts.iter().flat_map(|verdict| wrapped(verdict, width));
        lines.for_each(|line| out += &format!("{line}\n"));
        if let Some((columns, rows, about)) = self.rows_of_stopped() {
            out += &format!("\n{}", Table { columns, rows, total: Vec::new() }.text(width));
            wrapped(&about, width).iter().for_each(|line| out += &format!("{line}\n"));
        }
        out
    }

    /// The report as a pipe table and a list.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        if !self.seeds.is_empty() {
            let (columns, rows) = self.rows();
            out += &Table { columns, rows, total: Vec::new() }.markdown();
            let _ = write!(out, "\n{}; ", self.caption());
        }
        let _ = writeln!(out, "{}\n", self.footnote());
        self.verdicts().iter().for_each(|line| out += &format!("- {line}\n"));
        if let Some((columns, rows, about)) = self.rows_of_stopped() {
            out += &format!("\n{}\n{about}\n", Table { columns, rows, total: Vec::new() }.markdown());
        }
        out
    }

    /// Rows of csv: a name, and one value per model.
    pub fn plain(&self) -> Vec<(String, Vec<String>)> {
        let of = |value: fn(&Point) -> f64| {
            let one = |m: &Learned| m.loss.as_ref().map(|p| value(p).to_string()).unwrap_or_default();
            self.models.iter().map(one).collect::<Vec<String>>()
        };
        let mut rows = vec![
            ("loss".to_owned(), of(|p| p.mean)),
            ("loss_best".to_owned(), of(|p| p.low)),
            ("loss_worst".to_owned(), of(|p| p.high)),
        ];
        for (i, seed) in self.seeds.iter().enumerate() {
            let values = self.models.iter().map(|m| m.losses.get(i).map(f64::to_string).unwrap_or_default());
            rows.push((format!("loss_seed_{seed}"), values.collect()));
        }
        if self.models.iter().any(|m| m.failed.is_some()) {
            let of = |value: fn(&Failed) -> String| -> Vec<String> {
                self.models.iter().map(|m| m.failed.as_ref().map(value).unwrap_or_default()).collect()
            };
            rows.push(("failed_seed".to_owned(), of(|f| f.seed.to_string())));
            rows.push(("failed_after_steps".to_owned(), of(|f| f.steps.to_string())));
            rows.push(("failed_why".to_owned(), of(|f| f.why.clone())));
        }
        if let Some(Stopped { seed, models, .. }) = &self.stopped {
            let loss = |part: &Part| part.training_loss.map(|loss| loss.to_string()).unwrap_or_default();
            let of = |value: &dyn Fn(&Part) -> String| -> Vec<String> {
                let part = |m: &Learned| models.iter().find(|part| part.name == m.name);
                self.models.iter().map(|m| part(m).map(value).unwrap_or_default()).collect()
            };
            rows.push((format!("stopped_steps_seed_{seed}"), of(&|part| part.steps.to_string())));
            rows.push((format!("stopped_loss_seed_{seed}"), of(&loss)));
        }
        rows
    }
}
