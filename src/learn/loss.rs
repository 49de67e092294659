//! Losses: from outputs and labels to a sum.
//!
//! Everything is computed in single precision, whatever precision the model uses. Positions without a label
//! (padding, tokens that were not masked) take no part. Sums are returned instead of means, so that a step
//! over several batches equals the step over one large batch.

use burn::prelude::*;
use burn::tensor::{DType, FloatDType};
use indexmap::IndexMap;
use indexmap::map::Entry;

use crate::diag::count::counted;
use crate::interp::{Outputs, Plan};
use crate::learn::data::Labels;

/// The sum of the losses of one batch:
///
/// * positions, classes: cross entropy, with the share `smoothing` of the weight spread evenly over all
///   classes (Szegedy et al. 2016);
/// * spans: the mean of the cross entropies of the first and of the last token;
/// * several classes at once: the binary cross entropy of each;
/// * pairs of texts: the cross entropy of finding the second text of a pair among those of the batch
///   (Henderson et al. 2017), by [`alike`].
///
/// # Errors
/// The outputs do not fit the labels.
pub fn loss(outputs: &Outputs, labels: &Labels, smoothing: f64) -> Result<Tensor<1>, String> {
    match labels {
        Labels::Positions { classes, weights, .. } => {
            let logits = output::<3>(outputs, "logits")?;
            let [batch, time, width] = logits.dims();
            let weights = Some(weights.as_slice()).filter(|w| w.iter().any(|weight| *weight != 1.0));
            // A loss does not depend on the order of positions, so those of all examples become rows of one
            // matrix.
            cross_entropy(logits.reshape([batch * time, width]), classes, weights, smoothing)
        }
        Labels::Classes(classes) => cross_entropy(output::<2>(outputs, "logits")?, classes, None, smoothing),
        Labels::Several { values, .. } => binary(output::<2>(outputs, "logits")?, values),
        Labels::Alike(pairs) => {
            // The text that belongs to the first one of pair `i` is number `i` of the second ones.
            let right: Vec<i64> = (0i64..).take(*pairs).collect();
            cross_entropy(alike(outputs, *pairs)?, &right, None, smoothing)
        }
        Labels::Spans { start, end } => {
            let start = cross_entropy(output::<2>(outputs, "start_logits")?, start, None, smoothing)?;
            let end = cross_entropy(output::<2>(outputs, "end_logits")?, end, None, smoothing)?;
            // The mean of both, as in Hugging Face's models for question answering.
            Ok((start + end).div_scalar(2.0))
        }
    }
}

/// A loss that parts of a model have.
#[derive(Debug)]
pub struct OfParts<'a> {
    /// Its name.
    pub name: &'a str,
    /// The sum over all layers that have it, each with its weight, `[1]`.
    pub weighted: Tensor<1>,
    /// The mean over these layers, without weights, `[1]`.
    pub mean: Tensor<1>,
}

/// The losses of the parts of a model, from the results of its plan for training.
///
/// # Errors
/// The results are those of another plan.
pub fn of_parts<'a>(plan: &'a Plan, outputs: &Outputs) -> Result<Vec<OfParts<'a>>, String> {
    let mut found: IndexMap<&str, (Tensor<1>, Tensor<1>, f64)> = IndexMap::new();
    for own in plan.losses() {
        let value = output::<1>(outputs, &own.result)?;
        let weighted = value.clone().mul_scalar(own.weight);
        match found.entry(&own.name) {
            Entry::Vacant(entry) => {
                entry.insert((weighted, value, 1.0));
            }
            Entry::Occupied(mut entry) => {
                let (all, sum, count) = entry.get_mut();
                *all = all.clone() + weighted;
                *sum = sum.clone() + value;
                *count += 1.0;
            }
        }
    }
    let each = found.into_iter();
    Ok(each
        .map(|(name, (weighted, sum, count))| OfParts { name, weighted, mean: sum.div_scalar(count) })
        .collect())
}

/// The factor on cosines before the softmax, as in sentence-transformers.
const SHARPNESS: f64 = 20.0;

/// How well each second text of a batch fits each first one, `[N, N]`: 20 times the cosine of their vectors,
/// the first half and the second half of the output `embedding` `[2 N, D]`.
///
/// # Errors
/// There is no such output, or it has another number of rows.
pub fn alike(outputs: &Outputs, pairs: usize) -> Result<Tensor<2>, String> {
    let vectors = output::<2>(outputs, "embedding")?;
    let [rows, _] = vectors.dims();
    if pairs == 0 || rows / 2 != pairs {
        return Err(format!("{} of texts need as many vectors twice, not {rows}", counted(pairs, "pair")));
    }
    // A vector of zeros has no direction; the bound is that of PyTorch's `normalize`. It is under the root,
    // whose gradient at 0 is infinite.
    let length = (vectors.clone() * vectors.clone()).sum_dim(1).clamp_min(1e-24).sqrt();
    let vectors = vectors / length;
    let (first, second) = (vectors.clone().narrow(0, 0, pairs), vectors.narrow(0, pairs, pairs));
    Ok(first.matmul(second.transpose()).mul_scalar(SHARPNESS))
}

/// The output with this name and rank, in single precision.
///
/// # Errors
/// There is no such output.
pub fn output<const D: usize>(outputs: &Outputs, name: &str) -> Result<Tensor<D>, String> {
    let value = outputs.get(name).ok_or_else(|| format!("the model has no output `{name}`"))?;
    let tensor =
        value.float::<D>().ok_or_else(|| format!("the output `{name}` does not have the rank {D}"))?;
    Ok(if tensor.dtype() == DType::F32 { tensor } else { tensor.cast(FloatDType::F32) })
}

/// The cross entropy of `logits [N, C]` with a class for each row, each with a weight, 1 by default.
fn cross_entropy(
    logits: Tensor<2>,
    classes: &[i64],
    weights: Option<&[f32]>,
    smoothing: f64,
) -> Result<Tensor<1>, String> {
    // Burn's own loss has no weight for each position, and it is a mean, which is NaN if all are padding.
    let device = logits.device();
    let [rows, width] = logits.dims();
    if classes.len() != rows {
        return Err(format!(
            "for {} of scores there must be as many labels, not {}",
            counted(rows, "row"),
            classes.len()
        ));
    }
    let known = 0..i64::try_from(width).unwrap_or(i64::MAX);
    // On some backends an index out of range reads other memory instead of failing.
    if let Some(class) = classes.iter().find(|class| !known.contains(class)) {
        return Err(format!("the label {class} is not below {width}, the number of classes"));
    }
    let index = Tensor::<2, Int>::from_data(TensorData::new(classes.to_vec(), [rows, 1]), &device);
    let weights = weights.map_or_else(|| vec![1.0; rows], <[f32]>::to_vec);
    // The scores are in single precision, whatever the type of the device's tensors.
    let weights = Tensor::<2>::from_data(TensorData::new(weights, [rows, 1]), (&device, DType::F32));
    Ok(trafoc_kernels::cross_entropy(logits, index, weights, smoothing))
}

/// `max(x, 0) - x y + log(1 + exp(-|x|))`, which does not overflow for any `x`.
fn binary(logits: Tensor<2>, values: &[f32]) -> Result<Tensor<1>, String> {
    let [rows, width] = logits.dims();
    if values.len() != rows * width {
        return Err(format!(
            "for {rows} × {width} scores there must be as many labels, not {}",
            values.len()
        ));
    }
    let values = TensorData::new(values.to_vec(), [rows, width]);
    let values = Tensor::<2>::from_data(values, (&logits.device(), DType::F32));
    let soft = logits.clone().abs().neg().exp().add_scalar(1.0).log();
    Ok((logits.clone().clamp_min(0.0) - logits * values + soft).sum())
}
