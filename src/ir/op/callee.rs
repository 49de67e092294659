//! The modules that an op runs, and how often.

use crate::ir::work::Work;
use crate::ir::{Dim, ModuleId, Sym};

/// A module that a node runs.
pub struct Callee {
    /// The module that runs: a child, a block of a stack or an expert.
    pub module: ModuleId,
    /// How often it runs while its caller runs once.
    pub runs: Runs,
}

/// How often a module runs while its caller runs once.
#[derive(Clone)]
pub enum Runs {
    /// This number of times, each time on the whole input.
    Whole(u128),
    /// Experts with the same module, each on the rows sent to it: together, `rows * taken / of` rows on
    /// average.
    Routed {
        /// The number of rows of the input.
        rows: Dim,
        /// The number of experts with this module, times the number of experts to which a token is sent.
        taken: u128,
        /// The number of all experts.
        of: u128,
    },
}

impl Runs {
    /// The work of all runs, given that of one.
    pub fn of(&self, work: &Work) -> Work {
        match self {
            Runs::Whole(n) => work.times(*n),
            // The parts of equal experts add up to `rows * active` exactly.
            Runs::Routed { rows, taken, of } => {
                let taken = Dim::of(*taken);
                work.each(|dim| (dim.substitute(Sym::Rows, rows) * taken.clone()).div_ceil(*of))
            }
        }
    }
}
