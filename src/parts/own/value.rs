//! Values while a part is lowered: what is known of them beyond their types.

use crate::ir::ValueId;
use crate::ir::op::{MaskRule, Op};
use crate::source::Span;

/// Places that say where a size comes from, each with its words.
pub(super) type Places = Vec<(Span, String)>;

/// A value, and where its last size comes from.
#[derive(Clone)]
pub(super) struct Wide {
    pub id: ValueId,
    pub from: Places,
    /// What a number for every query and key is, whose last axis is no features but keys.
    pub pairs: Option<Pairs>,
}

impl Wide {
    /// A value with features.
    pub fn new(id: ValueId, from: Places) -> Self {
        Self { id, from, pairs: None }
    }
}

/// What is known of numbers for every query and key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// What the author hides in addition to the stack; `None` if nothing was said.
    pub rule: Option<MaskRule>,
    /// Whether those of hidden keys are 0.
    pub are_zero: bool,
    /// Whether the keys are positions of the encoder's output.
    pub of_memory: bool,
}

impl Pairs {
    /// The same after an op that is computed number by number.
    pub fn after(self, op: &Op) -> Self {
        let keeps_zero = matches!(op, Op::Scale { .. } | Op::Dropout { .. } | Op::Softcap { .. });
        Self { are_zero: self.are_zero && keeps_zero, ..self }
    }
}
