//! Runs a verified graph on tensors.
//!
//! [`weights`] contains the parameters, [`plan`] turns the graph into a flat list of instructions once, and
//! [`eval`] executes it. [`run`] is the entry point: a [`Model`] with its inputs, outputs and cache.
//! [`device`] opens backends by name. Every op is a fixed sequence of burn calls; a sequence of more than a
//! call or two is a function of the crate [`trafoc_kernels`], which the emitted models call, too, so that
//! both compute the same numbers.
//!
//! Nothing here panics on a user's input: inputs are checked against the graph before the first op.

pub mod backward;
pub mod cache;
pub mod device;
pub mod eval;
pub mod init;
pub mod inputs;
mod norm;
pub mod pack;
mod packed;
mod padding;
mod pairs;
pub mod plan;
mod pointwise;
mod product;
pub mod random;
pub mod room;
mod route;
pub mod run;
#[cfg(feature = "flex")]
mod step;
mod time;
pub mod value;
pub mod weights;

pub use crate::tensor_file;
pub use cache::Cache;
pub use inputs::Inputs;
pub use plan::{Captures, Plan, Reading};
pub use run::{Model, Options, Outputs};
pub use value::{Ranked, Value};
pub use weights::Weights;

use std::fmt;

/// The graph contradicts itself. `verify` rejects such graphs, so this is a bug in trafoc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl Fault {
    /// A tensor has a rank that the op does not take.
    pub(crate) fn rank(rank: usize) -> Self {
        Fault(format!("a tensor has rank {rank}, which the op does not take"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the graph contradicts itself, which is a bug in trafoc: {}", self.0)
    }
}

impl std::error::Error for Fault {}
