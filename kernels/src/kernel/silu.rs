//! Silu, also called swish (Hendrycks and Gimpel 2016; Ramachandran et al. 2017).

use burn::prelude::*;

use crate::backend::{self, Activation};

/// `x sigmoid(x)`, element by element: the activation of the gate in SwiGLU.
pub fn silu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    backend::activate(x, Activation::Silu)
}
