//! Which keys of a spec need or exclude one another, across its records: what a head needs of the stacks,
//! what an equation calls, which block each layer has. Conditions on the fields of one record are in the
//! tables.

use serde_json::{Map, Value as Json, json};

use super::super::wiring::{self, PRELUDE, PartKind};
use super::super::{load, model, stack, sweep};
use super::definitions::{Definitions, library_part, own_part};
use super::pieces::{has, not, within};
use super::rules::{POWERS, Scope, at, at_most, if_given, of_rule, required};
use super::texts::{self, wirings};
use crate::field::definition::Definitions as OwnParts;
use crate::field::value::{DefaultDoc, Field, SlotDoc};
use crate::ir::ModelKind;
use crate::parts::attention::multi_head::MultiHead;
use crate::parts::ffn::mixture::Expert;
use crate::parts::own::definitions::SIZES;
use crate::parts::own::vocabulary::words;
use crate::parts::{Attention, Ffn, Norm, Position, StackNorm};
use crate::syntax::tree::Node;

const STACKS: [&str; 2] = ["encoder", "decoder"];

/// The longest pattern whose length the schema compares with the number of blocks.
const LONGEST: usize = 16;

/// The numbers of layers that the schema compares with ranges: all small ones, and those that models have.
const LAYERS: &[u64] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 42, 48, 61, 64,
    80, 96, 128,
];

/// Restricts the values of a few keys whose form the tables leave to the code that reads them.
pub fn narrow(properties: &mut Map<String, Json>) {
    let mut all_of = |key: &str, more: Json| {
        if let Some(Json::Object(field)) = properties.get_mut(key) {
            // Next to a reference nothing else would count.
            let shared = field.shift_remove("$ref").map(|name| json!({ "$ref": name }));
            field.insert("allOf".to_owned(), shared.into_iter().chain([more]).collect());
        }
    };
    all_of("trafo", json!({ "const": model::VERSION }));
    all_of("let", json!({ "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" } }));
    let fields: Vec<&str> = model::fields().iter().map(|f| f.name).collect();
    // A key of a variant may be a path.
    let path = format!(r"^(?:{})(?:\..+)?$", fields.join("|"));
    let variant = json!({ "type": "object", "propertyNames": { "pattern": path } });
    let values = json!({ "type": "array", "minItems": 1, "uniqueItems": true });
    let grid = json!({ "type": "object", "minProperties": 1, "additionalProperties": values, "not": {
        "anyOf": too_many_combinations(),
    } });
    let variants =
        json!({ "properties": { "grid": grid }, "additionalProperties": variant, "minProperties": 1 });
    all_of("sweep", variants);
    all_of("weights", texts::tensors());
    // A part cannot have the name of a word that the language has already.
    let own = json!({ "pattern": "^[A-Za-z][A-Za-z0-9_]*$", "not": { "anyOf": [
        { "enum": words().map(|word| word.name).chain(SIZES.iter().copied()).collect::<Vec<_>>() },
        { "enum": Ffn::PARTS.iter().chain(Norm::PARTS).chain(Position::PARTS).collect::<Vec<_>>() },
        { "pattern": format!("^(?:{})[0-9]*$", kinds().join("|")) },
    ] } });
    all_of("parts", json!({ "propertyNames": own }));
}

/// Grids with more combinations than a sweep may have, as far as a schema can count. If each of `n` axes has at least `k`
/// values, there are at least `k^n` combinations; for each `n`, this is the smallest `k` with too many.
fn too_many_combinations() -> Vec<Json> {
    let exceeds = |values: usize, axes: u32| values.checked_pow(axes).is_none_or(|n| n > sweep::MAX_VARIANTS);
    let most_axes = (1..).find(|axes| exceeds(2, *axes)).unwrap_or(1);
    let of = |axes: u32| {
        let values = (2..).find(|values| exceeds(*values, axes));
        json!({ "minProperties": axes, "additionalProperties": { "type": "array", "minItems": values } })
    };
    (1..=most_axes).map(of).collect()
}

/// Every condition on a spec as a whole. A spec that extends another need not contain everything itself.
pub fn conditions(definitions: &mut Definitions) -> Vec<Json> {
    let mut all = Vec::new();
    // Collected apart: these hold only where no other spec gives what is missing here.
    let mut of_whole = vec![json!({ "anyOf": [has(&["encoder"]), has(&["decoder"])] })];
    of_whole.push(has(&required(&model::fields())));
    for stack in STACKS {
        of_whole.push(within(stack, has(&required(&stack::fields()))));
        // Every named wiring calls attention.
        let described = json!({ "if": has_only_wirings(), "then": has(&["attention"]) });
        of_whole.push(within(stack, described));
        all.push(within(stack, definitions.shared("layers", |_| layers())));
        of_whole.push(within(stack, definitions.shared("blocks", |_| blocks())));
    }
    of_values(definitions, &mut all, &mut of_whole);
    of_input(&mut all, &mut of_whole);
    of_head(&mut all);
    of_equations(definitions, &mut all, &mut of_whole);
    of_own_parts(&mut all);
    of_memory(&mut all);
    of_sizes(definitions, &mut all, &mut of_whole);
    of_positions(definitions, &mut all);
    all.push(whole(json!({ "allOf": of_whole })));
    all
}

/// A condition on specs that do not extend another one.
fn whole(then: Json) -> Json {
    json!({ "if": not(has(&["extends"])), "then": then })
}

/// A stack whose layers have exactly its own parts, which no other map changes.
fn is_plain() -> Json {
    let fields = stack::fields();
    let names = fields.iter().map(|f| f.name).filter(|name| !matches!(*name, "blocks" | "ranges"));
    json!({ "propertyNames": { "enum": names.collect::<Vec<_>>() } })
}

/// A stack whose blocks are all a named wiring.
fn has_only_wirings() -> Json {
    json!({
        "properties": { "block": { "enum": wirings() } },
        "allOf": [not(has(&["blocks"])), not(has(&["ranges"]))],
    })
}

/// A condition on each stack that the spec has.
fn each_stack(then: &Json) -> Json {
    let of = |stack: &str| within(stack, then.clone());
    json!({ "allOf": STACKS.map(of) })
}

/// The rules of the tables, for values that no other map changes.
fn of_values(d: &mut Definitions, all: &mut Vec<Json>, of_whole: &mut Vec<Json>) {
    // Shared, because the schema needs it in many places.
    let plain = d.shared("plain", |_| is_plain());
    let mut add =
        |fields: &[Field], names: &[&str], scope: Scope, wrap: &dyn Fn(Json) -> Json, to: &mut Vec<Json>| {
            for field in fields.iter().filter(|f| names.contains(&f.name)) {
                let rules = d.rules((field.shape)(), scope);
                to.extend(rules.map(|rules| wrap(within(field.name, rules))));
            }
        };
    let (model, stack) = (model::fields(), stack::fields());
    add(&model, &["head", "init"], Scope::Given, &|rules| rules, all);
    add(&model, &["head", "init"], Scope::Whole, &|rules| rules, of_whole);
    // An `embed` of a stack is merged over the model's and may replace what is wrong in it.
    let unless_embedded = |rules: Json| {
        let no_own = each_stack(&not(has(&["embed"])));
        json!({ "if": no_own, "then": rules })
    };
    add(&model, &["embed"], Scope::Given, &unless_embedded, all);
    add(&model, &["embed"], Scope::Whole, &unless_embedded, of_whole);
    // Likewise, a stack may replace the norm.
    let unless_normed = |rules: Json| {
        let no_own = json!({ "allOf": [plain, not(has(&["norm"]))] });
        json!({ "if": each_stack(&no_own), "then": rules })
    };
    add(&model, &["norm"], Scope::Given, &unless_normed, all);
    for name in STACKS {
        let in_stack = |rules: Json| within(name, rules);
        let in_plain = |rules: Json| within(name, json!({ "if": plain, "then": rules }));
        add(&stack, &["embed"], Scope::Given, &in_stack, all);
        let alone = |rules: Json| json!({ "if": not(has(&["embed"])), "then": within(name, rules) });
        add(&stack, &["embed"], Scope::Whole, &alone, of_whole);
        add(&stack, &["norm", "attention", "cross", "ffn", "gain"], Scope::Given, &in_plain, all);
        // `cross` is left out, because what it lacks it takes from `attention`.
        add(&stack, &["attention", "ffn", "gain"], Scope::Whole, &in_plain, of_whole);
    }
}

/// Conditions on the input, tokens or an image, and on the keys that concern it.
fn of_input(all: &mut Vec<Json>, of_whole: &mut Vec<Json>) {
    // Without any positions there is no rotation after which something could happen.
    let after = json!({ "const": "after_rotation" });
    let waits = json!({ "anyOf": [
        at("attention.qk_norm.when", &after), at("attention.multi_head.qk_norm.when", &after),
    ] });
    let none = json!({ "allOf": [is_plain(), not(has(&["embed"])), not(has(&["position"]))] });
    let no_positions = not(within_required("embed", &has(&["position"])));
    for stack in STACKS {
        let stack = within(stack, json!({ "if": none.clone(), "then": not(waits.clone()) }));
        of_whole.push(json!({ "if": no_positions.clone(), "then": stack }));
    }
    // Positions of the embedding that attention applies, where the only stack has others. With a word the stack takes
    // nothing over from them.
    let applied = json!({ "enum": ["rotary", "alibi", "t5"] });
    let embeds = json!({ "anyOf": [
        applied, { "type": "object", "minProperties": 1, "propertyNames": applied },
    ] });
    let embeds = within_required("embed", &at("position", &embeds));
    let has_own = at("position", &json!({ "enum": ["rotary", "alibi", "t5", "none"] }));
    let replaces = json!({ "allOf": [is_plain(), not(has(&["embed"])), has_own] });
    for (stack, other) in [("encoder", "decoder"), ("decoder", "encoder")] {
        let alone = json!({ "allOf": [embeds.clone(), not(has(&[other]))] });
        of_whole.push(json!({ "if": alone, "then": within(stack, not(replaces.clone())) }));
    }
    // In both directions T5's exact distances are at least a fourth of its buckets, and the farthest one lies beyond them.
    let near = (2..=9).map(|power| {
        let buckets = 2u64.pow(power);
        let near = json!({ "type": "integer", "maximum": buckets / 4 });
        json!({ "allOf": [at("buckets", &json!({ "const": buckets })), at("max_distance", &near)] })
    });
    let near = json!({ "anyOf": near.collect::<Vec<_>>() });
    let unchanged = json!({ "allOf": [is_plain(), not(has(&["embed"])), not(has(&["position"]))] });
    let position = within("position", within("t5", not(near)));
    of_whole.push(json!({ "if": each_stack(&unchanged), "then": within("embed", position) }));
    let reads_image = reads_image();
    of_whole.push(json!({ "if": not(reads_image), "then": has(&["vocab", "context"]) }));
    // A model whose only input is an image has no words.
    let all_image = json!({ "allOf": [embeds_image(), not(has(&["decoder"]))] });
    let no_words = json!({ "allOf": [not(has(&["vocab"])), not(has(&["context"]))] });
    all.push(json!({ "if": all_image, "then": no_words }));
    // A target has no token types, so an embedding of both stacks cannot have them.
    let segments = json!({ "required": ["embed"], "properties": { "embed": { "required": ["segments"] } } });
    let both = has(&STACKS);
    all.push(json!({ "if": both, "then": not(segments) }));
    // A scheme that is added to embeddings cannot be given for a block.
    let added = json!({ "enum": ["learned", "sinusoidal"] });
    let without_embed = json!({ "allOf": [not(has(&["embed"])), not(has(&["extends"]))] });
    for stack in STACKS {
        let own = json!({ "if": not(has(&["embed"])), "then": within("position", not(added.clone())) });
        all.push(json!({ "if": without_embed, "then": within(stack, own) }));
    }
    // A table can be shared only between two stacks.
    let shared = json!({ "const": true });
    let shares = json!({ "anyOf": [
        at("embed.shared", &shared), at("encoder.embed.shared", &shared), at("decoder.embed.shared", &shared),
    ] });
    of_whole.push(json!({ "if": shares, "then": both }));
    // The row of the padding token is one of the table's.
    let no_own = json!({ "allOf": [each_stack(&not(has(&["embed"]))), not(has(&["source_vocab"]))] });
    all.push(json!({ "if": no_own, "then": { "allOf": at_most("embed.padding", "vocab", true) } }));
}

fn is_image() -> Json {
    json!({ "properties": { "patches": not(json!({ "const": "none" })) }, "required": ["patches"] })
}

fn embeds_image() -> Json {
    within_required("embed", &is_image())
}

fn reads_image() -> Json {
    let embeds = embeds_image();
    json!({ "anyOf": [
        embeds, within_required("encoder", &embeds), within_required("decoder", &embeds),
    ] })
}

/// Conditions on heads: the kinds of models that each is for, and whether it needs tokens.
fn of_head(conditions: &mut Vec<Json>) {
    for (head, kinds, reads_tokens) in model::HEADS {
        let is_head = json!({ "anyOf": [{ "const": head }, { "type": "object", "required": [head] }] });
        let is_head = within_required("head", &is_head);
        let mut then = Vec::new();
        for (kind, key, without) in [
            (ModelKind::Encoder, "encoder", Some("decoder")),
            (ModelKind::Decoder, "decoder", Some("encoder")),
            (ModelKind::EncoderDecoder, "encoder", None),
        ] {
            if *kinds == [kind] {
                then.push(match without {
                    None => json!({ "anyOf": [has(&STACKS), has(&["extends"])] }),
                    Some(other) => json!({ "anyOf": [not(has(&[other])), has(&[key, "extends"])] }),
                });
            }
        }
        if *reads_tokens {
            then.push(not(embeds_image()));
        }
        if !then.is_empty() {
            conditions.push(json!({ "if": is_head, "then": { "allOf": then } }));
        }
    }
    // A pooling or a head that reads a token of an image needs an image with that token.
    let is = |field: &str, value: Json| {
        let field = at(field, &json!({ "const": value }));
        json!({ "anyOf": [at("classify", &field), at("embed", &field)] })
    };
    let head_is = |field: &str, value: Json| within_required("head", &is(field, value));
    let may_read_image = json!({ "anyOf": [reads_image(), has(&["extends"])] });
    for (field, value) in [("pool", json!("cls_mean")), ("distilled", json!(true))] {
        conditions.push(json!({ "if": head_is(field, value), "then": may_read_image }));
    }
    let token = at("embed.patches.distillation_token", &json!({ "const": true }));
    let has_token = json!({ "anyOf": [
        token, within_required("encoder", &token), within_required("decoder", &token), has(&["extends"]),
    ] });
    conditions.push(json!({ "if": head_is("distilled", json!(true)), "then": has_token }));
    // A class is predicted from the class token, where the head names no other pooling.
    let no_token = within_required("embed", &at("patches.class_token", &json!({ "const": false })));
    let no_token = json!({ "allOf": [no_token, each_stack(&not(has(&["embed"])))] });
    let cls = at("pool", &json!({ "const": "cls" }));
    let by_token = json!({ "anyOf": [not(has(&["pool"])), cls] });
    let reads_token = json!({ "anyOf": [
        within_required("classify", &by_token), within_required("embed", &cls),
    ] });
    let reads_token = within_required("head", &reads_token);
    conditions.push(whole(json!({ "if": no_token, "then": not(reads_token) })));
}

/// Conditions on the keys of a stack that say which block each layer has.
fn layers() -> Json {
    let several = json!({ "type": "array", "minItems": 2, "uniqueItems": true });
    let cycle = json!({ "not": { "required": ["share", "pattern"], "properties": { "pattern": several } } });
    // The definition of a block's map also allows names, for `blocks`.
    let range = json!({ "propertyNames": { "pattern": r"^[0-9.\s]+$" } });
    let within_layers = LAYERS.iter().map(|n| {
        let is_short = json!({ "type": "integer", "maximum": n });
        let ranges = json!({ "propertyNames": { "pattern": texts::ranges_within(*n) } });
        json!({ "if": at("layers", &is_short), "then": within("ranges", ranges) })
    });
    let mut all = vec![cycle, within("ranges", range)];
    all.extend(within_layers);
    all.extend(stack::RULES.iter().flat_map(|rule| of_rule(rule, &[], Scope::Given)));
    json!({ "allOf": all })
}

/// Conditions on named blocks and on the pattern or the runs that refer to them.
fn blocks() -> Json {
    let several = json!({ "required": ["blocks"], "properties": { "blocks": { "minProperties": 2 } } });
    let order = json!({ "anyOf": [has(&["pattern"]), has(&["runs"])] });
    let mut all = vec![json!({ "if": several, "then": order })];
    all.push(json!({ "if": has(&["pattern"]), "then": has(&["blocks"]) }));
    // A number is not the name of a block, but of a layer, which `ranges` takes.
    all.push(within("blocks", json!({ "propertyNames": { "not": { "pattern": "^[0-9]+$" } } })));
    // With `n` names in the pattern, any further block has no layer.
    all.extend((1..=LONGEST).map(|n| {
        let is_short = json!({ "type": "array", "maxItems": n });
        json!({ "if": at("pattern", &is_short), "then": within("blocks", json!({ "maxProperties": n })) })
    }));
    json!({ "allOf": all })
}

/// Conditions on what the equations of a stack call, and on keys that matter only to what is called.
fn of_equations(d: &mut Definitions, all: &mut Vec<Json>, of_whole: &mut Vec<Json>) {
    let no_ranges = not(has(&["ranges"]));
    let calls = d.shared("calls", |_| calls());
    for stack in STACKS {
        let own = json!({ "allOf": [not(has(&["blocks"])), no_ranges] });
        all.push(within(stack, json!({ "if": own, "then": calls })));
        // A map of a block or a range with an equation of its own, which nothing else changes.
        let of_blocks = within("blocks", json!({ "additionalProperties": calls }));
        all.push(within(stack, json!({ "if": no_ranges, "then": of_blocks })));
        all.push(within(stack, within("ranges", json!({ "additionalProperties": calls }))));
    }
    // The calls of a named wiring are known, so a numbered key must be one of them.
    let any_numbered = json!({ "pattern": format!("^(?:{})[0-9]+$", kinds().join("|")) });
    // The calls of a wiring differ with and without an encoder.
    for (stack, has_memory, context) in [
        ("encoder", false, json!({})),
        ("decoder", false, not(has(&["encoder"]))),
        ("decoder", true, has(&["encoder"])),
    ] {
        for name in wirings() {
            // Without a key, the block is the default wiring.
            let is_this =
                match super::super::block::fields().iter().find(|f| f.name == "block").map(|f| f.default) {
                    Some(DefaultDoc::Value(value)) if value().text() == Some(name) => {
                        within("block", json!({ "const": name }))
                    }
                    _ => at("block", &json!({ "const": name })),
                };
            let calls = instances(name, has_memory);
            let keys =
                json!({ "propertyNames": { "anyOf": [not(any_numbered.clone()), { "enum": calls }] } });
            let is_this = json!({ "allOf": [is_this, not(has(&["blocks"])), not(has(&["ranges"]))] });
            let then = within(stack, json!({ "if": is_this, "then": keys }));
            of_whole.push(json!({ "if": context, "then": then }));
        }
    }
    // A norm of the model must be called by some stack that does not replace it, and positions need an
    // attention.
    let own_equation = |part: &str| {
        // A pattern cannot parse an equation, so any mention of the word counts as a call.
        let text = json!({ "type": "string", "not": { "anyOf": [
            { "enum": wirings() }, { "pattern": format!(r"\b{part}") },
        ] } });
        json!({ "allOf": [at("block", &text), not(has(&["blocks"])), not(has(&["ranges"]))] })
    };
    let is_part =
        |name: &str| json!({ "anyOf": [{ "const": name }, { "type": "object", "required": [name] }] });
    let in_all = |stack: Json| {
        let of = |name: &str| json!({ "anyOf": [not(has(&[name])), within_required(name, &stack)] });
        json!({ "allOf": STACKS.map(of) })
    };
    for norm in Norm::PARTS {
        let others = Norm::PARTS.iter().filter(|other| *other != norm).map(|other| is_part(other));
        let replaced = at("norm", &json!({ "anyOf": others.collect::<Vec<_>>() }));
        let uncalled =
            json!({ "allOf": [own_equation("norm"), at("final_norm", &json!({ "const": false }))] });
        let idle = in_all(json!({ "anyOf": [replaced, uncalled] }));
        of_whole.push(not(json!({ "allOf": [at("norm", &is_part(norm)), idle] })));
    }
    // Positions that are added to embeddings have their effect there.
    let of_attention =
        Position::PARTS.iter().filter(|name| !matches!(**name, "none" | "learned" | "sinusoidal"));
    let of_attention = json!({ "anyOf": of_attention.map(|name| is_part(name)).collect::<Vec<_>>() });
    let idle = json!({ "allOf": [at("embed.position", &of_attention), in_all(own_equation("attention"))] });
    of_whole.push(not(idle));
}

/// Where a map has an equation of its own, the key of a part needs a call of it.
fn calls() -> Json {
    let unused = |kind: &PartKind| {
        let text = json!({ "type": "string", "not": { "anyOf": [
            { "enum": wirings() }, { "pattern": format!(r"\b{}", kind.word()) },
        ] } });
        // The final norm may be that norm.
        let is_free = matches!(kind, PartKind::Norm);
        (!is_free).then(|| json!({ "if": at("block", &text), "then": not(has(&[kind.word()])) }))
    };
    json!({ "allOf": PartKind::ALL.iter().filter_map(unused).collect::<Vec<Json>>() })
}

/// A spec that defines no part, and neither extends nor uses a file that might, has only those of the catalogue
/// and of the library.
fn of_own_parts(all: &mut Vec<Json>) {
    let known = |slot: &SlotDoc| json!({ "anyOf": [not(own_part(slot)), library_part()] });
    let (in_ffn, in_expert) = (known(&Ffn::documentation()), known(&Expert::documentation()));
    let ffn = json!({ "allOf": [in_ffn, within("moe", within("expert", in_expert))] });
    let norm = known(&StackNorm::documentation());
    let attention = known(&Attention::documentation());
    let here = json!({
        "properties": { "block": { "$ref": "#/definitions/equation-of-the-library" }, "final_norm": norm },
        "patternProperties": {
            format!("^{}[0-9]*$", PartKind::Ffn.word()): ffn,
            format!("^{}[0-9]*$", PartKind::Attention.word()): attention,
            format!("^{}[0-9]*$", PartKind::Norm.word()): norm.clone(),
        },
    });
    let inner = |key: &str| within(key, json!({ "additionalProperties": here }));
    let stack = json!({ "allOf": [here, inner("blocks"), inner("ranges")] });
    let without = not(json!({ "anyOf": [has(&["parts"]), has(&["uses"]), has(&["extends"])] }));
    let then = json!({ "allOf": [each_stack(&stack), within(PartKind::Norm.word(), norm)] });
    all.push(json!({ "if": without, "then": then }));
}

/// Keys about a source need an encoder in addition to the decoder.
fn of_memory(all: &mut Vec<Json>) {
    let alone = not(json!({ "anyOf": [has(&["encoder"]), has(&["extends"])] }));
    let no_memory = json!({ "allOf": [
        not(has(&["cross"])),
        within("block", not(json!({ "type": "string", "pattern": r"\bmemory\b|\bcross" }))),
    ] });
    let then = json!({ "allOf": [not(has(&["source_vocab"])), within("decoder", no_memory)] });
    all.push(json!({ "if": alone, "then": then }));
    let attends = json!({ "anyOf": [{ "enum": with_memory() }, { "type": "string", "pattern": r"\bcross|, memory\)" }] });
    let attends = json!({ "anyOf": [has(&["blocks"]), has(&["ranges"]), within("block", attends)] });
    all.push(json!({ "if": has(&STACKS), "then": within("decoder", attends) }));
}

/// Sizes of one record that depend on those of another.
fn of_sizes(d: &mut Definitions, all: &mut Vec<Json>, of_whole: &mut Vec<Json>) {
    let plain = d.shared("plain", |_| is_plain());
    // A window that sees both sides has a middle.
    let even = json!({ "type": "integer", "multipleOf": 2 });
    all.push(if_given("encoder.attention.mask.window", &not(even.clone())));
    let odd = json!({ "type": "integer", "not": even });
    let rotary = json!({ "anyOf": [
        { "const": "rotary" }, at("rotary", &json!({ "not": { "required": ["fraction"] } })),
    ] });
    for stack in STACKS {
        for attention in ["attention", "attention.multi_head"] {
            let own = |field: &str| format!("{stack}.{attention}.{field}");
            // Rotary positions turn pairs of features.
            let turns = at("embed.position", &rotary);
            let no_position =
                within(stack, json!({ "allOf": [not(has(&["position"])), not(has(&["embed"]))] }));
            let is_turned = json!({ "allOf": [turns, within(stack, plain.clone()), no_position] });
            let then = if_given(&own("head_dim"), &not(odd.clone()));
            all.push(json!({ "if": is_turned, "then": then }));
        }
    }
    // The defaults that are quotients of two sizes: `d_model / heads`.
    for field in MultiHead::fields() {
        let DefaultDoc::Formula(formula) = field.default else { continue };
        let Some((size, heads)) = formula.split_once(" / ") else { continue };
        for power in POWERS {
            let stack = d.shared(&format!("{heads}-in-{power}"), |_| {
                let number = at(heads, &json!({ "type": "integer", "multipleOf": power }));
                let fields = json!({ "allOf": [number, not(has(&[field.name]))] });
                let attention = json!({ "anyOf": [fields, at("multi_head", &fields)] });
                json!({ "allOf": [plain, at("attention", &attention)] })
            });
            let any = STACKS.map(|name| within_required(name, &stack));
            let then = within(size, json!({ "multipleOf": power }));
            of_whole.push(json!({ "if": { "anyOf": any }, "then": then }));
        }
    }
}

/// Numbers of a position that leave nothing of what it does. An `embed` of a stack is merged over the model's and may
/// replace them.
fn of_positions(d: &mut Definitions, all: &mut Vec<Json>) {
    let plain = d.shared("plain", |_| is_plain());
    let one = json!({ "const": 1 });
    let yarn = json!({ "allOf": [at("theta", &one), at("scaling.yarn", &json!({}))] });
    let longrope = at("scaling.longrope.original_context", &one);
    let wrong = at("rotary", &json!({ "anyOf": [yarn, longrope] }));
    let then = if_given("embed.position", &not(wrong));
    all.push(json!({ "if": each_stack(&not(has(&["embed"]))), "then": then }));
    // Both sides have half of the buckets each, and half of those are for exact distances.
    let few = json!({ "type": "integer", "maximum": 3 });
    let few = at("t5", &json!({ "allOf": [not(has(&["bidirectional"])), at("buckets", &few)] }));
    let attention = json!({ "allOf": [not(has(&["mask"])), not(has(&["multi_head"]))] });
    let two_sided = json!({ "allOf": [plain, not(has(&["embed"])), at("attention", &attention)] });
    let then = if_given("embed.position", &not(few));
    all.push(json!({ "if": at("encoder", &two_sided), "then": then }));
}

/// The names of the calls of a wiring.
fn instances(wiring: &str, has_memory: bool) -> Vec<String> {
    let sources = load::sources();
    let node = Node::plain(wiring, crate::source::Span::default());
    let calls = wiring::calls(&node, wiring::prelude(&sources), has_memory, &sources, &OwnParts::default());
    calls.sites.into_iter().map(|site| site.name).collect()
}

fn kinds() -> Vec<&'static str> {
    PartKind::ALL.iter().map(|kind| kind.word()).collect()
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
