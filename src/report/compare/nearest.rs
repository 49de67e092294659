//! The distance between specs, and the known specs in order of it.
//!
//! The distance of two specs is from 0 for the same model to 1 for nothing in common. Two thirds of it come
//! from their structure: the share of their fields that differs. Most of the rest comes from how differently the
//! parameters of their layers are divided among attention, feed-forward parts, and experts that a token does
//! not use, and a little from how many these are. The fields are those of the normal forms, which are compared
//! path by path:
//!
//! - a part or a wiring weighs `PART`, a word such as an activation or whether there is a bias `WORD`, a number
//!   `NUMBER`: parts differ between families, words within a family, and sizes from model to model;
//! - two numbers differ by `1 - smaller / larger`, so that only their ratio matters;
//! - a field or a whole stack that only one of the two has differs with everything in it;
//! - where blocks vary, each is compared with the most similar block of the other spec, and all of them
//!   together weigh as much as one.
//!
//! A field whose value follows from other fields weighs nothing, and neither does one that matters only in
//! training or for the initial values.

use schemars::JsonSchema;
use serde::Serialize;

use super::form::{Fields, Form};
use super::normal::Wirings;
use crate::ir::{Role, Verified};
use crate::report::cost::cost;
use crate::report::parameters::Count;
use crate::spec::ModelSpec;
use crate::spec::block::WIRING;
use crate::spec::phase::Phase;

/// The weight of a part or a wiring.
const PART: f64 = 4.0;
/// The weight of a word.
const WORD: f64 = 2.0;
/// The weight of a number, such as a size.
const NUMBER: f64 = 1.0;
/// The share of the fields in the distance.
const OF_FIELDS: f64 = 2.0 / 3.0;
/// The share of how the parameters are divided.
const OF_SHARES: f64 = 7.0 / 24.0;
/// The share of how many parameters there are, which decides between specs of similar structure: with more,
/// small models of all families would be near each other.
const OF_SIZE: f64 = 1.0 / 24.0;

/// A spec that another one may be close to.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The name under which it is reported, such as `gpt1`.
    pub name: &'a str,
    /// The decoded spec, whose normal form is compared.
    pub spec: &'a ModelSpec,
    /// The graph of `spec`, from which its parameters are counted.
    pub graph: &'a Verified,
}

/// A known spec and its distance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Near {
    /// The name of the known spec.
    pub name: String,
    /// How much the two differ in their fields, and in the number and the division of their parameters: 0 for
    /// the same model, 1 for nothing in common.
    pub distance: f64,
}

/// The specs by their distance from `spec`, nearest first; of equal distance in the order given.
pub fn nearest(spec: &ModelSpec, graph: &Verified, known: &[Known<'_>]) -> Vec<Near> {
    let wirings = Wirings::default();
    let (form, spent) = (wirings.normal(spec), Spent::of(graph));
    let near = |other: &Known<'_>| {
        let fields = differ(&mut Vec::new(), Some(&form), Some(&wirings.normal(other.spec))).share();
        let (shares, size) = spent.distances(&Spent::of(other.graph));
        let distance = OF_FIELDS * fields + OF_SHARES * shares + OF_SIZE * size;
        Near { name: other.name.to_owned(), distance }
    };
    let mut all: Vec<Near> = known.iter().map(near).collect();
    // A stable sort, so that equal distances stay in the order given.
    all.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    all
}

/// How many times as many parameters a model must have to be as far from another one as its size can make it.
const FAR: f64 = 1000.0;

/// The parameters of a model's layers. Embeddings and heads are left out: how large they are depends on the
/// vocabulary.
struct Spent {
    /// Their number.
    all: f64,
    /// The shares that are for attention, for feed-forward parts, and for experts that a token does not use.
    shares: [f64; 3],
}

impl Spent {
    fn of(graph: &Verified) -> Self {
        let parameters = cost(graph).parameters;
        let Count { total: attention, .. } = parameters.of(Role::Attention);
        let Count { total: ffn, active } = parameters.of(Role::Ffn);
        let all = attention.saturating_add(ffn).max(1) as f64;
        Self { all, shares: [attention, active, ffn.saturating_sub(active)].map(|n| n as f64 / all) }
    }

    /// How far apart the shares and the numbers are, each from 0 to 1. Of the numbers the ratio counts.
    fn distances(&self, other: &Self) -> (f64, f64) {
        let apart: f64 = self.shares.iter().zip(other.shares).map(|(a, b)| (a - b).abs()).sum();
        let size = ((self.all / other.all).ln().abs() / FAR.ln()).min(1.0);
        // Shares that add up to 1 differ by at most 2 in total.
        (apart / 2.0, size)
    }
}

/// The weight of some fields, and how much of it is that of differences.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    all: f64,
    differs: f64,
}

impl Weight {
    fn of(all: f64, share: f64) -> Self {
        Self { all, differs: all * share }
    }

    fn and(self, other: Self) -> Self {
        Self { all: self.all + other.all, differs: self.differs + other.differs }
    }

    fn times(self, factor: f64) -> Self {
        Self { all: self.all * factor, differs: self.differs * factor }
    }

    fn share(self) -> f64 {
        if self.all > 0.0 { self.differs / self.all } else { 0.0 }
    }
}

/// Compares what two specs have at one path.
fn differ(keys: &mut Vec<String>, one: Option<&Form>, other: Option<&Form>) -> Weight {
    // A name, dropout and initial values say nothing about how close two architectures are.
    let is_name = matches!(keys.as_slice(), [only] if only == "name");
    if is_name || Phase::of(keys) != Phase::Forward {
        return Weight::default();
    }
    match (one, other) {
        (None, None) => Weight::default(),
        (Some(Form::Each(values)), other) | (other, Some(Form::Each(values))) => each(keys, values, other),
        (Some(Form::Record(a)), Some(Form::Record(b))) => within(keys, Some(a), Some(b)),
        (Some(Form::Part(name, a)), Some(Form::Part(of_other, b))) if name == of_other => {
            Weight::of(PART, 0.0).and(within(keys, Some(a), Some(b)))
        }
        // Of two different parts, the fields with the same name are compared.
        (Some(Form::Part(_, a)), Some(Form::Part(_, b))) => {
            let shared = |fields: &Fields, other: &Fields| -> Fields {
                let both = fields.iter().filter(|(key, _)| other.contains_key(*key));
                both.map(|(key, form)| (key.clone(), form.clone())).collect()
            };
            Weight::of(PART, 1.0).and(within(keys, Some(&shared(a, b)), Some(&shared(b, a))))
        }
        (Some(a @ Form::Word { .. }), Some(b @ Form::Word { .. })) => words(weight_of_word(keys), a, b),
        // The field that it follows from differs, and counts.
        (Some(Form::Word { follows: true, .. }), None) | (None, Some(Form::Word { follows: true, .. })) => {
            Weight::default()
        }
        (Some(form), None) | (None, Some(form)) => match form {
            Form::Word { .. } if number(form).is_some() => Weight::of(NUMBER, 1.0),
            Form::Word { .. } => Weight::of(weight_of_word(keys), 1.0),
            Form::Part(_, fields) => Weight::of(PART, 1.0).and(within(keys, Some(fields), None)),
            Form::Record(fields) => within(keys, Some(fields), None),
            Form::Each(values) => each(keys, values, None),
        },
        // A part against a word: `norm: none` against a norm. Their kinds already differ, so the part's
        // fields do not count in addition.
        (Some(_), Some(_)) => Weight::of(PART, 1.0),
    }
}

/// The weight of a word, which is that of a wiring under the key of one.
fn weight_of_word(keys: &[String]) -> f64 {
    if keys.last().is_some_and(|key| key == WIRING) { PART } else { WORD }
}

/// Compares every field that one of the two has.
fn within(keys: &mut Vec<String>, one: Option<&Fields>, other: Option<&Fields>) -> Weight {
    let more =
        other.into_iter().flat_map(Fields::keys).filter(|key| !one.is_some_and(|f| f.contains_key(*key)));
    let names: Vec<&String> = one.into_iter().flat_map(Fields::keys).chain(more).collect();
    names.into_iter().fold(Weight::default(), |sum, name| {
        keys.push(name.clone());
        let weight = differ(keys, one.and_then(|f| f.get(name)), other.and_then(|f| f.get(name)));
        keys.pop();
        sum.and(weight)
    })
}

/// Compares each of the blocks that vary with the most similar one of the other spec.
fn each(keys: &mut Vec<String>, values: &Fields, other: Option<&Form>) -> Weight {
    let others: Vec<Option<&Form>> = match other {
        Some(Form::Each(others)) => others.values().map(Some).collect(),
        other => vec![other],
    };
    // Blocks may be named and ordered differently, so each is compared with the one that is most similar to
    // it.
    let mut sum = Weight::default();
    for value in values.values() {
        let all = others.iter().map(|other| differ(keys, Some(value), *other));
        let nearest = all.reduce(|a, b| if b.share() < a.share() { b } else { a });
        sum = sum.and(nearest.unwrap_or_default());
    }
    // The mean, so that many kinds of blocks do not weigh more than a single one.
    sum.times(1.0 / values.len().max(1) as f64)
}

fn words(weight: f64, one: &Form, other: &Form) -> Weight {
    // What both derive differs only because something else does, which is counted already.
    if one.follows() && other.follows() {
        return Weight::default();
    }
    match (number(one), number(other)) {
        (Some(a), Some(b)) if a == b => Weight::of(NUMBER, 0.0),
        // A ratio says how much two numbers differ only if they have the same sign.
        (Some(a), Some(b)) if a * b > 0.0 => {
            Weight::of(NUMBER, 1.0 - a.abs().min(b.abs()) / a.abs().max(b.abs()))
        }
        (Some(_), Some(_)) => Weight::of(NUMBER, 1.0),
        (_, _) => {
            let is_same =
                matches!((one, other), (Form::Word { node: a, .. }, Form::Word { node: b, .. }) if a == b);
            Weight::of(weight, if is_same { 0.0 } else { 1.0 })
        }
    }
}

/// The value of a word that is a number.
fn number(form: &Form) -> Option<f64> {
    let Form::Word { node, .. } = form else { return None };
    node.text()?.trim().parse().ok().filter(|n: &f64| n.is_finite())
}
