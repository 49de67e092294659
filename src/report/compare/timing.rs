//! How long models take: statistics of repeated runs, and which model is faster.
//!
//! A duration is reported as the median of its runs, which a few disturbed runs do not move, with the
//! interval that contains the true median in 95 of 100 cases. Its ends are two order statistics, whose
//! ranks follow from the binomial distribution, whatever the distribution of the durations. No model is
//! called faster than another one if their intervals overlap.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use crate::diag::count::counted;
use crate::report::number;
use crate::report::table::{Align, Column, Table};

/// Durations of models that were run in turns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Timing {
    /// The device they ran on, as the command line names it.
    pub device: String,
    /// The processor of the machine, if the system names it.
    pub processor: Option<String>,
    /// The number of threads that the process could use.
    pub threads: usize,
    /// The number of sequences in the batch.
    pub batch: u64,
    /// The tokens of each sequence.
    pub tokens: u64,
    /// One entry per model, in the order of the comparison.
    pub models: Vec<Timed>,
}

/// The durations of one model's passes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Timed {
    /// The name of the model.
    pub name: String,
    /// Durations of a forward pass without gradients.
    pub forward: Spread,
    /// Durations of a training step: forward, backward, and AdamW. `None` if it could not be run.
    pub step: Option<Spread>,
    /// Why a training step could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrained: Option<String>,
}

/// Statistics of repeated runs, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// The number of runs.
    pub runs: usize,
    /// The median duration in seconds.
    pub median: f64,
    /// The first and the third quartile, in seconds: half of the runs are between them.
    pub quartiles: [f64; 2],
    /// The interval that contains the true median in 95 of 100 cases.
    pub interval: [f64; 2],
}

/// The two passes that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedPass {
    /// A forward pass without gradients.
    Forward,
    /// A training step: forward, backward, and an update of the parameters.
    Step,
}

impl TimedPass {
    /// Everything that is timed.
    pub const ALL: [TimedPass; 2] = [TimedPass::Forward, TimedPass::Step];

    /// The name in sentences.
    pub fn phrase(self) -> &'static str {
        match self {
            TimedPass::Forward => "forward",
            TimedPass::Step => "training step",
        }
    }

    /// The name in csv and JSON.
    pub fn word(self) -> &'static str {
        match self {
            TimedPass::Forward => "forward",
            TimedPass::Step => "step",
        }
    }
}

impl Spread {
    /// The statistics of the runs' seconds; `None` if there are no runs.
    pub fn of(seconds: &[f64]) -> Option<Self> {
        // The order statistics need an order, which a NaN has not.
        let mut sorted: Vec<f64> = seconds.iter().copied().filter(|s| s.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let runs = sorted.len();
        let at = |rank: usize| sorted.get(rank.min(runs.saturating_sub(1))).copied();
        let outer = rank(runs);
        Some(Self {
            runs,
            median: quantile(&sorted, 0.5)?,
            quartiles: [quantile(&sorted, 0.25)?, quantile(&sorted, 0.75)?],
            interval: [at(outer)?, at(runs.saturating_sub(outer.saturating_add(1)))?],
        })
    }

    fn overlaps(&self, other: &Spread) -> bool {
        self.interval[0] <= other.interval[1] && other.interval[0] <= self.interval[1]
    }
}

/// The quantile, interpolated linearly between two neighbours.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
    Some(low + (high - low) * place.fract())
}

/// The largest `r` for which the median of the population lies outside of the order statistics `r` and `n -
/// 1 - r` in at most 5 of 100 cases: twice the probability of at most `r` heads in `n` coin tosses. 0 if
/// there are too few runs for that.
fn rank(n: usize) -> usize {
    // For many runs, the normal approximation of the binomial distribution is close enough: its standard
    // deviation is half the root of `n`, and 1.96 of them leave 2.5 % on each side. It also keeps `0.5^n`
    // from underflowing.
    if n > 200 {
        let n = n as f64;
        return ((n - 1.96 * n.sqrt()) / 2.0).floor() as usize;
    }
    let mut chance = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let (mut sum, mut found) = (0.0, 0);
    for r in 0..n / 2 {
        sum += chance;
        // Both tails have the same chance.
        if 2.0 * sum > 0.05 {
            break;
        }
        found = r;
        // The next binomial coefficient follows from this one, without factorials, which would overflow.
        chance *= n.saturating_sub(r) as f64 / r.saturating_add(1) as f64;
    }
    found
}

/// `1.23 s`, `45.6 ms`, `789 µs`
pub fn seconds(n: f64) -> String {
    let (n, unit) = match n {
        n if n >= 1.0 => (n, "s"),
        n if n >= 1e-3 => (n * 1e3, "ms"),
        n => (n * 1e6, "µs"),
    };
    // Three significant digits: more would be below the noise of a measurement.
    match n {
        n if n >= 100.0 => format!("{n:.0} {unit}"),
        n if n >= 10.0 => format!("{n:.1} {unit}"),
        n => format!("{n:.2} {unit}"),
    }
}

impl Timed {
    /// The duration of what is asked for.
    pub fn of(&self, what: TimedPass) -> Option<Spread> {
        match what {
            TimedPass::Forward => Some(self.forward),
            TimedPass::Step => self.step,
        }
    }
}

impl Timing {
    /// How the durations were measured, in two lines.
    pub fn footnote(&self) -> String {
        format!(
            "measured in turns on {} in f32 at B={}, T={}, {}{};\nthe interval contains the median in 95 of \
                100 cases",
            self.device,
            number::exact(self.batch.into()),
            number::exact(self.tokens.into()),
            counted(self.threads, "thread"),
            self.processor.as_ref().map_or(String::new(), |name| format!(" of {name}")),
        )
    }

    /// The columns and rows of a table with one row per model and timed pass.
    pub fn rows(&self) -> (Vec<Column>, Vec<Vec<String>>) {
        let column = |title: &str, align, least| Column { title: title.to_owned(), align, least };
        let names = Column::names(self.models.iter().map(|model| model.name.as_str()));
        let mut columns = vec![column("", Align::Left, None), names];
        columns.extend(
            ["median", "interval", "quartiles", "runs"].map(|title| column(title, Align::Right, None)),
        );
        let pair = |[a, b]: [f64; 2]| format!("{} – {}", seconds(a), seconds(b));
        let mut rows = Vec::new();
        for what in TimedPass::ALL {
            for model in &self.models {
                let mut row = vec![what.phrase().to_owned(), model.name.clone()];
                match model.of(what) {
                    Some(s) => row.extend([
                        seconds(s.median),
                        pair(s.interval),
                        pair(s.quartiles),
                        number::exact(s.runs as u128),
                    ]),
                    None => row.extend(["–", "", "", ""].map(str::to_owned)),
                }
                rows.push(row);
            }
        }
        (columns, rows)
    }

    /// What follows from the durations, one sentence each.
    pub fn verdicts(&self) -> Vec<String> {
        let mut sentences: Vec<String> =
            TimedPass::ALL.iter().filter_map(|what| self.verdict(*what)).collect();
        sentences.extend(self.models.iter().filter_map(|model| {
            Some(format!("{} cannot make a training step: {}", model.name, model.untrained.as_ref()?))
        }));
        sentences
    }

    fn verdict(&self, what: TimedPass) -> Option<String> {
        let mut all: Vec<(&str, Spread)> =
            self.models.iter().filter_map(|m| Some((m.name.as_str(), m.of(what)?))).collect();
        all.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
        // A single model is not faster than anything, so it has no verdict.
        let ((first, best), rest) = all.split_first().map(|(first, rest)| (*first, rest))?;
        let (next, second) = rest.first()?;
        let near: Vec<&str> = rest.iter().filter(|(_, s)| s.overlaps(&best)).map(|(name, _)| *name).collect();
        let what = what.phrase();
        Some(match near.split_last() {
            None => {
                // A duration may be below the resolution of the clock.
                let times = second.median / best.median.max(f64::MIN_POSITIVE);
                format!("{what}: {first} takes the least time, {next} takes {times:.2} times as long")
            }
            Some((last, [])) => format!("{what}: undecided, the intervals of {first} and {last} overlap"),
            Some((last, others)) => {
                let others = others.join(", ");
                format!("{what}: undecided, the intervals of {first}, {others} and {last} overlap")
            }
        })
    }

    /// The report for a terminal.
    pub fn text(&self, width: usize) -> String {
        let (columns, rows) = self.rows();
        let mut out = Table { columns, rows, total: Vec::new() }.text(width);
        let _ = writeln!(out, "{}", self.footnote());
        self.verdicts().iter().for_each(|line| out += &format!("{line}\n"));
        out
    }

    /// The report as a pipe table and a list.
    pub fn markdown(&self) -> String {
        let (columns, rows) = self.rows();
        let mut out = Table { columns, rows, total: Vec::new() }.markdown();
        let _ = writeln!(out, "\n{}\n", self.footnote().replace('\n', " "));
        self.verdicts().iter().for_each(|line| out += &format!("- {line}\n"));
        out
    }

    /// Rows of csv: a name, and one value per model.
    pub fn plain(&self) -> Vec<(String, Vec<String>)> {
        let parts = |s: &Spread| {
            let [low, high] = s.interval;
            [s.median.to_string(), low.to_string(), high.to_string(), s.runs.to_string()]
        };
        let mut rows = Vec::new();
        for what in TimedPass::ALL {
            let models: Vec<[String; 4]> =
                self.models.iter().map(|m| m.of(what).as_ref().map(parts).unwrap_or_default()).collect();
            for (i, part) in ["seconds", "seconds_low", "seconds_high", "runs"].into_iter().enumerate() {
                let values = models.iter().filter_map(|parts| parts.get(i).cloned());
                rows.push((format!("{}_{part}", what.word()), values.collect()));
            }
        }
        rows
    }
}
