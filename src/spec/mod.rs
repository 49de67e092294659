//! The spec: what an author's file says, decoded, with every default filled in and every part an enum.
//!
//! A tree becomes a [`ModelSpec`] here; [`crate::lower`] turns that into the graph. Configuration flows
//! down by merging trees, model to stack to named block to range of layers, before anything is decoded,
//! so a field means the same wherever it is given.

pub mod advice;
pub mod block;
pub mod expand;
pub mod explain;
pub mod keys;
pub mod kind;
pub mod layers;
pub mod lets;
pub mod load;
pub mod model;
pub mod schema;
pub mod stack;
pub mod sweep;
pub mod version;
pub mod weights;
pub mod wiring;

pub use block::{Block, Instance, Part};
pub use model::ModelSpec;
pub use stack::{Segment, Stack};

use crate::parts::{Attention, Ffn, Head, Norm, Position, init, mask, position};

/// Whether a word is the name of a part, which merging must know: one part replaces another.
pub fn is_part(word: &str) -> bool {
    [
        Norm::PARTS,
        Position::PARTS,
        Attention::PARTS,
        Ffn::PARTS,
        Head::PARTS,
        init::Distribution::PARTS,
        mask::MaskPart::PARTS,
        position::scaling::Scaling::PARTS,
    ]
    .iter()
    .any(|parts| parts.contains(&word))
}
