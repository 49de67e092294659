//! What a plan consists of: instructions, constants, inputs.

use std::sync::Mutex;

use burn::prelude::Device;

use crate::interp::value::Value;
use crate::interp::weights::TensorIndex;
use crate::ir::op::{Activation, Sequence};
use crate::ir::{Lengths, Op, Type};

/// Where an instruction reads a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::interp) enum Operand {
    /// A register; `last` if this is the last read of it.
    Register { index: usize, last: bool },
    /// The constant with this index.
    Constant(usize),
}

/// What an instruction does. Indices refer to the lists of [`Weights`](crate::interp::Weights).
#[derive(Clone, Debug)]
pub(in crate::interp) enum Action {
    /// A projection with a matrix and an optional vector, and an optional activation of its result.
    Linear { weight: usize, bias: Option<usize>, then: Option<Activation> },
    /// Row lookup in a matrix `[rows, dim]`, by ids `[B, T]`.
    Embedding { weight: usize },
    /// The products with all rows of a matrix, `[V, D]`. A tied weight is one parameter that is used twice,
    /// not a copy in a second field: burn's optimizers would update only the first of two copies (`map_float`
    /// in optim/module/module_optimizer.rs of burn-optim 0.22.1 removes the gradient when it reads it).
    Unembed { weight: usize },
    /// Layer norm with an optional weight and bias.
    LayerNorm { weight: Option<usize>, bias: Option<usize>, eps: f64, unit_offset: bool },
    /// RMS norm with an optional weight.
    RmsNorm { weight: Option<usize>, eps: f64, unit_offset: bool },
    /// Patches, projected by a kernel `[dim, C, size, size]`.
    Patches { weight: usize, bias: Option<usize> },
    /// The value of a parameter, for ops that use it as an input.
    Param(TensorIndex),
    /// Experts, each with its own body for rows `[N, D]`.
    Experts(Vec<Body>),
    /// Appends to a buffer of the cache and returns its contents; the identity outside of cached decoding.
    Cache { slot: usize },
    /// An op that reads earlier positions; in cached decoding, what it keeps of them is in this buffer.
    State { op: Op, slot: usize },
    /// The last position of `[B, T, ..]` if the run wants no other, else the identity.
    Last,
    /// An op without parameters, such as a rotation or a sum.
    Op(Op),
}

impl Action {
    /// Calls `f` with the action and, if it runs experts, with each of theirs.
    pub fn each(&self, f: &mut impl FnMut(&Action)) {
        f(self);
        if let Action::Experts(experts) = self {
            experts.iter().for_each(|expert| expert.each(f));
        }
    }

    /// The op, if it is one without parameters and without a state.
    pub fn op(&self) -> Option<&Op> {
        match self {
            Action::Op(op) => Some(op),
            Action::Linear { .. }
            | Action::Embedding { .. }
            | Action::Unembed { .. }
            | Action::LayerNorm { .. }
            | Action::RmsNorm { .. }
            | Action::Patches { .. }
            | Action::Param(_)
            | Action::Experts(_)
            | Action::Cache { .. }
            | Action::State { .. }
            | Action::Last => None,
        }
    }

    /// The parameters that it uses by itself, without those of experts.
    pub fn parameters(&self) -> Vec<TensorIndex> {
        let one = |rank: usize, index: usize| TensorIndex { rank, index };
        let some = |rank: usize, index: &Option<usize>| index.map(|index| one(rank, index));
        match self {
            Action::Linear { weight, bias, .. } => {
                [one(2, *weight)].into_iter().chain(some(1, bias)).collect()
            }
            Action::Embedding { weight } | Action::Unembed { weight } => vec![one(2, *weight)],
            Action::LayerNorm { weight, bias, .. } => {
                some(1, weight).into_iter().chain(some(1, bias)).collect()
            }
            Action::RmsNorm { weight, .. } => some(1, weight).into_iter().collect(),
            Action::Patches { weight, bias } => [one(4, *weight)].into_iter().chain(some(1, bias)).collect(),
            Action::Param(place) => vec![*place],
            Action::Experts(_)
            | Action::Cache { .. }
            | Action::State { .. }
            | Action::Last
            | Action::Op(_) => Vec::new(),
        }
    }
}

/// One step of a plan.
#[derive(Clone, Debug)]
pub(in crate::interp) struct Instruction {
    pub action: Action,
    pub inputs: Vec<Operand>,
    /// The register of every result; `None` if the result is not used.
    pub outputs: Vec<Option<usize>>,
    /// Whether it belongs to the memory, so that it runs only in the first call of cached decoding.
    pub memory: bool,
    /// The number of the block of a stack that it belongs to, if it belongs to one. A block that is applied
    /// several times has a number each time.
    pub block: Option<usize>,
}

/// Instructions with their own registers: those of a whole graph, or of one expert.
#[derive(Clone, Debug)]
pub(in crate::interp) struct Body {
    pub registers: usize,
    /// The register of each argument; `None` if it is not used.
    pub arguments: Vec<Option<usize>>,
    pub instructions: Vec<Instruction>,
    pub results: Vec<Operand>,
}

impl Body {
    /// Calls `f` with every action, those of experts included.
    pub fn each(&self, f: &mut impl FnMut(&Action)) {
        for instruction in &self.instructions {
            instruction.action.each(f);
        }
    }
}

/// How a matrix is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::interp) enum Use {
    /// As the weight of linear layers only.
    Linear,
    /// Only rows are looked up, as in an embedding that is not tied.
    Rows,
    /// It is the table of logits, and rows may be looked up in it.
    Logits,
    /// In another way or in several ways, so that it cannot be packed.
    Other,
}

impl Use {
    /// How a matrix is used that two instructions use in these two ways.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            // A tied embedding: rows can be looked up in a packed table, too.
            (Use::Rows, Use::Logits) | (Use::Logits, Use::Rows) => Use::Logits,
            _ => Use::Other,
        }
    }
}

/// A value that depends only on lengths.
#[derive(Debug)]
pub(in crate::interp) struct Constant {
    pub op: Op,
    /// The indices of the constants that it is computed from, all of them before it.
    pub inputs: Vec<usize>,
    /// Which result of the op it is.
    pub result: usize,
    /// 1 for each length that the value depends on, else 0.
    pub depends: Lengths,
    /// Whether it is needed outside of the memory, directly or by another constant, and so in every call of
    /// cached decoding.
    pub by_step: bool,
    // In a mutex, because runs share a plan without changing it otherwise.
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

/// A lookup of positions in a learned table. The largest position, `offset + P + T - 1` in a causal decoder,
/// must be a row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The sequence whose positions are looked up.
    pub along: Sequence,
    /// The number that is added to every position before the lookup (2 in OPT and BART).
    pub offset: u64,
    /// The number of rows of the table.
    pub rows: u64,
    /// The path of the table.
    pub path: String,
}
