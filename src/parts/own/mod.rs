//! Parts that a spec defines itself, by an equation over layers and ops.
//!
//! [`vocabulary`] lists the words that such an equation may call; [`definitions`] reads and checks the equations,
//! with what [`calls`] finds in them; [`instance`] gives the fields of one use their values, from which [`plan`]
//! results; [`lower`] turns a plan into nodes, with `heads` for attention, `pairs` for its pieces, `product` for products over axes, `time` for what
//! reads earlier positions, `shared` for what all layers have in common, `losses` for what training adds and `empty` for sums that are 0 at padding, and [`check`] does that once
//! before the spec is accepted, to check shapes. To add a word, add a row to the vocabulary, and an arm where the compiler asks for one.

mod amount;
mod axes;
pub mod calls;
pub mod check;
pub mod definitions;
mod empty;
mod experts;
mod fault;
pub mod fields;
mod heads;
pub mod instance;
mod losses;
pub mod lower;
pub mod mistakes;
mod pairs;
pub mod plan;
mod product;
mod shared;
pub mod slots;
mod text;
mod time;
mod value;
pub mod vocabulary;

pub use plan::OwnPart;
