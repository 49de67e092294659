//! An approximation of gelu by the logistic function (Hendrycks and Gimpel 2016).

use burn::prelude::*;

use crate::backend::{self, Activation};

/// `x sigmoid(1.702 x)`, element by element, as in CLIP.
pub fn quick_gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    backend::activate(x, Activation::QuickGelu)
}
