//! The effect of one knob alone: a spec in which only that knob is turned is compiled and measured again.
//!
//! Some knobs cannot be turned alone (a `d_model` that the heads do not divide); these have no effect of
//! their own.

use schemars::JsonSchema;
use serde::Serialize;

use super::form::{Fields, Form};
use super::knob::{FOLLOWS, Knob};
use super::normal::Wirings;
use crate::diag::Sink;
use crate::ir::Verified;
use crate::lower::lower;
use crate::report::cost::cost;
use crate::report::costs::{Costs, Name};
use crate::report::scene::Scene;

/// What turning a knob changes; without any costs, turning it changes none of those that are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// The costs that change, in the order of tables.
    pub costs: Vec<Change>,
}

/// A cost of the first spec before and after a knob is turned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The name of the cost.
    pub cost: Name,
    /// The cost of the first spec as it is.
    #[serde(serialize_with = "crate::report::serialize_count")]
    pub from: u128,
    /// The cost of the first spec with the knob turned.
    #[serde(serialize_with = "crate::report::serialize_count")]
    pub to: u128,
}

/// The costs that an effect reports. They are few because an effect is written in one line.
const SHOWN: [Name; 4] = [Name::Params, Name::Active, Name::FlopsPerToken, Name::KvPerToken];

impl Effect {
    /// The differences between the costs before and after.
    pub fn between(before: &Costs, after: &Costs) -> Effect {
        let change = |cost: &Name| Change { cost: *cost, from: before.of(*cost), to: after.of(*cost) };
        // If all parameters are active, the two parameter counts are equal and one is enough.
        let dense = |c: &Costs| c.of(Name::Params) == c.of(Name::Active);
        let is_reported =
            |c: &Change| c.from != c.to && !(c.cost == Name::Active && dense(before) && dense(after));
        Effect { costs: SHOWN.iter().map(change).filter(is_reported).collect() }
    }
}

/// The spec of a form in which some knobs are turned to what the spec with the index `to` has; `None` if
/// the result is not a valid spec.
pub fn turned(wirings: &Wirings, from: &Form, target: &Form, knobs: &[&Knob], to: usize) -> Option<Verified> {
    // Turned in the normal form and not in the graph, so that everything that follows from the knob follows
    // again.
    let mut form = from.clone();
    for knob in knobs {
        turn(&mut form, target, knob, to);
        // The table shows a number, also where the other spec leaves it to a formula. Of the first spec's fields, the formula
        // would make another one.
        let is_number = knob.values.get(to).is_none_or(|value| value.as_deref() != Some(FOLLOWS));
        for place in knob.places.iter().filter(|_| is_number) {
            if let Some(shown) = form.get(&place.keys).map(Form::given) {
                form.put(&place.keys, Some(shown));
            }
        }
    }
    let spec = wirings.decode(&form)?;
    // Why the turned spec is not valid does not matter: then the knob cannot be turned alone.
    lower(&spec, &mut Sink::new()).ok().flatten()
}

/// Turns a knob to what the spec with the index `to`, whose form is `target`, has.
pub fn turn(form: &mut Form, target: &Form, knob: &Knob, to: usize) {
    for place in &knob.places {
        let value = place.forms.get(to).cloned().flatten();
        if let (Some(Form::Each(_)), Some(stack)) = (&value, place.keys.first()) {
            // A value that differs between the blocks of a pattern needs the pattern.
            for key in ["pattern", "runs"] {
                let at = [stack.clone(), key.to_owned()];
                form.put(&at, target.get(&at).cloned());
            }
        }
        let value = match (knob.is_part, value, form.get(&place.keys)) {
            (true, Some(Form::Part(name, new)), Some(Form::Part(_, old))) => {
                // Fields that both parts share have knobs of their own and are kept, except those that are
                // derived from other fields.
                let kept = |(key, value): (&String, &Form)| {
                    let own = old.get(key).filter(|old| !old.follows()).unwrap_or(value);
                    (key.clone(), own.clone())
                };
                Some(Form::Part(name, new.iter().map(kept).collect::<Fields>()))
            }
            (_, value, _) => value,
        };
        form.put(&place.keys, value);
    }
}

/// The effect of a knob, with the knob that has to be turned with it if it cannot be turned alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnobEffect {
    /// The effect; `None` if no other knob makes it possible to turn this one.
    pub effect: Option<Effect>,
    /// The path of the other knob.
    pub with: Option<String>,
}

/// The effect of each knob on the costs of the first spec when it takes the value of the second.
pub fn effects(
    wirings: &Wirings,
    forms: (&Form, &Form),
    knobs: &[Knob],
    scene: &Scene,
    before: &Costs,
) -> Vec<KnobEffect> {
    let try_knobs = |together: &[&Knob]| {
        let graph = turned(wirings, forms.0, forms.1, together, 1)?;
        Some(Effect::between(before, &Costs::measure(&graph, &cost(&graph), scene)))
    };
    // A field that follows from others changes with them and is not turned itself.
    let given = |knob: &&Knob| !knob.follows;
    let alone: Vec<Option<Effect>> =
        knobs.iter().map(|knob| given(&knob).then(|| try_knobs(&[knob])).flatten()).collect();
    let of = |(knob, effect): (&Knob, Option<Effect>)| {
        if effect.is_some() || knob.follows {
            return KnobEffect { effect, with: None };
        }
        // Every attempt compiles and measures a model, so only neighbours are tried, and at most one of them
        // together with the knob.
        let others = knobs.iter().filter(given).filter(|other| other.path != knob.path);
        let pair =
            others.filter(|o| is_near(o, knob)).find_map(|other| Some((try_knobs(&[knob, other])?, other)));
        match pair {
            Some((effect, other)) => KnobEffect { effect: Some(effect), with: Some(other.path.clone()) },
            None => KnobEffect::default(),
        }
    };
    knobs.iter().zip(alone).map(of).collect()
}

/// Whether turning one knob may make it possible to turn the other: they are in the same stack, or one is
/// above a stack.
fn is_near(a: &Knob, b: &Knob) -> bool {
    let stack =
        |knob: &Knob| knob.places.first().filter(|p| p.keys.len() > 1).and_then(|p| p.keys.first().cloned());
    match (stack(a), stack(b)) {
        (Some(a), Some(b)) => a == b,
        (None, _) | (_, None) => true,
    }
}
