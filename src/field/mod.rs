//! Declares the fields of parts, specs and recipes: typed values, records and slots, decoded from a tree with
//! every error reported.
//!
//! To add a field, add a line in a `record!`; to add a kind of value, implement [`value::Value`].

pub mod as_setting;
pub mod context;
pub mod definition;
pub mod elsewhere;
pub mod factor;
mod indexed;
pub mod instead;
pub mod mend;
pub mod mend_part;
mod missing;
mod moved;
pub mod name_in_slot;
mod part_of;
mod places;
mod quoted;
pub mod real_text;
pub mod record;
mod replaced;
pub mod rule;
pub mod seek;
pub mod single;
mod taken;
pub mod unread;
pub mod value;
pub mod words;

pub use context::Context;
pub use factor::Factor;
pub use record::Places;
pub use value::{Count, Fraction, NotNegative, Positive, Probability, Real, Share, Size, Value};
