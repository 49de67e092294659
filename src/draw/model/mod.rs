//! The picture of an architecture, from its graph.
//!
//! [`outline`] turns a verified graph into what a figure of a paper shows: a column for the encoder and
//! one for the decoder, each a flow of boxes with the blocks of a stack folded into frames. [`layout`]
//! gives every box a place, [`svg`] draws it, [`dot`] and [`mermaid`] write the same outline for other
//! programs. [`difference`] says which boxes of two outlines are not alike.
//!
//! The outline is the only thing that looks at ops. It is as large as the different blocks are, whatever
//! the number of layers.

pub mod difference;
pub mod dot;
pub mod facts;
pub mod layout;
pub mod mermaid;
pub mod outline;
pub mod page;
pub mod svg;

pub use difference::{Change, Changes, changes};
pub use outline::{Outline, outline};
pub use svg::{picture, side_by_side};
