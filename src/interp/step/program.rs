//! What a program of a step consists of.

use trafoc_kernels::Packed;
use trafoc_kernels::row::{Activation, Held, Lookup, Norm, Pairing};

use crate::interp::plan::Input;
use crate::ir::Op;

/// A part of the numbers of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The slot, which is memory for one value of a thread.
    pub slot: usize,
    /// The first number.
    pub start: usize,
    /// How many there are.
    pub len: usize,
}

/// Where numbers are read.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// In the memory of the thread.
    Slot(Span),
    /// In the constant with this index of the plan.
    Constant(usize),
    /// In the parameter with this index of the program.
    Parameter(usize),
}

/// Where the index of a row comes from: an input, or a constant of the plan.
#[derive(Clone, Debug)]
pub enum Index {
    /// The input with this name.
    Input(String),
    /// The constant with this index.
    Constant(usize),
}

/// A table whose rows are looked up.
#[derive(Clone, Debug)]
pub enum Rows {
    /// As it was loaded.
    Plain(Lookup),
    /// Packed as the table of logits.
    Packed(Packed),
}

/// A sum, a product or a quotient.
#[derive(Clone, Copy, Debug)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a * b`
    Multiply,
    /// `a / b`
    Divide,
}

/// A function of each number.
#[derive(Clone, Copy, Debug)]
pub enum Unary {
    /// An activation that is a kernel.
    Kernel(Activation),
    /// `max(x, 0)`
    Relu,
    /// `x * by`
    Scale(f32),
    /// `x + by`
    Shift(f32),
}

/// A linear layer.
#[derive(Debug)]
pub struct Product {
    /// The weight.
    pub weight: Packed,
    /// The bias, if there is one.
    pub bias: Option<Vec<f32>>,
    /// The input.
    pub from: Span,
    /// The slot of the result.
    pub to: usize,
    /// What is applied to the result.
    pub then: Option<Activation>,
    /// The index of its work that is divided among threads; `None` if it is so small that each of them does all of it.
    pub shared: Option<usize>,
}

/// Where keys or values are.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// In a buffer of the cache, and those of this position in a slot.
    Growing {
        /// The index of the buffer.
        buffer: usize,
        /// Those of this position.
        latest: Span,
    },
    /// In the program: those with this index.
    Held(usize),
}

/// Where it is said which keys are hidden.
#[derive(Clone, Copy, Debug)]
pub enum Mask {
    /// In the constant with this index of the plan.
    Constant(usize),
    /// In the program, at this index.
    Held(usize),
}

/// What is added to scores.
#[derive(Clone, Copy, Debug)]
pub enum Bias {
    /// The constant with this index of the plan.
    Constant(usize),
    /// For each key, the row of a table of the program that a constant of the plan names.
    OfDistance {
        /// The index of the table.
        table: usize,
        /// The index of the constant.
        buckets: usize,
    },
}

/// Attention of one position to those before it or to those of an encoder.
#[derive(Debug)]
pub struct Attend {
    /// The queries of all heads.
    pub q: Span,
    /// The keys and the values.
    pub keys: [Keys; 2],
    /// How many heads of queries share a head of keys.
    pub times: usize,
    /// The heads of queries.
    pub heads: usize,
    /// The factor on products.
    pub scale: f32,
    /// Bounds the products.
    pub softcap: Option<f32>,
    /// Which keys are hidden.
    pub mask: Option<Mask>,
    /// What is added to the scores.
    pub bias: Option<Bias>,
    /// For each head the score of one more key, whose value is zero.
    pub sinks: Option<Vec<f32>>,
    /// The slot of the result.
    pub to: usize,
    /// The index of its work that is divided among threads.
    pub shared: usize,
}

/// One instruction.
#[derive(Debug)]
pub enum Work {
    /// Copies some numbers to others of a slot.
    Copy { from: From, to: Span },
    /// The features `start..start + len` of each head, whose width this is.
    Columns { from: Span, width: usize, start: usize, to: Span },
    /// Some features of each head of this slot, whose width this is, from `start` on.
    Join { from: From, of: usize, width: usize, start: usize, to: usize },
    /// Looks a row up.
    Row { rows: Rows, index: usize, to: usize },
    /// A norm.
    Norm { norm: Norm, weight: Vec<f32>, bias: Vec<f32>, from: Span, to: usize },
    /// Linear layers of which none reads what another one of them writes.
    Products(Vec<Product>),
    /// A sum and the like in place. The second operand is repeated if it is shorter.
    Binary { binary: Binary, to: usize, by: From },
    /// A function of each number in place.
    Unary { unary: Unary, to: usize },
    /// Turns features of heads of this width.
    Rotate { from: Span, width: usize, angles: [usize; 2], pairing: Pairing, to: usize },
    /// Attention.
    Attend(Attend),
    /// The sum of experts, each times its weight, without those whose weight is zero.
    Experts { weights: Span, experts: Vec<Expert>, to: usize },
    /// An op of burn on tensors of these sizes, which every thread computes by itself.
    ByTensors { op: Op, inputs: Vec<(From, Vec<usize>)>, to: usize },
}

/// One of several experts.
#[derive(Debug)]
pub struct Expert {
    /// Its work.
    pub work: Vec<Work>,
    /// Its result.
    pub result: Span,
}

/// A result.
#[derive(Clone, Debug)]
pub struct Output {
    /// Where it is.
    pub from: Span,
    /// The sizes of its axes.
    pub dims: Vec<usize>,
}

/// How many numbers a constant has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many in every step.
    Always(usize),
    /// So many for each key.
    OfKeys(usize),
}

/// Work that is divided among threads: how many numbers there are, and how many each part has.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// The numbers of the result.
    pub len: usize,
    /// Those of a part; the last one may have fewer.
    pub part: usize,
}

/// A step of decoding as a list of instructions.
#[derive(Debug, Default)]
pub struct Program {
    /// In the order in which they are done.
    pub work: Vec<Work>,
    /// The sizes of the slots.
    pub slots: Vec<usize>,
    /// Parameters that are operands.
    pub parameters: Vec<Vec<f32>>,
    /// The indices of rows, each with the number of rows of its table.
    pub indices: Vec<(Index, usize)>,
    /// The constants of the plan that are read as numbers, by their index.
    pub constants: Vec<(usize, Size)>,
    /// The constants of the plan that are masks.
    pub masks: Vec<usize>,
    /// The constants of the plan that are buckets of distances.
    pub buckets: Vec<usize>,
    /// The tables of biases by distance.
    pub tables: Vec<Lookup>,
    /// Keys and values that do not grow.
    pub held: Vec<Held>,
    /// Masks of those keys.
    pub held_masks: Vec<Vec<u8>>,
    /// What is divided among threads.
    pub shared: Vec<Shared>,
    /// What is appended to each buffer of the cache.
    pub appended: Vec<Option<Span>>,
    /// The results.
    pub outputs: Vec<Output>,
    /// The bytes of all weights that are multiplied.
    pub bytes: usize,
}

/// Whether an input is what a program reads: the ids of tokens.
pub fn is_tokens(input: &Input) -> bool {
    input.ty.dtype == crate::ir::DType::Int && input.ty.shape.len() == 2 && !input.memory && !input.keep
}
