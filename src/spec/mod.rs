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
pub mod library;
pub mod load;
pub mod model;
pub mod phase;
pub mod schema;
mod short;
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

use std::collections::BTreeSet;

use crate::field::Context;
use crate::field::definition::names_in;
use crate::parts::{Attention, Ffn, Head, Norm, Position, init, mask, position};
use crate::syntax::merge;
use crate::syntax::tree::Node;

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

/// The parts of specs, for merging: those of the catalogue and of the library, and those that the specs define.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    own: BTreeSet<String>,
}

impl Parts {
    /// Those that every spec has, and those that these trees define.
    pub fn of(trees: &[&Node]) -> Self {
        Self { own: trees.iter().flat_map(|tree| names_in(tree)).map(str::to_owned).collect() }
    }

    /// Those that every spec has, and those of the spec that is decoded.
    pub fn known(cx: &Context<'_>) -> Self {
        Self { own: cx.definitions().names().into_iter().map(str::to_owned).collect() }
    }

    fn is_own(&self, word: &str) -> bool {
        self.own.contains(word) || library::has(word)
    }
}

impl merge::Parts for Parts {
    fn has(&self, word: &str) -> bool {
        is_part(word) || self.is_own(word)
    }

    fn implied(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> Option<&'static str> {
        let slot = if Attention::PARTS.contains(&part) {
            Attention::documentation()
        } else if Ffn::PARTS.contains(&part) || self.is_own(part) {
            // The slot of experts has some of these parts, and implies the same one. It also takes an author's.
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

    fn takes(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> bool {
        let keys: Vec<&str> = keys.collect();
        // Their slots give fields without a name to one part, which would replace this one without a word.
        let is_replaced = Attention::PARTS.contains(&part) || Ffn::PARTS.contains(&part) || self.is_own(part);
        let names_none = !keys.is_empty() && !keys.iter().any(|key| self.has(key));
        is_replaced && names_none || self.has_fields(part, &mut keys.into_iter())
    }

    fn has_fields(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> bool {
        let slots = [
            Norm::documentation(),
            Position::documentation(),
            Attention::documentation(),
            Ffn::documentation(),
            Head::documentation(),
        ];
        let docs = slots.iter().flat_map(|slot| &slot.parts).filter(|doc| doc.name == part);
        let mut known: Vec<String> =
            docs.flat_map(|doc| (doc.fields)()).map(|field| field.name.to_owned()).collect();
        let of_library = library::all().iter().filter(|known| known.name == part);
        known.extend(of_library.flat_map(|part| &part.fields).map(|field| field.name.clone()));
        let mut keys = keys.peekable();
        // An empty map has no fields.
        keys.peek().is_some() && keys.all(|key| known.iter().any(|name| name == key))
    }
}
