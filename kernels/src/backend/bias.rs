//! The bias of linear layers.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, ExtensionType};

/// The optional bias of a linear layer, `[out]`.
#[derive(ExtensionType)]
pub enum Bias<B: Backend> {
    /// No bias.
    Nothing,
    /// A number that is added to each output.
    Added(FloatTensor<B>),
}

impl<B: Backend> Bias<B> {
    /// The bias, if there is one.
    pub fn new(bias: Option<FloatTensor<B>>) -> Self {
        bias.map_or(Self::Nothing, Self::Added)
    }
}
