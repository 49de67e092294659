//! What values must obey beyond their own kind: the [`Rule`]s of the tables and the fields that must be
//! given.
//!
//! A map of a spec is often merged into another one before anything is decoded, so these hold only where none
//! is: [`super::conditions`] says where that is.

use serde_json::{Map, Value as Json, json};

use super::definitions::{Definitions, own_part};
use super::pieces::{has, not, within};
use crate::field::rule::{Is, Rule, RuleKind};
use crate::field::value::{DefaultDoc, Field, PartDoc, Shape, SlotDoc};

/// How much is known about the fields that a map does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nothing: they may be given elsewhere. Only what is given can be wrong.
    Given,
    /// They have their defaults. Only conditions that [`Scope::Given`] does not include are meant.
    Whole,
}

/// A number divides another one exactly if every power of a prime that divides the first divides the second.
/// These are the powers that the schema asks for: all those up to 64, and of 2 those that are widths of
/// models.
pub const POWERS: &[u64] = &[
    2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37, 41, 43, 47, 49, 53, 59, 61, 64, 128,
    256,
];

/// A schema cannot compare two numbers. For each of these bounds it says that if the larger field is not
/// above the bound, the smaller one is not above it either.
const BOUNDS: &[u64] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192,
    16384, 32768, 65536,
];

/// The lengths of lists that the schema compares.
const LENGTHS: &[usize] = &[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128];

impl Definitions {
    /// What values of a shape must obey, if that is anything.
    pub fn rules(&mut self, shape: Shape, scope: Scope) -> Option<Json> {
        let prefix = match scope {
            Scope::Given => "rules",
            Scope::Whole => "whole",
        };
        match shape {
            Shape::Record(title, fields) => {
                self.if_any(&format!("{prefix}-{title}"), |d| d.record_rules(&fields(), scope))
            }
            Shape::Slot(doc) => {
                let doc = doc();
                self.if_any(&format!("{prefix}-{}", doc.name), |d| d.slot_rules(&doc, scope))
            }
            Shape::List(item, _) => Some(json!({ "items": self.rules(item(), scope)? })),
            Shape::Map(value) => Some(json!({ "additionalProperties": self.rules(value(), scope)? })),
            Shape::Bool
            | Shape::Integer(_)
            | Shape::Number(_)
            | Shape::Text
            | Shape::Texts
            | Shape::Choice(_)
            | Shape::Equation
            | Shape::Part
            | Shape::Any => None,
        }
    }

    /// What a map with these fields must obey.
    pub fn record_rules(&mut self, fields: &[Field], scope: Scope) -> Option<Json> {
        let mut all = Vec::new();
        let mut properties = Map::new();
        for field in fields {
            if let Some(rules) = self.rules((field.shape)(), scope) {
                properties.insert(field.name.to_owned(), rules);
            }
        }
        if !properties.is_empty() {
            all.push(json!({ "properties": properties }));
        }
        if scope == Scope::Whole {
            let required = required(fields);
            if !required.is_empty() {
                all.push(has(&required));
            }
        }
        // Every field of a record refers to all rules of the record.
        let rules = fields.first().map(|f| f.rules).unwrap_or_default();
        all.extend(rules.iter().flat_map(|rule| of_rule(rule, fields, scope)));
        match all.len() {
            0 => None,
            1 => all.pop(),
            _ => Some(json!({ "allOf": all })),
        }
    }

    fn slot_rules(&mut self, slot: &SlotDoc, scope: Scope) -> Option<Json> {
        let mut all = Vec::new();
        let mut properties = Map::new();
        let mut implied = None;
        for part in &slot.parts {
            let Some(rules) = self.part_rules(slot, part, scope) else { continue };
            if Some(part.name) == slot.implied {
                implied = Some(rules.clone());
            }
            properties.insert(part.name.to_owned(), rules);
        }
        if !properties.is_empty() {
            all.push(json!({ "properties": properties }));
        }
        if let Some(implied) = implied {
            // Without the name of a part, the fields are those of the implied one.
            let names = slot.parts.iter().map(|part| has(&[part.name]));
            let names: Vec<Json> = names.chain(slot.takes_own.then(|| own_part(slot))).collect();
            all.push(json!({ "if": { "type": "object", "not": { "anyOf": names } }, "then": implied }));
        }
        if scope == Scope::Whole {
            // A bare name gives no fields.
            let needs = slot.parts.iter().filter(|part| !required(&(part.fields)()).is_empty());
            let needs: Vec<&str> = needs.map(|part| part.name).collect();
            if !needs.is_empty() {
                all.push(not(json!({ "enum": needs })));
            }
        }
        (!all.is_empty()).then(|| json!({ "allOf": all }))
    }

    fn part_rules(&mut self, slot: &SlotDoc, part: &PartDoc, scope: Scope) -> Option<Json> {
        let fields = (part.fields)();
        let prefix = match scope {
            Scope::Given => "rules",
            Scope::Whole => "whole",
        };
        self.if_any(&format!("{prefix}-{}-{}", slot.name, part.name), |d| {
            let rules = d.record_rules(&fields, scope);
            // An empty part gives no fields, not even those that must be given.
            match scope == Scope::Whole && !required(&fields).is_empty() {
                // `rules` is not `None` here: it asks for the fields that must be given.
                true => Some(json!({ "allOf": [rules, { "not": { "type": "null" } }] })),
                false => rules,
            }
        })
    }

    /// A reference to a definition, or `None` if the definition is empty.
    fn if_any(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Option<Json>) -> Option<Json> {
        let reference = self.shared(name, |d| make(d).unwrap_or_default());
        // A definition that is still being made refers to itself, and counts as not empty.
        let is_empty = self.made.get(name).is_some_and(|made| made.as_ref().is_some_and(Json::is_null));
        (!is_empty).then_some(reference)
    }
}

/// The fields that must be given.
pub fn required(fields: &[Field]) -> Vec<&'static str> {
    fields.iter().filter(|f| matches!(f.default, DefaultDoc::Required)).map(|f| f.name).collect()
}

/// A rule in the words of the schema; with [`Scope::Whole`] only the cases where a field has its default.
pub fn of_rule(rule: &Rule, fields: &[Field], scope: Scope) -> Vec<Json> {
    let find = |path: &str| fields.iter().find(|f| f.name == path);
    let (field, other) = (find(rule.field), find(rule.other));
    match rule.kind {
        RuleKind::Never(is) if scope == Scope::Given => vec![not(at(rule.field, &of_value(is)))],
        RuleKind::Never(_) => Vec::new(),
        RuleKind::Excludes(is, so) => {
            let given = |path: &str, is: Is| at(path, &of_value(is));
            let is_absent = |path: &str| not(has(&[path]));
            let clash = |a: Json, b: Json| not(json!({ "allOf": [a, b] }));
            match scope {
                Scope::Given => vec![clash(given(rule.field, is), given(rule.other, so))],
                // Of two defaults at most one can be part of a clash, or the record could not be left empty.
                Scope::Whole if other.is_some_and(|other| other.is_by_default(so)) => {
                    vec![clash(given(rule.field, is), is_absent(rule.other))]
                }
                Scope::Whole if field.is_some_and(|field| field.is_by_default(is)) => {
                    vec![clash(is_absent(rule.field), given(rule.other, so))]
                }
                Scope::Whole => Vec::new(),
            }
        }
        RuleKind::Divides => divides(rule.field, rule.other, scope, (number(field), number(other))),
        RuleKind::AtMost | RuleKind::Below if scope == Scope::Given => {
            at_most(rule.field, rule.other, matches!(rule.kind, RuleKind::Below))
        }
        RuleKind::AsLong if scope == Scope::Given => as_long(rule.field, rule.other),
        RuleKind::AtMost | RuleKind::Below | RuleKind::AsLong => Vec::new(),
    }
}

/// The number that a field is by default, if that is a number.
fn number(field: Option<&Field>) -> Option<u64> {
    match field?.default {
        DefaultDoc::Value(value) => value().text()?.parse().ok(),
        DefaultDoc::Required | DefaultDoc::Absent | DefaultDoc::Formula(_) => None,
    }
}

/// One number divides the other, both named by their paths; the last argument is their defaults.
fn divides(
    divisor: &str,
    whole: &str,
    scope: Scope,
    (divisor_default, whole_default): (Option<u64>, Option<u64>),
) -> Vec<Json> {
    let is_multiple = |q: u64| json!({ "type": "integer", "multipleOf": q });
    let then = |q: u64| if_given(whole, &json!({ "multipleOf": q }));
    match scope {
        Scope::Given => {
            POWERS.iter().map(|q| json!({ "if": at(divisor, &is_multiple(*q)), "then": then(*q) })).collect()
        }
        Scope::Whole => {
            let of_divisor = POWERS.iter().filter(|q| divisor_default.is_some_and(|n| n.is_multiple_of(**q)));
            let of_divisor = of_divisor.map(|q| json!({ "if": not(has(&[divisor])), "then": then(*q) }));
            // Or the whole must be given, since its default is not divisible.
            let of_whole = POWERS.iter().filter(|q| whole_default.is_some_and(|n| !n.is_multiple_of(**q)));
            let of_whole =
                of_whole.map(|q| json!({ "if": at(divisor, &is_multiple(*q)), "then": has(&[whole]) }));
            of_divisor.chain(of_whole).collect()
        }
    }
}

/// One number is not larger than the other, or smaller, both named by their paths.
pub fn at_most(small: &str, large: &str, is_strict: bool) -> Vec<Json> {
    let bound = if is_strict { "exclusiveMaximum" } else { "maximum" };
    let of = |most: &u64| {
        let is_bounded = json!({ "type": "number", "maximum": most });
        json!({ "if": at(large, &is_bounded), "then": if_given(small, &json!({ bound: most })) })
    };
    BOUNDS.iter().map(of).collect()
}

fn as_long(list: &str, other: &str) -> Vec<Json> {
    let of = |n: &usize| {
        let is_long = json!({ "type": "array", "minItems": n, "maxItems": n });
        json!({ "if": at(other, &is_long), "then": if_given(list, &json!({ "minItems": n, "maxItems": n })) })
    };
    LENGTHS.iter().map(of).collect()
}

/// A map with a value like this at the path.
pub fn at(path: &str, value: &Json) -> Json {
    path.rsplit('.').fold(value.clone(), |inner, segment| match segment {
        "*" => json!({ "type": "object", "minProperties": 1, "additionalProperties": inner }),
        name => json!({ "type": "object", "required": [name], "properties": { name: inner } }),
    })
}

/// Anything that does not have another value at the path.
pub fn if_given(path: &str, value: &Json) -> Json {
    path.rsplit('.').fold(value.clone(), |inner, segment| within(segment, inner))
}

/// The values for which a condition of a rule is true.
fn of_value(is: Is) -> Json {
    // A part can be written as its bare name, or as a map with its name as key.
    let named =
        |word: &str| json!({ "anyOf": [{ "const": word }, { "type": "object", "required": [word] }] });
    match is {
        Is::Given => not(json!({ "const": "none" })),
        Is::Absent => json!({ "const": "none" }),
        Is::True => json!({ "const": true }),
        Is::False => json!({ "const": false }),
        Is::Word(word) => named(word),
        Is::Not(word) => not(named(word)),
        Is::Zero => json!({ "const": 0 }),
        Is::NotZero => json!({ "type": "number", "not": { "const": 0 } }),
        Is::Empty => json!({ "type": "array", "maxItems": 0 }),
        Is::NotEmpty => json!({ "type": "array", "minItems": 1 }),
    }
}
