//! The JSON schema of a spec (draft-07, the newest version that YAML editors support), generated from the
//! field tables.
//!
//! The schema accepts everything that the decoder accepts, including short forms; its descriptions are the
//! documentation of the fields. It cannot express every rule (sizes that divide others, keys that an
//! equation needs), so a spec it accepts may still fail `trafoc check`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::model;
use super::wiring::{PRELUDE, PartKind};
use crate::field::value::{DefaultDoc, Field, PartDoc, Shape, SlotDoc};
use crate::syntax::tree::{Kind, Node};

/// The schema of a whole spec.
pub fn schema() -> Json {
    // A spec that extends another one does not have to repeat required keys.
    document("spec", "A transformer, as trafoc compiles it.", &model::fields(), false)
}

/// The schema of a document with these fields; with `is_whole`, the required ones must be present.
pub fn document(title: &str, doc: &str, fields: &[Field], is_whole: bool) -> Json {
    let mut definitions = Definitions::default();
    let Json::Object(mut root) = definitions.record(title, fields) else { return Json::Null };
    if !is_whole {
        root.remove("required");
    }
    let mut top = Map::new();
    top.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    top.insert("title".to_owned(), json!(format!("trafoc {title}")));
    top.insert("description".to_owned(), json!(tidy(doc)));
    top.extend(root);
    let all: Map<String, Json> =
        definitions.made.into_iter().map(|(name, d)| (name, d.unwrap_or_default())).collect();
    top.insert("definitions".to_owned(), Json::Object(all));
    Json::Object(top)
}

/// Definitions of records and slots, each created once; `None` while it is being created.
#[derive(Default)]
struct Definitions {
    made: BTreeMap<String, Option<Json>>,
}

impl Definitions {
    fn shared(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Json) -> Json {
        if !self.made.contains_key(name) {
            self.made.insert(name.to_owned(), None);
            let made = make(self);
            self.made.insert(name.to_owned(), Some(made));
        }
        json!({ "$ref": format!("#/definitions/{name}") })
    }

    /// The schema of the values of a shape.
    fn shape(&mut self, shape: Shape) -> Json {
        match shape {
            Shape::Bool => json!({ "type": "boolean" }),
            Shape::Integer => json!({ "type": ["integer", "string"] }),
            Shape::Number => json!({ "type": ["number", "string"] }),
            Shape::Text => json!({ "type": ["string", "number"] }),
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
                self.shared(&format!("record-{title}"), |d| d.record(title, &fields))
            }
            Shape::Slot(doc) => {
                let doc = doc();
                self.shared(&format!("slot-{}", doc.name), |d| d.slot(&doc))
            }
            Shape::List(item) => json!({ "type": "array", "items": self.shape(item()) }),
            Shape::Map(value) => json!({ "type": "object", "additionalProperties": self.shape(value()) }),
            Shape::Equation => json!({ "type": "string", "examples": wirings() }),
            Shape::Any => json!({ "type": "object" }),
        }
    }

    fn record(&mut self, title: &str, fields: &[Field]) -> Json {
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
        record.insert("additionalProperties".to_owned(), json!(false));
        if !required.is_empty() {
            record.insert("required".to_owned(), json!(required));
        }
        Json::Object(record)
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

    fn field(&mut self, title: &str, field: &Field) -> Json {
        let mut ways = vec![self.shape((field.shape)())];
        ways.extend(short_forms(title, field));
        if matches!(field.default, DefaultDoc::Absent) {
            ways.push(json!({ "const": "none" }));
            ways.push(json!({ "type": "null" }));
        }
        // Editors ignore the siblings of a `$ref`, so it is wrapped.
        let shape = match ways.len() {
            1 if ways.iter().all(|w| w.get("$ref").is_none()) => ways.swap_remove(0),
            _ => json!({ "anyOf": ways }),
        };
        described(shape, field.doc, Some(field.default))
    }

    fn slot(&mut self, slot: &SlotDoc) -> Json {
        let names: Vec<Json> =
            slot.parts.iter().map(|p| json!({ "const": p.name, "description": tidy(p.doc) })).collect();
        let mut ways = vec![json!({ "oneOf": names })];
        for part in &slot.parts {
            ways.push(self.part(slot, part));
        }
        if let Some(implied) = slot.parts.iter().find(|p| Some(p.name) == slot.implied) {
            ways.push(self.fields_of(slot, implied));
            ways.push(json!({ "type": "null" }));
        }
        json!({ "description": tidy(slot.doc), "anyOf": ways })
    }

    /// The schema of `{part: {fields}}`.
    fn part(&mut self, slot: &SlotDoc, part: &PartDoc) -> Json {
        let fields = self.fields_of(slot, part);
        let inner = described(json!({ "anyOf": [fields, { "type": "null" }] }), part.doc, None);
        let mut inner = vec![inner];
        if slot.name == "mask" && matches!(part.name, "window" | "prefix" | "chunk") {
            inner.push(json!({ "type": ["integer", "string"] }));
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
            if let Json::Object(record) = &mut record {
                record.remove("required");
            }
            record
        })
    }
}

/// Records whose required fields may be given elsewhere: in the extended spec, or in the stack that
/// contains a block.
fn inherited(title: &str) -> bool {
    matches!(title, "spec" | "stack" | "block" | "cross" | "embed" | "patches")
}

/// Short forms that a field accepts in addition to its shape.
fn short_forms(title: &str, field: &Field) -> Vec<Json> {
    let number = || json!({ "type": ["number", "string"] });
    match (title, field.name) {
        (_, "mask") => {
            let rule = json!({ "$ref": "#/definitions/slot-mask" });
            vec![json!({ "type": "array", "items": rule })]
        }
        (_, "bias") if matches!((field.shape)(), Shape::Record(..)) => vec![json!({ "type": "boolean" })],
        (_, "dropout") if matches!((field.shape)(), Shape::Record(..)) => vec![number()],
        (_, "final_norm") => vec![json!({ "$ref": "#/definitions/slot-norm" })],
        ("spec", "init") => vec![json!({ "$ref": "#/definitions/slot-distribution" })],
        ("spec", "let") => Vec::new(),
        (_, _) => Vec::new(),
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
                None => text += &format!(" Default: `{}`.", super::explain::flow(&value)),
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

/// Documentation on one line.
fn tidy(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of the prelude's wirings, in their order.
fn wirings() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        PRELUDE.lines().filter_map(|l| l.strip_prefix("block ")?.split('(').next()).collect();
    names.dedup();
    names
}
