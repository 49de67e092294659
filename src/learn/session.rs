//! A training run from its first step, or from where it was interrupted, to its end.
//!
//! The loop is: batches of the step, the step, what is due after it (an evaluation, a checkpoint), and
//! again. All that the next step depends on is in the checkpoint; the rest of a run, what is shown of it,
//! belongs to a [`Watcher`].

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Instant;

use burn::prelude::Device;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::json;

use super::data::{Dataset, Loader};
use super::evaluate::evaluate;
use super::recipe::{Metric, Recipe, Split};
use super::run_dir::{self, Best, Found, RunDir, RunDirError, State};
use super::step::{Made, Rules, StepError, plain, step};
use super::update::Updater;
use crate::interp::tensor_file::FileError;
use crate::interp::weights::WeightsError;
use crate::interp::{Plan, Weights};
use crate::ir::Verified;

/// Names of a checkpoint's files.
pub mod files {
    /// The parameters.
    pub const MODEL: &str = "model.safetensors";
    /// What the optimizer remembers of each.
    pub const OPTIMIZER: &str = "optimizer.safetensors";
    /// The spec with every default.
    pub const SPEC: &str = "spec.yaml";
    /// The recipe with every default.
    pub const RECIPE: &str = "recipe.yaml";
    /// What ids and classes mean.
    pub const CODEBOOK: &str = "codebook.json";
}

/// Why a run ends without having reached its end.
#[derive(Debug)]
pub enum SessionError {
    /// Its folder.
    RunDir(RunDirError),
    /// Parameters cannot be made or read.
    Weights(WeightsError),
    /// The state of the optimizer cannot be read.
    Optimizer(FileError),
    /// A step.
    Step(StepError),
    /// The loss is not a number any more.
    NotANumber {
        /// At this step.
        step: u64,
    },
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::RunDir(error) => write!(f, "{error}"),
            SessionError::Weights(error) => write!(f, "{error}"),
            SessionError::Optimizer(error) => write!(f, "{error}"),
            SessionError::Step(error) => write!(f, "{error}"),
            SessionError::NotANumber { step } => write!(f, "the loss is not a number at step {step}"),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<RunDirError> for SessionError {
    fn from(error: RunDirError) -> Self {
        SessionError::RunDir(error)
    }
}

impl From<WeightsError> for SessionError {
    fn from(error: WeightsError) -> Self {
        SessionError::Weights(error)
    }
}

impl From<StepError> for SessionError {
    fn from(error: StepError) -> Self {
        SessionError::Step(error)
    }
}

/// What is trained, and how.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The model.
    pub graph: &'a Verified,
    /// Width the Noam schedule is scaled by.
    pub d_model: u64,
    /// How.
    pub recipe: &'a Recipe,
    /// On what.
    pub dataset: &'a Dataset,
    /// Where, without autodiff.
    pub device: &'a Device,
    /// Spec, recipe and codebook as texts, by the names they have in a checkpoint.
    pub documents: &'a [(&'static str, String)],
}

/// Figures of one evaluation.
pub type Figures = Vec<(Metric, f64)>;

/// Sees a run go on.
pub trait Watcher {
    /// A step has been made.
    fn stepped(&mut self, state: &State, made: &Made, rate: f64);
    /// Something has been measured.
    fn evaluated(&mut self, state: &State, figures: &Figures, is_best: bool);
    /// A checkpoint is whole.
    fn saved(&mut self, state: &State, path: &Path);
    /// Asked before every step: whether to save and end.
    fn is_over(&mut self) -> bool;
}

/// How a run came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All steps are made.
    Complete,
    /// A figure did not become better any more.
    Stopped,
    /// The watcher said so; everything is saved.
    Interrupted,
}

/// A run that can go on.
#[derive(Debug)]
pub struct Session<'a> {
    job: Job<'a>,
    plan: Plan,
    weights: Option<Weights>,
    updater: Updater,
    run: RunDir,
    state: State,
}

impl<'a> Session<'a> {
    /// Begins a run with these weights, or random ones. What a run that died before its first checkpoint
    /// has recorded in the folder is taken out again.
    ///
    /// # Errors
    /// The model is too large to run, or the system refuses.
    pub fn begin(job: Job<'a>, run: RunDir, weights: Option<Weights>) -> Result<Self, SessionError> {
        run.rewind(0)?;
        let seed = *job.recipe.seed;
        let device = job.device.clone().autodiff();
        let weights = match weights {
            Some(weights) => weights,
            None => Weights::init(job.graph, &device, seed)?,
        };
        let steps = job.recipe.total_steps(Loader::new(job.dataset).steps_of_epoch());
        let state =
            State { step: 0, steps, seed, targets: 0, best: None, stop: None, stale: 0, finished: false };
        Self::new(job, run, weights, state)
    }

    /// Goes on from a checkpoint.
    ///
    /// # Errors
    /// Its files are those of another model or optimizer.
    pub fn resume(job: Job<'a>, run: RunDir, found: &Found) -> Result<Self, SessionError> {
        let device = job.device.clone().autodiff();
        let (weights, _) = Weights::load(job.graph, &found.file(files::MODEL), &device)?;
        run.rewind(found.state.step)?;
        let mut session = Self::new(job, run, weights, found.state.clone())?;
        let optimizer = found.file(files::OPTIMIZER);
        session.updater.load(&optimizer, job.device).map_err(SessionError::Optimizer)?;
        Ok(session)
    }

    fn new(job: Job<'a>, run: RunDir, weights: Weights, state: State) -> Result<Self, SessionError> {
        let none = crate::interp::Captures::none();
        let plan = Plan::new(job.graph, &none).map_err(|e| StepError::Labels(e.to_string()))?;
        let updater = Updater::new(&job.recipe.optimizer, &job.recipe.freeze, &weights);
        let weights = updater.freeze(weights);
        Ok(Self { job, plan, weights: Some(weights), updater, run, state })
    }

    /// What is known of the run.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        self.run.root()
    }

    /// Makes every step that is left.
    ///
    /// # Errors
    /// A step cannot be made, or nothing can be written.
    pub fn run(&mut self, watcher: &mut dyn Watcher) -> Result<Ending, SessionError> {
        if self.state.finished {
            // The end may have come between the last checkpoint and the mean of several.
            if run_dir::named(self.run.root(), run_dir::AVERAGED).is_err() {
                self.average()?;
            }
            return Ok(Ending::Complete);
        }
        let job = self.job;
        let recipe = job.recipe;
        let mut loader = Loader::new(job.dataset);
        let rules = Rules {
            clip: recipe.clip.map(|c| *c),
            smoothing: *recipe.label_smoothing,
            seed: self.state.seed,
        };
        let start = Instant::now();
        let mut saved = self.state.step;
        while self.state.step < self.state.steps {
            if watcher.is_over() {
                if saved != self.state.step {
                    self.save(watcher)?;
                }
                return Ok(Ending::Interrupted);
            }
            let number = self.state.step + 1;
            let factor = recipe.schedule.factor(number, self.state.steps, job.d_model);
            let batches = loader.step(self.state.step);
            let Some(weights) = self.weights.take() else {
                return Err(StepError::Labels("the parameters were lost in an earlier step".into()).into());
            };
            let (weights, made) =
                step(&self.plan, weights, &mut self.updater, &batches, number, factor, &rules)?;
            self.weights = Some(weights);
            if !made.loss.is_finite() || made.norm.is_some_and(|n| !n.is_finite()) {
                return Err(SessionError::NotANumber { step: number });
            }
            self.state.step = number;
            self.state.targets += made.counted;
            let rate = recipe.optimizer.learning_rate() * factor;
            self.run.record(&json!({
                "step": number,
                "loss": made.loss,
                "rate": rate,
                "norm": made.norm,
                "targets": made.counted,
                "tokens": made.tokens,
                "seconds": (start.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            }))?;
            watcher.stepped(&self.state, &made, rate);
            let is_last = number == self.state.steps;
            let mut ending = is_last.then_some(Ending::Complete);
            let mut due = is_last || number.is_multiple_of(*recipe.checkpoint.every);
            if is_last || recipe.evaluate.every.is_some_and(|every| number.is_multiple_of(*every)) {
                let is_best = self.evaluate(watcher)?;
                due |= is_best;
                if recipe.stop.as_ref().is_some_and(|s| self.state.stale >= *s.patience) && !is_last {
                    ending = Some(Ending::Stopped);
                    due = true;
                }
            }
            self.state.finished = ending.is_some();
            if due {
                self.save(watcher)?;
                saved = number;
            }
            if let Some(ending) = ending {
                self.average()?;
                return Ok(ending);
            }
        }
        Ok(Ending::Complete)
    }

    /// The part of the data that is measured on.
    pub fn measured(&self) -> Split {
        measured(self.job.recipe, self.job.dataset)
    }

    fn evaluate(&mut self, watcher: &mut dyn Watcher) -> Result<bool, SessionError> {
        let Some(weights) = &self.weights else { return Ok(false) };
        let recipe = self.job.recipe;
        let split = self.measured();
        let limit = recipe.evaluate.limit.map(|l| *l);
        let metrics = &recipe.evaluate.metrics;
        let figures = evaluate(&self.plan, &plain(weights), self.job.dataset, split, limit, metrics)?;
        let value_of = |metric: Metric| figures.iter().find(|(m, _)| *m == metric).map(|(_, v)| *v);
        let is_better = |metric: Metric, value: f64, before: Option<f64>| match before {
            Some(before) if metric.falls() => value < before,
            Some(before) => value > before,
            None => true,
        };
        let mut is_best = false;
        if let Some((metric, value)) = figures.first().copied() {
            is_best = is_better(metric, value, self.state.best.as_ref().map(|b| b.value));
            if is_best {
                self.state.best = Some(Best { step: self.state.step, value });
            }
        }
        if let Some(stop) = &recipe.stop
            && let Some(value) = value_of(stop.metric)
        {
            if is_better(stop.metric, value, self.state.stop) {
                self.state.stop = Some(value);
                self.state.stale = 0;
            } else {
                self.state.stale += 1;
            }
        }
        let mut line = serde_json::Map::new();
        line.insert("step".into(), json!(self.state.step));
        line.insert("split".into(), json!(split.word()));
        line.extend(figures.iter().map(|(metric, value)| (metric.word().to_owned(), json!(value))));
        self.run.record(&line)?;
        watcher.evaluated(&self.state, &figures, is_best);
        Ok(is_best)
    }

    fn save(&mut self, watcher: &mut dyn Watcher) -> Result<(), SessionError> {
        let Some(weights) = &self.weights else { return Ok(()) };
        let (documents, updater) = (self.job.documents, &self.updater);
        let keep = *self.job.recipe.checkpoint.keep;
        let path = self.run.save(&self.state, keep, |folder| {
            write_documents(folder, documents)?;
            weights.save(&folder.join(files::MODEL), &IndexMap::new()).map_err(refusal)?;
            updater.save(&folder.join(files::OPTIMIZER)).map_err(|e| refusal(WeightsError::File(e)))
        })?;
        watcher.saved(&self.state, &path);
        Ok(())
    }

    /// The mean of the last checkpoints, where the recipe asks for it.
    fn average(&self) -> Result<(), SessionError> {
        let Some(count) = self.job.recipe.average else { return Ok(()) };
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let found = run_dir::last(self.run.root(), count)?;
        let mut files: Vec<_> = found
            .iter()
            .map(|f| crate::interp::tensor_file::TensorFile::open(&f.file(files::MODEL)))
            .collect::<Result<_, _>>()
            .map_err(WeightsError::File)?;
        let weights = Weights::build(self.job.graph, self.job.device, |path, slot| {
            let mut sum = vec![0.0f64; slot.shape.iter().product()];
            for file in &mut files {
                let values = file.floats(path).map_err(WeightsError::File)?;
                sum.iter_mut().zip(values).for_each(|(s, v)| *s += f64::from(v));
            }
            let count = files.len().max(1) as f64;
            Ok(sum.into_iter().map(|s| (s / count) as f32).collect())
        })?;
        self.run.save_averaged(&self.state, |folder| {
            write_documents(folder, self.job.documents)?;
            weights.save(&folder.join(files::MODEL), &IndexMap::new()).map_err(refusal)
        })?;
        Ok(())
    }
}

/// What the system said, where it was the system: that the disk is full is not to be lost.
fn refusal(error: WeightsError) -> io::Error {
    match error {
        WeightsError::File(FileError::Io(_, error)) => error,
        other => io::Error::other(other),
    }
}

fn write_documents(folder: &Path, documents: &[(&'static str, String)]) -> io::Result<()> {
    documents.iter().try_for_each(|(name, text)| run_dir::write_file(&folder.join(name), text.as_bytes()))
}

/// The part of the data a recipe measures on: what it says, else validation where there is one.
pub fn measured(recipe: &Recipe, dataset: &Dataset) -> Split {
    let usual = || if dataset.validation.is_some() { Split::Validation } else { Split::Train };
    recipe.evaluate.split.unwrap_or_else(usual)
}

/// Figures by name, for programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What.
    pub metric: &'static str,
    /// How much.
    pub value: f64,
}

/// Figures as they are written out.
pub fn named(figures: &Figures) -> Vec<Figure> {
    figures.iter().map(|(metric, value)| Figure { metric: metric.word(), value: *value }).collect()
}
