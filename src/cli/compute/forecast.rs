//! What a training run would need: `trafoc train --dry-run`, and the refusal of what would not fit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::execute::choose;
use super::pace;
use super::prepared::Prepared;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::train::Forecast;
use crate::cli::ui::{Ui, shown_duration};
use crate::interp::room::free_memory;
use crate::interp::weights;
use crate::interp::{Captures, Plan, Weights};
use crate::ir::{Lengths, Sym};
use crate::learn::adapt;
use crate::learn::data::{Batch, Loader};
use crate::learn::recipe::{Optimizer, Recompute};
use crate::learn::step::Rules;
use crate::learn::update::Updater;
use crate::report::scene::Element;
use crate::report::{number, tape};

/// The number of batches whose lengths are examined.
const SEEN: u64 = 50;

/// What a run needs in memory and on disk.
#[derive(Clone, Copy, Debug)]
struct Needs {
    parameters: u128,
    trained: u128,
    /// Bytes: parameters, gradients, the state of the optimizer.
    model: u128,
    /// Bytes: activation memory of the largest batch, and the batches of a step as they were read.
    activations: u128,
    /// The number of examples of the largest batch.
    batch: u64,
    /// Bytes of one checkpoint: the parameters and the state of the optimizer.
    checkpoint: u128,
    /// Bytes of all checkpoints that may exist at a time.
    disk: u128,
    /// Bytes of what is there before training, such as the data, and of what the program and its threads need for
    /// themselves.
    others: u128,
}

/// What the program's code and what the kernels keep in every thread add to a process that has begun to compute.
const COMPUTING: u128 = 24 << 20;

impl Needs {
    /// Bytes of the whole process.
    fn memory(&self) -> u128 {
        self.model + self.activations + self.others
    }
}

/// The lengths of a batch: for each symbol of the graph's inputs, the longest axis that has it.
fn lengths(plan: &Plan, batch: &Batch) -> Lengths {
    let mut lengths = Lengths { batch: 0, time: 0, source: 0, past: 0, rows: 0 };
    for input in plan.inputs() {
        let Some(array) = batch.input(&input.name) else { continue };
        for (dim, size) in input.ty.shape.iter().zip(array.shape()) {
            match dim.symbol() {
                Some(Sym::Batch) => lengths.batch = lengths.batch.max(*size as u64),
                Some(Sym::Time) => lengths.time = lengths.time.max(*size as u64),
                Some(Sym::Source) => lengths.source = lengths.source.max(*size as u64),
                // No input has these: there is no past in training, and experts take their rows from the
                // tokens.
                Some(Sym::Past | Sym::Rows) | None => {}
            }
        }
    }
    lengths
}

/// The path of the block that a parameter belongs to; that of the parameter itself outside of blocks.
fn block(path: &str) -> &str {
    let inner = path.split_once(".blocks.").map_or("", |(_, inner)| inner);
    match inner.find('.') {
        Some(end) => path.get(..path.len() - inner.len() + end).unwrap_or(path),
        None => path,
    }
}

fn needs(prepared: &Prepared, recompute: Recompute) -> Result<Needs, Failure> {
    let Prepared { subject, recipe, dataset, .. } = prepared;
    let graph = &subject.graph;
    let refused = |why: String| Failure::new(Exit::Refused, why);
    let layout = weights::layout(graph).map_err(|e| refused(e.to_string()))?;
    // It names the inputs, whose shapes give the lengths of a batch.
    let plan = Plan::new(graph, &Captures::none()).map_err(|e| refused(e.to_string()))?;
    let elements = |shape: &[usize]| shape.iter().map(|n| *n as u128).product::<u128>();
    let own: u128 = layout.values().map(|slot| elements(&slot.shape)).sum();
    let is_trained = |path: &str, trained: bool| trained && !recipe.is_frozen(path);
    let trained = layout.iter().filter(|(path, slot)| is_trained(path, slot.trained));
    let trained: u128 = trained.map(|(_, slot)| elements(&slot.shape)).sum();
    // What is added to projections, and how many numbers of a position a step keeps for it.
    let (mut added, mut widest) = (0u128, 0u128);
    // By block, because one that is computed again keeps it only meanwhile.
    let mut kept: BTreeMap<String, u128> = BTreeMap::new();
    for adapter in adapt::adapters(recipe, &layout) {
        let Some([output, input]) = layout.get(&adapter.path).map(|slot| slot.shape.as_slice()) else {
            continue;
        };
        let (rank, input, output) = (adapter.rank as u128, *input as u128, *output as u128);
        added += rank * (output + input);
        // What `A` gives, and with dropout what it reads and which elements of that are seen.
        let own = rank + if adapter.dropout > 0.0 { 2 * input } else { 0 };
        *kept.entry(block(&adapter.path).to_owned()).or_default() += own;
        widest = widest.max(2 * output + input + rank);
    }
    let kept: u128 = match recompute {
        Recompute::None => kept.values().sum(),
        Recompute::Blocks => kept.values().copied().max().unwrap_or(0),
    };
    let (parameters, trained) = (own + added, trained + added);
    let remembered = match &recipe.optimizer {
        // Adam has two moments of each number, Muon at most as many.
        Optimizer::Adam(_) | Optimizer::AdamW(_) | Optimizer::Muon(_) => 2 * trained,
        // One velocity for each number.
        Optimizer::Sgd(o) if *o.momentum > 0.0 => trained,
        Optimizer::Sgd(_) => 0,
    };
    let loader = Loader::new(dataset);
    // A change reads what its projection reads, and keeps it for its own gradient.
    let is_frozen =
        |path: &str| recipe.is_frozen(path) && !recipe.lora().is_some_and(|lora| lora.is_on(path));
    let is_whole = recipe.freeze.0.is_empty() && recipe.adapt.is_none();
    let frozen: Option<&dyn Fn(&str) -> bool> = if is_whole { None } else { Some(&is_frozen) };
    let keeping = tape::Keeping {
        is_frozen: frozen,
        recomputes: recompute == Recompute::Blocks,
        has_kernels: trafoc_kernels::packs_weights(),
        accumulates: *recipe.batch.accumulate > 1,
    };
    // Only the first batches: making all those of a large data set takes longer than anyone waits for a
    // forecast.
    let (mut most, mut largest) = (0, 0);
    // Batches of the same lengths need the same memory, so each shape is walked once.
    let mut known: BTreeMap<[u64; 3], u128> = BTreeMap::new();
    // Before any step is made to measure it, of which the allocator keeps memory.
    let others = crate::memory::resident().unwrap_or(0) + COMPUTING;
    for at in 0..SEEN.min(loader.steps_of_epoch()) {
        let batches = loader.step(at);
        // The examples as they were read, in addition to the tensors that are made of one batch after the other.
        let read: u128 = batches.iter().map(Batch::bytes).sum();
        for batch in &batches {
            let at = lengths(&plan, batch);
            largest = largest.max(at.batch);
            let computed = known.entry([at.batch, at.time, at.source]).or_insert_with(|| {
                let bytes = Element::F32.bytes();
                // Images have as many positions as the spec says.
                let longest = at.time.max(at.source);
                let longest = u128::from(if longest == 0 { graph.context } else { longest });
                let of_changes = u128::from(at.batch) * longest * (kept + widest) * bytes;
                tape::activation_memory_of(graph, &at, bytes, keeping) + of_changes
            });
            most = most.max(*computed + read);
        }
    }
    let steps = recipe.total_steps(loader.steps_of_epoch());
    // The parameters and the state of the optimizer, in single precision.
    let checkpoint = 4 * (parameters + remembered);
    Ok(Needs {
        parameters,
        trained,
        model: 4 * (parameters + trained + remembered),
        activations: most,
        batch: largest,
        checkpoint,
        disk: checkpoint * u128::from(recipe.checkpoint.most(&recipe.evaluate, steps)),
        others,
    })
}

/// Refuses a run that would not fit into memory.
///
/// # Errors
/// The run needs more memory than is free.
pub fn refuse_what_does_not_fit(prepared: &Prepared) -> Result<(), Failure> {
    refuse(prepared, &needs(prepared, prepared.recipe.recompute)?)
}

fn refuse(prepared: &Prepared, needs: &Needs) -> Result<(), Failure> {
    // Where the system does not say what is free, nothing can be refused in advance.
    let Some(free) = free_memory() else { return Ok(()) };
    // Without what the process uses already: that is no longer among what is free.
    let needed = needs.model + needs.activations;
    if needed <= free {
        return Ok(());
    }
    let what = (number::bytes(needed), number::bytes(free));
    let message = format!("training would need {} of memory, but only {} is free", what.0, what.1);
    let failure = Failure::new(Exit::Refused, message);
    let model = number::bytes(needs.model);
    // Where it is enough, it is the better advice: the steps stay the same.
    if prepared.recipe.recompute == Recompute::None {
        let again = self::needs(prepared, Recompute::Blocks)?;
        let needed = again.model + again.activations;
        if needed <= free {
            let needed = number::bytes(needed);
            return Err(
                failure.help(format!("with `recompute: blocks` in the recipe, {needed} would be enough"))
            );
        }
    }
    Err(match (needs.model <= free, needs.batch > 1) {
        (true, true) => {
            failure.help("a smaller `batch.size` with more `batch.accumulate`, or a smaller model, would fit")
        }
        (true, false) => failure.help("shorter texts or a smaller model would fit: the batch has one example"),
        // No batch is small enough for what a model takes before it has seen one.
        (false, _) => failure.help(format!(
            "a smaller model would fit: its parameters, their gradients and the state of the optimizer alone take {model}"
        )),
    })
}

/// A duration, in milliseconds if it is below a second, and as others are shown from a minute on.
fn spent(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1} s"),
        s => shown_duration(s),
    }
}

/// Computes what a run would need, as a text and as data. A few steps are made to measure their duration; `preparing` is
/// what reading the data took, with its tokenizers, which a run begins with as well.
///
/// # Errors
/// The run needs more memory than is free, or the device fails.
pub fn forecast(
    prepared: &Prepared,
    preparing: Duration,
    device: Option<&str>,
    ui: &mut Ui,
) -> Result<(String, Forecast), Failure> {
    let needs = needs(prepared, prepared.recipe.recompute)?;
    let Prepared { subject, recipe, dataset, .. } = prepared;
    let loader = Loader::new(dataset);
    let steps = recipe.total_steps(loader.steps_of_epoch());
    // Steps that do not fit would end the process instead of measuring anything.
    refuse(prepared, &needs)?;
    ui.note("runs a few steps to measure how long one takes");
    let chosen = choose(device, ui)?;
    let failed = |e: String| Failure::new(Exit::Failed, e);
    let plan = Plan::new(&subject.graph, &Captures::none()).map_err(|e| failed(e.to_string()))?;
    // Steps are measured with their backward pass.
    let device = chosen.device.clone().autodiff();
    // Random weights: durations do not depend on the numbers.
    let mut weights =
        Weights::init(&subject.graph, &device, *recipe.seed).map_err(|e| failed(e.to_string()))?;
    let adapters = adapt::adapters(recipe, weights.layout());
    weights = weights.adapted(&adapters, *recipe.seed).map_err(|e| failed(e.to_string()))?;
    let mut updater = Updater::new(&recipe.optimizer, |path| recipe.is_frozen(path), &weights);
    // A step is faster with frozen parameters, so they are frozen here as well.
    weights = updater.freeze(weights);
    let rules = Rules::of(recipe, *recipe.seed);
    let (step, weights) = pace::of_a_step(prepared, &plan, weights, &mut updater, &rules)?;
    let a_step = step.seconds;
    let evaluations = recipe.evaluate.made_until(steps, steps);
    let evaluation = pace::of_an_evaluation(prepared, &plan, &weights)?;
    let an_evaluation = evaluation.seconds;
    let preparing = preparing.as_secs_f64();
    let seconds = preparing + a_step * steps as f64 + an_evaluation * evaluations as f64;
    let mut text = String::new();
    let exact = |n: u64| number::exact(u128::from(n));
    let _ = writeln!(text, "parameters   {}", number::count_with_short(needs.parameters));
    let _ = writeln!(text, "  trained    {}", number::count_with_short(needs.trained));
    let _ = writeln!(text, "examples     {}", number::exact(dataset.train.len() as u128));
    // An image has no tokens.
    if dataset.train.tokens() > 0 {
        let _ = writeln!(text, "tokens       {}", number::exact(dataset.train.tokens() as u128));
    }
    let epochs = steps as f64 / loader.steps_of_epoch() as f64;
    let _ = writeln!(text, "steps        {}, {epochs:.1} times through the data", exact(steps));
    let _ = writeln!(text, "time         {}", shown_duration(seconds));
    let _ = writeln!(text, "  preparing  {}", spent(preparing));
    let of_steps = shown_duration(a_step * steps as f64);
    let _ = writeln!(text, "  steps      {of_steps}, {} each{}", spent(a_step), step.said());
    let of_evaluations = shown_duration(an_evaluation * evaluations as f64);
    let _ = writeln!(
        text,
        "  measuring  {of_evaluations}, {} {} of {}{}",
        exact(evaluations),
        if evaluations == 1 { "evaluation" } else { "evaluations" },
        spent(an_evaluation),
        evaluation.said()
    );
    let _ = writeln!(
        text,
        "memory       {}: {} of the model, {} of a batch",
        number::bytes(needs.memory()),
        number::bytes(needs.model),
        number::bytes(needs.activations),
    );
    let _ = writeln!(
        text,
        "disk         {}, {} for each checkpoint",
        number::bytes(needs.disk),
        number::bytes(needs.checkpoint)
    );
    let small = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
    let needs = Forecast {
        // The caller knows what training starts from, and fills it in.
        start: None,
        parameters: small(needs.parameters),
        trained: small(needs.trained),
        examples: dataset.train.len(),
        tokens: dataset.train.tokens(),
        steps,
        seconds,
        seconds_preparing: preparing,
        seconds_a_step: a_step,
        evaluations,
        seconds_an_evaluation: an_evaluation,
        memory_bytes: small(needs.memory()),
        disk_bytes: small(needs.disk),
        checkpoint_bytes: small(needs.checkpoint),
    };
    Ok((text, needs))
}
