//! What the expression of an op is written from.

use crate::ir::{Op, ValueId};
use crate::lower::Bug;

/// An op's inputs and what is wanted of it.
pub struct Operands<'a> {
    /// The values that the op takes, in its order.
    pub inputs: &'a [ValueId],
    /// The name of the dropout that it applies.
    pub dropout: Option<&'a str>,
    /// The cache that its state is in, if it keeps one.
    pub cache: Option<u64>,
    /// How many of its results are used.
    pub results: usize,
}

impl Operands<'_> {
    /// The inputs of an op that takes that many.
    ///
    /// # Errors
    /// A fault of trafoc: it has another number of them.
    pub fn inputs<const N: usize>(&self, op: &Op) -> Result<[ValueId; N], Bug> {
        let count = self.inputs.len();
        let wrong = || Bug(format!("{op:?} has {count} inputs in the emitted program, not {N}"));
        <[ValueId; N]>::try_from(self.inputs).map_err(|_| wrong())
    }

    /// The input of an op, and a mask that it may have.
    ///
    /// # Errors
    /// A fault of trafoc: it has another number of inputs.
    pub fn and_mask(&self, op: &Op) -> Result<(ValueId, Option<ValueId>), Bug> {
        match *self.inputs {
            [x] => Ok((x, None)),
            [x, mask] => Ok((x, Some(mask))),
            _ => Err(Bug(format!("{op:?} has {} inputs in the emitted program", self.inputs.len()))),
        }
    }

    /// The field of the dropout that it applies.
    ///
    /// # Errors
    /// A fault of trafoc: it has none.
    pub fn dropout(&self, op: &Op) -> Result<&str, Bug> {
        self.dropout.ok_or_else(|| Bug(format!("{op:?} has no dropout in the emitted program")))
    }
}
