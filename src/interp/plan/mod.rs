//! A verified graph as a flat list of instructions, which is built once and run many times.
//!
//! Calls and stacks are unrolled, and parameters are referred to by index. Every value has a register, and
//! every read knows whether it is the last one, so that the value can be moved into the op. Values that
//! depend only on lengths (position tables, masks, biases with fixed slopes) are [`Constant`]s, computed
//! once for these lengths. Values that no output needs are left out, for example attention weights.
//!
//! Cached decoding: a node that depends neither on the decoded sequence nor on its length (an encoder, the
//! keys and values of cross attention) belongs to the *memory*. It runs in the first call, and the values
//! that other nodes need remain in the [`Cache`](super::Cache).

mod captures;
mod depends;
mod flatten;
mod registers;

pub use captures::{CaptureError, Captures, Reading};
pub use flatten::Lookup;

use std::fmt;
use std::sync::Mutex;

use burn::prelude::Device;
use indexmap::IndexMap;

use super::room::Room;
use super::value::Value;
use super::weights::{TensorIndex, WeightsError};
use crate::ir::{Dim, Lengths, Op, Type, Verified};

/// Why a graph cannot be run.
#[derive(Debug)]
pub enum PlanError {
    /// The parameters are too large or have an unsupported shape.
    Weights(WeightsError),
    /// No value has the path of a capture.
    Capture(CaptureError),
    /// The graph is too large, or uses something that no device supports.
    Refused(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Weights(error) => write!(f, "{error}"),
            PlanError::Capture(error) => write!(f, "{error}"),
            PlanError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for PlanError {}

/// Where an instruction reads a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A register; `last` if this is the last read of it.
    Register { index: usize, last: bool },
    /// The constant with this index.
    Constant(usize),
}

/// What an instruction does. Indices refer to the lists of [`Weights`](super::Weights).
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A projection with a matrix and an optional vector.
    Linear { weight: usize, bias: Option<usize> },
    /// Row lookup in a matrix.
    Embedding { weight: usize },
    /// Layer norm with an optional weight and bias.
    LayerNorm { weight: Option<usize>, bias: Option<usize>, eps: f64, unit_offset: bool },
    /// RMS norm with an optional weight.
    RmsNorm { weight: Option<usize>, eps: f64, unit_offset: bool },
    /// Patches of this side length, projected by a kernel `[dim, C, size, size]`.
    Patches { weight: usize, bias: Option<usize>, size: usize },
    /// The value of a parameter.
    Param(TensorIndex),
    /// Experts, each with its own body for rows `[N, D]`.
    Experts(Vec<Body>),
    /// Appends to a buffer of the cache and returns its contents; the identity outside of cached decoding.
    Cache { slot: usize },
    /// An op without parameters.
    Op(Op),
}

/// One step of a plan.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub action: Action,
    pub inputs: Vec<Operand>,
    /// The register of every result; `None` if the result is not used.
    pub outputs: Vec<Option<usize>>,
    /// Whether it belongs to the memory, so that it runs only in the first call of cached decoding.
    pub memory: bool,
}

/// Instructions with their own registers.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub registers: usize,
    /// The register of each argument; `None` if it is not used.
    pub arguments: Vec<Option<usize>>,
    pub instructions: Vec<Instruction>,
    pub results: Vec<Operand>,
}

/// A value that depends only on lengths.
#[derive(Debug)]
pub(super) struct Constant {
    pub op: Op,
    /// The indices of other constants.
    pub inputs: Vec<usize>,
    /// Which result of the op it is.
    pub result: usize,
    /// 1 for each length that the value depends on, else 0.
    pub depends: Lengths,
    /// Whether it is needed outside of the memory, directly or by another constant, and so in every call of
    /// cached decoding.
    pub by_step: bool,
    /// The values computed last, by lengths, device and whether autodiff is on.
    pub known: Mutex<Vec<(Lengths, Device, bool, Value)>>,
}

/// An input of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The name: `tokens`, `mask`, ...
    pub name: String,
    /// Element type and symbolic shape.
    pub ty: Type,
    /// Whether it belongs to the memory of cached decoding, so that it is given only in the first call.
    pub memory: bool,
    /// Whether it is a padding mask, whose values must be 1 (keep) or 0 (padding).
    pub keep: bool,
    /// The number of rows of the smallest table in which its values are looked up, and the path of that
    /// table.
    pub rows: Option<(u64, String)>,
}

/// A graph ready to run.
#[derive(Debug)]
pub struct Plan {
    pub(super) inputs: Vec<Input>,
    pub(super) constants: Vec<Constant>,
    pub(super) body: Body,
    /// The names of the results; captured values follow the graph's own.
    pub(super) names: Vec<String>,
    /// The registers of the memory that other nodes read.
    pub(super) kept: Vec<usize>,
    /// The number of buffers that cached decoding needs.
    pub(super) buffers: usize,
    /// The lookups of positions in learned tables.
    pub(super) lookups: Vec<Lookup>,
    /// Whether the model can decode with a cache.
    pub(super) decodes: bool,
    /// Every shape, with the first value that has it, to check against the limits of a device.
    pub(super) shapes: IndexMap<Vec<Dim>, String>,
    /// Forecasts the memory that runs take.
    pub(super) room: Room,
}

impl Plan {
    /// Plans a graph. The results of a run are the outputs of the graph, followed by the captured values.
    ///
    /// # Errors
    /// The graph is too large to run, or no value has the path of a capture.
    pub fn new(graph: &Verified, captures: &Captures) -> Result<Self, PlanError> {
        flatten::plan(graph, captures)
    }

    /// Whether the model can decode with a cache, without computing past positions again.
    pub fn decodes(&self) -> bool {
        self.decodes
    }

    /// The inputs of the graph.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The names of the results of a run, in order.
    pub fn outputs(&self) -> &[String] {
        &self.names
    }

    /// The number of instructions in a full run.
    pub fn len(&self) -> usize {
        self.body.instructions.len()
    }

    /// Whether there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.body.instructions.is_empty()
    }
}

/// Every value that can be captured, by path, in the order of computation. A value that is computed several
/// times (shared layers) has one path each time: `@0`, `@1`, ...
///
/// # Errors
/// The graph is too large to run.
pub fn paths(graph: &Verified) -> Result<Vec<(String, Type)>, PlanError> {
    flatten::paths(graph)
}
