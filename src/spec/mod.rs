//! The spec: an author's file decoded into types, with all defaults filled in.
//!
//! Here a tree becomes a [`ModelSpec`], which [`crate::lower`] turns into the graph. What is given for the
//! model applies to its stacks, what is given for a stack to its blocks, and what is given for a block to
//! ranges of layers. For that, trees are merged before anything is decoded, so that a field has the same
//! meaning wherever it is given.

pub mod advice;
pub mod block;
mod elsewhere;
pub mod expand;
pub mod explain;
mod idle;
pub mod keys;
pub mod kind;
pub mod layers;
pub mod lets;
pub mod library;
pub mod load;
pub mod model;
pub mod phase;
pub mod reach;
pub mod schema;
mod short;
pub mod sites;
mod spelled;
pub mod stack;
pub mod sweep;
mod unused;
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
use crate::field::value::{Field, SlotDoc};
use crate::parts::{Attention, Ffn, Head, Norm, Position, init, mask, position};
use crate::syntax::merge;
use crate::syntax::tree::Node;

/// The names of the parts of a slot, and what the tables say of it.
type Slot = (&'static [&'static str], fn() -> SlotDoc);

/// The slots of specs.
const SLOTS: [Slot; 8] = [
    (Norm::PARTS, Norm::documentation),
    (Position::PARTS, Position::documentation),
    (Attention::PARTS, Attention::documentation),
    (Ffn::PARTS, Ffn::documentation),
    (Head::PARTS, Head::documentation),
    (init::Distribution::PARTS, init::Distribution::documentation),
    (mask::MaskPart::PARTS, mask::MaskPart::documentation),
    (position::scaling::Scaling::PARTS, position::scaling::Scaling::documentation),
];

/// Whether a word is the name of a part. Merging needs to know this, because one part replaces another as a
/// whole.
pub fn is_part(word: &str) -> bool {
    SLOTS.iter().any(|(parts, _)| parts.contains(&word))
}

/// The only slot that has a part of this name, among those that are keys of a spec or of its parts.
fn slot_of(part: &str) -> Option<SlotDoc> {
    let mut slots = SLOTS.iter().filter(|(parts, _)| parts.contains(&part)).map(|(_, slot)| slot());
    match (slots.next(), slots.next()) {
        (Some(slot), None) => Some(slot),
        (_, _) => None,
    }
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

    /// The slots that have a part. One of an author fits where the parts of feed-forward layers and of attention do; the slot of
    /// experts has some of the former, and implies the same one.
    fn slots_of(&self, part: &str) -> impl Iterator<Item = SlotDoc> {
        let own = [Ffn::documentation, Attention::documentation].into_iter().filter(|_| self.is_own(part));
        SLOTS
            .iter()
            .filter(move |(parts, _)| parts.contains(&part))
            .map(|(_, slot)| slot())
            .chain(own.map(|slot| slot()))
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
        let implied = self.slots_of(part).filter_map(|slot| {
            let implied = slot.parts.iter().find(|p| Some(p.name) == slot.implied)?;
            Some((implied.name, (implied.fields)()))
        });
        let mut implied: Vec<(&'static str, Vec<Field>)> = implied.collect();
        // An empty map says nothing about its part.
        let mut is_empty = true;
        // Read no further than needed, since a map may have very many keys.
        while !implied.is_empty()
            && let Some(key) = keys.next()
        {
            is_empty = false;
            implied.retain(|(_, fields)| fields.iter().any(|field| field.name == key));
        }
        implied.first().filter(|_| !is_empty).map(|(name, _)| *name)
    }

    fn takes(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> bool {
        let keys: Vec<&str> = keys.collect();
        // Where fields without a name imply another part, that would replace this one without a word.
        let names_none = !keys.is_empty() && !keys.iter().any(|key| self.has(key));
        names_none && self.slots_of(part).any(|slot| slot.implied.is_some())
            || self.has_fields(part, &mut keys.into_iter())
    }

    fn has_fields(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> bool {
        let mut keys = keys.peekable();
        // An empty map has no fields.
        if keys.peek().is_none() {
            return false;
        }
        let mut known: Vec<&str> = Vec::new();
        for doc in self.slots_of(part).flat_map(|slot| slot.parts).filter(|doc| doc.name == part) {
            known.extend((doc.fields)().iter().map(|field| field.name));
        }
        let of_library = library::all().iter().filter(|own| own.name == part);
        known.extend(of_library.flat_map(|own| &own.fields).map(|field| field.name.as_str()));
        keys.all(|key| known.contains(&key))
    }

    fn stands_for(
        &self,
        key: &str,
        short: merge::Alone<'_>,
        others: &mut dyn Iterator<Item = &str>,
    ) -> Vec<&'static str> {
        short::stands_for(key, short, others)
    }
}
