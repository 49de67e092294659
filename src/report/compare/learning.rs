//! What models learned from the same data: their curves over several seeds, and whether they differ.
//!
//! Every seed trains every model on the same examples in the same order, so that models are compared seed
//! by seed: what a seed gave all of them (an easy order, say) cancels. A difference counts when the 95 %
//! interval of the mean of these paired differences (Student's t) does not hold 0; else it is within the
//! noise. One seed shows no noise, and nothing is said.

use std::fmt::Write as _;

use serde::Serialize;

use crate::report::number;
use crate::report::table::{Align, Column, Table};

/// How many points a curve has at most.
pub const POINTS: usize = 100;

/// Models that were trained alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Learning {
    /// The recipe, as it was named.
    pub recipe: String,
    /// The part of the data the last losses are of.
    pub split: String,
    /// Steps of a run.
    pub steps: u64,
    /// The seeds that every model was trained with to the end.
    pub seeds: Vec<u64>,
    /// Whether all that were asked for are among them.
    pub complete: bool,
    /// A model each, in the order of the comparison.
    pub models: Vec<Learned>,
    /// Each model after the first against the first.
    pub differences: Vec<Difference>,
}

/// What one model learned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Learned {
    /// Its name.
    pub name: String,
    /// The loss at the end, a seed each.
    pub losses: Vec<f64>,
    /// Their mean, smallest and largest.
    pub loss: Option<Point>,
    /// The loss in training.
    pub curve: Vec<Point>,
}

/// A loss over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// After how many steps.
    pub step: u64,
    /// The mean over the seeds.
    pub mean: f64,
    /// Of the best seed.
    pub low: f64,
    /// Of the worst seed.
    pub high: f64,
}

/// One model's last loss less the first one's, seed by seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The model.
    pub name: String,
    /// What it is compared with.
    pub than: String,
    /// The mean over the seeds; less than 0 is better than the other.
    pub mean: f64,
    /// Holds the true mean in 95 of 100 cases; none of one seed.
    pub interval: Option<[f64; 2]>,
    /// Whether it may be chance; unknown of one seed.
    pub noise: Option<bool>,
}

/// A run to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// Step and loss, for every step.
    pub steps: Vec<(u64, f64)>,
    /// The loss at the end.
    pub last: f64,
}

fn over(step: u64, values: &[f64]) -> Option<Point> {
    let (first, rest) = values.split_first()?;
    let low = rest.iter().fold(*first, |a, b| a.min(*b));
    let high = rest.iter().fold(*first, |a, b| a.max(*b));
    Some(Point { step, mean: values.iter().sum::<f64>() / values.len() as f64, low, high })
}

/// The mean over the seeds at no more than [`POINTS`] places, each the mean of the steps since the one before.
pub fn curve(runs: &[Run]) -> Vec<Point> {
    let last = runs.iter().filter_map(|r| r.steps.last()).map(|(step, _)| *step).max().unwrap_or(0);
    let wide = last.div_ceil(POINTS as u64).max(1);
    let mean_of = |run: &Run, from: u64, to: u64| {
        let inside = run.steps.iter().filter(|(step, _)| (from..=to).contains(step));
        let (sum, count) = inside.fold((0.0, 0u64), |(sum, n), (_, loss)| (sum + loss, n + 1));
        (count > 0).then(|| sum / count as f64)
    };
    (0..last.div_ceil(wide))
        .filter_map(|i| {
            let (from, to) = (i * wide + 1, ((i + 1) * wide).min(last));
            let values: Vec<f64> = runs.iter().filter_map(|run| mean_of(run, from, to)).collect();
            over(to, &values)
        })
        .collect()
}

/// Student's t beyond which 2.5 of 100 lie, for so many degrees of freedom.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    // Beyond the table the value of its end is a little too careful.
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or(TABLE[19])
}

fn difference(name: &str, than: &str, pairs: &[(f64, f64)]) -> Option<Difference> {
    let apart: Vec<f64> = pairs.iter().map(|(own, other)| own - other).collect();
    let n = apart.len();
    let mean = apart.iter().sum::<f64>() / n.checked_sub(1).map(|_| n as f64)?;
    let interval = (n > 1).then(|| {
        let square = apart.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let reach = student(n - 1) * (square / n as f64).sqrt();
        [mean - reach, mean + reach]
    });
    let noise = interval.map(|[low, high]| low <= 0.0 && 0.0 <= high);
    Some(Difference { name: name.to_owned(), than: than.to_owned(), mean, interval, noise })
}

impl Learning {
    /// Of the runs of each model that came to their end.
    pub fn of(recipe: &str, split: &str, steps: u64, asked: usize, runs: &[(String, Vec<Run>)]) -> Self {
        let mut seeds: Vec<u64> =
            runs.first().map(|(_, r)| r.iter().map(|r| r.seed).collect()).unwrap_or_default();
        seeds.retain(|seed| runs.iter().all(|(_, r)| r.iter().any(|run| run.seed == *seed)));
        let shared: Vec<(&String, Vec<Run>)> = runs
            .iter()
            .map(|(name, r)| (name, r.iter().filter(|r| seeds.contains(&r.seed)).cloned().collect()))
            .collect();
        let models: Vec<Learned> = shared
            .iter()
            .map(|(name, runs)| {
                let losses: Vec<f64> = runs.iter().map(|r| r.last).collect();
                let loss = over(steps, &losses);
                Learned { name: (*name).clone(), losses, loss, curve: curve(runs) }
            })
            .collect();
        let mut differences = Vec::new();
        if let Some((first, rest)) = models.split_first() {
            for model in rest {
                let pairs: Vec<(f64, f64)> =
                    model.losses.iter().copied().zip(first.losses.iter().copied()).collect();
                differences.extend(difference(&model.name, &first.name, &pairs));
            }
        }
        let complete = seeds.len() == asked;
        let (recipe, split) = (recipe.to_owned(), split.to_owned());
        Self { recipe, split, steps, seeds, complete, models, differences }
    }

    /// How it was trained.
    pub fn footnote(&self) -> String {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let word = if seeds.len() == 1 { "seed" } else { "seeds" };
        let steps = number::exact(self.steps.into());
        let mut text = match seeds.is_empty() {
            true => format!("trained by {}: no seed came to the end of its {steps} steps", self.recipe),
            false => format!(
                "trained by {} for {steps} steps with {word} {};\nthe same data in the same order for each seed",
                self.recipe,
                seeds.join(", "),
            ),
        };
        if !self.complete {
            text += "; interrupted before the other seeds";
        }
        text
    }

    /// What follows from the losses, a sentence each.
    pub fn verdicts(&self) -> Vec<String> {
        let sign = |n: f64| if n < 0.0 { format!("−{:.4}", -n) } else { format!("+{n:.4}") };
        let said = self.differences.iter().map(|d| {
            let Difference { name, than, mean, interval, noise } = d;
            let mean = sign(*mean);
            match (interval, noise) {
                (Some([low, high]), Some(is_noise)) => {
                    let what = match is_noise {
                        true => "within the noise".to_owned(),
                        false if d.mean < 0.0 => format!("{name} learned more"),
                        false => format!("{than} learned more"),
                    };
                    format!("{name} against {than}: {mean} ({} to {}), {what}", sign(*low), sign(*high))
                }
                (_, _) => format!("{name} against {than}: {mean}; one seed does not show what is noise"),
            }
        });
        said.collect()
    }

    /// Titles and rows of a table, a model each.
    pub fn rows(&self) -> (Vec<Column>, Vec<Vec<String>>) {
        let column = |title: String, align, least| Column { title, align, least };
        let mut columns = vec![column(String::new(), Align::Left, Some(8))];
        let titles = ["loss".to_owned(), "best".to_owned(), "worst".to_owned()];
        columns.extend(titles.into_iter().map(|title| column(title, Align::Right, None)));
        let shown = |n: f64| format!("{n:.4}");
        let row = |model: &Learned| {
            let values = match model.loss {
                Some(p) => [shown(p.mean), shown(p.low), shown(p.high)],
                None => ["–", "–", "–"].map(str::to_owned),
            };
            std::iter::once(model.name.clone()).chain(values).collect()
        };
        (columns, self.models.iter().map(row).collect())
    }

    /// What the losses of the table are.
    pub fn caption(&self) -> String {
        format!("loss on the {} data at the end: mean, best and worst seed", self.split)
    }

    /// For a terminal.
    pub fn text(&self, width: usize) -> String {
        let (columns, rows) = self.rows();
        let mut out = Table { columns, rows, total: Vec::new() }.text(width);
        let _ = writeln!(out, "{}\n{}", self.caption(), self.footnote());
        self.verdicts().iter().for_each(|line| out += &format!("{line}\n"));
        out
    }

    /// As a pipe table and a list.
    pub fn markdown(&self) -> String {
        let (columns, rows) = self.rows();
        let mut out = Table { columns, rows, total: Vec::new() }.markdown();
        let _ = writeln!(out, "\n{}; {}\n", self.caption(), self.footnote().replace('\n', " "));
        self.verdicts().iter().for_each(|line| out += &format!("- {line}\n"));
        out
    }

    /// Rows of csv: a name, and a value a model.
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
        rows
    }
}
