//! What a training step keeps of an op: its entries on autodiff's tape.
//!
//! The figures are those of burn 0.22.1 with autodiff, measured on Flex with an allocator that counts.
//! Attention with dropout or additive scores is computed in separate operations, so its scores `[B,H,T,K]` are
//! kept. Any other attention is one operation on Flex, whose gradient computes them once more.

/// What an op keeps and computes in a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Training {
    /// Whatever the member that it runs keeps and computes; nothing if it is a parameter.
    Member,
    /// Results without a gradient, each in its own memory.
    Table,
    /// A view of the first of its inputs that is given.
    View(Passing),
    /// Values that are computed one after the other.
    Computed {
        /// The values, each computed from inputs, weights or earlier ones.
        entries: Vec<Entry>,
        /// For each result of the op, the index of its value.
        results: Vec<usize>,
    },
}

impl Training {
    /// What an op keeps that computes `next` from the result of this one. Where either is not a list of values, it is that of
    /// this one.
    pub fn then(self, next: Self) -> Self {
        let (Self::Computed { mut entries, results }, Self::Computed { entries: after, results: found }) =
            (self.clone(), next)
        else {
            return self;
        };
        let (first, before) = (results.first().copied().unwrap_or(0), entries.len());
        let moved = |operand: &Operand| match operand {
            Operand::Input(_) => Operand::Entry(first),
            Operand::Weight => Operand::Weight,
            Operand::Entry(at) => Operand::Entry(at.saturating_add(before)),
        };
        entries.extend(after.iter().map(|entry| Entry {
            from: entry.from.iter().map(moved).collect(),
            kept: entry.kept.iter().map(moved).collect(),
            copied: entry.copied.iter().map(moved).collect(),
            ..entry.clone()
        }));
        Self::Computed { entries, results: found.iter().map(|at| at.saturating_add(before)).collect() }
    }
}

/// A value that is computed into its own memory, and what its gradient needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The index of the op's result whose size is the unit of the value's size.
    pub size_of: usize,
    /// The size of the value, in sizes of that result.
    pub times: u64,
    /// The operands to which its gradient is passed on.
    pub from: Vec<Operand>,
    /// The operands that are kept until its gradient is computed.
    pub kept: Vec<Operand>,
    /// The operands of which a copy, in another order, is kept until its gradient is computed.
    pub copied: Vec<Operand>,
    /// Whether each of two operands is kept only for the gradient of the other one.
    pub for_other: bool,
    /// Other numbers that are kept, in sizes of the value.
    pub own: u64,
    /// Other booleans that are kept: their number for each element of the value.
    pub flags: u64,
    /// How the gradient is passed on.
    pub passing: Passing,
    /// Numbers that exist at the same time while the gradient is computed, including its result, in halves of
    /// the value's size; 0 if there are none in addition to the result.
    // In halves, because a rotation needs two and a half sizes.
    pub needs_halves: u64,
    /// Numbers that exist at the same time while the gradient is computed, in sizes of the first operand.
    pub needs_inputs: u64,
    /// Numbers that are needed only while the value is computed, in sizes of the value.
    pub briefly: u64,
}

/// What a value is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// An input of the op.
    Input(usize),
    /// The parameters of the layer that the op applies.
    Weight,
    /// An earlier value of the same op.
    Entry(usize),
}

/// How a gradient is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It is passed on unchanged, or as a view.
    Shared,
    /// Each operand gets a view of a part of it.
    Parts,
    /// The new gradient overwrites it, if nothing else needs it.
    InPlace,
    /// The new gradient is in new memory.
    Fresh,
    /// The value and the new gradients are matrix products, and of each two copies exist for a moment.
    Product,
}

impl Entry {
    /// The op's first result, whose gradient is passed on to these operands and keeps nothing.
    pub fn new(passing: Passing, from: impl IntoIterator<Item = Operand>) -> Self {
        let from = from.into_iter().collect();
        Self {
            size_of: 0,
            times: 1,
            from,
            kept: Vec::new(),
            copied: Vec::new(),
            for_other: false,
            own: 0,
            flags: 0,
            passing,
            needs_halves: 0,
            needs_inputs: 0,
            briefly: 0,
        }
    }

    /// The op's first result, whose gradient is passed on to the first input and keeps nothing.
    pub fn of_input(passing: Passing) -> Self {
        Self::new(passing, [Operand::Input(0)])
    }

    /// The op's first result, whose gradient is passed on to the first `inputs` inputs and keeps nothing.
    pub fn of_inputs(passing: Passing, inputs: usize) -> Self {
        Self::new(passing, (0..inputs).map(Operand::Input))
    }

    /// The same value, for whose gradient these operands are kept.
    pub fn keeping(self, kept: impl IntoIterator<Item = Operand>) -> Self {
        Self { kept: kept.into_iter().collect(), ..self }
    }

    /// An op that computes only this value.
    pub fn alone(self) -> Training {
        Training::Computed { entries: vec![self], results: vec![0] }
    }
}
