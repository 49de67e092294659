//! One step of training: batches, outputs, losses, gradients, and parameters that have moved.
//!
//! A step is a function of the parameters, the optimizer's state, the batches and the step's number:
//! dropout draws from a stream of its own that begins anew with every batch. So a run that was interrupted
//! goes on as if it had not been.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::prelude::*;

use super::data::{Array, Batch};
use super::loss::loss;
use super::random::Stream;
use super::update::{Updater, add, norm, scale};
use crate::interp::run::RunError;
use crate::interp::{Inputs, Outputs, Plan, Ranked, Value, Weights};

/// Why a step cannot be made.
#[derive(Debug)]
pub enum StepError {
    /// The model refuses the batch.
    Run(RunError),
    /// Outputs and labels do not fit.
    Labels(String),
    /// The device fails.
    Device(String),
}

impl std::fmt::Display for StepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StepError::Run(error) => write!(f, "{error}"),
            StepError::Labels(why) | StepError::Device(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for StepError {}

impl From<RunError> for StepError {
    fn from(error: RunError) -> Self {
        StepError::Run(error)
    }
}

/// What a step is made with, the same for all steps.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The longest gradient, over all parameters.
    pub clip: Option<f64>,
    /// Share of the probability that is spread over all classes.
    pub smoothing: f64,
    /// Everything random comes from it.
    pub seed: u64,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Made {
    /// The mean loss before it.
    pub loss: f64,
    /// The gradient's norm before clipping; none where nothing is clipped.
    pub norm: Option<f64>,
    /// Predictions that counted.
    pub counted: u64,
    /// Tokens that were read.
    pub tokens: u64,
}

/// Numbers on a device.
///
/// # Errors
/// They have a rank tensors do not come in.
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
    Ok(inputs)
}

/// Makes a step, the `number`th from 1, at the schedule's `factor`: the mean over the predictions of all
/// batches goes down its gradient.
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
) -> Result<(Weights, Made), StepError> {
    let Some(device) = weights.device() else {
        return Err(StepError::Labels("a model without parameters cannot be trained".into()));
    };
    let counted: usize = batches.iter().map(|b| b.counted).sum();
    let mut total = 0.0;
    let mut gradients: Option<GradientsParams> = None;
    for (i, batch) in batches.iter().enumerate() {
        let stream = number.wrapping_mul(1 << 20).wrapping_add(i as u64);
        device.seed(Stream::new(rules.seed, "dropout", stream).bits());
        let outputs = plan.run(&weights, &inputs(batch, &device)?, true)?;
        let sum = loss(&outputs, &batch.labels, rules.smoothing).map_err(StepError::Labels)?;
        let mean = sum.div_scalar(counted.max(1) as f64);
        total += number_of(&mean)?;
        // What the way back needs of them is kept by its ops.
        drop(outputs);
        let own = GradientsParams::from_grads(mean.backward(), &weights);
        gradients = Some(match gradients {
            None => own,
            Some(before) => add(&weights, before, own),
        });
    }
    let made = |norm| Made {
        loss: total,
        norm,
        counted: counted as u64,
        tokens: batches.iter().map(|b| b.tokens as u64).sum(),
    };
    let Some(mut gradients) = gradients else { return Ok((weights, made(None))) };
    let mut length = None;
    if let Some(most) = rules.clip {
        let found = norm(&weights, &gradients);
        if found > most {
            gradients = scale(&weights, gradients, most / (found + 1e-6));
        }
        length = Some(found);
    }
    // A step along a gradient that is not a number would lose the model; the caller sees the loss.
    if total.is_finite() && length.is_none_or(f64::is_finite) {
        return Ok((updater.step(factor, weights, gradients), made(length)));
    }
    Ok((weights, made(length)))
}

/// Outputs without a gradient, dropout off.
///
/// # Errors
/// The batch does not fit the model.
pub fn forward(plan: &Plan, weights: &Weights, batch: &Batch) -> Result<Outputs, StepError> {
    let Some(device) = weights.device() else {
        return Err(StepError::Labels("the model has no parameters".into()));
    };
    Ok(plan.run(weights, &inputs(batch, &device)?, false)?)
}

/// The parameters on the plain device, for evaluation and decoding.
pub fn plain(weights: &Weights) -> Weights {
    weights.valid()
}

/// The one number of a tensor.
///
/// # Errors
/// The device fails.
pub fn number_of(tensor: &Tensor<1>) -> Result<f64, StepError> {
    let data = tensor.clone().try_into_data().map_err(|e| StepError::Device(e.to_string()))?;
    data.iter::<f64>().next().ok_or_else(|| StepError::Device("the device gave no number".into()))
}
