//! Times models for `trafoc compare --measure`: forward passes and training steps of all models, in turns.
//!
//! They take turns because the speed of a machine drifts: whatever slows one model down slows the others
//! too. Every model first runs until it is warm. Weights and inputs are random, since durations do not
//! depend on them, and outputs are read back, since a device may still be computing when a call returns.

use std::time::Instant;

use super::execute::{choose, takes};
use super::failures::{plan_failure, run_failure, step_failure, weights_failure};
use crate::cli::outcome::{Exit, Failure};
use crate::cli::subject::Subject;
use crate::cli::ui::Ui;
use crate::interp::device::Chosen;
use crate::interp::room::free_memory;
use crate::interp::{Captures, Inputs, Plan, Weights};
use crate::ir::Verified;
use crate::learn::data::Batch;
use crate::learn::recipe::Optimizer;
use crate::learn::recipe::agree::Task;
use crate::learn::sample::sample;
use crate::learn::step::{self, Rules};
use crate::learn::update::Updater;
use crate::report::compare::timing::{Spread, Timed, Timing};
use crate::report::cost::cost;
use crate::report::memory::{Memory, memory};
use crate::report::number;
use crate::report::scene::{Element, Scene};

/// The smallest number of runs that are counted.
const RUNS: usize = 10;
/// The shortest total time of all counted runs of a model.
const SECONDS: f64 = 3.0;
/// The number of runs before those that are counted, and the time after which a model counts as warm
/// regardless.
const WARM: (usize, f64) = (3, 1.0);
/// The seed of weights and inputs.
const SEED: u64 = 0;

/// Times models by their names.
///
/// # Errors
/// A model does not fit into memory, or the device is not available.
pub fn timing(
    subjects: &[(String, &Subject)],
    scene: &Scene,
    device: Option<&str>,
    ui: &Ui,
) -> Result<Timing, Failure> {
    // The interpreter computes in single precision here, whatever type the costs are counted in.
    let scene = Scene { element: Element::F32, ..*scene };
    let needs: Vec<Memory> =
        subjects.iter().map(|(_, s)| memory(&s.graph, &cost(&s.graph), &scene)).collect();
    refuse_what_does_not_fit(subjects, &needs)?;
    let chosen = choose(device, ui)?;
    let prepared = subjects.iter().map(|(name, subject)| Prepared::new(name, subject, &scene));
    let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
    let forward = forward(&prepared, &chosen, ui)?;
    let (steps, mut reasons) = steps(&prepared, &needs, &chosen, ui)?;
    let models = prepared.iter().zip(forward).zip(steps).enumerate().map(|(i, ((one, forward), step))| {
        let untrained = reasons.get_mut(i).and_then(Option::take);
        Timed { name: one.name.clone(), forward, step, untrained }
    });
    Ok(Timing {
        device: chosen.name.clone(),
        processor: processor(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        batch: scene.batch,
        tokens: scene.tokens,
        models: models.collect(),
    })
}

/// The weights of all models are in memory at the same time, but only one model runs at a time.
fn refuse_what_does_not_fit(subjects: &[(String, &Subject)], needs: &[Memory]) -> Result<(), Failure> {
    // Where the system does not say what is free, nothing can be refused in advance.
    let Some(free) = free_memory() else { return Ok(()) };
    let needed = needs.iter().fold(0u128, |sum, m| sum.saturating_add(m.weights));
    let needed = needed.saturating_add(needs.iter().map(|m| m.peak).max().unwrap_or(0));
    if needed <= free {
        return Ok(());
    }
    let largest = subjects.iter().zip(needs).max_by_key(|(_, m)| m.to_run());
    let (of, by) = largest.map(|((name, _), m)| (name.as_str(), m.to_run())).unwrap_or_default();
    let message = format!(
        "running the models in turns needs {} in single precision, {} of it for `{of}`, but only {} of \
            memory is free",
        number::bytes(needed),
        number::bytes(by),
        number::bytes(free),
    );
    let help = "fewer layers, or a smaller `--batch` or `--tokens`, would fit";
    Err(Failure::new(Exit::Refused, message).help(help))
}

/// A model that is ready to be timed, with random inputs of the scene's lengths.
struct Prepared<'s> {
    name: String,
    graph: &'s Verified,
    plan: Plan,
    batch: Batch,
    is_trained: bool,
}

impl<'s> Prepared<'s> {
    fn new(name: &str, subject: &'s Subject, scene: &Scene) -> Result<Self, Failure> {
        let graph = &subject.graph;
        let plan = Plan::new(graph, &Captures::none()).map_err(plan_failure)?;
        // A loss of pairs needs several sequences, and the time of one hardly depends on it.
        let task = Task::of(&subject.spec).filter(|task| *task != Task::Embed);
        let batch = sample(&subject.spec, &plan, task, &scene.whole());
        Ok(Self { name: name.to_owned(), graph, plan, batch, is_trained: task.is_some() })
    }

    fn run(&self, weights: &Weights, inputs: &Inputs) -> Result<(), Failure> {
        let outputs =
            self.plan.run(weights, inputs, false).map_err(|e| run_failure(e, &takes(self.graph)))?;
        let (_, last) = outputs.iter().last().ok_or_else(|| Failure::bug("a model gave no output"))?;
        let lost = |why| Failure::new(Exit::Device, format!("the outputs cannot be read back: {why}"));
        last.to_data().map_err(lost)?;
        Ok(())
    }
}

/// The name of the processor, as Linux gives it; durations of another one say little.
fn processor() -> Option<String> {
    let text = crate::read::system("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|name| !name.is_empty())
}

/// The seconds of the counted runs of each of `count` tasks, which take turns. The order is reversed in
/// every round, so that no task always runs after the same other one.
fn in_turns(
    count: usize,
    ui: &Ui,
    what: &str,
    mut run: impl FnMut(usize) -> Result<(), Failure>,
) -> Result<Vec<Vec<f64>>, Failure> {
    for one in 0..count {
        ui.status(&format!("warms up: {what}"));
        let begun = Instant::now();
        for made in 1.. {
            run(one)?;
            if made >= WARM.0 || begun.elapsed().as_secs_f64() > WARM.1 {
                break;
            }
        }
    }
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); count];
    let mut shown = Instant::now();
    for round in 0usize.. {
        // Both: a fast model has many runs for its median, and a slow one is not judged by one or two.
        let is_done = |own: &Vec<f64>| own.len() >= RUNS && own.iter().sum::<f64>() >= SECONDS;
        // The fast ones go on until the slow ones are done, so that drift affects all alike.
        if seconds.iter().all(is_done) {
            break;
        }
        for place in 0..count {
            let one = if round % 2 == 0 { place } else { count - 1 - place };
            let begun = Instant::now();
            run(one)?;
            let took = begun.elapsed().as_secs_f64();
            if let Some(own) = seconds.get_mut(one) {
                own.push(took);
            }
        }
        // More than ten lines a second could not be read, and writing them would take time from what is
        // measured.
        if shown.elapsed().as_millis() >= 100 {
            shown = Instant::now();
            ui.status(&format!("measures {what}: {} runs of each", round + 1));
        }
    }
    Ok(seconds)
}

fn spread(seconds: &[f64]) -> Result<Spread, Failure> {
    Spread::of(seconds).ok_or_else(|| Failure::bug("no run was timed"))
}

fn forward(all: &[Prepared<'_>], chosen: &Chosen, ui: &Ui) -> Result<Vec<Spread>, Failure> {
    let mut ready = Vec::new();
    for one in all {
        let weights = Weights::init(one.graph, &chosen.device, SEED).map_err(weights_failure)?;
        ready.push((weights, step::inputs(&one.batch, &chosen.device).map_err(step_failure)?));
    }
    let seconds = in_turns(all.len(), ui, "forward passes", |i| match (all.get(i), ready.get(i)) {
        (Some(one), Some((weights, inputs))) => one.run(weights, inputs),
        // `in_turns` gives only numbers below the count.
        (_, _) => Ok(()),
    })?;
    seconds.iter().map(|own| spread(own)).collect()
}

/// The duration of a training step for each model that can make one, and the reason for each that cannot.
type Steps = (Vec<Option<Spread>>, Vec<Option<String>>);

fn steps(all: &[Prepared<'_>], needs: &[Memory], chosen: &Chosen, ui: &Ui) -> Result<Steps, Failure> {
    let mut reasons: Vec<Option<String>> = vec![None; all.len()];
    let mut left = free_memory();
    let mut trained = Vec::new();
    // The memory that is kept between steps adds up; activations exist for only one model at a time.
    let most = all.iter().zip(needs).filter(|(one, _)| one.is_trained).map(|(_, m)| m.activations).max();
    for (i, (one, need)) in all.iter().zip(needs).enumerate() {
        let stays = need.to_train().saturating_sub(need.activations);
        let needed = stays.saturating_add(most.unwrap_or(0));
        if !one.is_trained {
            reasons[i] = Some("its head has no target to be trained on".to_owned());
        } else if let Some(free) = left.filter(|free| needed > *free) {
            let (needed, free) = (number::bytes(needed), number::bytes(free));
            reasons[i] = Some(format!("it needs {needed}, but only {free} of memory is free"));
        } else {
            left = left.map(|free| free.saturating_sub(stays));
            trained.push(i);
        }
    }
    let device = chosen.device.clone().autodiff();
    let mut ready = Vec::new();
    for one in trained.iter().filter_map(|i| all.get(*i)) {
        let weights = Weights::init(one.graph, &device, SEED).map_err(weights_failure)?;
        // No recipe is given here, so the optimizer is that of a recipe that names none.
        let updater = Updater::new(&Optimizer::usual(), |_| false, &weights);
        // An `Option`, because a step takes the weights and gives them back.
        ready.push((one, Some(weights), updater, 0u64));
    }
    let rules = Rules::plain(SEED);
    let seconds = in_turns(ready.len(), ui, "training steps", |i| {
        let Some((one, slot, updater, number)) = ready.get_mut(i) else { return Ok(()) };
        let Some(weights) = slot.take() else { return Err(Failure::bug("the parameters were lost")) };
        *number += 1;
        // With a factor of 0 the parameters do not change, so no step can lead to NaN.
        let (weights, _) =
            step::step(&one.plan, weights, updater, std::slice::from_ref(&one.batch), *number, 0.0, &rules)
                .map_err(step_failure)?;
        *slot = Some(weights);
        Ok(())
    })?;
    let mut spreads: Vec<Option<Spread>> = vec![None; all.len()];
    for (i, own) in trained.iter().zip(&seconds) {
        if let Some(slot) = spreads.get_mut(*i) {
            *slot = Some(spread(own)?);
        }
    }
    Ok((spreads, reasons))
}
