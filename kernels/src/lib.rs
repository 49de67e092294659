//! Ops of transformers that are more than one call of burn, as functions on plain tensors.
//!
//! trafoc's interpreter and the models that trafoc emits call the same functions, so both compute the same bits.
//! Shapes: `B` sequences, `T` positions, `P` of them in a cache, `H` heads, `D` features, `K` keys, `V` words.
//! Each file below `kernel` is one op or one family of ops. It uses burn, the files next to it by `super`, and
//! `backend` for ops that are computed differently on different backends. [`reference`] has those ops in a form
//! that is the same on all backends.
//!
//! A backend must be among the features of this crate: an op that depends on the backend panics on a tensor of any
//! other.

#[cfg(feature = "ops")]
mod backend;
#[cfg(feature = "ops")]
mod kernel;
#[cfg(feature = "ops")]
pub mod reference;
pub mod source;

#[cfg(feature = "ops")]
pub use kernel::*;
