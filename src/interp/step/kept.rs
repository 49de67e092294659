//! What a cache keeps of the program that decodes its next positions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::execute::Memory;
use super::program::Program;
use crate::interp::packed::PackedMatrix;

/// The program of a cache.
#[derive(Debug, Default)]
pub(in crate::interp) enum Step {
    /// There was no step for a program yet.
    #[default]
    Untried,
    /// The plan has no program, or none is wanted.
    Never,
    /// There is one.
    Ready(Box<Ready>),
}

/// A program that was made for a cache.
#[derive(Debug)]
pub(in crate::interp) struct Ready {
    pub(super) program: Program,
    pub(super) memory: Memory,
    /// The weights that it was made of.
    pub(super) weights: Arc<BTreeMap<usize, PackedMatrix>>,
}

impl Step {
    /// Forgets a program, which holds what it has read of the memory, when there is another memory.
    pub(in crate::interp) fn forget(&mut self) {
        if let Step::Ready(_) = self {
            *self = Step::Untried;
        }
    }
}
