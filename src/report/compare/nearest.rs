//! Finds the known specs that are most similar to a given one.
//!
//! The distance of two specs is the sum of their knobs' weights. A different word, part or wiring weighs as
//! much as four different numbers, because sizes vary within a family and parts between families. Knobs
//! that matter only in training or for initial values weigh nothing.

use serde::Serialize;

use super::form::{Form, Wirings};
use super::knob::{Class, Knob, knobs};
use crate::spec::ModelSpec;

/// A known spec and its distance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Near {
    /// The name of the spec.
    pub name: String,
    /// The distance; 0 for the same model.
    pub distance: u64,
}

/// The specs by their distance from `spec`, nearest first; equal distances keep the given order.
pub fn nearest(spec: &ModelSpec, known: &[(&str, &ModelSpec)]) -> Vec<Near> {
    let wirings = Wirings::default();
    let form = wirings.normal(spec);
    let away = |(name, other): &(&str, &ModelSpec)| {
        let pair = [wirings.normal(other), form.clone()];
        Near { name: (*name).to_owned(), distance: knobs(&pair).iter().map(weight).sum() }
    };
    let mut all: Vec<Near> = known.iter().map(away).collect();
    all.sort_by_key(|near| near.distance);
    all
}

fn weight(knob: &Knob) -> u64 {
    let is_number = |form: &Form| match form {
        Form::Word { node, .. } => node.text().is_some_and(|text| text.trim().parse::<f64>().is_ok()),
        Form::Part(..) | Form::Record(_) | Form::Each(_) => false,
    };
    let mut forms = knob.places.iter().flat_map(|place| &place.forms);
    match (knob.class, knob.follows) {
        (Class::Training | Class::Init, _) | (_, true) => 0,
        (Class::Forward, false) if forms.all(|form| form.as_ref().is_some_and(is_number)) => 1,
        (Class::Forward, false) => 4,
    }
}
