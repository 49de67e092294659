//! Specs side by side: what differs, what each difference does, what each spec costs.
//!
//! Specs are brought to their normal [`form`], whose places are compared one by one ([`knob`]); each
//! difference between two specs is tried alone on the first ([`effect`]); costs come from [`super::costs`].
//! [`Comparison`] is plain data that every output is written from: [`text`] for a terminal, `export` for
//! csv and markdown, JSON as it stands. [`condition`] judges costs, [`nearest`] orders known specs. What only
//! running shows, [`timing`] and [`learning`], is added to it by whoever has run the models.

pub mod condition;
pub mod effect;
mod export;
pub mod form;
pub mod knob;
pub mod learning;
pub mod nearest;
pub mod text;
pub mod timing;

use serde::Serialize;

use super::cost::cost;
use super::costs::{Costs, Scene};
use crate::ir::{ModelKind, Verified};
use crate::spec::ModelSpec;
use effect::{Effect, Found};
use form::{Form, Wirings};
use knob::Knob;
use learning::Learning;
use timing::Timing;

/// A spec that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// What it is called beside others.
    pub name: &'a str,
    /// The spec.
    pub spec: &'a ModelSpec,
    /// Its graph.
    pub graph: &'a Verified,
}

/// Specs side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// At what costs are measured.
    pub scene: Scene,
    /// The specs; the first is what others are compared with.
    pub models: Vec<Model>,
    /// Where they differ, in reading order.
    pub knobs: Vec<Turned>,
    /// How long they take, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// What they learned, where they were trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning: Option<Learning>,
}

/// One of the specs.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ModelKind,
    /// The longest sequence it is meant for; none for images.
    pub context: Option<u64>,
    /// What it costs.
    pub costs: Costs,
}

/// A difference and what it does.
#[derive(Clone, Debug, Serialize)]
pub struct Turned {
    /// The difference.
    #[serde(flatten)]
    pub knob: Knob,
    /// What it does alone to the first of two specs; none if it cannot turn alone.
    pub effect: Option<Effect>,
    /// The knob that turns with it for its effect, where it cannot turn alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
}

/// Compares specs. Effects are found for two of them only: of more, each pair would have its own.
pub fn compare(entries: &[Entry<'_>], scene: Scene) -> Comparison {
    let wirings = Wirings::default();
    let forms: Vec<Form> = entries.iter().map(|e| wirings.normal(e.spec)).collect();
    let models: Vec<Model> = entries.iter().map(|e| model(e, &scene)).collect();
    let knobs = knob::knobs(&forms);
    let effects = match (forms.as_slice(), models.first()) {
        ([from, to], Some(first)) => effect::effects(&wirings, (from, to), &knobs, &scene, &first.costs),
        _ => vec![Found::default(); knobs.len()],
    };
    let turned = |(knob, Found { effect, with }): (Knob, Found)| Turned { knob, effect, with };
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
