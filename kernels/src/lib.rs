//! Transformer ops that take more than one call of burn, as functions on tensors.
//!
//! The interpreter of trafoc and the models that it emits call the same functions, so both compute the same
//! bits. Shapes: `B` sequences, `T` positions, `P` earlier positions in a cache, `H` heads, `D` features, `K`
//! keys, `V` tokens of a vocabulary.
//!
//! Each file in `kernel` contains one op or one family of ops. It imports only burn, other files of that
//! folder (through `super`), and `backend`, which contains the ops that are computed differently on different
//! backends. On burn's own CPU backend these are functions of `cpu`, which knows nothing of burn.
//! [`reference`] contains the same ops in a form that does not depend on the backend.
//!
//! A backend must be enabled as a feature of this crate: an op that depends on the backend panics if its
//! tensors belong to any other one.

#[cfg(feature = "ops")]
mod backend;
#[cfg(feature = "flex")]
mod cpu;
#[cfg(feature = "ops")]
mod kernel;
#[cfg(feature = "ops")]
pub mod reference;
#[cfg(feature = "flex")]
pub mod row;
pub mod source;

#[cfg(feature = "ops")]
pub use kernel::*;
