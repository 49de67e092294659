//! The dependencies of a graph's values: parameters, inputs, lengths.

use crate::ir::op::Sequence;

/// What a value depends on, directly or through other values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Depends {
    /// Whether it is computed from any parameter, so that it changes when the weights do.
    pub weights: bool,
    /// Whether it is computed from any input.
    pub inputs: bool,
    /// Whether it changes with `T` or `P`, or reads an input whose shape contains one of them.
    pub time: bool,
    /// Whether it changes with `S`, or reads an input whose shape contains neither `T` nor `P`.
    pub source: bool,
}

impl Depends {
    /// The dependencies of a value that is computed from two others.
    pub fn and(self, other: Depends) -> Depends {
        Depends {
            weights: self.weights || other.weights,
            inputs: self.inputs || other.inputs,
            time: self.time || other.time,
            source: self.source || other.source,
        }
    }

    /// Whether the value is a constant of the plan.
    pub fn is_constant(self) -> bool {
        !self.weights && !self.inputs
    }

    /// Whether the value belongs to the memory: it depends on the source and not on the target.
    pub fn is_memory(self) -> bool {
        self.source && !self.time
    }
}

/// The dependencies of an op that runs along these sequences.
pub fn lengths_of(sequences: &[Sequence]) -> Depends {
    sequences.iter().fold(Depends::default(), |depends, sequence| {
        depends.and(match sequence {
            Sequence::Whole | Sequence::Cached => Depends { time: true, ..Depends::default() },
            Sequence::Source => Depends { source: true, ..Depends::default() },
            Sequence::Fixed(_) => Depends::default(),
        })
    })
}
