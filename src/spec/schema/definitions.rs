//! Definitions of records and slots, to which the rest of a schema refers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::super::explain::tidy;
use super::super::library;
use super::super::wiring::PartKind;
use super::pieces::not;
use super::texts::{self, Own};
use crate::field::definition::{Definition, OwnDefault, OwnField};
use crate::field::value::{DefaultDoc, Field, MAX_SIZE, PartDoc, Range, Shape, SlotDoc, Value};
use crate::parts::StackNorm;
use crate::parts::activation::Activation;
use crate::parts::attention::Cross;
use crate::spec::short::Short;
use crate::syntax::tree::{Kind, Node};

/// Definitions of records and slots, each created once; `None` while it is being created.
#[derive(Default)]
pub struct Definitions {
    /// The definitions by name.
    pub made: BTreeMap<String, Option<Json>>,
}

impl Definitions {
    /// The whole schema: its root and what that refers to.
    pub fn finish(self, title: &str, doc: &str, root: Map<String, Json>) -> Json {
        let mut top = Map::new();
        top.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        top.insert("title".to_owned(), json!(format!("trafoc {title}")));
        top.insert("description".to_owned(), json!(tidy(doc)));
        top.extend(root);
        // `if_any` leaves null where a definition would be empty.
        let made =
            self.made.into_iter().filter_map(|(name, made)| Some((name, made.filter(|m| !m.is_null())?)));
        top.insert("definitions".to_owned(), Json::Object(made.collect()));
        Json::Object(top)
    }

    /// A reference to the definition of this name, which is created at the first request.
    pub fn shared(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Json) -> Json {
        if !self.made.contains_key(name) {
            // A definition that refers to itself finds this entry and is not created again.
            self.made.insert(name.to_owned(), None);
            let made = make(self);
            self.made.insert(name.to_owned(), Some(made));
        }
        json!({ "$ref": format!("#/definitions/{name}") })
    }

    /// The schema of the values of a shape.
    pub fn shape(&mut self, shape: Shape) -> Json {
        match shape {
            Shape::Bool => json!({ "type": "boolean" }),
            Shape::Integer(least) => {
                self.expression();
                let expression = self.shared("whole-expression", |_| texts::whole_expression());
                // Sizes differ only in their least value, so fields with the same one share a definition.
                self.shared(&format!("whole-from-{least}"), |_| {
                    let number = json!({ "type": "integer", "minimum": least, "maximum": MAX_SIZE });
                    json!({ "anyOf": [number, expression] })
                })
            }
            Shape::Number(range) => {
                let mut number = Map::from_iter([("type".to_owned(), json!("number"))]);
                // Ranges exclude an end by the nearest float; the schema has a word for that.
                if range.least == f64::MIN_POSITIVE {
                    number.insert("exclusiveMinimum".to_owned(), json!(0));
                } else if range.least > f64::MIN {
                    number.insert("minimum".to_owned(), json!(range.least));
                }
                if range.most == Range::BELOW_1 {
                    number.insert("exclusiveMaximum".to_owned(), json!(1));
                } else if range.most < f64::MAX {
                    number.insert("maximum".to_owned(), json!(range.most));
                }
                json!({ "anyOf": [number, self.expression()] })
            }
            // YAML reads `name: 1` as a number, and the decoder takes its text.
            Shape::Text => json!({ "anyOf": [texts::visible(), { "type": "number" }] }),
            Shape::Texts => {
                json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
            }
            Shape::Choice(words) => {
                let one =
                    |w: &crate::field::value::Word| json!({ "const": w.name, "description": tidy(w.doc) });
                json!({ "oneOf": words.iter().map(one).collect::<Vec<_>>() })
            }
            Shape::Record(title, fields) => {
                let fields = fields();
                self.shared(&format!("record-{title}"), |d| Json::Object(d.record(title, &fields)))
            }
            Shape::Slot(doc) => {
                let doc = doc();
                // The norm of a stack may be a part of one's own, and the norm of queries and keys may not.
                let own = if doc.takes_own { "-or-own" } else { "" };
                self.shared(&format!("slot-{}{own}", doc.name), |d| d.slot(&doc))
            }
            Shape::List(item, most) => {
                let mut list = json!({ "type": "array", "items": self.shape(item()) });
                if let (Some(words), Some(most)) = (list.as_object_mut(), most) {
                    words.insert("maxItems".to_owned(), json!(most));
                }
                list
            }
            Shape::Map(value) if matches!(value(), Shape::Record("block", _)) => {
                json!({
                    "type": "object", "propertyNames": { "pattern": texts::ranges() },
                    "additionalProperties": { "anyOf": [self.shape(value()), { "type": "null" }] },
                })
            }
            Shape::Map(value) => json!({ "type": "object", "additionalProperties": self.shape(value()) }),
            Shape::Equation => {
                self.shared("equation-of-the-catalogue", |_| texts::equation(Own::Nothing));
                self.shared("equation-of-the-library", |_| texts::equation(Own::Library));
                self.shared("equation", |_| texts::equation(Own::Any))
            }
            // Its grammar is beyond a pattern; `trafoc check` reads it.
            // A name in brackets is a part of paths, whose steps a dot divides, a power is `^` and is one of
            // numbers, which `x` is not, and a bound is above 0. What follows `#` is a comment.
            Shape::Part => json!({
                "type": "string",
                "pattern": r"\S",
                "not": { "anyOf": [
                    { "pattern": r"(^|\n)[^#\n]*[A-Za-z0-9_]\[[A-Za-z0-9_]*\.[A-Za-z0-9_.]*\]\(" },
                    { "pattern": r"(^|\n)[^#\n]*\*\*" },
                    { "pattern": r"^(?!\s*\()(?:[\s\S]*\n)?[^#\n]*\bx\s*\^" },
                    { "pattern": r"(^|\n)[^#\n]*\bsoftcap\([^,#\n]*,\s*(-|0\))" },
                ] },
            }),
            Shape::Any => json!({ "type": "object" }),
        }
    }

    /// The schema of a map with these fields.
    pub fn record(&mut self, title: &str, fields: &[Field]) -> Map<String, Json> {
        let mut properties = Map::new();
        for field in fields {
            properties.insert(field.name.to_owned(), self.field(title, field));
        }
        let required: Vec<&str> = fields
            .iter()
            .filter(|f| matches!(f.default, DefaultDoc::Required) && !inherited(title))
            .map(|f| f.name)
            .collect();
        let mut record = Map::new();
        record.insert("type".to_owned(), json!("object"));
        record.insert("properties".to_owned(), Json::Object(properties));
        if matches!(title, "stack" | "block") {
            record.insert("patternProperties".to_owned(), self.instances(fields));
        }
        match title {
            // A call may have a name of its own, which is a key then.
            "stack" | "block" => {
                drop(record.insert("allOf".to_owned(), json!([self.own_names(title, fields)])))
            }
            _ => drop(record.insert("additionalProperties".to_owned(), json!(false))),
        }
        if !required.is_empty() {
            record.insert("required".to_owned(), json!(required));
        }
        record
    }

    fn expression(&mut self) -> Json {
        self.shared("expression", |_| texts::expression())
    }

    /// The keys of a block's call sites: `norm2`, `attention1`. The schema cannot know calls with names of
    /// their own, such as `ffn[local]`; `trafoc check` checks their keys.
    fn instances(&mut self, fields: &[Field]) -> Json {
        let mut patterns = Map::new();
        for kind in PartKind::ALL {
            if let Some(field) = fields.iter().find(|f| f.name == kind.word()) {
                let shape = self.shape((field.shape)());
                let doc = format!("One call of `{}`: what differs from the others.", kind.word());
                patterns.insert(format!("^{}[0-9]+$", kind.word()), described(shape, &doc, None));
            }
        }
        Json::Object(patterns)
    }

    /// Which keys there are: those of the tables, and names that an equation gives its calls, `ffn[local]`.
    /// An equation of a block may be its stack's.
    fn own_names(&self, title: &str, fields: &[Field]) -> Json {
        let known: Vec<&str> = fields.iter().map(|f| f.name).collect();
        let numbered: Vec<String> =
            PartKind::ALL.iter().map(|kind| format!("^{}[0-9]+$", kind.word())).collect();
        let pattern = numbered.join("|");
        let strict = json!({ "propertyNames": { "anyOf": [{ "enum": known }, { "pattern": pattern }] } });
        if title == "block" {
            return json!({ "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" } });
        }
        let names =
            || json!({ "additionalProperties": { "if": { "not": has_names() }, "then": strict.clone() } });
        let inner = json!({ "blocks": names(), "ranges": names() });
        let mut plain = strict.clone();
        if let Json::Object(plain) = &mut plain {
            plain.insert("properties".to_owned(), inner);
        }
        // A call with a name of its own is a key by that name alone, without the part.
        let named = json!({ "propertyNames": { "pattern": r"^[A-Za-z_][A-Za-z0-9_]*$" } });
        json!({ "if": has_names(), "then": named, "else": plain })
    }

    fn field(&mut self, title: &str, field: &Field) -> Json {
        let mut ways = vec![self.shape((field.shape)())];
        ways.extend(short_forms(self, title, field));
        if matches!(field.default, DefaultDoc::Absent) {
            // Every optional field takes `none`, also to undo what an extended spec gives.
            ways.push(json!({ "const": "none" }));
        }
        // Editors ignore the siblings of a `$ref`, so it is wrapped.
        let shape = match ways.len() {
            1 if ways.iter().all(|w| w.get("$ref").is_none()) => ways.swap_remove(0),
            _ => json!({ "anyOf": ways }),
        };
        described(shape, &super::super::explain::with_rules(field), Some(field.default))
    }

    fn slot(&mut self, slot: &SlotDoc) -> Json {
        let names: Vec<Json> =
            slot.parts.iter().map(|p| json!({ "const": p.name, "description": tidy(p.doc) })).collect();
        let mut ways = vec![json!({ "oneOf": names })];
        for part in &slot.parts {
            ways.push(self.part(slot, part));
        }
        if let Some(implied) = slot.parts.iter().find(|p| Some(p.name) == slot.implied) {
            // `ffn:` without a value is the implied part with its defaults.
            ways.push(self.fields_of(slot, implied));
            ways.push(json!({ "type": "null" }));
        }
        if slot.takes_own {
            ways.push(own_part(slot));
        }
        json!({ "description": tidy(slot.doc), "anyOf": ways })
    }

    /// The schema of `{part: {fields}}`.
    fn part(&mut self, slot: &SlotDoc, part: &PartDoc) -> Json {
        let fields = self.fields_of(slot, part);
        let inner = described(json!({ "anyOf": [fields, { "type": "null" }] }), part.doc, None);
        let mut inner = vec![inner];
        // `{window: 4}` is short for `{window: {size: 4}}`.
        if slot.name == "mask" && matches!(part.name, "window" | "prefix" | "chunk") {
            inner.push(self.shape(Shape::Integer(1)));
        }
        json!({
            "type": "object",
            "properties": { part.name: { "anyOf": inner } },
            "required": [part.name],
            "additionalProperties": false,
        })
    }

    fn fields_of(&mut self, slot: &SlotDoc, part: &PartDoc) -> Json {
        let fields = (part.fields)();
        let name = format!("{}-{}", slot.name, part.name);
        self.shared(&name, |d| {
            let mut record = d.record(part.name, &fields);
            // Fields that a stack gives to its blocks, or an extended spec to this one, do not have to be
            // repeated.
            record.remove("required");
            Json::Object(record)
        })
    }
}

/// A part that the spec defines, by its name alone or with its fields: any word that means nothing else in
/// the slot.
pub fn own_part(slot: &SlotDoc) -> Json {
    let implied = slot.parts.iter().filter(|p| Some(p.name) == slot.implied);
    let fields = implied.flat_map(|part| (part.fields)()).map(|field| field.name);
    let known: Vec<&str> = slot.parts.iter().map(|p| p.name).chain(fields).collect();
    let name = json!({ "pattern": "^[A-Za-z][A-Za-z0-9_]*$", "not": { "enum": known } });
    let alone = json!({ "allOf": [{ "type": "string" }, name] });
    let with_fields = json!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "propertyNames": name,
        "additionalProperties": { "type": ["object", "null"] },
    });
    json!({ "anyOf": [alone, with_fields] })
}

/// A part of the library, by its name alone or with its fields.
pub fn library_part() -> Json {
    let field = |field: &OwnField| match &field.default {
        OwnDefault::Required | OwnDefault::Number(_) => {
            json!({ "anyOf": [{ "type": "number" }, { "$ref": "#/definitions/expression" }] })
        }
        OwnDefault::Truth(_) => json!({ "type": "boolean" }),
        OwnDefault::Word(..) => {
            json!({ "enum": Activation::WORDS.iter().map(|word| word.name).collect::<Vec<_>>() })
        }
    };
    let part = |part: &Arc<Definition>| {
        let fields: Map<String, Json> = part.fields.iter().map(|f| (f.name.clone(), field(f))).collect();
        let fields = json!({ "type": "object", "properties": fields, "additionalProperties": false });
        (part.name.clone(), json!({ "anyOf": [fields, { "type": "null" }] }))
    };
    let names: Vec<&str> = library::all().iter().map(|part| part.name.as_str()).collect();
    let parts: Map<String, Json> = library::all().iter().map(part).collect();
    let with_fields = json!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": parts,
        "additionalProperties": false,
    });
    json!({ "anyOf": [{ "enum": names }, with_fields] })
}

/// Records whose required fields may be given elsewhere: in the extended spec, or in the stack that
/// contains a block.
fn inherited(title: &str) -> bool {
    matches!(title, "spec" | "stack" | "block" | "cross" | "embed" | "patches")
}

/// Short forms that a field accepts in addition to its shape.
fn short_forms(definitions: &mut Definitions, title: &str, field: &Field) -> Vec<Json> {
    match (title, field.name) {
        (_, "mask") => {
            let rule = json!({ "$ref": "#/definitions/slot-mask" });
            // At most one rule of each name, and at most one about the direction in which a query sees.
            let named = |name: &str| json!({ "anyOf": [{ "const": name }, { "type": "object", "required": [name] }] });
            let both = |a: &str, b: &str| json!({ "not": { "allOf": [{ "contains": named(a) }, { "contains": named(b) }] } });
            let directions = crate::parts::mask::DIRECTIONS;
            let pairs = directions.iter().enumerate();
            let pairs =
                pairs.flat_map(|(i, a)| directions.iter().skip(i.saturating_add(1)).map(move |b| both(a, b)));
            let mut clashes: Vec<Json> = pairs.collect();
            let others = crate::parts::mask::MaskPart::PARTS.len().saturating_sub(directions.len());
            let most = others.saturating_add(1);
            let places = (0..most).flat_map(|later| (0..later).map(move |early| (early, later)));
            // A schema cannot compare two items of a list, so every pair of places is written out.
            clashes.extend(places.flat_map(|(early, later)| {
                crate::parts::mask::MaskPart::PARTS.iter().map(move |name| {
                    let at = |i: usize| if i == early || i == later { named(name) } else { json!({}) };
                    let items: Vec<Json> = (0..=later).map(at).collect();
                    not(json!({ "minItems": items.len(), "items": items }))
                })
            }));
            vec![json!({ "type": "array", "items": rule, "maxItems": most, "allOf": clashes })]
        }
        // A part that the spec defines, or else the fields of cross attention.
        (_, "cross") => {
            let cross = PartDoc { name: "cross", doc: "", fields: Cross::fields };
            let (parts, implied) = (vec![cross], Some("cross"));
            vec![own_part(&SlotDoc { name: "cross", doc: "", parts, implied, takes_own: true })]
        }
        (_, _) => match Short::of(field, title == "spec") {
            Some(Short::Truth) => vec![json!({ "type": "boolean" })],
            Some(Short::Probability) => vec![definitions.shape(Shape::Number(Range::PROBABILITY))],
            Some(Short::Norm) => vec![definitions.shape(StackNorm::describe())],
            Some(Short::Distribution) => vec![json!({ "$ref": "#/definitions/slot-distribution" })],
            None => Vec::new(),
        },
    }
}

fn described(shape: Json, doc: &str, default: Option<DefaultDoc>) -> Json {
    let Json::Object(mut shape) = shape else { return shape };
    let mut text = tidy(doc);
    match default {
        Some(DefaultDoc::Value(value)) => {
            let value = value();
            match plain(&value) {
                Some(value) => drop(shape.insert("default".to_owned(), value)),
                None => text += &format!(" Default: `{}`.", super::super::explain::flow(&value)),
            }
        }
        Some(DefaultDoc::Formula(formula)) => text += &format!(" Default: `{formula}`."),
        Some(DefaultDoc::Required | DefaultDoc::Absent) | None => {}
    }
    if !text.is_empty() {
        shape.insert("description".to_owned(), json!(text));
    }
    Json::Object(shape)
}

/// A scalar default as JSON.
fn plain(node: &Node) -> Option<Json> {
    let Kind::Scalar(scalar) = &node.kind else { return None };
    let text = scalar.text.as_str();
    let number = || text.parse::<serde_json::Number>().ok().map(Json::Number);
    Some(match text {
        "true" => json!(true),
        "false" => json!(false),
        _ => number().unwrap_or_else(|| json!(text)),
    })
}

/// A map whose equation gives a call a name of its own, or calls a part that the spec defines, whose name is
/// also a key.
fn has_names() -> Json {
    let own = json!({ "not": { "$ref": "#/definitions/equation-of-the-catalogue" } });
    let names = json!({ "anyOf": [{ "pattern": "\\[" }, own] });
    json!({ "required": ["block"], "properties": { "block": { "allOf": [{ "type": "string" }, names] } } })
}
