//! Trains models beside each other for `trafoc compare --train`: a run for every model and seed.
//!
//! A seed trains all models before the next one begins, so that what was finished when somebody ends it is
//! whole seeds. Every run is one of `trafoc train`, in a folder of its own: it can be used, looked at and
//! taken up again like any other. What the models see must be the same, or their losses say nothing.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value as Json;

use super::execute::choose;
use super::file;
use super::subject::Subject;
use super::training::{Prepared, SIGTERM, Signals, documents, newest, prepare_all, session, session_failure};
use super::ui::{Exit, Failure, Ui};
use crate::interp::device::Chosen;
use crate::learn::data::Loader;
use crate::learn::recipe::Metric;
use crate::learn::run_dir::State;
use crate::learn::session::{self, Ending, Figures, Watcher};
use crate::learn::step::Made;
use crate::report::compare::learning::{Learning, Run};

/// The longest record of figures that is read.
const MAX_RECORD: usize = 1 << 30;

/// How models are trained beside each other.
pub struct Contest<'a> {
    /// The recipe.
    pub recipe: &'a Path,
    /// What is changed in it.
    pub with: &'a [String],
    /// With how many seeds.
    pub seeds: u64,
    /// Where the runs go; a folder that is removed at the end if nowhere.
    pub out: Option<&'a Path>,
    /// Where they are trained.
    pub device: Option<&'a str>,
}

/// Trains models by their names; the exit is that of an interruption where there was one.
///
/// # Errors
/// The recipe does not fit a model, the models do not see the same data, or a run fails.
pub fn learning(
    contest: &Contest<'_>,
    subjects: Vec<(String, Subject)>,
    ui: &mut Ui,
) -> Result<(Learning, Exit), Failure> {
    let chosen = choose(contest.device, ui)?;
    let own = std::env::temp_dir().join(format!("trafoc-compare-{}", std::process::id()));
    let root = contest.out.map_or(own.clone(), Path::to_owned);
    let (names, mut subjects): (Vec<String>, Vec<Subject>) = subjects.into_iter().unzip();
    let mut runs: Vec<(String, Vec<Run>)> = names.iter().map(|name| (name.clone(), Vec::new())).collect();
    let signals = Signals::listen();
    let mut first = None;
    let mut known = (0, String::new());
    'seeds: for index in 0..contest.seeds {
        let mut with = contest.with.to_vec();
        let seed = first.map(|first: u64| first.saturating_add(index));
        with.extend(seed.map(|seed| format!("seed={seed}")));
        let mut all = Vec::new();
        for subject in subjects.drain(..) {
            let mut prepared = prepare_all(subject, contest.recipe, &with, ui)?;
            let metrics = &mut prepared.recipe.evaluate.metrics;
            if !metrics.contains(&Metric::Loss) {
                metrics.push(Metric::Loss);
            }
            all.push(prepared);
        }
        known = alike(&names, &all)?;
        let seed = all.first().map_or(0, |p| *p.recipe.seed);
        first = first.or(Some(seed));
        for (i, (prepared, (name, runs))) in all.iter().zip(&mut runs).enumerate() {
            let folder = root.join(format!("{}-{}", i + 1, slug(name))).join(format!("seed-{seed}"));
            let what = format!("{name}, seed {seed} ({} of {})", index + 1, contest.seeds);
            let is_whole = train(prepared, &folder, &chosen, (&what, &signals), ui)
                .map_err(|f| Failure { message: format!("{what}: {}", f.message), ..f })?;
            if !is_whole {
                break 'seeds;
            }
            runs.push(read(&folder, seed)?);
        }
        subjects.extend(all.into_iter().map(|p| p.subject));
    }
    let exit = match signals.caught() {
        0 => Exit::Ok,
        SIGTERM => Exit::Terminated,
        _ => Exit::Interrupted,
    };
    if exit != Exit::Ok {
        ui.note(&format!("interrupted, and saved; `--out {}` goes on", root.display()));
    } else if contest.out.is_none() {
        // A folder of our own that cannot be removed is only litter.
        let _ = fs::remove_dir_all(&own);
    }
    let (steps, split) = known;
    let recipe = contest.recipe.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let asked = usize::try_from(contest.seeds).unwrap_or(usize::MAX);
    Ok((Learning::of(&recipe, &split, steps, asked, &runs), exit))
}

/// Steps and measured part, which are the same for all, as is every example.
fn alike(names: &[String], all: &[Prepared]) -> Result<(u64, String), Failure> {
    let Some((first, rest)) = all.split_first() else { return Ok((0, String::new())) };
    let steps = |p: &Prepared| p.recipe.total_steps(Loader::new(&p.dataset).steps_of_epoch());
    for (name, other) in names.iter().skip(1).zip(rest) {
        let (a, b) = (&first.dataset, &other.dataset);
        let (codes, others) = (&a.codebook, &b.codebook);
        let same_words = codes.tokenizer == others.tokenizer
            && codes.source == others.source
            && codes.classes == others.classes
            && codes.task == others.task;
        let same_data = a.train == b.train && a.validation == b.validation && a.test == b.test;
        let what = match (same_words, same_data && steps(first) == steps(other)) {
            (true, true) => continue,
            (false, _) => "reads other tokens or predicts other classes",
            (true, false) => "sees other examples",
        };
        let one = names.first().map_or("", String::as_str);
        let message = format!("`{name}` {what} than `{one}`, so that their losses cannot be compared");
        return Err(Failure::new(Exit::Failed, message)
            .help("the same `vocab` and `context` for all make them comparable: `--set context=64`"));
    }
    let split = session::measured(&first.recipe, &first.dataset);
    Ok((steps(first), split.word().to_owned()))
}

/// A name as that of a folder.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    name.chars().map(plain).take(60).collect()
}

/// Trains one model, or goes on where it was; whether it came to its end.
fn train(
    prepared: &Prepared,
    root: &Path,
    chosen: &Chosen,
    (what, signals): (&str, &Signals),
    ui: &Ui,
) -> Result<bool, Failure> {
    let documents = documents(prepared)?;
    let found = newest(root)?;
    let job = prepared.job(chosen, &documents);
    let mut session = session(job, prepared, root, (found.as_ref(), true), || Ok(None), ui)?;
    ui.note(&format!("trains {what}"));
    let mut watch = Watch { ui, signals, what, shown: Instant::now() };
    let ending = session.run(&mut watch).map_err(session_failure)?;
    Ok(match ending {
        Ending::Complete | Ending::Stopped => true,
        Ending::Interrupted => false,
    })
}

/// The losses of a run that came to its end.
fn read(root: &Path, seed: u64) -> Result<Run, Failure> {
    let path = root.join("metrics.jsonl");
    let failed = |why: String| Failure::new(Exit::File, format!("cannot read `{}`: {why}", path.display()));
    let bytes = file::read_bounded(&path, MAX_RECORD).map_err(|e| failed(file::reason(&e)))?;
    let mut run = Run { seed, steps: Vec::new(), last: f64::NAN };
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let line: Json = serde_json::from_slice(line).map_err(|e| failed(e.to_string()))?;
        let (step, loss) = (line["step"].as_u64(), line["loss"].as_f64());
        match (step, loss, line.get("split")) {
            (Some(_), Some(loss), Some(_)) => run.last = loss,
            (Some(step), Some(loss), None) => run.steps.push((step, loss)),
            (_, _, _) => {}
        }
    }
    match run.last.is_finite() {
        true => Ok(run),
        false => Err(failed("it does not say the loss at the end".to_owned())),
    }
}

/// Shows how far a run has come, in one line.
struct Watch<'a> {
    ui: &'a Ui,
    signals: &'a Signals,
    what: &'a str,
    shown: Instant,
}

impl Watcher for Watch<'_> {
    fn stepped(&mut self, state: &State, made: &Made, _: f64) {
        if self.shown.elapsed().as_millis() >= 100 {
            self.shown = Instant::now();
            let (step, steps) = (state.step, state.steps);
            self.ui.status(&format!("{}: step {step}/{steps}  loss {:.4}", self.what, made.loss));
        }
    }

    fn evaluated(&mut self, _: &State, _: &Figures, _: bool) {}

    fn saved(&mut self, _: &State, _: &Path) {}

    fn is_over(&mut self) -> bool {
        self.signals.caught() != 0
    }
}
