//! What attention adds to its scores, what it hides of them, the scores of keys that it does not have, and which weights it
//! drops.

use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Backend, ExtensionType};

use super::dropout::Dropout;

/// The optional inputs of attention.
#[derive(Clone, Debug, ExtensionType)]
pub struct Extra<B: Backend> {
    #[extension_type]
    mask: Flags<B>,
    #[extension_type]
    bias: Numbers<B>,
    #[extension_type]
    sinks: Numbers<B>,
    dropout: Option<Dropout>,
}

/// The optional inputs of attention, `None` for what is not given.
pub struct Parts<B: Backend> {
    /// True where a key is hidden, `[B, H, T, K]`.
    pub mask: Option<BoolTensor<B>>,
    /// Added to the scores, `[B, H, T, K]`.
    pub bias: Option<FloatTensor<B>>,
    /// The scores of one more key in each head, whose value is zero, `[H]`.
    pub sinks: Option<FloatTensor<B>>,
    /// Which weights are dropped.
    pub dropout: Option<Dropout>,
}

/// Flags that may be left out.
#[derive(Clone, Debug, ExtensionType)]
enum Flags<B: Backend> {
    /// None are given.
    Absent,
    /// These are given.
    Given(BoolTensor<B>),
}

/// Numbers that may be left out.
#[derive(Clone, Debug, ExtensionType)]
enum Numbers<B: Backend> {
    /// None are given.
    Absent,
    /// These are given.
    Given(FloatTensor<B>),
}

impl<B: Backend> Extra<B> {
    /// A mask, true where a key is hidden: `[B, H, T, K]`; a bias, which is added to the scores: `[B, H, T, K]`; and the
    /// scores of one more key in each head, whose value is zero: `[H]`.
    pub fn new(
        mask: Option<BoolTensor<B>>,
        bias: Option<FloatTensor<B>>,
        sinks: Option<FloatTensor<B>>,
    ) -> Self {
        let given = |numbers: Option<FloatTensor<B>>| numbers.map_or(Numbers::Absent, Numbers::Given);
        let mask = mask.map_or(Flags::Absent, Flags::Given);
        Self { mask, bias: given(bias), sinks: given(sinks), dropout: None }
    }

    /// With dropout of the weights, which only tensors have for which [`super::dropout()`] returns one: other ways to
    /// compute attention do not drop weights.
    pub fn dropping(self, dropout: Option<Dropout>) -> Self {
        Self { dropout, ..self }
    }

    /// What is given.
    pub fn parts(self) -> Parts<B> {
        let given = |numbers| match numbers {
            Numbers::Absent => None,
            Numbers::Given(numbers) => Some(numbers),
        };
        let mask = match self.mask {
            Flags::Absent => None,
            Flags::Given(mask) => Some(mask),
        };
        Parts { mask, bias: given(self.bias), sinks: given(self.sinks), dropout: self.dropout }
    }
}
