//! The short forms that fields accept in addition to their shapes, for the schema and for explanations.

use crate::field::value::{Field, Shape};
use crate::parts::attention::core::{BiasFields, DropoutFields, bias_fields};
use crate::parts::init::{Distribution, InitFields};
use crate::syntax::merge::Alone;

/// What may be written in place of a field's own shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// `true` or `false`, for all keys of a map at once.
    Truth,
    /// One probability for all keys of a map.
    Probability,
    /// A norm, in place of `true` or `false`.
    Norm,
    /// A distribution, in place of the map that has it among others.
    Distribution,
}

impl Short {
    /// The short form of a field; `is_of_spec` if it is a key of the spec itself.
    pub fn of(field: &Field, is_of_spec: bool) -> Option<Self> {
        let is_record = matches!((field.shape)(), Shape::Record(..));
        match field.name {
            "bias" if is_record => Some(Self::Truth),
            "dropout" if is_record => Some(Self::Probability),
            "final_norm" => Some(Self::Norm),
            "init" if is_of_spec => Some(Self::Distribution),
            _ => None,
        }
    }

    /// What it is, after "or" in a sentence on what the field takes.
    pub fn wanted(self) -> &'static str {
        match self {
            Self::Truth => "`true` or `false` for all of them",
            Self::Probability => "one number for all of them",
            Self::Norm => "a norm of its own, as `norm` takes it",
            Self::Distribution => "a distribution alone, such as `{normal: {std: 0.02}}`",
        }
    }
}

/// The fields of a key's map that have the value `short` where that is given in the place of the map, and a map with the keys
/// `others` is merged with it; empty if it is no short form.
pub fn stands_for(key: &str, short: Alone<'_>, others: &mut dyn Iterator<Item = &str>) -> Vec<&'static str> {
    // Most keys have no short form, and a map may have very many others.
    if !matches!(key, "bias" | "dropout" | "init") {
        return Vec::new();
    }
    let others: Vec<&str> = others.collect();
    let names = |fields: Vec<Field>| fields.iter().map(|field| field.name).collect::<Vec<_>>();
    let (all, some) = match (key, short) {
        // `qkv` is short for the first three.
        ("bias", Alone::Word(_)) if others.contains(&"qkv") => (names(bias_fields()), vec!["qkv", "out"]),
        ("bias", Alone::Word(_)) => (names(bias_fields()), names(BiasFields::fields())),
        ("dropout", Alone::Word(_)) => (names(DropoutFields::fields()), names(DropoutFields::fields())),
        ("init", Alone::Word(word) | Alone::Key(word)) if Distribution::PARTS.contains(&word) => {
            (names(InitFields::fields()), vec!["weights"])
        }
        (_, Alone::Word(_) | Alone::Key(_)) => return Vec::new(),
    };
    // A map of something else is not merged with what the short form stands for.
    if others.iter().any(|other| all.contains(other)) { some } else { Vec::new() }
}
