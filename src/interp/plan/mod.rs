//! A verified graph as a flat list of instructions, made once and run many times.
//!
//! Calls and stacks are unrolled, parameters are bound by index, every value has a register and every
//! read knows whether it is the last one, so that a value is moved into the op that uses it up. What
//! depends on lengths alone (position tables, masks, biases of fixed slopes) is a [`Constant`], computed
//! once for those lengths. What no output needs is left out, attention weights among them.
//!
//! Cached decoding. A node that depends on neither the decoded sequence nor its length (an encoder, the
//! keys and values of cross attention) belongs to the *memory*: it runs in the first call, and what the
//! others need of it stays in the [`Cache`](super::Cache).

mod captures;
mod flatten;
mod registers;

pub use captures::{CaptureError, Captures};
pub use flatten::Lookup;

use std::fmt;
use std::sync::Mutex;

use burn::prelude::Device;
use indexmap::IndexMap;

use super::value::Value;
use super::weights::{Place, WeightsError};
use crate::ir::{Dim, Lengths, Op, Type, Verified};

/// Why a graph cannot be run.
#[derive(Debug)]
pub enum PlanError {
    /// Its parameters cannot be laid out.
    Weights(WeightsError),
    /// A path to capture names nothing.
    Capture(CaptureError),
    /// It is too large, or uses something no device has.
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

/// Where an instruction finds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// In a register; `last` if nobody reads it afterwards.
    Register { index: usize, last: bool },
    /// Among the constants.
    Constant(usize),
}

/// What an instruction does. Indices are those of [`Weights`](super::Weights)' lists.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A projection: matrix, vector.
    Linear { weight: usize, bias: Option<usize> },
    /// Row lookup in a matrix.
    Embedding { weight: usize },
    /// Layer norm by vectors.
    LayerNorm { weight: Option<usize>, bias: Option<usize>, eps: f64, unit_offset: bool },
    /// RMS norm by a vector.
    RmsNorm { weight: Option<usize>, eps: f64, unit_offset: bool },
    /// Patches projected by a kernel of that side.
    Patches { weight: usize, bias: Option<usize>, size: usize },
    /// A parameter as it is.
    Param(Place),
    /// Experts, each a body of its own over rows `[N, D]`.
    Experts(Vec<Body>),
    /// Appends to a buffer of the cache.
    Cache { slot: usize },
    /// An op without members.
    Op(Op),
}

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub action: Action,
    pub inputs: Vec<Operand>,
    /// A register for every result that is used.
    pub outputs: Vec<Option<usize>>,
    /// Whether it belongs to the memory.
    pub memory: bool,
}

/// Instructions over registers of their own.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub registers: usize,
    /// The register of each argument, if it is used.
    pub arguments: Vec<Option<usize>>,
    pub instructions: Vec<Instruction>,
    pub results: Vec<Operand>,
}

/// A value that depends on lengths alone.
#[derive(Debug)]
pub(super) struct Constant {
    pub op: Op,
    /// Other constants.
    pub inputs: Vec<usize>,
    /// Which of the op's results.
    pub result: usize,
    /// Lengths it does not depend on are 0 here, the others 1.
    pub depends: Lengths,
    /// Whether something outside the memory reads it.
    pub by_step: bool,
    /// The values last computed, by lengths and device.
    pub known: Mutex<Vec<(Lengths, Device, bool, Value)>>,
}

/// An input of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// `tokens`, `mask`, ...
    pub name: String,
    /// Element type and symbolic shape.
    pub ty: Type,
    /// Whether it belongs to the memory of cached decoding: given in the first call only.
    pub memory: bool,
    /// Whether its values are 0 and 1.
    pub keep: bool,
    /// Rows of the smallest table its values are looked up in, and that table's path.
    pub rows: Option<(u64, String)>,
}

/// A graph ready to run.
#[derive(Debug)]
pub struct Plan {
    pub(super) inputs: Vec<Input>,
    pub(super) constants: Vec<Constant>,
    pub(super) body: Body,
    /// Names of the results; the captured ones follow the graph's own.
    pub(super) names: Vec<String>,
    /// Registers of the memory that others read.
    pub(super) kept: Vec<usize>,
    /// How many buffers cached decoding needs.
    pub(super) buffers: usize,
    /// Lookups of positions in learned tables.
    pub(super) lookups: Vec<Lookup>,
    /// Whether decoding with a cache is possible.
    pub(super) decodes: bool,
    /// Every shape that a value has, with the first such value.
    pub(super) shapes: IndexMap<Vec<Dim>, String>,
}

impl Plan {
    /// Plans a graph whose outputs are its own and the captured values.
    ///
    /// # Errors
    /// The graph is too large to run, or a path names nothing.
    pub fn new(graph: &Verified, captures: &Captures) -> Result<Self, PlanError> {
        flatten::plan(graph, captures)
    }

    /// Whether a cache can stand for past positions.
    pub fn decodes(&self) -> bool {
        self.decodes
    }

    /// The graph's inputs.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Names of what a run returns, in order.
    pub fn outputs(&self) -> &[String] {
        &self.names
    }

    /// How many instructions a full run executes.
    pub fn len(&self) -> usize {
        self.body.instructions.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.body.instructions.is_empty()
    }
}

/// Every value that can be captured, by path, in the order they are computed. A value computed several
/// times (shared layers) has a path each time: `@0`, `@1`, ...
///
/// # Errors
/// The graph is too large to run.
pub fn paths(graph: &Verified) -> Result<Vec<(String, Type)>, PlanError> {
    flatten::paths(graph)
}
