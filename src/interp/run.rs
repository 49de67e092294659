//! Runs a model: its graph, its weights and the plans made from them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use burn::prelude::*;
use indexmap::IndexMap;
use trafoc_kernels::{awake, on_threads};

use super::Fault;
use super::cache::Cache;
use super::device;
use super::eval::{self, Context};
use super::inputs::{Inputs, InputsError, unknown};
use super::pack::{PackError, Packing, WeightType};
use super::padding::Padding;
use super::plan::{Captures, Plan, PlanError};
use super::room::Manner;
use super::value::{Ranked, Value};
use super::weights::Weights;
use crate::diag::count::counted;
use crate::ir::op::Sequence;
use crate::ir::{Dim, Lengths, Sym, Verified};
use crate::tensor_file::{self, FileError, Saved};

/// Outputs by name, in the order of the graph, followed by captured values.
pub type Outputs = IndexMap<String, Value>;

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether dropout is active; this needs weights on a device with autodiff.
    pub training: bool,
    /// Values that are returned in addition to the outputs.
    pub captures: Captures,
}

/// Why a run is refused.
#[derive(Debug)]
pub enum RunError {
    /// The inputs are not what the graph takes.
    Inputs(InputsError),
    /// The graph cannot be planned.
    Plan(PlanError),
    /// The run cannot use the cache, for this reason.
    NoCache(String),
    /// A value is larger than the device allows.
    TooLarge(String),
    /// The run takes more memory than is free.
    DoesNotFit(String),
    /// A bug in trafoc: the graph contradicts itself, or the weights are another graph's.
    Fault(Fault),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Inputs(error) => write!(f, "{error}"),
            RunError::Plan(error) => write!(f, "{error}"),
            RunError::NoCache(why) | RunError::TooLarge(why) | RunError::DoesNotFit(why) => f.write_str(why),
            RunError::Fault(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<Fault> for RunError {
    fn from(fault: Fault) -> Self {
        RunError::Fault(fault)
    }
}

impl From<InputsError> for RunError {
    fn from(error: InputsError) -> Self {
        RunError::Inputs(error)
    }
}

/// A graph with its weights, ready to run.
#[derive(Debug)]
pub struct Model {
    graph: Verified,
    weights: Weights,
    plan: Arc<Plan>,
    /// The plans that capture something, which are made when they are first asked for.
    capturing: Mutex<BTreeMap<Captures, Arc<Plan>>>,
}

impl Model {
    /// Makes a plan of the graph. The weights must be those of the same graph, from [`Weights::init`] or
    /// [`Weights::load`].
    ///
    /// # Errors
    /// The graph is too large to run.
    pub fn new(graph: Verified, weights: Weights) -> Result<Self, PlanError> {
        let plan = Arc::new(Plan::new(&graph, &Captures::none())?);
        Ok(Self { graph, weights, plan, capturing: Mutex::default() })
    }

    /// The graph that is run.
    pub fn graph(&self) -> &Verified {
        &self.graph
    }

    /// The parameters and buffers, on their device.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Packs the weights for inference, as [`Weights::pack`] does.
    ///
    /// # Errors
    /// Those of [`Weights::pack`].
    pub fn pack(&mut self, of: WeightType) -> Result<Packing, PackError> {
        self.weights.pack(&self.plan, of)
    }

    /// The plan that captures nothing.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device of the parameters.
    ///
    /// # Errors
    /// The model has no parameters.
    pub fn device(&self) -> Result<Device, Fault> {
        device_of(&self.weights)
    }

    /// An empty cache for [`Model::forward_cached`].
    pub fn cache(&self) -> Cache {
        Cache::new(&self.plan)
    }

    /// Runs the whole graph.
    ///
    /// # Errors
    /// The inputs do not fit the graph, no value has the path of a capture, or the run takes more than the
    /// device or the free memory allows.
    pub fn forward(&self, inputs: &Inputs, options: &Options) -> Result<Outputs, RunError> {
        // Planning unrolls the whole graph, so a plan is kept for the next run with the same captures.
        let plan = if options.captures == Captures::none() {
            Arc::clone(&self.plan)
        } else {
            // A thread that panicked cannot have left the map half changed: a plan is inserted when it is
            // complete.
            let mut known = self.capturing.lock().unwrap_or_else(PoisonError::into_inner);
            match known.get(&options.captures) {
                Some(plan) => Arc::clone(plan),
                None => {
                    let plan = Plan::new(&self.graph, &options.captures).map_err(RunError::Plan)?;
                    let plan = Arc::new(plan);
                    known.insert(options.captures.clone(), Arc::clone(&plan));
                    plan
                }
            }
        };
        plan.run(&self.weights, inputs, options.training)
    }

    /// Decodes the next positions. The inputs contain only these positions, while the cache contains the past
    /// ones; padding masks cover both. Inputs of the encoder, such as a source, are given only in the first
    /// call.
    ///
    /// # Errors
    /// The inputs do not fit the graph, the model cannot decode with a cache, or the run takes more than the
    /// device or the free memory allows.
    pub fn forward_cached(&self, inputs: &Inputs, cache: &mut Cache) -> Result<Outputs, RunError> {
        self.plan.run_cached(&self.weights, inputs, cache)
    }
}

fn device_of(weights: &Weights) -> Result<Device, Fault> {
    weights.device().ok_or_else(|| Fault("a model without parameters has no device".into()))
}

impl Plan {
    /// Runs the whole plan. With `training`, dropout is active if the weights' device has autodiff.
    ///
    /// # Errors
    /// The inputs do not fit the graph, or the run takes more than the device or the free memory allows.
    pub fn run(&self, weights: &Weights, inputs: &Inputs, training: bool) -> Result<Outputs, RunError> {
        self.run_whole(weights, inputs, training, false)
    }

    /// As [`run_cached`](Self::run_cached), or as [`run`](Self::run) without a cache, where only the outputs at
    /// the last position are wanted. Those of a head that is applied to each position by itself have one
    /// position then, `[B, 1, ..]`; others may have all of them.
    ///
    /// # Errors
    /// Those of the two.
    pub fn run_last(
        &self,
        weights: &Weights,
        inputs: &Inputs,
        cache: Option<&mut Cache>,
    ) -> Result<Outputs, RunError> {
        match cache {
            Some(cache) => self.run_step(weights, inputs, cache, true),
            None => self.run_whole(weights, inputs, false, true),
        }
    }

    fn run_whole(
        &self,
        weights: &Weights,
        inputs: &Inputs,
        training: bool,
        only_last: bool,
    ) -> Result<Outputs, RunError> {
        let device = device_of(weights)?;
        let lengths = self.whole_lengths(inputs, &device)?;
        // Training is forecast as a whole, before its first step.
        if !device.is_autodiff() {
            self.refuse_what_does_not_fit(&lengths, weights, Manner { is_cached: false, only_last }, inputs)?;
        }
        let constants = self.constants(lengths, &device, weights, true)?;
        let mut frame = self.frame(inputs, &device, true)?;
        // Without autodiff, dropout returns its input, and attention would compute its weights apart for
        // nothing.
        let training = training && device.is_autodiff();
        let padding = Padding::of_run(self, inputs, &device)?;
        let mut context = Context {
            weights,
            constants: &constants,
            device: &device,
            lengths,
            training,
            only_last,
            padding: padding.as_ref(),
            cache: None,
        };
        let _awake = awake();
        let results = eval::run(&self.body, &mut frame, &mut context, true, |_, _| ())?;
        self.named(results)
    }

    /// The lengths of a run on whole sequences, which must not be too large for the device.
    pub(super) fn whole_lengths(&self, inputs: &Inputs, device: &Device) -> Result<Lengths, RunError> {
        // A length of 0 is one that is not known yet.
        let fixed = Lengths { batch: 0, time: 0, source: 0, past: 0, rows: 0 };
        let lengths = self.lengths(inputs, fixed, true)?;
        self.refuse_what_is_too_large(&lengths, device)?;
        Ok(lengths)
    }

    /// Runs the positions that follow those in the cache, and adds them to it.
    ///
    /// # Errors
    /// The inputs do not fit the graph, the graph cannot decode with a cache, the cache is not one of this
    /// plan, or the run takes more than the device or the free memory allows.
    pub fn run_cached(
        &self,
        weights: &Weights,
        inputs: &Inputs,
        cache: &mut Cache,
    ) -> Result<Outputs, RunError> {
        self.run_step(weights, inputs, cache, false)
    }

    fn run_step(
        &self,
        weights: &Weights,
        inputs: &Inputs,
        cache: &mut Cache,
        only_last: bool,
    ) -> Result<Outputs, RunError> {
        // A thread keeps the memory that it has freed for itself. The values of a prompt are large, so it
        // runs on the caller's thread, as everything else does; the values of a single step are small.
        if cache.is_empty() {
            let _awake = awake();
            self.run_next(weights, inputs, cache, only_last)
        } else if self.has_large_matrix {
            on_threads(|| {
                let _awake = awake();
                self.run_next(weights, inputs, cache, only_last)
            })
        } else {
            self.run_next(weights, inputs, cache, only_last)
        }
    }

    fn run_next(
        &self,
        weights: &Weights,
        inputs: &Inputs,
        cache: &mut Cache,
        only_last: bool,
    ) -> Result<Outputs, RunError> {
        if !self.decodes {
            let why = "the model cannot decode position by position: its decoder is not causal, or its \
                rotary angles change with the length";
            return Err(RunError::NoCache(why.into()));
        }
        if cache.buffers.len() != self.buffers {
            return Err(RunError::NoCache("the cache was made for another model".into()));
        }
        let device = device_of(weights)?;
        let first = cache.is_empty();
        let known = Lengths {
            batch: cache.batch as u64,
            time: 0,
            source: cache.source,
            past: cache.past as u64,
            rows: 0,
        };
        let fixed = if first { Lengths { batch: 0, time: 0, source: 0, past: 0, rows: 0 } } else { known };
        let lengths = self.lengths(inputs, fixed, first)?;
        self.refuse_what_is_too_large(&lengths, &device)?;
        self.refuse_what_does_not_fit(&lengths, weights, Manner { is_cached: true, only_last }, inputs)?;
        let constants = self.constants(lengths, &device, weights, first)?;
        #[cfg(feature = "flex")]
        if let Some(results) = self.run_program(weights, inputs, cache, &constants, lengths) {
            cache.past += 1;
            return self.named(results);
        }
        let mut frame = self.frame(inputs, &device, first)?;
        let mut memory = vec![Value::Absent; self.kept.len()];
        let at = |register: usize| self.kept.iter().position(|kept| *kept == register);
        // An input can be part of the memory itself, and no instruction writes its register.
        if first {
            for (value, register) in memory.iter_mut().zip(&self.kept) {
                value.clone_from(&frame[*register]);
            }
        } else {
            for (value, register) in cache.memory.iter().zip(&self.kept) {
                frame[*register] = value.clone();
            }
        }
        let mut context = Context {
            weights,
            constants: &constants,
            device: &device,
            lengths,
            training: false,
            only_last,
            // A plan that decodes has no losses.
            padding: None,
            cache: Some(&mut cache.buffers),
        };
        let results = eval::run(&self.body, &mut frame, &mut context, first, |register, value| {
            if first && let Some(slot) = at(register) {
                memory[slot] = value.clone();
            }
        })?;
        if first {
            cache.memory = memory;
            #[cfg(feature = "flex")]
            cache.step.forget();
            cache.source = lengths.source;
        }
        // After the run: a run that fails leaves these as they were, and the next one overwrites what it has
        // appended to the buffers.
        cache.batch = lengths.batch as usize;
        cache.past += lengths.time as usize;
        self.named(results)
    }

    /// The lengths that follow from the shapes of the inputs, which must all agree. A length in `fixed` that
    /// is not 0 is known already, and the shapes must agree with it, too. `first` is false in later calls of
    /// cached decoding, which take no inputs of the memory.
    fn lengths(&self, inputs: &Inputs, fixed: Lengths, first: bool) -> Result<Lengths, RunError> {
        let mut errors = Vec::new();
        let mut lengths = fixed;
        for name in inputs.values.keys().filter(|name| self.inputs.iter().all(|i| i.name != **name)) {
            errors.push(unknown(name, &self.inputs));
        }
        // Later calls of cached decoding have the results of the memory's inputs in the cache.
        let given = || self.inputs.iter().filter(|i| first || !i.memory).map(|i| (i, inputs.get(&i.name)));
        // The first input with a length determines it; the loop after this one compares the others.
        for (input, value) in given() {
            match value.and_then(Value::dims) {
                None if input.ty.optional => {}
                None => errors.push(format!("the input `{}` ({}) is missing", input.name, input.ty)),
                Some(dims) => {
                    for (dim, size) in input.ty.shape.iter().zip(dims) {
                        let length = match dim.symbol() {
                            Some(Sym::Batch) => &mut lengths.batch,
                            Some(Sym::Time) => &mut lengths.time,
                            Some(Sym::Source) => &mut lengths.source,
                            // No input determines these, and fixed sizes are compared below.
                            Some(Sym::Past | Sym::Rows) | None => continue,
                        };
                        if *length == 0 {
                            *length = size as u64;
                        }
                    }
                }
            }
        }
        for (input, value) in given() {
            let Some(value) = value.filter(|value| !value.is_absent()) else { continue };
            let dims = value.dims().unwrap_or_default();
            let wanted: Vec<u128> = input.ty.shape.iter().map(|dim| dim.eval(&lengths)).collect();
            if dims.iter().map(|n| *n as u128).collect::<Vec<_>>() != wanted || dims.contains(&0) {
                errors.push(format!(
                    "the input `{}` has the shape {dims:?}, but {} is {wanted:?}",
                    input.name, input.ty
                ));
            } else if !fits(value, input.ty.dtype) {
                errors.push(format!("the input `{}` has another element type than {}", input.name, input.ty));
            }
        }
        for lookup in &self.lookups {
            let length = match lookup.along {
                Sequence::Whole => lengths.time,
                Sequence::Cached => lengths.past + lengths.time,
                Sequence::Source => lengths.source,
                Sequence::Fixed(n) => n.get(),
            };
            let most = lookup.rows.saturating_sub(lookup.offset);
            if length > most {
                errors.push(format!(
                    "the sequence has {}, but `{}` has only {}",
                    counted(length, "position"),
                    lookup.path,
                    counted(most, "row")
                ));
            }
        }
        if errors.is_empty() { Ok(lengths) } else { Err(InputsError(errors).into()) }
    }

    /// Refuses a run with a value that is too large for the device, which would fail late and with a message
    /// that does not help.
    fn refuse_what_is_too_large(&self, lengths: &Lengths, device: &Device) -> Result<(), RunError> {
        let Some(chosen) = device::known(device).filter(|chosen| chosen.largest.is_some()) else {
            return Ok(());
        };
        let refused = |(shape, name): (&Vec<Dim>, &String)| {
            let elements = shape.iter().map(|dim| dim.eval(lengths)).fold(1, u128::saturating_mul);
            chosen.refusal(name, elements)
        };
        match self.shapes.iter().find_map(refused) {
            Some(why) => Err(RunError::TooLarge(why)),
            None => Ok(()),
        }
    }

    /// Refuses a run that takes more memory than is free, since the system would kill the process without a
    /// message. This is checked on Flex only, the one backend whose use of memory is known.
    fn refuse_what_does_not_fit(
        &self,
        lengths: &Lengths,
        weights: &Weights,
        manner: Manner,
        inputs: &Inputs,
    ) -> Result<(), RunError> {
        if !weights.device().is_some_and(|device| device::is_flex(&device)) {
            return Ok(());
        }
        let is_given = |name: &str| inputs.get(name).is_some_and(|value| !value.is_absent());
        let checked = self.room.check(lengths, manner, &is_given);
        checked.map_err(|too_much| RunError::DoesNotFit(too_much.says("this run")))
    }

    /// The value of every constant for these lengths; absent if only the memory needs it and `with_memory` is
    /// false.
    pub(super) fn constants(
        &self,
        lengths: Lengths,
        device: &Device,
        weights: &Weights,
        with_memory: bool,
    ) -> Result<Vec<Value>, RunError> {
        let mut values: Vec<Value> = Vec::with_capacity(self.constants.len());
        for constant in &self.constants {
            if !with_memory && !constant.by_step {
                values.push(Value::Absent);
                continue;
            }
            let on = constant.depends;
            // Lengths that the value does not depend on are 0 in the key, so that it is found again whatever
            // they are.
            let key = Lengths {
                batch: 0,
                time: lengths.time * on.time,
                source: lengths.source * on.source,
                past: lengths.past * on.past,
                rows: 0,
            };
            let autodiff = device.is_autodiff();
            let mut known = constant.known.lock().unwrap_or_else(PoisonError::into_inner);
            // For burn a device is equal to itself with autodiff, so autodiff is compared separately.
            let found = known.iter().find(|(k, d, a, _)| *k == key && d == device && *a == autodiff);
            if let Some((_, _, _, value)) = found {
                values.push(value.clone());
                continue;
            }
            let inputs = constant.inputs.iter().map(|i| values[*i].clone()).collect();
            let results = eval::constant(&constant.op, inputs, lengths, device, weights)?;
            let value = results.into_iter().nth(constant.result).unwrap_or_default();
            // Constants of a few lengths are remembered, so that batches of equal lengths share them. Those
            // of all lengths would fill the memory while a text grows token by token.
            if known.len() == 4 {
                known.remove(0);
            }
            known.push((key, device.clone(), autodiff, value.clone()));
            values.push(value);
        }
        Ok(values)
    }

    /// The registers of a run, with the inputs in those of the arguments.
    pub(super) fn frame(
        &self,
        inputs: &Inputs,
        device: &Device,
        first: bool,
    ) -> Result<Vec<Value>, RunError> {
        let mut frame = vec![Value::Absent; self.body.registers];
        for (input, register) in self.inputs.iter().zip(&self.body.arguments) {
            // Later calls of cached decoding read what the first one computed of the memory's inputs.
            if let (Some(register), Some(value)) = (register, inputs.get(&input.name))
                && (first || !input.memory)
            {
                frame[*register] = on_device(value, device)?;
            }
        }
        Ok(frame)
    }

    pub(super) fn named(&self, results: Vec<Value>) -> Result<Outputs, RunError> {
        // A captured value may be absent: the padding mask, for example, if no mask was given.
        let absent = |name: &String| format!("`{name}` is absent because an optional input was not given");
        let outputs: Outputs = self.names.iter().cloned().zip(results).collect();
        let missing: Vec<String> =
            outputs.iter().filter(|(_, value)| value.is_absent()).map(|(name, _)| absent(name)).collect();
        if missing.is_empty() { Ok(outputs) } else { Err(InputsError(missing).into()) }
    }
}

fn fits(value: &Value, dtype: crate::ir::DType) -> bool {
    match (value, dtype) {
        (Value::Float(_), crate::ir::DType::Float)
        | (Value::Int(_), crate::ir::DType::Int)
        | (Value::Bool(_), crate::ir::DType::Bool) => true,
        (Value::Absent | Value::Float(_) | Value::Int(_) | Value::Bool(_), _) => false,
    }
}

/// Moves the value to a device, with autodiff if the device has it.
fn on_device(value: &Value, device: &Device) -> Result<Value, Fault> {
    fn moved<K: burn::tensor::kind::Basic>(t: &Ranked<K>, device: &Device) -> Result<Ranked<K>, Fault> {
        let at = super::value::with!(t, t => t.device());
        // Equal devices may still differ in autodiff.
        if at == *device && at.is_autodiff() == device.is_autodiff() {
            return Ok(t.clone());
        }
        let data = super::value::with!(t, t => t.clone().try_into_data());
        let data = data.map_err(|e| Fault(format!("an input could not be read: {e}")))?;
        Ranked::from_data(data, device)
    }
    Ok(match value {
        Value::Absent => Value::Absent,
        Value::Float(t) => Value::Float(moved(t, device)?),
        Value::Int(t) => Value::Int(moved(t, device)?),
        Value::Bool(t) => Value::Bool(moved(t, device)?),
    })
}

/// Writes outputs to a safetensors file under their names. The file is replaced atomically.
///
/// # Errors
/// The file cannot be written, or the device fails.
pub fn save_outputs(file: &Path, outputs: &Outputs) -> Result<(), FileError> {
    let dtype = |value: &Value| match value {
        // `named` has refused absent outputs.
        Value::Float(_) | Value::Absent => "F32",
        Value::Int(_) => "I64",
        Value::Bool(_) => "BOOL",
    };
    let shapes: Vec<_> = outputs
        .iter()
        .map(|(name, value)| (name.clone(), dtype(value), value.dims().unwrap_or_default()))
        .collect();
    let metadata = IndexMap::from([("written_by".to_owned(), "trafoc run".to_owned())]);
    tensor_file::write(file, &shapes, &metadata, |i| {
        let (name, dtype, shape) = &shapes[i];
        let data = outputs.get(name).unwrap_or(&Value::Absent).to_data().map_err(|why| {
            std::io::Error::other(format!("{name} cannot be read back from the device: {why}"))
        })?;
        Ok(match *dtype {
            // `iter` converts: devices have integers of 32 or of 64 bits.
            "I64" => Saved::ints(shape.clone(), data.iter::<i64>()),
            "BOOL" => Saved::bools(shape.clone(), data.iter::<bool>()),
            _ => Saved::floats(shape.clone(), data.iter::<f32>()),
        })
    })
}
