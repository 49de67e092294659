//! What attention adds to its scores, and what it hides of them.

use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Backend, ExtensionType};

/// The optional mask and bias of attention.
#[derive(Clone, Debug, ExtensionType)]
pub enum Extra<B: Backend> {
    /// Neither a mask nor a bias.
    Nothing,
    /// A mask, true where a key is hidden: `[B, H, T, K]`.
    Mask(BoolTensor<B>),
    /// A bias, which is added to the scores: `[B, H, T, K]`.
    Bias(FloatTensor<B>),
    /// A mask and a bias.
    Both(BoolTensor<B>, FloatTensor<B>),
}

impl<B: Backend> Extra<B> {
    /// The variant for those of the two that are given.
    pub fn new(mask: Option<BoolTensor<B>>, bias: Option<FloatTensor<B>>) -> Self {
        match (mask, bias) {
            (None, None) => Self::Nothing,
            (Some(mask), None) => Self::Mask(mask),
            (None, Some(bias)) => Self::Bias(bias),
            (Some(mask), Some(bias)) => Self::Both(mask, bias),
        }
    }

    /// The mask and the bias, `None` for what is not given.
    pub fn parts(self) -> (Option<BoolTensor<B>>, Option<FloatTensor<B>>) {
        match self {
            Self::Nothing => (None, None),
            Self::Mask(mask) => (Some(mask), None),
            Self::Bias(bias) => (None, Some(bias)),
            Self::Both(mask, bias) => (Some(mask), Some(bias)),
        }
    }
}
