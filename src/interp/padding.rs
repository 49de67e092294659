//! The padding of a batch, as losses of parts see it.
//!
//! It is no input of the graph: a causal decoder takes no mask where padding is at the end, and losses are in the graph of
//! training alone.

use burn::prelude::*;

use super::Fault;
use super::inputs::Inputs;
use super::plan::Plan;
use super::value::Value;
use crate::ir::Sym;

/// For each sequence, true where there is padding, `[B, 1, 1, T]`; `None` if there is none.
#[derive(Clone, Debug)]
pub(super) struct Padding {
    time: Option<Tensor<4, Bool>>,
    source: Option<Tensor<4, Bool>>,
}

impl Padding {
    /// What the masks among the inputs hide, and what [`Inputs::with_padded`] says of a sequence without one; `None` if
    /// no part of the plan has a loss.
    pub fn of_run(plan: &Plan, inputs: &Inputs, device: &Device) -> Result<Option<Self>, Fault> {
        if plan.losses().is_empty() {
            return Ok(None);
        }
        let own = inputs.get("mask").filter(|mask| !mask.is_absent()).or(inputs.padded.as_ref());
        let (time, source) = (hidden(own, device)?, hidden(inputs.get("source_mask"), device)?);
        Ok(Some(Self { time, source }))
    }

    /// The padding along an axis.
    pub fn along(&self, axis: Option<Sym>) -> Option<Tensor<4, Bool>> {
        match axis? {
            Sym::Time => self.time.clone(),
            Sym::Source => self.source.clone(),
            Sym::Batch | Sym::Past | Sym::Rows => None,
        }
    }
}

/// Where a mask, `[B, T]` with 0 for padding, has padding; `None` if nowhere.
fn hidden(keep: Option<&Value>, device: &Device) -> Result<Option<Tensor<4, Bool>>, Fault> {
    let (Some(keep), Some(&[batch, time])) = (keep, keep.and_then(Value::dims).as_deref()) else {
        return Ok(None);
    };
    let data = keep.to_data().map_err(|why| Fault(format!("a mask could not be read: {why}")))?;
    let values: Vec<bool> = data.iter::<i64>().map(|keep| keep == 0).collect();
    // The same numbers as without a mask, to the last bit.
    if !values.contains(&true) {
        return Ok(None);
    }
    Ok(Some(Tensor::from_data(TensorData::new(values, [batch, 1, 1, time]), device)))
}
