//! Ops that read earlier positions, on tensors whose rank is known only when a graph is run.

use burn::prelude::*;
use trafoc_kernels::{KvCache, causal_conv, cumulative_sum, delta_recurrence, earlier, recurrence};

use super::Fault;
use super::value::Ranked;
use crate::ir::Op;

/// Runs an op that keeps a state, which is in the cache if there is one.
///
/// # Errors
/// The op keeps no state, or its inputs have other ranks than it takes.
pub fn with_state(
    op: &Op,
    inputs: Vec<Ranked<Float>>,
    cache: Option<&mut KvCache>,
) -> Result<Ranked<Float>, Fault> {
    let mut inputs = inputs.into_iter();
    let mut next = || inputs.next().ok_or_else(|| Fault("an input is missing".into()));
    if let Op::Earlier { by, .. } = op {
        let by = by.get() as usize;
        Ok(match next()? {
            Ranked::R3(x) => Ranked::R3(earlier(x, by, cache)),
            Ranked::R4(x) => Ranked::R4(earlier(x, by, cache)),
            x => return Err(Fault::rank(x.rank())),
        })
    } else if let Op::CausalConv { .. } = op {
        Ok(Ranked::R3(causal_conv(next()?.r3()?, next()?.r3()?, cache)))
    } else if let Op::CumulativeSum { .. } = op {
        Ok(match next()? {
            Ranked::R3(x) => Ranked::R3(cumulative_sum(x, cache)),
            Ranked::R4(x) => Ranked::R4(cumulative_sum(x, cache)),
            x => return Err(Fault::rank(x.rank())),
        })
    } else if let Op::Recurrence { .. } = op {
        let mut heads = || next()?.lift(4).r4();
        let (q, k, v, decay) = (heads()?, heads()?, heads()?, heads()?);
        Ok(Ranked::R4(match inputs.next() {
            Some(beta) => delta_recurrence(q, k, v, decay, beta.lift(4).r4()?, cache),
            None => recurrence(q, k, v, decay, cache),
        }))
    } else {
        Err(Fault("an op without a state".into()))
    }
}
