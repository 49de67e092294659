//! The spec: an author's file decoded into types, with all defaults filled in.
//!
//! Here a tree becomes a [`ModelSpec`], which [`crate::lower`] turns into the graph. What is given for the
//! model applies to its stacks, what is given for a stack to its blocks, and what is given for a block to
//! ranges of layers. For that, trees are merged before anything is decoded, so that a field has the same
//! meaning wherever it is given.

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
pub mod phase;
pub mod schema;
pub mod sites;
pub mod stack;
pub mod sweep;
pub mod used;
pub mod values;
pub mod version;
pub mod weights;
pub mod wiring;

pub use block::{Block, Instance, Part};
pub use model::ModelSpec;
pub use stack::{Segment, Stack};

use crate::parts::{Attention, Ffn, Head, Norm, Position, init, mask, position};
use crate::syntax::merge;

/// Whether a word is the name of a part. Merging needs to know this, because one part replaces another as a
/// whole.
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

/// The parts of specs, for merging.
#[derive(Clone, Copy, Debug)]
pub struct Parts;

impl merge::Parts for Parts {
    fn has(&self, word: &str) -> bool {
        is_part(word)
    }

    fn implied(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> Option<&'static str> {
        let slot = if Attention::PARTS.contains(&part) {
            Attention::documentation()
        } else if Ffn::PARTS.contains(&part) {
            // The slot of experts has some of these parts, and implies the same one.
            Ffn::documentation()
        } else {
            return None;
        };
        let implied = slot.parts.iter().find(|p| Some(p.name) == slot.implied)?;
        let fields = (implied.fields)();
        let mut keys = keys.peekable();
        // An empty map says nothing about its part.
        keys.peek()?;
        keys.all(|key| fields.iter().any(|field| field.name == key)).then_some(implied.name)
    }
}
