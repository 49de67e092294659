//! What a program knows of a value before it runs.

use super::program::{Index, Span};

/// What is known of the value of a register.
#[derive(Clone, Debug)]
pub enum Known {
    /// Numbers of the position.
    Row { span: Span, dims: Vec<usize> },
    /// Numbers that depend on the lengths alone.
    Constant { index: usize, dims: Vec<usize>, grows: bool },
    /// A small parameter.
    Parameter { index: usize, dims: Vec<usize> },
    /// The indices of rows.
    Index(Index),
    /// What a buffer has, with the numbers that are appended to it in this step, and how often each head is repeated.
    Kept { buffer: usize, span: Span, heads: usize, width: usize, times: usize },
    /// Keys or values of the memory, at this index of the program.
    Held { index: usize, heads: usize, width: usize },
    /// Which keys of the memory are hidden, at this index of the program.
    HeldMask { index: usize },
    /// The buckets of the distances of all keys: the constant with this index.
    Buckets { index: usize },
    /// The rows of a table of the program that these buckets name, one for each key.
    DistanceRows { table: usize, buckets: usize },
    /// The same, added to scores.
    DistanceBias { table: usize, buckets: usize },
    /// An optional input that is not given.
    Absent,
}

impl Known {
    /// The slot of its numbers, if it has one.
    pub fn slot(&self) -> Option<usize> {
        match self {
            Known::Row { span, .. } | Known::Kept { span, .. } => Some(span.slot),
            _ => None,
        }
    }

    /// The sizes of its axes, if they are the same in every step.
    pub fn dims(&self) -> Option<Vec<usize>> {
        match self {
            Known::Row { dims, .. } | Known::Parameter { dims, .. } => Some(dims.clone()),
            Known::Constant { dims, grows: false, .. } => Some(dims.clone()),
            _ => None,
        }
    }
}

/// Whether a value with the axes `small` is repeated along the first axes of one with the axes `large`.
pub fn repeats(small: &[usize], large: &[usize]) -> bool {
    let trimmed: Vec<usize> = small.iter().copied().skip_while(|n| *n == 1).collect();
    large.ends_with(&trimmed)
}
