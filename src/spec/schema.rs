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
use crate::field::value::{DefaultDoc, Field, MAX_SIZE, PartDoc, Range, Shape, SlotDoc};
use crate::ir::ModelKind;
use crate::syntax::expr::Function;
use crate::syntax::tree::{Kind, Node};

/// The schema of a whole spec.
pub fn schema() -> Json {
    // A spec that extends another one does not have to repeat required keys.
    let mut schema = document("spec", "A transformer, as trafoc compiles it.", &model::fields(), false);
    if let Json::Object(root) = &mut schema {
        root.insert("allOf".to_owned(), Json::Array(conditions()));
        if let Some(Json::Object(properties)) = root.get_mut("properties") {
            narrow(properties);
        }
    }
    schema
}

/// What a few keys hold that the tables leave to the code that reads them.
fn narrow(properties: &mut Map<String, Json>) {
    let mut all_of = |key: &str, more: Json| {
        if let Some(Json::Object(field)) = properties.get_mut(key) {
            field.insert("allOf".to_owned(), json!([more]));
        }
    };
    all_of("trafo", json!({ "const": model::VERSION }));
    all_of("let", json!({ "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" } }));
    let fields: Vec<&str> = model::fields().iter().map(|f| f.name).collect();
    let variant = json!({ "type": "object", "propertyNames": { "enum": fields } });
    let grid = json!({ "type": "object", "additionalProperties": { "type": "array", "minItems": 1 } });
    all_of("sweep", json!({ "properties": { "grid": grid }, "additionalProperties": variant }));
    all_of("weights", json!({ "additionalProperties": { "$ref": "#/definitions/tensor" } }));
}

/// Which keys need or exclude one another. A spec that extends another need not say it all itself.
fn conditions() -> Vec<Json> {
    let has = |keys: &[&str]| json!({ "required": keys });
    let not = |what: Json| json!({ "not": what });
    let within = |key: &str, what: Json| json!({ "properties": { key: what } });
    let needs = |fields: &[Field]| -> Vec<&'static str> {
        let required = fields.iter().filter(|f| matches!(f.default, DefaultDoc::Required));
        required.map(|f| f.name).collect()
    };
    let is_image =
        json!({ "properties": { "patches": not(json!({ "const": "none" })) }, "required": ["patches"] });
    let embeds_image = json!({ "properties": { "embed": is_image }, "required": ["embed"] });
    let mut all =
        vec![json!({ "required": needs(&model::fields()), "anyOf": [has(&["encoder"]), has(&["decoder"])] })];
    for stack in ["encoder", "decoder"] {
        all.push(within(stack, json!({ "required": needs(&super::stack::fields()) })));
        // Which parts an equation calls, no schema knows; every named wiring calls attention.
        let is_plain = json!({
            "properties": { "block": { "enum": wirings() } },
            "allOf": [not(has(&["blocks"])), not(has(&["ranges"]))],
        });
        let heads = needs(&crate::parts::attention::multi_head::MultiHead::fields());
        let attention = json!({
            "anyOf": [{ "required": heads }, has(&["multi_head"]), has(&["latent"])],
        });
        let described = json!({ "required": ["attention"], "properties": { "attention": attention } });
        all.push(within(stack, json!({ "if": is_plain, "then": described })));
        let several = json!({ "required": ["blocks"], "properties": { "blocks": { "minProperties": 2 } } });
        let order = json!({ "anyOf": [has(&["pattern"]), has(&["runs"])] });
        all.push(within(stack, json!({ "if": several, "then": order })));
    }
    let reads_image = json!({ "anyOf": [
        embeds_image, within_required("encoder", &embeds_image), within_required("decoder", &embeds_image),
    ] });
    all.push(json!({ "if": not(reads_image.clone()), "then": has(&["vocab", "context"]) }));
    let whole = json!({ "if": not(has(&["extends"])), "then": { "allOf": all } });
    let mut conditions = vec![whole];
    let heads = crate::parts::Head::documentation();
    let bare = heads.parts.iter().filter(|part| !needs(&(part.fields)()).is_empty()).map(|part| part.name);
    let head = json!({ "properties": { "head": not(json!({ "enum": bare.collect::<Vec<_>>() })) } });
    conditions.push(json!({ "if": not(has(&["extends"])), "then": head }));
    for (head, kinds, reads_tokens) in model::HEADS {
        let is_head = json!({ "anyOf": [{ "const": head }, { "type": "object", "required": [head] }] });
        let is_head = json!({ "required": ["head"], "properties": { "head": is_head } });
        let mut then = Vec::new();
        for (kind, key, without) in [
            (ModelKind::Encoder, "encoder", "decoder"),
            (ModelKind::Decoder, "decoder", "encoder"),
            (ModelKind::EncoderDecoder, "encoder", ""),
        ] {
            if *kinds == [kind] {
                then.push(match without {
                    "" => json!({ "anyOf": [has(&["encoder", "decoder"]), has(&["extends"])] }),
                    other => json!({ "anyOf": [not(has(&[other])), has(&[key, "extends"])] }),
                });
            }
        }
        if *reads_tokens {
            then.push(not(embeds_image.clone()));
        }
        if !then.is_empty() {
            conditions.push(json!({ "if": is_head, "then": { "allOf": then } }));
        }
    }
    // A pooling or a head that reads a token of an image needs an image with that token.
    let is = |field: &str, value: Json| {
        let field =
            json!({ "type": "object", "required": [field], "properties": { field: { "const": value } } });
        let of = |part: &str| json!({ "type": "object", "required": [part], "properties": { part: field } });
        json!({ "anyOf": [of("classify"), of("embed")] })
    };
    let head_is = |field: &str, value: Json| json!({ "required": ["head"], "properties": { "head": is(field, value) } });
    let may_read_image = json!({ "anyOf": [reads_image.clone(), has(&["extends"])] });
    for (field, value) in [("pool", json!("cls_mean")), ("distilled", json!(true))] {
        conditions.push(json!({ "if": head_is(field, value), "then": may_read_image }));
    }
    let token = json!({ "properties": { "distillation_token": { "const": true } }, "required": ["distillation_token"] });
    let token = within_required("embed", &within_required("patches", &token));
    let has_token = json!({ "anyOf": [
        token, within_required("encoder", &token), within_required("decoder", &token), has(&["extends"]),
    ] });
    conditions.push(json!({ "if": head_is("distilled", json!(true)), "then": has_token }));
    let both = json!({ "allOf": [head_is("distilled", json!(true)), head_is("pool", json!("mean"))] });
    conditions.push(not(both));
    // An image alone has no words.
    let all_image = json!({ "allOf": [embeds_image, not(has(&["decoder"]))] });
    let no_words = json!({ "allOf": [not(has(&["vocab"])), not(has(&["context"]))] });
    conditions.push(json!({ "if": all_image, "then": no_words }));
    // A window that sees both sides has a middle.
    let even = json!({ "type": "integer", "multipleOf": 2 });
    let window = json!({ "properties": { "window": not(even) } });
    let seen = json!({ "properties": { "attention": { "properties": { "mask": window } } } });
    conditions.push(within("encoder", seen));
    // Segments are of one text, and what is added to embeddings is no scheme of a block.
    let segments = json!({ "required": ["embed"], "properties": { "embed": { "required": ["segments"] } } });
    conditions.push(json!({ "if": has(&["encoder", "decoder"]), "then": not(segments) }));
    let added = json!({ "enum": ["learned", "sinusoidal"] });
    let without_embed = json!({ "allOf": [not(has(&["embed"])), not(has(&["extends"]))] });
    for stack in ["encoder", "decoder"] {
        let own = json!({ "if": not(has(&["embed"])), "then": { "properties": { "position": not(added.clone()) } } });
        conditions.push(json!({ "if": without_embed, "then": within(stack, own) }));
        conditions.push(within(stack, calls()));
        let range = json!({ "propertyNames": { "pattern": r"^[0-9.\s]+$" } });
        conditions.push(within(stack, within("ranges", range)));
    }
    // What is about a source needs an encoder beside the decoder.
    let alone = not(json!({ "anyOf": [has(&["encoder"]), has(&["extends"])] }));
    let no_memory = json!({ "allOf": [
        not(has(&["cross"])),
        { "properties": { "block": not(json!({ "type": "string", "pattern": r"\bmemory\b|\bcross" })) } },
    ] });
    conditions.push(json!({ "if": alone, "then": { "allOf": [not(has(&["source_vocab"])), within("decoder", no_memory)] } }));
    let (with, of_both): (Vec<&str>, Vec<&str>) = (with_memory(), vec!["encoder", "decoder"]);
    let attends = json!({ "anyOf": [{ "enum": with }, { "type": "string", "pattern": r"\bcross" }] });
    let attends =
        json!({ "anyOf": [has(&["blocks"]), has(&["ranges"]), { "properties": { "block": attends } }] });
    conditions.push(json!({ "if": has(&of_both), "then": within("decoder", attends) }));
    conditions
}

/// A part's key needs a call of it, where the equation of all blocks is there; and keys that say which block is
/// where exclude one another.
fn calls() -> Json {
    let is_own = json!({ "not": { "anyOf": [{ "required": ["blocks"] }, { "required": ["ranges"] }] } });
    let unused = |kind: &PartKind| {
        let text = json!({ "type": "string", "not": { "anyOf": [
            { "enum": wirings() }, { "pattern": format!(r"\b{}", kind.word()) },
        ] } });
        let without = json!({ "required": ["block"], "properties": { "block": text } });
        // The final norm may be that norm.
        let is_free = matches!(kind, PartKind::Norm);
        (!is_free).then(|| json!({ "if": without, "then": { "not": { "required": [kind.word()] } } }))
    };
    let all: Vec<Json> = PartKind::ALL.iter().filter_map(unused).collect();
    let runs = json!({ "not": { "required": ["runs"], "anyOf": [{ "required": ["pattern"] }, { "required": ["ranges"] }] } });
    let share = json!({ "not": { "required": ["share"], "anyOf": [{ "required": ["ranges"] }, { "required": ["runs"] }] } });
    let several = json!({ "type": "array", "minItems": 2, "uniqueItems": true });
    let cycle = json!({ "not": { "required": ["share", "pattern"], "properties": { "pattern": several } } });
    json!({ "allOf": [{ "if": is_own, "then": { "allOf": all } }, runs, share, cycle] })
}

/// Fields of one map that exclude each other: the record, a field with its value if that matters, and the other
/// with its value; `!word` is any other value. `tests/bad/keys-exclude-*` has the compiler refuse each.
type Exclusion = (&'static str, (&'static str, Option<&'static str>), (&'static str, Option<&'static str>));
const EXCLUSIONS: &[Exclusion] = &[
    ("glu", ("activation", Some("!silu")), ("clamped", None)),
    ("layer_norm", ("affine", Some("false")), ("bias", Some("true"))),
    ("rms_norm", ("affine", Some("false")), ("unit_offset", Some("true"))),
    ("layer_norm", ("affine", Some("false")), ("unit_offset", Some("true"))),
    ("moe", ("score", Some("softmax_of_chosen")), ("normalize", Some("true"))),
    ("patches", ("class_token", Some("false")), ("distillation_token", Some("true"))),
    ("qk_norm", ("over", Some("full")), ("when", Some("after_rotation"))),
    ("bias", ("qkv", None), ("query", None)),
    ("bias", ("qkv", None), ("key", None)),
    ("bias", ("qkv", None), ("value", None)),
];

/// What a record's fields exclude.
fn exclusions(title: &str) -> Vec<Json> {
    let given = |(field, value): (&str, Option<&str>)| {
        let value = value.map_or(json!({ "not": { "const": "none" } }), |word| match word {
            "true" | "false" => json!({ "const": word == "true" }),
            word => match word.strip_prefix('!') {
                Some(other) => json!({ "not": { "const": other } }),
                None => json!({ "const": word }),
            },
        });
        json!({ "required": [field], "properties": { field: value } })
    };
    let own = EXCLUSIONS.iter().filter(|(record, ..)| *record == title);
    own.map(|(_, a, b)| json!({ "not": { "allOf": [given(*a), given(*b)] } })).collect()
}

/// A map that has a key whose value is like that.
fn within_required(key: &str, what: &Json) -> Json {
    json!({ "required": [key], "properties": { key: what } })
}

/// The named wirings that attend to a memory.
fn with_memory() -> Vec<&'static str> {
    let with = PRELUDE.lines().filter(|line| line.contains(", memory)"));
    with.filter_map(|line| line.strip_prefix("block ")?.split('(').next()).collect()
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
    if fields.iter().any(|f| f.name == "weights") {
        definitions.shared("tensor", |_| tensor());
    }
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
            Shape::Integer(least) => json!({ "anyOf": [
                { "type": "integer", "minimum": least, "maximum": MAX_SIZE },
                self.expression(),
            ] }),
            Shape::Number(range) => {
                let mut number = Map::from_iter([("type".to_owned(), json!("number"))]);
                if range.least == f64::MIN_POSITIVE {
                    number.insert("exclusiveMinimum".to_owned(), json!(0));
                } else if range.least > f64::MIN {
                    number.insert("minimum".to_owned(), json!(range.least));
                }
                if range.most == Range::BELOW_1 {
                    number.insert("exclusiveMaximum".to_owned(), json!(1));
                }
                json!({ "anyOf": [number, self.expression()] })
            }
            Shape::Text => json!({ "anyOf": [
                { "type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" },
                { "type": "number" },
            ] }),
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
            Shape::Map(value) if matches!(value(), Shape::Record("block", _)) => {
                // `0..3`, `3..`, `..3`, `7`, and names of blocks; a range that ends where it begins holds no layer.
                let range =
                    r"^\s*(?:[0-9]+|(?!([0-9]+)\s*\.\.\s*\1\s*$)[0-9]*\s*\.\.\s*[0-9]*|[A-Za-z_][\w-]*)\s*$";
                json!({
                    "type": "object", "propertyNames": { "pattern": range },
                    "additionalProperties": { "anyOf": [self.shape(value()), { "type": "null" }] },
                })
            }
            Shape::Map(value) => json!({ "type": "object", "additionalProperties": self.shape(value()) }),
            Shape::Equation => self.shared("equation", |_| equation()),
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
        match title {
            // A call may have a name of its own, which is a key then.
            "stack" | "block" => {
                drop(record.insert("allOf".to_owned(), json!([self.own_names(title, fields)])))
            }
            _ => drop(record.insert("additionalProperties".to_owned(), json!(false))),
        }
        let exclusions = exclusions(title);
        if !exclusions.is_empty() {
            record.insert("allOf".to_owned(), Json::Array(exclusions));
        }
        if !required.is_empty() {
            record.insert("required".to_owned(), json!(required));
        }
        Json::Object(record)
    }

    fn expression(&mut self) -> Json {
        self.shared("expression", |_| expression())
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

    /// Which keys there are: those of the tables, and names that an equation gives its calls, `ffn[local]`. An
    /// equation of a block may be its stack's.
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
        json!({ "if": has_names(), "else": plain })
    }

    fn field(&mut self, title: &str, field: &Field) -> Json {
        let mut ways = vec![self.shape((field.shape)())];
        ways.extend(short_forms(self, title, field));
        if matches!(field.default, DefaultDoc::Absent) {
            ways.push(json!({ "const": "none" }));
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
            if let Json::Object(record) = &mut record {
                record.remove("required");
            }
            record
        })
    }
}

/// A row of `weights`.
fn tensor() -> Json {
    let path = json!({ "type": "string", "minLength": 1 });
    let paths = json!({ "anyOf": [path, { "type": "array", "items": path, "minItems": 1 }] });
    let number = json!({ "type": ["integer", "string"] });
    let flag = json!({ "type": "boolean" });
    let laid_out = json!({
        "type": "object",
        "properties": {
            "to": paths, "fuse": paths, "groups": number, "transpose": flag, "stack": path, "join": path,
            "lead": { "type": "integer", "minimum": 0, "maximum": 4 }, "flat": flag,
            "absent": { "type": "number" }, "when": path,
        },
        "anyOf": [{ "required": ["to"] }, { "required": ["fuse"] }],
        "not": { "required": ["fuse", "join"] },
        "additionalProperties": false,
    });
    let copy = json!({
        "type": "object", "properties": { "copy": path }, "required": ["copy"], "additionalProperties": false,
    });
    let below = json!({
        "type": "object", "properties": { "into": { "type": "string" } }, "required": ["into"],
        "additionalProperties": { "$ref": "#/definitions/tensor" },
    });
    json!({ "anyOf": [paths, laid_out, copy, below] })
}

/// Parentheses in pairs, this deep; what is deeper has no pattern and passes.
const DEPTH: usize = 6;

/// A pattern of texts whose parentheses come in pairs.
fn balanced() -> String {
    let text = r"[^()]*";
    let inner = (0..DEPTH).fold(text.to_owned(), |inner, _| format!(r"{text}(?:\({inner}\){text})*"));
    format!(r"(?=(?:{inner})$|.*(?:\([^)]*){{{}}})", DEPTH + 1)
}

/// An expression: operands with operators between them, functions of as many arguments as they take. A quoted
/// number is none.
fn expression() -> Json {
    let names: Vec<&str> = Function::ALL.iter().map(|f| f.name()).collect();
    let number = r"(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?";
    let call = format!(r"(?:{})\s*\(", names.join("|"));
    let operand = format!(
        r"[-+(\s]*(?:{call}[-+(\s]*)*(?:{number}|[A-Za-z_][A-Za-z0-9_.]*(?![A-Za-z0-9_.]|\s*\())[)\s]*"
    );
    let arity = |function: &Function| match function.arity() {
        (1, 1) => format!(r"(?!.*\b{}\s*\([^()]*,)", function.name()),
        (least, _) if least > 1 => format!(r"(?!.*\b{}\s*\([^(),]*\))", function.name()),
        _ => String::new(),
    };
    let arities: String = Function::ALL.iter().map(arity).collect();
    let comma = format!(r"(?!(?!.*(?:{})\s*\().*,)", names.join("|"));
    let zero = r"(?!.*/\s*0+(?:\.0*)?\s*(?:[-+*/)]|$))";
    let plain = format!(r"(?!\s*[-+]?{number}\s*$)");
    let logarithm =
        format!(r"(?!.*\b(?:{}|{})\s*\(\s*-?0?\s*\))", Function::Log.name(), Function::Log2.name());
    let pattern =
        format!("^{}{plain}{arities}{comma}{zero}{logarithm}{operand}(?:[-+*/^,]{operand})*$", balanced());
    json!({ "type": "string", "pattern": pattern })
}

/// The name of a wiring, or an equation of calls and sums.
fn equation() -> Json {
    let kinds: Vec<&str> = PartKind::ALL.iter().map(|kind| kind.word()).collect();
    let functions: Vec<&str> = Function::ALL.iter().map(|f| f.name()).collect();
    let instance = r"[0-9]*\s*(?:\[\s*\w+\s*\])?";
    let calls = format!(r"(?:(?:{}){instance}|{})\s*\(", kinds.join("|"), functions.join("|"));
    // A word before a parenthesis is a call of a part or a function.
    let known = format!(r"(?!(?:[\s\S]*[^\w\]])?(?!{calls})[A-Za-z_]\w*(?:\[\s*\w+\s*\])?[ \t]*\()");
    let one = |kind: &&PartKind| !matches!(kind, PartKind::Cross);
    let single: Vec<&str> = PartKind::ALL.iter().filter(one).map(|kind| kind.word()).collect();
    // What is between the parentheses of a call, its own calls aside.
    let inside = r"(?:[^(),]|\((?:[^()]|\([^()]*\))*\))*";
    let arguments = format!(r"(?![\s\S]*\b(?:{}){instance}\({inside},)", single.join("|"));
    let memory = format!(r"(?![\s\S]*\b{}{instance}\({inside}\))", PartKind::Cross.word());
    // A tensor is no divisor, a number no tensor that is summed or given to a part.
    let number = r"[0-9]+(?:\.[0-9]*)?";
    let every = kinds.join("|");
    let tensors = format!(
        r"(?![\s\S]*(?:/\s*(?:{every}){instance}\(|\b(?:{every}){instance}\(\s*{number}\s*\)|[-+]\s*{number}\s*[-+]))"
    );
    // A name belongs to one call.
    let names = r"(?![\s\S]*(\b[a-z]+\[\s*\w+\s*\])[\s\S]*\1)";
    let text = r"[\w\s+\-*/^=().,;:\[\]#]*[\w)]\s*(?:#[^\n]*\s*)?";
    let balanced = balanced().replace(".*(?:", r"[\s\S]*(?:");
    let pattern = format!("^{balanced}{known}{arguments}{memory}{tensors}{names}(?=[\\s\\S]*[=(+]){text}$");
    json!({ "anyOf": [{ "enum": wirings() }, { "type": "string", "pattern": pattern }] })
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
            // One rule of each name, and one that says in which direction is seen.
            let named = |name: &str| json!({ "anyOf": [{ "const": name }, { "type": "object", "required": [name] }] });
            let both = |a: &str, b: &str| json!({ "not": { "allOf": [{ "contains": named(a) }, { "contains": named(b) }] } });
            let directions = crate::parts::mask::DIRECTIONS;
            let pairs = directions.iter().enumerate();
            let pairs = pairs.flat_map(|(i, a)| directions.iter().skip(i + 1).map(move |b| both(a, b)));
            let clashes: Vec<Json> = pairs.collect();
            vec![json!({ "type": "array", "items": rule, "allOf": clashes })]
        }
        (_, "bias") if matches!((field.shape)(), Shape::Record(..)) => vec![json!({ "type": "boolean" })],
        (_, "dropout") if matches!((field.shape)(), Shape::Record(..)) => {
            vec![definitions.shape(Shape::Number(Range::PROBABILITY))]
        }
        (_, "final_norm") => vec![json!({ "$ref": "#/definitions/slot-norm" })],
        ("spec", "init") => vec![json!({ "$ref": "#/definitions/slot-distribution" })],
        ("spec", "let") => Vec::new(),
        (_, _) => Vec::new(),
    }
}

/// A map whose equation gives a call a name of its own.
fn has_names() -> Json {
    json!({ "required": ["block"], "properties": { "block": { "type": "string", "pattern": "\\[" } } })
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
