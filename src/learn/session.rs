//! A training run from its first step, or from where it was interrupted, to its end.
//!
//! Each round gets the batches of the step, makes the step, and then does what is due (an evaluation, a
//! checkpoint). Everything on which the next step depends is in the checkpoint; what is displayed of a run
//! belongs to a [`Watcher`].

use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use burn::prelude::Device;
use indexmap::IndexMap;
use sha2::{Digest, Sha256};

use super::adapt;
use super::data::{Dataset, Fingerprint, Loader, ORDER};
use super::evaluate::{Asked, Figures, evaluate};
use super::recipe::{Metric, Recipe, Split};
use super::record;
use super::run_dir::{self, Best, Checkpoint, RunDir, RunDirError, State};
use super::step::{Rules, StepError, plain, step};
use super::update::Updater;
use crate::diag::count::counted;
use crate::interp::plan::PlanError;
use crate::interp::run::RunError;
use crate::interp::tensor_file::FileError;
use crate::interp::weights::WeightsError;
use crate::interp::{Captures, Plan, Weights};
use crate::ir::Verified;

/// The names of a checkpoint's files.
pub mod files {
    /// The parameters and buffers, by path.
    pub const MODEL: &str = "model.safetensors";
    /// The optimizer's state of each parameter.
    pub const OPTIMIZER: &str = "optimizer.safetensors";
    /// The spec, with all defaults written out.
    pub const SPEC: &str = "spec.yaml";
    /// The recipe, with all defaults written out.
    pub const RECIPE: &str = "recipe.yaml";
    /// The meaning of ids and classes.
    pub const CODEBOOK: &str = "codebook.json";
    /// The path of the folder of prepared data that the run began with, if it did.
    pub const PREPARED: &str = "prepared.json";
}

/// The reason why a run ended with an error before its last step.
#[derive(Debug)]
pub enum SessionError {
    /// The folder of the run cannot be used or written.
    RunDir(RunDirError),
    /// The parameters cannot be created or read.
    Weights(WeightsError),
    /// The optimizer's state cannot be read.
    Optimizer(FileError),
    /// A step or an evaluation failed.
    Step(StepError),
    /// The run took its examples in an order that this version does not follow.
    Order {
        /// The version of the run's order.
        own: u64,
    },
    /// The examples are not those that the run began with.
    Data {
        /// The number of examples that it began with.
        before: u64,
        /// The number of examples that there are now.
        now: u64,
    },
    /// The weights of the trained model are not those that the run began with.
    Beginning,
    /// The loss became NaN or infinite.
    NotANumber {
        /// The number of that step, counted from 1.
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
            SessionError::Order { own } => {
                let age = if *own < ORDER { "an earlier" } else { "a later" };
                write!(
                    f,
                    "the run was begun by {age} version of trafoc, which takes the examples in another \
                    order, so it cannot continue as if it had not been interrupted"
                )
            }
            SessionError::Data { before, now } => {
                write!(f, "the training data is not what the run began with: ")?;
                match before == now {
                    true => write!(f, "it has as many examples, but not the same"),
                    false => write!(
                        f,
                        "it had {} and has {}",
                        counted(*before, "example"),
                        counted(*now, "example")
                    ),
                }
            }
            SessionError::Beginning => {
                write!(f, "the weights of the model that the run began from are not those that it had then")
            }
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
    /// The graph of the model.
    pub graph: &'a Verified,
    /// The width of the model, by which the Noam schedule is scaled.
    pub d_model: u64,
    /// How it is trained: steps, optimizer, batches, checkpoints, metrics.
    pub recipe: &'a Recipe,
    /// The data it is trained on.
    pub dataset: &'a Dataset,
    /// The device of the parameters, without autodiff, which training turns on.
    pub device: &'a Device,
    /// Spec, recipe and codebook as texts, by their file names in a checkpoint.
    pub documents: &'a [(&'static str, String)],
}

/// The time that a run has taken so far. Steps and evaluations are measured separately; the writing of
/// checkpoints is part of neither.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// The time of all steps.
    pub steps: Duration,
    /// The time of all evaluations, and their number.
    pub evaluations: (Duration, u64),
}

impl Clock {
    /// An estimate of the seconds until the end of a run, from the mean times of a step and of an evaluation
    /// so far. `made` is the number of steps that were measured.
    pub fn left(&self, made: u64, state: &State, recipe: &Recipe) -> f64 {
        // Before the first step and the first evaluation their times are unknown, and count as 0.
        let a_step = self.steps.as_secs_f64() / made.max(1) as f64;
        let (measured, count) = self.evaluations;
        let an_evaluation = measured.as_secs_f64() / count.max(1) as f64;
        let until = |step| recipe.evaluate.made_until(step, state.steps);
        let evaluations = until(state.steps).saturating_sub(until(state.step));
        a_step * state.steps.saturating_sub(state.step) as f64 + an_evaluation * evaluations as f64
    }
}

/// Follows a run, to show its progress and to end it early.
pub trait Watcher {
    /// Called after a step, which is recorded as this line.
    fn stepped(&mut self, state: &State, line: &record::Step, clock: &Clock);
    /// Called after an evaluation, which is recorded as this line.
    fn evaluated(&mut self, state: &State, line: &record::Evaluation, figures: &Figures, is_best: bool);
    /// Called after a checkpoint was written.
    fn saved(&mut self, state: &State, path: &Path);
    /// Called after the mean of checkpoints was written: of how many, and of how many the recipe asks for.
    fn averaged(&mut self, found: usize, wanted: usize);
    /// Called before every step; returns whether to save and end the run.
    fn is_over(&mut self) -> bool;
}

/// How a run ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All steps have been made.
    Complete,
    /// The metric of `stop` no longer improved.
    Stopped,
    /// The watcher ended the run, whose state has been saved.
    Interrupted,
}

/// A run that can continue.
#[derive(Debug)]
pub struct Session<'a> {
    job: Job<'a>,
    /// The plan of the model, for evaluations.
    plan: Plan,
    /// The plan with the losses of parts, for steps; the same if there are none.
    trained: Option<Plan>,
    /// `None` while a step has them, and after a step that failed.
    weights: Option<Weights>,
    updater: Updater,
    run: RunDir,
    state: State,
}

impl<'a> Session<'a> {
    /// Begins a run with these weights, or with random ones. Metrics that were recorded by a run which
    /// ended before its first checkpoint are removed.
    ///
    /// # Errors
    /// The model is too large to run, or an I/O error.
    pub fn begin(job: Job<'a>, run: RunDir, weights: Option<Weights>) -> Result<Self, SessionError> {
        run.rewind(0)?;
        let seed = *job.recipe.seed;
        let device = job.device.clone().autodiff();
        let began_with = weights.as_ref().map(checksum);
        let weights = match weights {
            Some(weights) => weights,
            None => Weights::init(job.graph, &device, seed)?,
        };
        // Before the optimizer is made, which has an entry for every parameter, those of the adapters too.
        let adapters = adapt::adapters(job.recipe, weights.layout());
        let weights = weights.adapted(&adapters, seed)?;
        let steps = job.recipe.total_steps(Loader::new(job.dataset).steps_of_epoch());
        let state = State {
            step: 0,
            steps,
            seed,
            order: ORDER,
            data: Some(Fingerprint::of(&job.dataset.train)),
            began_with,
            targets: 0,
            best: None,
            stop: None,
            stale: 0,
            finished: false,
        };
        Self::new(job, run, weights, state)
    }

    /// Continues from a checkpoint, with a new state of the optimizer if the checkpoint has none. A run that
    /// adapts a trained model needs that model's weights, `base`: its checkpoints have them with the changes
    /// added, and the changes alone.
    ///
    /// # Errors
    /// Its files belong to another model or optimizer, or the run is not finished and follows the order of
    /// another version or had other data.
    pub fn resume(
        job: Job<'a>,
        run: RunDir,
        found: &Checkpoint,
        base: Option<Weights>,
    ) -> Result<Self, SessionError> {
        // A finished run takes no more examples, so its order no longer matters: only its average may be
        // missing.
        if !found.state.finished {
            same_examples(&found.state, job.dataset)?;
        }
        let device = job.device.clone().autodiff();
        let (weights, _) = Weights::load(job.graph, &found.file(files::MODEL), &device)?;
        let weights = match base {
            Some(base) => {
                same_beginning(&found.state, Some(&checksum(&base)))?;
                adapt::load(&found.file(adapt::MODEL), job.recipe, &base, weights, found.state.seed)?
            }
            None => weights,
        };
        // After the weights have been read, so that a checkpoint of another model leaves the record as it is.
        // Steps after the checkpoint are made again, and with the same numbers.
        run.rewind(found.state.step)?;
        let mut session = Self::new(job, run, weights, found.state.clone())?;
        // A finished run makes no more steps.
        if !found.state.finished && has_optimizer(found) {
            let optimizer = found.file(files::OPTIMIZER);
            // The state of the optimizer is found by the paths of parameters, which the new updater knows.
            session.updater.load(&optimizer, job.device).map_err(SessionError::Optimizer)?;
        }
        Ok(session)
    }

    /// A session with these weights, of which those that are not trained get no gradients.
    fn new(job: Job<'a>, run: RunDir, weights: Weights, state: State) -> Result<Self, SessionError> {
        let fault = |e: PlanError| StepError::Run(RunError::Plan(e));
        // Nothing is captured: training needs the outputs alone, and a captured value would keep its memory.
        let plan = Plan::new(job.graph, &Captures::none()).map_err(fault)?;
        let has_losses = job.graph.has_losses();
        let trained = has_losses.then(|| Plan::for_training(job.graph)).transpose().map_err(fault)?;
        let is_frozen = |path: &str| job.recipe.is_frozen(path);
        let updater = Updater::new(&job.recipe.optimizer, is_frozen, &weights);
        let weights = updater.freeze(weights);
        Ok(Self { job, plan, trained, weights: Some(weights), updater, run, state })
    }

    /// The state after the last step that was made.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The path of the run's folder, as it was created or opened with it.
    pub fn root(&self) -> &Path {
        self.run.root()
    }

    /// Makes all remaining steps.
    ///
    /// # Errors
    /// A step fails, or nothing can be written.
    pub fn run(&mut self, watcher: &mut dyn Watcher) -> Result<Ending, SessionError> {
        if self.state.finished {
            // The run may have been interrupted between its last checkpoint and the averaging.
            if run_dir::named(self.run.root(), run_dir::AVERAGED).is_err() {
                self.average(watcher)?;
            }
            return Ok(Ending::Complete);
        }
        let job = self.job;
        let recipe = job.recipe;
        let loader = Loader::new(job.dataset);
        let rules = Rules::of(recipe, self.state.seed);
        let mut clock = Clock::default();
        // An interruption right after a checkpoint does not write the same one again.
        let mut saved = self.state.step;
        while self.state.step < self.state.steps {
            // Asked between steps only: in the middle of a step the parameters are with the optimizer.
            if watcher.is_over() {
                if saved != self.state.step {
                    self.save(watcher)?;
                }
                return Ok(Ending::Interrupted);
            }
            let begun = Instant::now();
            let number = self.state.step + 1;
            let factor = recipe.schedule.factor(number, self.state.steps, job.d_model);
            let batches = loader.step(self.state.step);
            // Moved into the step: an update is made in place only where nothing else has the parameter's
            // memory.
            let Some(weights) = self.weights.take() else {
                return Err(StepError::Labels("the parameters were lost in an earlier step".into()).into());
            };
            let plan = self.trained.as_ref().unwrap_or(&self.plan);
            let (weights, made) = step(plan, weights, &mut self.updater, &batches, number, factor, &rules)?;
            self.weights = Some(weights);
            // Nothing is saved: the newest checkpoint is the last state that is of use.
            if !made.loss.is_finite()
                || made.losses.values().any(|value| !value.is_finite())
                || made.norm.is_some_and(|n| !n.is_finite())
            {
                return Err(SessionError::NotANumber { step: number });
            }
            self.state.step = number;
            // The state follows the step only here, so one that failed is not counted as made.
            self.state.targets += made.counted;
            clock.steps += begun.elapsed();
            // Of the optimizer itself: parameters with learning rates of their own have the same factor.
            let rate = recipe.optimizer.learning_rate() * factor;
            let line = record::Step {
                step: number,
                loss: made.loss,
                losses: made.losses,
                rate,
                norm: made.norm,
                targets: made.counted,
                tokens: made.tokens,
                // To milliseconds: a clock's further digits would only make the record longer.
                seconds: (clock.steps.as_secs_f64() * 1e3).round() / 1e3,
            };
            // Recorded before a checkpoint is written: if the run is killed in between, the step is made
            // again, and `rewind` removes its line.
            self.run.record(&line)?;
            watcher.stepped(&self.state, &line, &clock);
            // The last step always has an evaluation and a checkpoint, whatever the intervals of the recipe
            // are.
            let is_last = number == self.state.steps;
            let mut ending = is_last.then_some(Ending::Complete);
            let mut due = is_last || number.is_multiple_of(*recipe.checkpoint.every);
            if is_last || recipe.evaluate.every.is_some_and(|every| number.is_multiple_of(*every)) {
                let begun = Instant::now();
                let is_best = self.evaluate(watcher)?;
                clock.evaluations.0 += begun.elapsed();
                clock.evaluations.1 += 1;
                // The best model must be in a checkpoint, or it could not be used.
                due |= is_best;
                // A run that has made all its steps is complete, even if it would have been stopped here.
                if recipe.stop.as_ref().is_some_and(|s| self.state.stale >= *s.patience) && !is_last {
                    ending = Some(Ending::Stopped);
                    due = true;
                }
            }
            // Before saving, so that the last checkpoint says that it is the last one.
            self.state.finished = ending.is_some();
            if due {
                self.save(watcher)?;
                saved = number;
            }
            // After the last checkpoint has been written, which is one of those that are averaged.
            if let Some(ending) = ending {
                self.average(watcher)?;
                return Ok(ending);
            }
        }
        Ok(Ending::Complete)
    }

    /// The part of the data on which metrics are computed.
    pub fn measured(&self) -> Split {
        measured(self.job.recipe, self.job.dataset)
    }

    /// Computes and records the metrics. Returns whether the model is the best so far, by the first of them.
    fn evaluate(&mut self, watcher: &mut dyn Watcher) -> Result<bool, SessionError> {
        let Some(weights) = &self.weights else { return Ok(false) };
        let recipe = self.job.recipe;
        let split = self.measured();
        let limit = recipe.evaluate.limit.map(|l| *l);
        let metrics = &recipe.evaluate.metrics;
        // Translations cost far more than losses, so they are generated only if a metric compares them.
        let asked = Asked { split, limit, metrics, writes: false };
        let figures = evaluate(&self.plan, &plain(weights), self.job.dataset, asked)?.figures;
        // The metric of `stop` need not be the first one, by which the best checkpoint is chosen.
        let value_of = |metric: Metric| figures.iter().find(|(m, _)| *m == metric).map(|(_, v)| *v);
        // Of equal evaluations the first one stays the best.
        let is_better = |metric: Metric, value: f64, before: Option<f64>| match before {
            Some(before) if metric.falls() => value < before,
            Some(before) => value > before,
            None => true,
        };
        let mut is_best = false;
        // A value that is not finite is never the best one: nothing would be better than NaN, and the state
        // is saved as JSON, which has neither NaN nor infinity.
        let first = figures.first().copied().filter(|(_, value)| value.is_finite());
        if let Some((metric, value)) = first {
            is_best = is_better(metric, value, self.state.best.as_ref().map(|b| b.value));
            if is_best {
                self.state.best = Some(Best { step: self.state.step, value });
            }
        }
        if let Some(stop) = &recipe.stop
            && let Some(value) = value_of(stop.metric)
        {
            if value.is_finite() && is_better(stop.metric, value, self.state.stop) {
                self.state.stop = Some(value);
                self.state.stale = 0;
            } else {
                // A value that is not finite is no improvement either.
                self.state.stale += 1;
            }
        }
        let line = record::Evaluation {
            step: self.state.step,
            split: split.word().to_owned(),
            figures: figures
                .iter()
                .map(|(metric, value)| (metric.word().to_owned(), Some(*value).filter(|v| v.is_finite())))
                .collect(),
        };
        self.run.record(&line)?;
        watcher.evaluated(&self.state, &line, &figures, is_best);
        Ok(is_best)
    }

    /// Writes a checkpoint of the present state, and deletes those that are no longer kept.
    fn save(&mut self, watcher: &mut dyn Watcher) -> Result<(), SessionError> {
        let Some(weights) = &self.weights else { return Ok(()) };
        let (documents, updater, recipe) = (self.job.documents, &self.updater, self.job.recipe);
        let keep = *self.job.recipe.checkpoint.keep;
        let path = self.run.save(&self.state, keep, |folder| {
            write_documents(folder, documents)?;
            // With low-rank changes added up, so that the model runs without knowing of them.
            let whole = plain(weights);
            // Everything that is needed to use the model, so that a checkpoint can be copied away from its
            // run.
            whole.save(&folder.join(files::MODEL), &IndexMap::new()).map_err(refusal)?;
            adapt::save(folder, recipe, weights)?;
            updater.save(&folder.join(files::OPTIMIZER)).map_err(|e| refusal(WeightsError::File(e)))
        })?;
        watcher.saved(&self.state, &path);
        Ok(())
    }

    /// Writes the mean of the last checkpoints, if the recipe asks for it.
    fn average(&self, watcher: &mut dyn Watcher) -> Result<(), SessionError> {
        let Some(count) = self.job.recipe.average else { return Ok(()) };
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let found = run_dir::last(self.run.root(), count)?;
        let mut files: Vec<_> = found
            .iter()
            .map(|f| crate::interp::tensor_file::TensorFile::open(&f.file(files::MODEL)))
            .collect::<Result<_, _>>()
            .map_err(WeightsError::File)?;
        let weights = Weights::build(self.job.graph, self.job.device, |path, slot| {
            // One parameter after the other, so that no more than one model is in memory.
            // In double precision: single precision would round again for each checkpoint that is added.
            let mut sum = vec![0.0f64; slot.shape.iter().product()];
            for file in &mut files {
                let values = file.floats(path).map_err(WeightsError::File)?;
                sum.iter_mut().zip(values).for_each(|(s, v)| *s += f64::from(v));
            }
            // Fewer than the recipe asks for if the run made fewer checkpoints, or some of them are damaged.
            let count = files.len().max(1) as f64;
            Ok(sum.into_iter().map(|s| (s / count) as f32).collect())
        })?;
        self.run.save_averaged(&self.state, |folder| {
            write_documents(folder, self.job.documents)?;
            weights.save(&folder.join(files::MODEL), &IndexMap::new()).map_err(refusal)
        })?;
        watcher.averaged(found.len(), count);
        Ok(())
    }
}

/// Checks that a run would find the examples that it began with, in the same order.
///
/// # Errors
/// The run follows the order of another version or had other data.
pub fn same_examples(state: &State, dataset: &Dataset) -> Result<(), SessionError> {
    if state.order != ORDER {
        return Err(SessionError::Order { own: state.order });
    }
    let now = Fingerprint::of(&dataset.train);
    match &state.data {
        Some(before) if *before != now => {
            Err(SessionError::Data { before: before.examples, now: now.examples })
        }
        Some(_) | None => Ok(()),
    }
}

/// The SHA-256 of parameters and buffers, with their paths, as hexadecimal digits.
fn checksum(weights: &Weights) -> String {
    let mut hash = Sha256::new();
    for path in weights.layout().keys() {
        hash.update(path);
        // Tensor by tensor, so that the bytes of a large model never exist twice.
        weights.values(path).unwrap_or_default().iter().for_each(|x| hash.update(x.to_le_bytes()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks that a run began with weights that have this checksum, as far as its state tells.
///
/// # Errors
/// It began with others.
pub fn same_beginning(state: &State, began_with: Option<&str>) -> Result<(), SessionError> {
    match (state.began_with.as_deref(), began_with) {
        (Some(then), Some(now)) if then != now => Err(SessionError::Beginning),
        _ => Ok(()),
    }
}

/// Whether a checkpoint has a state of the optimizer that is read here. That of a project for PyTorch has none:
/// the project keeps the state in files of its own.
pub fn has_optimizer(found: &Checkpoint) -> bool {
    found.file(files::OPTIMIZER).exists()
}

/// The I/O error that caused an error, if there is one, so that a full disk is reported as such.
fn refusal(error: WeightsError) -> io::Error {
    match error {
        WeightsError::File(FileError::Io(_, error)) => error,
        other => io::Error::other(other),
    }
}

/// Writes texts into new files of a folder, by their file names: the spec, the recipe and the codebook.
pub fn write_documents(folder: &Path, documents: &[(&'static str, String)]) -> io::Result<()> {
    documents.iter().try_for_each(|(name, text)| crate::write::create(&folder.join(name), text.as_bytes()))
}

/// The part of the data on which a recipe evaluates: the one it names, else validation if there is any.
pub fn measured(recipe: &Recipe, dataset: &Dataset) -> Split {
    let usual = || if dataset.validation.is_some() { Split::Validation } else { Split::Train };
    recipe.evaluate.split.unwrap_or_else(usual)
}
