//! The norms that are kernels.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, ExtensionType};

/// A norm over the last axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Norm {
    /// `(x - mean) / sqrt(variance + eps)`
    Layer {
        /// What is added to the variance.
        eps: f64,
    },
    /// `x / sqrt(mean(x²) + eps)`
    Rms {
        /// What is added to the mean square.
        eps: f64,
    },
}

/// The parameters of a norm over `D` features.
#[derive(ExtensionType)]
pub enum Affine<B: Backend> {
    /// A factor for each feature: `[D]`.
    Weight(FloatTensor<B>),
    /// A factor for each feature, and what is added to it afterwards: both `[D]`.
    Both(FloatTensor<B>, FloatTensor<B>),
}

impl<B: Backend> Affine<B> {
    /// The weight and the bias.
    pub fn parts(self) -> (FloatTensor<B>, Option<FloatTensor<B>>) {
        match self {
            Self::Weight(weight) => (weight, None),
            Self::Both(weight, bias) => (weight, Some(bias)),
        }
    }
}
