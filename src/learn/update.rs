//! Optimizers by parameter path: which rule updates which parameter, with or without weight decay.
//!
//! The rules are burn's. Their state is kept here by path, so that it is written in a fixed order under
//! readable names, is read back onto the model's device, and survives from one process to another.
//! Gradients are clipped by their norm over all parameters, as PyTorch's `clip_grad_norm_` does, and not
//! tensor by tensor.

use std::path::Path;

use burn::module::{ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    AdamConfig, AdamWState, AdaptiveMomentumState, AdjustLrFn, DynOptimizer, DynState, GradientsParams,
    MuonConfig, SgdConfig, StateSink, StateSource,
};
use burn::prelude::*;
use burn::tensor::FloatDType;
use indexmap::IndexMap;
use trafoc_kernels::{AdamW, adamw as adamw_step};

use crate::interp::tensor_file::{self, FileError, Saved, TensorFile};
use crate::interp::weights::{Slot, Weights};
use crate::learn::recipe::optimizer::{self as recipe, Adjust, Optimizer};
use crate::learn::recipe::value::{Decay, Rates};

/// How one parameter is updated, and its optimizer state.
struct Entry {
    path: String,
    rank: usize,
    trained: bool,
    /// The index of the rule that updates it.
    rule: usize,
    state: Option<DynState>,
}

/// A rule with its weight decay, and its learning rate before the schedule's factor.
struct Rule {
    optimizer: Box<dyn DynOptimizer>,
    rate: f64,
}

/// Updates the parameters of a model.
pub struct Updater {
    rules: Vec<Rule>,
    entries: IndexMap<ParamId, Entry>,
}

impl std::fmt::Debug for Updater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Updater").field("parameters", &self.entries.len()).finish()
    }
}

// With a penalty of 0, burn would still multiply every parameter by it and add the zeros to the gradient.
/// The weight decay as burn's rules take it; `None` if there is none.
fn l2(decay: f64) -> Option<WeightDecayConfig> {
    (decay > 0.0).then(|| WeightDecayConfig::new(decay as f32))
}

// All settings of a rule are passed, since burn's defaults are not those of PyTorch, which the recipe has.

fn adam(o: &recipe::Adam, rate: f64, decay: f64) -> Rule {
    let config = AdamConfig::new()
        .with_beta_1(o.betas.0 as f32)
        .with_beta_2(o.betas.1 as f32)
        .with_epsilon(*o.eps as f32)
        .with_weight_decay(l2(decay));
    Rule { optimizer: Box::new(config.build()), rate }
}

fn adamw(o: &recipe::AdamW, rate: f64, decay: f64) -> Rule {
    let betas = [o.betas.0 as f32, o.betas.1 as f32];
    Rule { optimizer: Box::new(OnePass { betas, eps: *o.eps as f32, decay: decay as f32 }), rate }
}

/// AdamW that updates a parameter and its state in one pass. Numbers and state are those of burn's.
#[derive(Clone)]
struct OnePass {
    betas: [f32; 2],
    eps: f32,
    decay: f32,
}

impl burn::optim::Optimizer for OnePass {
    type State<const D: usize> = AdamWState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        tensor: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdamWState<D>>,
    ) -> (Tensor<D>, Option<AdamWState<D>>) {
        let (time, first, second) = match state {
            Some(AdamWState { momentum }) => (momentum.time + 1, momentum.moment_1, momentum.moment_2),
            None => (1, gradient.zeros_like(), gradient.zeros_like()),
        };
        let Self { betas, eps, decay } = *self;
        // The bias corrections `1 - beta^t` have this exponent. They are 1 long before it saturates.
        let number = i32::try_from(time).unwrap_or(i32::MAX);
        let step = AdamW { betas, eps, rate, decay: f64::from(decay), time: number };
        let [tensor, moment_1, moment_2] = adamw_step([tensor, gradient, first, second], step);
        // The maximum belongs to AMSGrad, which no recipe asks for.
        let momentum = AdaptiveMomentumState { time, moment_1, moment_2, max_moment_2: None };
        (tensor, Some(AdamWState::new(momentum)))
    }

    fn to_device<const D: usize>(mut state: AdamWState<D>, device: &Device) -> AdamWState<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}

fn sgd(o: &recipe::Sgd, rate: f64, decay: f64) -> Rule {
    // Without momentum no buffer of the parameter's size is kept.
    let momentum = (*o.momentum > 0.0).then(|| MomentumConfig {
        momentum: *o.momentum,
        dampening: *o.dampening,
        nesterov: o.nesterov,
    });
    let config = SgdConfig::new().with_weight_decay(l2(decay)).with_momentum(momentum);
    Rule { optimizer: Box::new(config.build()), rate }
}

/// burn takes the first size of a matrix for its outputs, but in memory a projection has its inputs first.
/// With `adjust: original`, burn would scale by `sqrt(max(1, inputs / outputs))` instead of `sqrt(max(1,
/// outputs / inputs))`; `turned` is the factor that corrects this. Weight decay uses the learning rate
/// without the factor.
fn muon(o: &recipe::Muon, rate: f64, decay: f64, turned: f64) -> Rule {
    let adjust = match o.adjust {
        Adjust::Original => AdjustLrFn::Original,
        Adjust::MatchRmsAdamW => AdjustLrFn::MatchRmsAdamW,
    };
    let config = MuonConfig::new()
        // burn multiplies the decay by the learning rate, which contains `turned`: here it cancels out.
        .with_weight_decay(l2(decay / turned))
        .with_momentum(MomentumConfig { momentum: *o.momentum, dampening: 0.0, nesterov: o.nesterov })
        .with_ns_steps(usize::try_from(*o.iterations).unwrap_or(usize::MAX))
        .with_epsilon(*o.eps as f32)
        .with_adjust_lr_fn(adjust);
    Rule { optimizer: Box::new(config.build()), rate: rate * turned }
}

/// The factor that corrects burn's scaling of the learning rate for a projection of this shape.
fn turned(adjust: Adjust, slot: &Slot) -> f64 {
    match (adjust, slot.shape.as_slice()) {
        (Adjust::Original, [outputs, inputs]) => (*outputs as f64 / *inputs as f64).sqrt(),
        (Adjust::Original | Adjust::MatchRmsAdamW, _) => 1.0,
    }
}

/// Whether Muon updates a matrix: a projection inside a block, neither an embedding table nor the head.
fn is_inner(path: &str, slot: &Slot) -> bool {
    slot.place.rank == 2 && slot.transposed && path.contains(".blocks.")
}

/// What distinguishes rules that parameters share: the learning rate, the weight decay and, for Muon, the
/// factor that the shape determines.
type Key = (f64, f64, Option<f64>);

/// The rule of one parameter, and the key by which parameters share rules.
fn rule_of(optimizer: &Optimizer, path: &str, slot: &Slot) -> (Rule, Key) {
    let numbers =
        |rates: &Rates, rate: f64, decays: &Decay, decay: f64| (rates.of(path, rate), decays.of(path, decay));
    match optimizer {
        Optimizer::Adam(o) => {
            let (rate, decay) = numbers(&o.rates, *o.learning_rate, &o.decay, *o.weight_decay);
            (adam(o, rate, decay), (rate, decay, None))
        }
        Optimizer::AdamW(o) => {
            let (rate, decay) = numbers(&o.rates, *o.learning_rate, &o.decay, *o.weight_decay);
            (adamw(o, rate, decay), (rate, decay, None))
        }
        Optimizer::Sgd(o) => {
            let (rate, decay) = numbers(&o.rates, *o.learning_rate, &o.decay, *o.weight_decay);
            (sgd(o, rate, decay), (rate, decay, None))
        }
        Optimizer::Muon(o) if is_inner(path, slot) => {
            let (rate, decay) = numbers(&o.rates, *o.learning_rate, &o.decay, *o.weight_decay);
            let turned = turned(o.adjust, slot);
            (muon(o, rate, decay, turned), (rate, decay, Some(turned)))
        }
        Optimizer::Muon(o) => {
            let o = &o.others;
            let (rate, decay) = numbers(&o.rates, *o.learning_rate, &o.decay, *o.weight_decay);
            (adamw(o, rate, decay), (rate, decay, None))
        }
    }
}

impl Updater {
    /// An updater for these weights; frozen parameters are not updated.
    pub fn new(optimizer: &Optimizer, is_frozen: impl Fn(&str) -> bool, weights: &Weights) -> Self {
        let ids = ids(weights);
        let mut rules: Vec<Rule> = Vec::new();
        let mut known: Vec<Key> = Vec::new();
        let mut entries = IndexMap::new();
        for (path, slot) in weights.layout() {
            let Some(id) = ids.get(&(slot.place.rank, slot.place.index)) else { continue };
            let (rule, key) = rule_of(optimizer, path, slot);
            // Most models have a handful of rules for thousands of parameters, so a list is searched fast
            // enough.
            let at = known.iter().position(|k| *k == key).unwrap_or_else(|| {
                known.push(key);
                rules.push(rule);
                rules.len() - 1
            });
            // Parameters that are not trained have an entry, too, by which `freeze` knows them.
            let trained = slot.trained && !is_frozen(path);
            let entry = Entry { path: path.clone(), rank: slot.place.rank, trained, rule: at, state: None };
            entries.insert(*id, entry);
        }
        Self { rules, entries }
    }

    /// The paths of the parameters that are updated.
    pub fn trained(&self) -> impl Iterator<Item = &str> {
        self.entries.values().filter(|e| e.trained).map(|e| e.path.as_str())
    }

    /// Stops the gradients of parameters that are not trained.
    pub fn freeze(&self, weights: Weights) -> Weights {
        struct Freeze<'a>(&'a IndexMap<ParamId, Entry>);
        impl ModuleMapper for Freeze<'_> {
            fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
                let trained = self.0.get(&parameter.id).is_some_and(|e| e.trained);
                parameter.set_require_grad(trained)
            }
        }
        // Without gradients nothing is kept for the backward pass of what is frozen.
        weights.map(&mut Freeze(&self.entries))
    }

    /// Updates every parameter that has a gradient, with the learning rate of its rule times `factor`.
    pub fn step(&mut self, factor: f64, weights: Weights, gradients: GradientsParams) -> Weights {
        struct Step<'a> {
            updater: &'a mut Updater,
            gradients: GradientsParams,
            factor: f64,
        }
        impl ModuleMapper for Step<'_> {
            fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
                let (id, tensor, mapper) = parameter.consume();
                let Updater { rules, entries } = &mut *self.updater;
                // Taken out, so that the memory of a gradient is free as soon as its parameter is updated.
                let tensor = match (self.gradients.remove::<D>(id), entries.get_mut(&id)) {
                    (Some(gradient), Some(entry)) => {
                        let rule = &rules[entry.rule];
                        let (moved, state) = rule.optimizer.step_dyn(
                            D,
                            rule.rate * self.factor,
                            // Without autodiff: the update itself must not be recorded on a tape.
                            tensor.inner().into_bridge(),
                            gradient.into_bridge(),
                            entry.state.take(),
                        );
                        entry.state = state;
                        // The result of an update is a new tensor, which autodiff does not track yet.
                        Tensor::from_inner(Tensor::<D>::from_bridge(moved)).require_grad()
                    }
                    // Frozen, or not used by the loss. Neither momentum nor weight decay changes it then, as in PyTorch,
                    // where the `grad` of such a parameter is `None`.
                    (_, _) => tensor,
                };
                // With its old id, by which the next step finds its state.
                Param::from_mapped_value(id, tensor, mapper)
            }
        }
        weights.map(&mut Step { updater: self, gradients, factor })
    }

    /// Writes the state of every parameter: tensors named `path.name`, counts in the file's metadata.
    ///
    /// # Errors
    /// The file cannot be written, or the device fails.
    pub fn save(&self, file: &Path) -> Result<(), FileError> {
        // In the order of the entries, which is that of files, so that equal states are equal bytes.
        let mut sink = StateSink::default();
        for entry in self.entries.values() {
            if let Some(state) = &entry.state {
                self.rules[entry.rule].optimizer.state_flatten(&entry.path, state, &mut sink);
            }
        }
        let mut metadata = IndexMap::new();
        for (name, value) in &sink.scalars {
            // The only counts in these rules are numbers of steps.
            if let Ok(count) = u64::try_from(*value) {
                metadata.insert(name.clone(), count.to_string());
            }
        }
        let shapes: Vec<_> =
            sink.tensors.iter().map(|(name, data)| (name.clone(), "F32", data.shape().to_vec())).collect();
        tensor_file::write(file, &shapes, &metadata, |i| {
            let (_, data) = &sink.tensors[i];
            Ok(Saved::floats(data.shape().to_vec(), data.iter::<f32>()))
        })
    }

    /// Reads what [`Updater::save`] has written for the same model and rules.
    ///
    /// # Errors
    /// The file is invalid, or its tensors are not those of this optimizer's state.
    pub fn load(&mut self, file: &Path, device: &Device) -> Result<(), FileError> {
        let mut file = TensorFile::open(file)?;
        let path = file.path().to_owned();
        let wrong = |what: &str| {
            FileError::Corrupt(path.clone(), format!("`{what}` does not belong to this optimizer's state"))
        };
        let mut counts = Vec::new();
        for (name, value) in file.metadata() {
            counts.push((name.clone(), value.parse::<u64>().map_err(|_| wrong(name))?));
        }
        let mut source = StateSource::new(counts.into_iter().map(|(name, n)| (name, n.into())).collect());
        let names: Vec<(String, Vec<usize>)> =
            file.entries().iter().map(|(name, entry)| (name.clone(), entry.shape.clone())).collect();
        // The parameters of which the file has anything. Whether it has all of it is known only to the rule.
        let mut owners = std::collections::BTreeSet::new();
        for (name, shape) in names {
            let values = file.floats(&name)?;
            if let Some(entry) = self.entries.values().find(|e| is_under(&name, &e.path)) {
                owners.insert(entry.path.clone());
            }
            source.insert_tensor(name, TensorData::new(values, shape));
        }
        // Updates are not differentiated, so moments are tensors without gradients.
        let device = device.clone().without_autodiff();
        // Collected first, so that a file that does not fit changes nothing.
        let mut states = Vec::new();
        for (id, entry) in &self.entries {
            // A frozen parameter, and one that no gradient has reached yet, has no state.
            if owners.contains(&entry.path) {
                let state = self.rules[entry.rule].optimizer.state_unflatten(
                    entry.rank,
                    &entry.path,
                    &mut source,
                    &device,
                );
                states.push((*id, state.ok_or_else(|| wrong(&entry.path))?));
            }
        }
        for (id, state) in states {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.state = Some(state);
            }
        }
        Ok(())
    }
}

// With the point, or `blocks.1` would own what belongs to `blocks.10`.
/// Whether a tensor of the file belongs to the parameter with this path: its name begins with the path and a
/// point.
fn is_under(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
}

/// The ids of parameters by rank and index in the list of that rank.
fn ids(weights: &Weights) -> IndexMap<(usize, usize), ParamId> {
    let vectors = weights.vectors.iter().map(|p| p.id).enumerate().map(|(i, id)| ((1, i), id));
    let matrices = weights.matrices.iter().map(|p| p.id).enumerate().map(|(i, id)| ((2, i), id));
    let cubes = weights.cubes.iter().map(|p| p.id).enumerate().map(|(i, id)| ((3, i), id));
    let kernels = weights.kernels.iter().map(|p| p.id).enumerate().map(|(i, id)| ((4, i), id));
    vectors.chain(matrices).chain(cubes).chain(kernels).collect()
}

/// The Euclidean norm of all gradients together, as one vector; NaN if the device fails.
pub fn norm(weights: &Weights, gradients: &GradientsParams) -> f64 {
    struct Squares<'a> {
        gradients: &'a GradientsParams,
        sums: Vec<Tensor<1>>,
    }
    impl ModuleVisitor for Squares<'_> {
        fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.get::<D>(parameter.id) {
                // In half precision a square exceeds the range from 256 on.
                self.sums.push(gradient.cast(FloatDType::F32).square().sum());
            }
        }
    }
    let mut squares = Squares { gradients, sums: Vec::new() };
    weights.visit(&mut squares);
    if squares.sums.is_empty() {
        return 0.0;
    }
    // One tensor, so that the device is waited for once and not for every parameter.
    let all = Tensor::cat(squares.sums, 0).try_into_data();
    // The sums of the parameters, a few hundred numbers, are added on the host in double precision.
    // A failed device gives NaN, with which the step is refused as one whose loss is not a number.
    all.map_or(f64::NAN, |all| all.iter::<f64>().sum::<f64>().sqrt())
}

/// The gradients of all parameters, each times `by`.
pub fn scale(weights: &Weights, mut gradients: GradientsParams, by: f64) -> GradientsParams {
    struct Scale<'a> {
        gradients: &'a mut GradientsParams,
        by: f64,
    }
    impl ModuleVisitor for Scale<'_> {
        fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.remove::<D>(parameter.id) {
                self.gradients.register(parameter.id, gradient * self.by);
            }
        }
    }
    weights.visit(&mut Scale { gradients: &mut gradients, by });
    gradients
}
