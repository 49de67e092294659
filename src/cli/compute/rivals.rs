//! Trains several models for `trafoc compare --train`: one run for every model and seed.
//!
//! All models are trained with one seed before the next seed begins, so that an interruption leaves as many
//! complete seeds as possible. If a model fails, the others continue without it. Every run is one of `trafoc
//! train`, in a folder of its own, and can be used, inspected and continued like any other. All models must
//! see the same data, since their losses could not be compared otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::beginning::Choice;
use super::body::Started;
use super::execute::choose;
use super::failures::session_failure;
use super::prepared::{Prepared, Source, documents, prepare_all};
use super::run_folder::newest;
use super::signals::Signals;
use super::training::session;
use crate::cli::new_head::StartArgs;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::subject::Subject;
use crate::cli::ui::Ui;
use crate::interp::device::Chosen;
use crate::learn::data::{Loader, Part, Sequences};
use crate::learn::evaluate::Figures;
use crate::learn::recipe::agree::Task;
use crate::learn::recipe::{Metric, Split};
use crate::learn::record::{Evaluation, Step};
use crate::learn::run_dir::State;
use crate::learn::session::{self, Clock, Ending, Watcher};
use crate::report::compare::learning::{Learning, Run};

/// How the models are trained.
pub struct Contest<'a> {
    /// The recipe by which every model is trained.
    pub recipe: &'a Path,
    /// The options for what they start from: a new head, random weights.
    pub start: &'a StartArgs,
    /// The folder of the user's own family files.
    pub families: Option<&'a Path>,
    /// Changes to the recipe, such as `steps=100`.
    pub with: &'a [String],
    /// The number of seeds; every model has a run for each.
    pub seeds: u64,
    /// The folder for the runs; if there is none, a temporary one that is removed at the end.
    pub out: Option<&'a Path>,
    /// The device on which they are trained.
    pub device: Option<&'a str>,
}

/// Trains models by their names. Returns what they learned, the folder of the runs if it still exists, and
/// the exit: that of an interruption if there was one, otherwise whether a model failed. After an
/// interruption the runs are kept, even in a temporary folder.
///
/// # Errors
/// The recipe does not fit a model, the models do not see the same data, or a run fails.
pub fn learning(
    contest: &Contest<'_>,
    subjects: Vec<(String, Subject)>,
    ui: &mut Ui,
) -> Result<(Learning, Option<PathBuf>, Exit), Failure> {
    let chosen = choose(contest.device, ui)?;
    // The number of the process keeps two comparisons at the same time apart.
    let own = std::env::temp_dir().join(format!("trafoc-compare-{}", std::process::id()));
    let root = contest.out.unwrap_or(&own);
    // One for all runs, so that an interruption ends the comparison and not only the run of that moment.
    let signals = Signals::listen();
    let mut runs: Vec<(String, Vec<Run>)> = Vec::new();
    let ended = compete(contest, subjects, &mut runs, root, (&chosen, &signals), ui);
    let is_over = ended.as_ref().is_ok_and(|outcome| outcome.is_whole);
    // Runs without a step would have nothing to continue.
    let is_kept = !is_over && runs.iter().flat_map(|(_, runs)| runs).any(|run| !run.steps.is_empty());
    if is_kept {
        let why = if ended.is_ok() { "interrupted, and saved" } else { "the runs so far are kept" };
        ui.note(&format!("{why}; `--out {}` continues them", root.display()));
    } else if contest.out.is_none() {
        // A temporary folder that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&own);
    }
    let Outcome { is_whole, steps, split } = ended?;
    let fails = runs.iter().flat_map(|(_, runs)| runs).any(|run| run.failed.is_some());
    let exit = match is_whole {
        true if fails => Exit::Failed,
        true => Exit::Ok,
        false => signals.exit(),
    };
    // Without the path's folders, which exist on this machine alone.
    let recipe = contest.recipe.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let asked = usize::try_from(contest.seeds).unwrap_or(usize::MAX);
    let left = (is_kept || contest.out.is_some()).then(|| root.to_owned());
    Ok((Learning::of(&recipe, &split, steps, asked, &runs), left, exit))
}

/// How the training of all models ended.
struct Outcome {
    /// Whether every model was trained with every seed, or failed by itself; false after an interruption.
    is_whole: bool,
    /// The number of steps of a run.
    steps: u64,
    /// The part of the data on which the models are evaluated.
    split: String,
}

/// Trains every model with every seed, and adds what they learned to the runs.
fn compete(
    contest: &Contest<'_>,
    subjects: Vec<(String, Subject)>,
    runs: &mut Vec<(String, Vec<Run>)>,
    root: &Path,
    (chosen, signals): (&Chosen, &Signals),
    ui: &mut Ui,
) -> Result<Outcome, Failure> {
    let (names, mut subjects): (Vec<String>, Vec<Subject>) = subjects.into_iter().unzip();
    runs.extend(names.iter().map(|name| (name.clone(), Vec::new())));
    let mut first = None;
    let mut outcome = Outcome { is_whole: true, steps: 0, split: String::new() };
    for index in 0..contest.seeds {
        let mut with = contest.with.to_vec();
        // The first seed is the recipe's own, which is known only once the recipe has been read.
        let seed = first.map(|first: u64| first.saturating_add(index));
        with.extend(seed.map(|seed| format!("seed={seed}")));
        let mut all = Vec::new();
        // The data is prepared anew for every seed, which also decides which examples are held out.
        // Moved and not copied: they come back from `all` at the end of the round.
        for subject in subjects.drain(..) {
            let choice = Choice {
                from_scratch: contest.start.from_scratch,
                has_new_head: contest.start.head.is_some(),
                trains: true,
                families: contest.families,
                ..Choice::default()
            };
            let mut prepared = prepare_all(subject, contest.recipe, &with, Source::Files, &choice, ui)?;
            // Losses are compared, whatever else the recipe measures.
            let metrics = &mut prepared.recipe.evaluate.metrics;
            if !metrics.contains(&Metric::Loss) {
                metrics.push(Metric::Loss);
            }
            all.push(prepared);
        }
        // For every seed, because the seed decides which examples are held out.
        (outcome.steps, outcome.split) = alike(&names, &all, ui)?;
        let seed = all.first().map_or(0, |p| *p.recipe.seed);
        first = first.or(Some(seed));
        for (i, (prepared, (name, runs))) in all.iter_mut().zip(runs.iter_mut()).enumerate() {
            if runs.iter().any(|run| run.failed.is_some()) {
                continue;
            }
            // Numbered, because two names can become the same name of a folder.
            let folder = root.join(format!("{}-{}", i + 1, slug(name))).join(format!("seed-{seed}"));
            let what = format!("{name}, seed {seed} ({} of {})", index + 1, contest.seeds);
            let started = prepared.started.take();
            match train(prepared, started, &folder, chosen, (&what, signals), ui) {
                Ok(is_whole) => {
                    outcome.is_whole = is_whole;
                    runs.push(read(&folder, seed, is_whole)?);
                }
                // A model that diverges, or that the device cannot run, says nothing of the others. Anything
                // else, such as a full disk, would end their runs as well.
                Err(failure) if matches!(failure.exit, Exit::Failed | Exit::Device) => {
                    ui.note(&format!("{what}: {}", failure.message));
                    failure.help.iter().for_each(|help| ui.note(&format!("help: {help}")));
                    let part = read(&folder, seed, false)?;
                    runs.push(Run { failed: Some(failure.message), ..part });
                }
                Err(failure) => {
                    // With the run's name before it, since several runs have the same recipe and device.
                    return Err(Failure { message: format!("{what}: {}", failure.message), ..failure });
                }
            }
            if !outcome.is_whole {
                return Ok(outcome);
            }
        }
        subjects.extend(all.into_iter().map(|p| p.subject));
    }
    Ok(outcome)
}

/// The classes of texts, example by example; `None` for other data.
fn labels(part: Option<&Part>) -> Option<&Sequences> {
    match part {
        Some(Part::Classes { labels, .. }) => Some(labels),
        Some(_) | None => None,
    }
}

/// The number of steps and the part of the data for evaluation, after checking that all models see the same
/// examples.
fn alike(names: &[String], all: &[Prepared], ui: &Ui) -> Result<(u64, String), Failure> {
    let Some((first, rest)) = all.split_first() else { return Ok((0, String::new())) };
    let steps = |p: &Prepared| p.recipe.total_steps(Loader::new(&p.dataset).steps_of_epoch());
    for (name, other) in names.iter().skip(1).zip(rest) {
        let (a, b) = (&first.dataset, &other.dataset);
        let (codes, others) = (&a.codebook, &b.codebook);
        let same_words = codes.tokenizer == others.tokenizer && codes.source == others.source;
        let same_classes = codes.classes == others.classes && codes.task == others.task;
        let same_steps = steps(first) == steps(other);
        let same_data = a.train == b.train && a.validation == b.validation && a.test == b.test;
        // The loss of a class does not depend on how its text is divided.
        let same_labels = [Split::Train, Split::Validation, Split::Test]
            .into_iter()
            .all(|split| labels(a.part(split)) == labels(b.part(split)));
        let what = match (same_words, same_classes, same_steps) {
            (true, true, true) if same_data => continue,
            (false, true, true) if codes.task == Task::ClassifyText && same_labels => {
                ui.note(&format!(
                    "note: `{name}` reads other tokens than `{}`, so batches of similar lengths may differ",
                    names.first().map_or("", String::as_str)
                ));
                continue;
            }
            (true, true, _) => "sees other examples",
            (_, _, _) => "reads other tokens or predicts other classes",
        };
        let one = names.first().map_or("", String::as_str);
        let message = format!("`{name}` {what} than `{one}`, so their losses cannot be compared");
        return Err(Failure::new(Exit::Failed, message)
            .help("with the same `vocab` and `context` they can be compared: `--set context=64`"));
    }
    let split = session::measured(&first.recipe, &first.dataset);
    Ok((steps(first), split.word().to_owned()))
}

/// A name as the name of a folder.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    // File systems allow 255 bytes; the number before it keeps equal beginnings apart.
    name.chars().map(plain).take(60).collect()
}

/// Trains one model, or continues its run. Returns whether the run came to its end.
fn train(
    prepared: &Prepared,
    started: Option<Started>,
    root: &Path,
    chosen: &Chosen,
    (what, signals): (&str, &Signals),
    ui: &Ui,
) -> Result<bool, Failure> {
    let documents = documents(prepared)?;
    // A comparison that was interrupted continues each run from its last checkpoint.
    let found = newest(root)?;
    let job = prepared.job(chosen, &documents);
    let mut session = session(job, prepared, root, found.as_ref(), (started, false), ui)?;
    ui.note(&format!("trains {what}"));
    let mut watch = Watch { ui, signals, what, shown: Instant::now() };
    let ending = session.run(&mut watch).map_err(session_failure)?;
    Ok(match ending {
        Ending::Complete | Ending::Stopped => true,
        Ending::Interrupted => false,
    })
}

/// The losses of a run; the final one only if the run came to its end.
fn read(root: &Path, seed: u64, is_whole: bool) -> Result<Run, Failure> {
    let record = crate::cli::course::record(root)?;
    let steps = record.steps.iter().map(|line| (line.step, line.loss)).collect();
    let last = record.evaluations.iter().rev().find_map(|line| *line.figures.get(Metric::Loss.word())?);
    if is_whole && last.is_none() {
        let message = format!("the record of `{}` does not contain the final loss", root.display());
        return Err(Failure::new(Exit::File, message));
    }
    Ok(Run { seed, steps, last: last.filter(|_| is_whole), failed: None })
}

/// Shows the progress of a run in one line.
struct Watch<'a> {
    ui: &'a Ui,
    signals: &'a Signals,
    what: &'a str,
    shown: Instant,
}

impl Watcher for Watch<'_> {
    fn stepped(&mut self, state: &State, line: &Step, _: &Clock) {
        // More than ten lines a second could not be read, and writing them takes time.
        if self.shown.elapsed().as_millis() >= 100 {
            self.shown = Instant::now();
            let (step, steps) = (state.step, state.steps);
            self.ui.status(&format!("{}: step {step}/{steps}  loss {:.4}", self.what, line.loss));
        }
    }

    fn evaluated(&mut self, _: &State, _: &Evaluation, _: &Figures, _: bool) {}

    fn saved(&mut self, _: &State, _: &Path) {}

    fn averaged(&mut self, _: usize, _: usize) {}

    fn is_over(&mut self) -> bool {
        self.signals.is_caught()
    }
}
