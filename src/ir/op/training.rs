//! What a training step keeps of an op: its entries on autodiff's tape.
//!
//! The figures are those of burn's composed ops under autodiff (0.22.1), measured on Flex with a heap that
//! counts. Attention is composed there while training, so its scores `[B,H,T,K]` are kept.

/// What comes of an op in a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Training {
    /// What comes of the member that it runs.
    Member,
    /// Results that have no gradient, each in memory of its own.
    Table,
    /// A view of its first input that is there.
    View(Passing),
    /// Values that are computed one after the other.
    Computed {
        /// The values.
        entries: Vec<Entry>,
        /// For each result of the op, which of the values it is.
        results: Vec<usize>,
    },
}

/// A value that is computed into memory of its own, and what its gradient needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which result of the op it has the size of.
    pub size_of: usize,
    /// How many times that size it has.
    pub times: u64,
    /// What its gradient goes to.
    pub from: Vec<Operand>,
    /// What is kept for its gradient.
    pub kept: Vec<Operand>,
    /// Further numbers that are kept, in sizes of the value.
    pub own: u64,
    /// Further booleans that are kept, in elements of the value.
    pub flags: u64,
    /// How the gradient is passed on.
    pub passing: Passing,
    /// Numbers that the gradient needs at once, what it makes included, in halves of the value's size; 0 where
    /// that is no more than what it leaves.
    pub needs_halves: u64,
    /// Numbers that computing the value needs for a moment, in sizes of the value.
    pub briefly: u64,
}

/// What a value is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// An input of the op.
    Input(usize),
    /// The parameters of the layer that the op applies.
    Weight,
    /// One of the values before.
    Entry(usize),
}

/// How a gradient is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// As it is, or as a view.
    Shared,
    /// Computed in its place.
    InPlace,
    /// As new numbers.
    Fresh,
    /// As a product of matrices, whose result is there twice for a moment.
    Product,
}

impl Entry {
    /// The op's first result, whose gradient goes to these and needs nothing else.
    pub fn new(passing: Passing, from: impl IntoIterator<Item = Operand>) -> Self {
        let from = from.into_iter().collect();
        Self {
            size_of: 0,
            times: 1,
            from,
            kept: Vec::new(),
            own: 0,
            flags: 0,
            passing,
            needs_halves: 0,
            briefly: 0,
        }
    }

    /// The op's first result, whose gradient goes to the first input.
    pub fn of_input(passing: Passing) -> Self {
        Self::new(passing, [Operand::Input(0)])
    }

    /// The op's first result, whose gradient goes to all of that many inputs.
    pub fn of_inputs(passing: Passing, inputs: usize) -> Self {
        Self::new(passing, (0..inputs).map(Operand::Input))
    }

    /// The same, which keeps these for its gradient.
    pub fn keeping(self, kept: impl IntoIterator<Item = Operand>) -> Self {
        Self { kept: kept.into_iter().collect(), ..self }
    }

    /// An op of this one value.
    pub fn alone(self) -> Training {
        Training::Computed { entries: vec![self], results: vec![0] }
    }
}
