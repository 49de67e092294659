//! The ops that depend on the backend, in a form that is the same on all of them. Tests compare the fast ones
//! with these, and `trafoc build --standalone` writes them into a model.

pub mod activated_linear;
pub mod add_norms;
pub mod attention;
pub mod attention_dropout;
pub mod attention_sinks;
pub mod gates;
pub mod gelu;
pub mod gelu_tanh;
pub mod linear;
pub mod look_up;
pub mod norms;
pub mod quick_gelu;
pub mod rotate;
pub mod silu;
pub mod unembed;

// Kernels that are not replaced, where the files of this folder expect them.
pub(crate) use crate::kernel::{attention_weights, single_precision};
