//! Ops that read earlier positions, on tensors whose rank is known only when a graph is run.

use burn::prelude::*;

use super::Fault;
use super::value::Ranked;

/// The value `by` positions earlier; see [`trafoc_kernels::earlier`].
pub fn earlier(all: Ranked<Float>, x: Ranked<Float>, by: usize) -> Result<Ranked<Float>, Fault> {
    Ok(match (all, x) {
        (Ranked::R3(all), Ranked::R3(x)) => Ranked::R3(trafoc_kernels::earlier(all, x, by)),
        (Ranked::R4(all), Ranked::R4(x)) => Ranked::R4(trafoc_kernels::earlier(all, x, by)),
        (_, x) => return Err(Fault::rank(x.rank())),
    })
}

/// The sum over all positions so far; see [`trafoc_kernels::cumulative_sum`].
pub fn cumulative_sum(all: Ranked<Float>, x: Ranked<Float>) -> Result<Ranked<Float>, Fault> {
    Ok(match (all, x) {
        (Ranked::R3(all), Ranked::R3(x)) => Ranked::R3(trafoc_kernels::cumulative_sum(all, x)),
        (Ranked::R4(all), Ranked::R4(x)) => Ranked::R4(trafoc_kernels::cumulative_sum(all, x)),
        (_, x) => return Err(Fault::rank(x.rank())),
    })
}
