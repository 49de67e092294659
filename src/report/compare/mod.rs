//! Compares specs: how they differ, what each difference does, and what each spec costs.
//!
//! Specs are brought into their normal [`form`], which are compared place by place ([`knob`]). Each
//! difference between two specs is applied alone to the first one ([`effect`]). Costs come from
//! [`super::costs`]. [`Comparison`] is plain data from which every output is written: [`text`] for a
//! terminal, `export` for csv and Markdown, and JSON directly. [`condition`] checks costs, [`nearest`]
//! orders known specs by similarity. What only running shows ([`timing`] and [`learning`]) is added by the
//! code that runs the models.

mod brief;
pub mod condition;
pub mod effect;
mod export;
pub mod form;
pub mod knob;
pub mod learning;
pub mod nearest;
pub mod normal;
pub mod text;
pub mod timing;

use schemars::JsonSchema;
use serde::Serialize;

use super::cost::cost;
use super::costs::Costs;
use super::scene::Scene;
use crate::ir::{ModelKind, Verified};
use crate::spec::ModelSpec;
use effect::{Effect, KnobEffect};

use knob::Knob;
use learning::Learning;
use normal::Wirings;
use timing::Timing;

/// A spec that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name in the comparison.
    pub name: &'a str,
    /// The decoded spec, with defaults filled in.
    pub spec: &'a ModelSpec,
    /// The graph of `spec`, from which costs are computed.
    pub graph: &'a Verified,
}

/// The result of comparing specs, as plain data that every output format shows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// The lengths and the element type for which costs are computed.
    pub scene: Scene,
    /// The specs; the others are compared with the first one.
    pub models: Vec<Model>,
    /// Their differences, in reading order.
    pub knobs: Vec<Turned>,
    /// How long they take, if that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// What they learned, if they were trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning: Option<Learning>,
}

/// One of the specs that are compared.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Model {
    /// The name in the comparison.
    pub name: String,
    /// Whether it is a decoder, an encoder, or both.
    pub kind: ModelKind,
    /// The longest sequence it is meant for; none for images.
    pub context: Option<u64>,
    /// Its costs at the lengths and element type of the comparison.
    pub costs: Costs,
}

/// A difference and its effect.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Turned {
    /// What differs, and what each spec has there.
    #[serde(flatten)]
    pub knob: Knob,
    /// What it does alone to the first of two specs; `None` if it cannot be turned alone.
    pub effect: Option<Effect>,
    /// The knob that is turned with it for its effect, if it cannot be turned alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
}

/// Compares specs. Effects are computed only if there are two: with more, each pair would have its own.
pub fn compare(entries: &[Entry<'_>], scene: Scene) -> Comparison {
    let wirings = Wirings::default();
    let specs: Vec<&ModelSpec> = entries.iter().map(|e| e.spec).collect();
    let forms = wirings.comparable(&specs);
    let models: Vec<Model> = entries.iter().map(|e| model(e, &scene)).collect();
    let knobs = knob::knobs(&forms);
    // Costs of the first model are the "before" of every effect, and are measured once.
    let effects = match (forms.as_slice(), models.first()) {
        ([from, to], Some(first)) => effect::effects(&wirings, (from, to), &knobs, &scene, &first.costs),
        _ => vec![KnobEffect::default(); knobs.len()],
    };
    let turned = |(knob, KnobEffect { effect, with }): (Knob, KnobEffect)| Turned { knob, effect, with };
    let knobs = knobs.into_iter().zip(effects).map(turned).collect();
    Comparison { scene, models, knobs, timing: None, learning: None }
}

fn model(entry: &Entry<'_>, scene: &Scene) -> Model {
    let cost = cost(entry.graph);
    Model {
        name: entry.name.to_owned(),
        kind: cost.kind,
        context: cost.has_time.then_some(entry.graph.context),
        costs: Costs::measure(entry.graph, &cost, scene),
    }
}
