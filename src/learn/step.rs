//! One step of training: batches, outputs, losses, gradients, and changed parameters.
//!
//! A step is a function of the parameters, the optimizer's state, the batches and the number of the step:
//! dropout uses a stream of random numbers that restarts with every batch. So a run that was interrupted
//! continues as if it had not been.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::prelude::*;
use indexmap::IndexMap;
use trafoc_kernels::awake;

use super::data::{Array, Batch};
use super::loss::{loss, of_parts};
use super::random::Stream;
use super::recipe::{Recipe, Recompute, Reduction};
use super::update::{Updater, norm, scale};
use crate::interp::backward::Manner;
use crate::interp::run::RunError;
use crate::interp::{Inputs, Outputs, Plan, Ranked, Value, Weights};

/// Why a step, an evaluation or decoding failed.
#[derive(Debug)]
pub enum StepError {
    /// The model cannot run on the batch.
    Run(RunError),
    /// Outputs and labels do not fit.
    Labels(String),
    /// The device failed, with this message, or returned nothing usable.
    Device(String),
    /// The model computes nothing usable, as with weights that are NaN.
    Scores(String),
}

impl StepError {
    /// That these scores are NaN, or infinite.
    pub fn of_scores(scores: &[f32]) -> Self {
        let what = if scores.iter().any(|score| score.is_nan()) { "NaN" } else { "infinite" };
        Self::Scores(format!("the model's scores are {what}"))
    }
}

impl std::fmt::Display for StepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StepError::Run(error) => write!(f, "{error}"),
            StepError::Labels(why) | StepError::Device(why) | StepError::Scores(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for StepError {}

impl From<RunError> for StepError {
    fn from(error: RunError) -> Self {
        StepError::Run(error)
    }
}

/// The settings of all steps.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The largest norm of the gradient, over all parameters.
    pub clip: Option<f64>,
    /// Whether the gradient is that of the mean or of the sum of the losses.
    pub reduction: Reduction,
    /// The share of the probability that is spread over all classes (label smoothing).
    pub smoothing: f64,
    /// What is computed again in the backward pass.
    pub recompute: Recompute,
    /// The seed of everything random.
    pub seed: u64,
}

impl Rules {
    /// The gradient of the mean of the losses, without clipping or label smoothing.
    pub fn plain(seed: u64) -> Self {
        Self { clip: None, reduction: Reduction::Mean, smoothing: 0.0, recompute: Recompute::None, seed }
    }

    /// The settings that a recipe gives, with the seed of the run.
    pub fn of(recipe: &Recipe, seed: u64) -> Self {
        Self {
            clip: recipe.clip.map(|c| *c),
            reduction: recipe.reduction,
            smoothing: *recipe.label_smoothing,
            recompute: recipe.recompute,
            seed,
        }
    }
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResult {
    /// The mean loss of the predictions before the step, without the losses of parts.
    pub loss: f64,
    /// The losses of parts by name, each the mean over all layers that have it, without its weight.
    pub losses: IndexMap<String, f64>,
    /// The gradient's norm before clipping; `None` if gradients are not clipped.
    pub norm: Option<f64>,
    /// The number of predictions in the loss.
    pub counted: u64,
    /// The number of tokens that were read.
    pub tokens: u64,
}

/// Moves an array to a device.
///
/// # Errors
/// Its rank is not supported.
pub fn array(array: &Array, device: &Device) -> Result<Value, StepError> {
    let value = match array {
        Array::Ints { shape, values } => {
            Ranked::from_data(TensorData::new(values.clone(), shape.clone()), device).map(Value::Int)
        }
        Array::Floats { shape, values } => {
            Ranked::from_data(TensorData::new(values.clone(), shape.clone()), device).map(Value::Float)
        }
    };
    value.map_err(|fault| StepError::Labels(fault.to_string()))
}

/// A batch's inputs on a device.
///
/// # Errors
/// As [`array`].
pub fn inputs(batch: &Batch, device: &Device) -> Result<Inputs, StepError> {
    let mut inputs = Inputs::new();
    for (name, values) in &batch.inputs {
        inputs = inputs.with(name, array(values, device)?);
    }
    if let Some(padded) = &batch.padded {
        inputs = inputs.with_padded(array(padded, device)?);
    }
    Ok(inputs)
}

/// Makes the step with this `number`, counted from 1, with the schedule's `factor`: a step of gradient
/// descent on the mean of the losses over the predictions of all batches, or on their sum.
///
/// # Errors
/// A batch does not fit the model, or the device fails.
pub fn step(
    plan: &Plan,
    weights: Weights,
    updater: &mut Updater,
    batches: &[Batch],
    number: u64,
    factor: f64,
    rules: &Rules,
) -> Result<(Weights, StepResult), StepError> {
    let _awake = awake();
    let Some(device) = weights.device() else {
        return Err(StepError::Labels("a model without parameters cannot be trained".into()));
    };
    // Over all batches of the step before the first of them is computed, since each is divided by it.
    let counted: usize = batches.iter().map(|b| b.counted).sum();
    let mut total = 0.0;
    let mut losses: IndexMap<String, f64> = IndexMap::new();
    let mut gradients = GradientsParams::new();
    for (i, batch) in batches.iter().enumerate() {
        // Every batch of every step has its own number, which a resumed run computes again. There is room
        // for 2^20 batches in a step.
        let stream = number.wrapping_mul(1 << 20).wrapping_add(i as u64);
        let manner = Manner {
            seed: Stream::new(rules.seed, "dropout", stream).bits(),
            recomputes: rules.recompute == Recompute::Blocks,
        };
        // A step may predict nothing, for example with texts of one token. Its loss is then 0, and not NaN.
        let count = counted.max(1) as f64;
        let judge = |outputs: Outputs| -> Result<Tensor<1>, StepError> {
            let mut sum = loss(&outputs, &batch.labels, rules.smoothing).map_err(StepError::Labels)?;
            // The predictions alone are recorded, so that runs with other weights of losses can be compared.
            total += number_of(&sum)? / count;
            for own in of_parts(plan, &outputs).map_err(StepError::Labels)? {
                // Added for each prediction, so that batches count as they do in the mean, and a sum as a
                // mean.
                sum = sum + own.weighted.mul_scalar(batch.counted as f64);
                let share = batch.counted as f64 / count;
                *losses.entry(own.name.to_owned()).or_default() += number_of(&own.mean)? * share;
            }
            // Divided by the predictions of all batches of the step, so that accumulated gradients are those
            // of one large batch, even if its parts have different numbers of predictions.
            Ok(match rules.reduction {
                Reduction::Mean => sum.div_scalar(count),
                Reduction::Sum => sum,
            })
        };
        // One backward pass for each batch, so that the memory of only one batch's tape is needed at a time.
        // It adds to the gradients of those before, so that there is one set of them.
        gradients = plan.gradients(&weights, &inputs(batch, &device)?, manner, gradients, judge)?;
    }
    let made = |norm| StepResult {
        loss: total,
        losses: losses.clone(),
        norm,
        counted: counted as u64,
        tokens: batches.iter().map(|b| b.tokens as u64).sum(),
    };
    // Only a step without batches has no gradients.
    if batches.is_empty() {
        return Ok((weights, made(None)));
    }
    let mut length = None;
    // The norm is read back from the device, which waits for it, so it is not computed for the record alone.
    if let Some(most) = rules.clip {
        // Once for all batches: clipping each would change the direction of their sum.
        let found = norm(&weights, &gradients);
        // False for NaN, too: such gradients are not scaled but refused below.
        if found > most {
            // PyTorch's `clip_grad_norm_` adds the same small number.
            gradients = scale(&weights, gradients, most / (found + 1e-6));
        }
        length = Some(found);
    }
    // A step with an infinite or NaN gradient would destroy the model; the caller checks the losses.
    if total.is_finite()
        && losses.values().all(|value| value.is_finite())
        && length.is_none_or(f64::is_finite)
    {
        return Ok((updater.step(factor, weights, gradients), made(length)));
    }
    Ok((weights, made(length)))
}

/// The outputs without gradients and without dropout.
///
/// # Errors
/// The batch does not fit the model.
pub fn forward(plan: &Plan, weights: &Weights, batch: &Batch) -> Result<Outputs, StepError> {
    let Some(device) = weights.device() else {
        return Err(StepError::Labels("the model has no parameters".into()));
    };
    Ok(plan.run(weights, &inputs(batch, &device)?, false)?)
}

/// The parameters on the device without autodiff, for evaluation and decoding.
pub fn plain(weights: &Weights) -> Weights {
    // With autodiff, a forward pass that no backward pass follows would leave its tape in memory.
    weights.valid().merged()
}

/// The value of a tensor with one element.
///
/// # Errors
/// The device fails.
pub fn number_of(tensor: &Tensor<1>) -> Result<f64, StepError> {
    let data = tensor.clone().try_into_data().map_err(|e| StepError::Device(e.to_string()))?;
    data.iter::<f64>().next().ok_or_else(|| StepError::Device("the device returned no number".into()))
}
