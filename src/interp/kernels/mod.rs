//! Ops that are more than one call of burn, as functions on plain tensors.
//!
//! Each file depends on burn alone and could stand in a model written by hand: the emitter puts its text
//! into the models it writes. So the interpreter and emitted code compute the same numbers by
//! construction. A file begins with its `//!` lines and its `use` lines; items follow.

pub mod alibi;
pub mod append;
pub mod attention;
pub mod attention_weights;
pub mod dropout;
pub mod experts;
pub mod gelu;
pub mod heads;
pub mod linear;
pub mod masks;
pub mod norms;
pub mod pool;
pub mod positions;
pub mod relative_buckets;
pub mod rotary;
pub mod route;
pub mod sinusoid;
pub mod unembed;
