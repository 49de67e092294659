//! How an op computes its result without gradients, where this does not follow from its notes on training.
//!
//! As there, the figures are those of burn 0.22.1 on Flex, measured with an allocator that counts.

/// How an op computes its only result in a forward pass without gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Whether the result is a view of the first input; then nothing else below applies.
    pub is_view: bool,
    /// Which inputs are copied first.
    pub copied: Copied,
    /// Numbers in addition to the result that exist for a moment, in halves of the result's size.
    pub halves: u64,
    /// Whether inputs that nothing else needs are free before these numbers exist.
    pub frees: bool,
    /// Whether the numbers of the result are not in the order of its axes.
    pub is_strided: bool,
}

/// Inputs that are copied before an op reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// None: they are read where they are.
    Nothing,
    /// Those whose numbers are not in the order of their axes.
    OutOfOrder,
    /// Those, and these of the first two, whose axes are put in another order.
    These([bool; 2]),
}

impl Forward {
    /// A result in new memory, for which nothing else is needed.
    pub const NEW: Self =
        Self { is_view: false, copied: Copied::Nothing, halves: 0, frees: false, is_strided: false };
    /// A result in new memory, which is computed from inputs in the order of their axes.
    pub const ORDERED: Self = Self { copied: Copied::OutOfOrder, ..Self::NEW };
    /// A view of the first input, in another order.
    pub const VIEW: Self = Self { is_view: true, is_strided: true, ..Self::NEW };
}
