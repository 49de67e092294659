//! How parts and specs say which fields they have: typed values, records, slots, and decoding them
//! from a tree with every fault reported.
//!
//! Adding a field is a line in a `record!`; adding a kind of value is an implementation of
//! [`value::Value`].

pub mod context;
pub mod record;
pub mod value;

pub use context::Context;
pub use record::Places;
pub use value::{Count, Positive, Probability, Real, Size, Value};
