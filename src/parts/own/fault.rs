//! Why a part cannot be lowered.

use crate::diag::Diagnostic;
use crate::ir::infer::Mismatch;

/// Why a part cannot be lowered.
pub(super) enum Fault {
    /// Its shapes do not fit.
    Wrong(Box<Diagnostic>),
    /// An op that an author does not write refused its inputs.
    Bug(Mismatch),
}

impl From<Mismatch> for Fault {
    fn from(mismatch: Mismatch) -> Self {
        Fault::Bug(mismatch)
    }
}

pub(super) type Lowered<T> = Result<T, Fault>;
