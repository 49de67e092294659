//! The picture of an architecture, from its graph.
//!
//! [`outline()`] turns a verified graph into what a figure in a paper shows: a column for the encoder and one
//! for the decoder, each a flow of boxes in which the blocks of a stack are folded into frames. [`layout`]
//! computes the position of every box and [`wires`] the lines between them, [`svg`] draws them, and [`dot`] and [`mermaid`] write the same
//! outline for other programs. [`difference`] finds the boxes that differ between two outlines.
//!
//! Only the outline looks at ops. Its size is that of the different blocks and does not depend on the
//! number of layers.

pub mod build;
pub mod difference;
pub mod dot;
pub mod facts;
pub mod layout;
pub mod mermaid;
pub mod outline;
pub mod page;
mod sums;
pub mod svg;
pub mod wires;

pub use build::outline;
pub use difference::{Change, Changes, changes};
pub use outline::Outline;
pub use svg::{picture, side_by_side};
