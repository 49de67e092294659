//! What of the language each target takes: `docs/capabilities.md`, made from the field tables and from what
//! the tests hold. A knob without a test that computes it fails, but for those listed in `UNTESTED`.
//!
//! Rows are the parts, keys and words of the tables the decoder reads, so a new part has its row. What a
//! spec uses is read off the spec as it is decoded and written out again. A fixture counts where it sets a
//! key to something else than its default.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use trafoc::compile::compile;
use trafoc::diag::Sink;
use trafoc::field::value::{DefaultDoc, Field, Shape, Value as _};
use trafoc::hub::export::export;
use trafoc::hub::shelf::Families;
use trafoc::interp::run::RunError;
use trafoc::interp::{Inputs, Model, Weights};
use trafoc::ir::Verified;
use trafoc::parts::{Attention, Cross, Embed, Ffn, Gain, Head, Init, Norm, Position};
use trafoc::spec::block::Part;
use trafoc::spec::{ModelSpec, load, model, stack, wiring};
use trafoc::syntax::Notation;
use trafoc::syntax::tree::{Kind, Node};

use crate::compiled::{repository, specs};
use crate::front::Front;

const COMMAND: &str = "cargo test --test it capabilities";

/// Keys that no spec of the tests sets to another value than their default, or that none that is emitted
/// does: `none` in the table. Nothing may join them.
const UNTESTED: &[&str] = &[
    "attention.latent.bias",
    "bias.qkv",
    "clamped.alpha",
    "clamped.shift",
    "cross.softcap",
    "distribution.kaiming_normal.gain",
    "distribution.xavier_uniform.gain",
    "expert.glu.dropout",
    "expert.glu.inner_dropout",
    "expert.mlp.bias",
    "expert.mlp.dropout",
    "expert.mlp.inner_dropout",
    "extends",
    "ffn.glu.dropout",
    "ffn.glu.inner_dropout",
    "groups.score_of",
    "head.classify.hidden_bias",
    "head.classify.norm",
    "head.embed.bias",
    "head.lm.fixed_bias",
    "head.span.dropout",
    "head.tag.bias",
    "head.translate.softcap",
    "norm.layer_norm.unit_offset",
    "norm.rms_norm.affine",
    "pool: first",
    "position.t5.bidirectional",
    "scaling.llama3.high_freq_factor",
    "scaling.llama3.low_freq_factor",
    "scaling.longrope.attention_factor",
    "scaling.yarn.beta_slow",
];

/// Keys of the whole spec and of a stack that say where parts stand, and nothing of their own. Names and
/// lists of words for people are no knobs either.
const AROUND: &[&str] = &["trafo", "name", "norm", "embed", "encoder", "decoder", "head", "init", "block"];

/// A word of a key is one function wherever the key stands: `activation: relu`.
fn said(path: &str, word: &str) -> String {
    format!("{}: {word}", path.rsplit('.').next().unwrap_or(path))
}

/// Collects every knob of a shape, below a name.
fn knobs(name: &str, shape: Shape, seen: &mut BTreeSet<String>, found: &mut Vec<String>) {
    match shape {
        Shape::Slot(doc) => {
            let doc = doc();
            if seen.insert(doc.name.to_owned()) {
                for part in &doc.parts {
                    found.push(format!("{}: {}", doc.name, part.name));
                    fields(&format!("{}.{}", doc.name, part.name), &(part.fields)(), seen, found);
                }
            }
        }
        Shape::Record(title, of) => {
            if seen.insert(format!("record {title}")) {
                fields(title, &of(), seen, found);
            }
        }
        Shape::List(inner) | Shape::Map(inner) => knobs(name, inner(), seen, found),
        Shape::Choice(words) => found.extend(words.iter().map(|word| said(name, word.name))),
        Shape::Bool
        | Shape::Integer
        | Shape::Number
        | Shape::Text
        | Shape::Texts
        | Shape::Equation
        | Shape::Any => found.push(name.to_owned()),
    }
}

fn fields(name: &str, all: &[Field], seen: &mut BTreeSet<String>, found: &mut Vec<String>) {
    for field in all {
        let is_inner = matches!((field.shape)(), Shape::Slot(_) | Shape::Record(..));
        let path = format!("{name}.{}", field.name);
        if is_inner && matches!(field.default, DefaultDoc::Absent) {
            found.push(path.clone());
        }
        knobs(&path, (field.shape)(), seen, found);
    }
}

/// What of a shape a node uses.
fn uses(name: &str, shape: Shape, node: &Node, used: &mut BTreeSet<String>) {
    if let Kind::List(items) = &node.kind
        && !matches!(shape, Shape::List(_))
    {
        items.iter().for_each(|item| uses(name, shape, item, used));
        return;
    }
    match (shape, &node.kind) {
        (Shape::Slot(doc), _) => {
            let doc = doc();
            let named = node.text().or_else(|| Some(node.entries()?.first()?.key.as_str()));
            let Some(part) = doc.parts.iter().find(|part| Some(part.name) == named) else { return };
            used.insert(format!("{}: {}", doc.name, part.name));
            if let Some(inner) = node.get(part.name) {
                given(&format!("{}.{}", doc.name, part.name), &(part.fields)(), inner, used);
            }
        }
        (Shape::Record(title, of), Kind::Map(_)) => given(title, &of(), node, used),
        (Shape::List(inner), Kind::List(items)) => {
            items.iter().for_each(|item| uses(name, inner(), item, used));
        }
        (Shape::Map(inner), Kind::Map(entries)) => {
            entries.iter().for_each(|e| uses(name, inner(), &e.value, used));
        }
        (Shape::Choice(_), _) => used.extend(node.text().map(|word| said(name, word))),
        _ if node.text() == Some("none") => {}
        _ => drop(used.insert(name.to_owned())),
    }
}

fn given(name: &str, all: &[Field], node: &Node, used: &mut BTreeSet<String>) {
    for field in all {
        let Some(value) = node.get(field.name) else { continue };
        let (path, shape) = (format!("{name}.{}", field.name), (field.shape)());
        let is_absent = value.text() == Some("none") && matches!(field.default, DefaultDoc::Absent);
        let is_default = match field.default {
            DefaultDoc::Value(default) => default().text().is_some_and(|text| value.text() == Some(text)),
            DefaultDoc::Required | DefaultDoc::Absent | DefaultDoc::Formula(_) => false,
        };
        let is_inner = matches!(shape, Shape::Slot(_) | Shape::Record(..));
        if is_inner && !is_absent && matches!(field.default, DefaultDoc::Absent) {
            used.insert(path.clone());
        }
        if !is_absent && (!is_default || is_inner || matches!(shape, Shape::Choice(_))) {
            uses(&path, shape, value, used);
        }
    }
}

/// Everything a spec may say, in the order of the tables.
fn rows() -> Vec<String> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    let around = |field: &&Field| !AROUND.contains(&field.name);
    found.extend(model::fields().iter().filter(around).map(|f| f.name.to_owned()));
    let of_parts = |field: &&Field| !matches!((field.shape)(), Shape::Slot(_)) && field.name != "cross";
    let stack = stack::fields();
    let own = stack.iter().filter(around).filter(of_parts).filter(|f| f.name != "gain");
    found.extend(own.map(|f| format!("stack.{}", f.name)));
    let wirings = wiring::prelude(&load::sources());
    let mut names: Vec<&String> = wirings.iter().filter_map(|w| w.name.as_ref()).collect();
    names.dedup();
    found.extend(names.into_iter().map(|name| format!("wiring: {name}")));
    let shapes: [(&str, Shape); 9] = [
        ("embed", Embed::describe()),
        ("position", Position::describe()),
        ("norm", Norm::describe()),
        ("attention", Attention::describe()),
        ("cross", Cross::describe()),
        ("ffn", Ffn::describe()),
        ("gain", Gain::describe()),
        ("head", Head::describe()),
        ("init", Init::describe()),
    ];
    shapes.into_iter().for_each(|(name, shape)| knobs(name, shape, &mut seen, &mut found));
    let mut once = BTreeSet::new();
    found.retain(|knob| once.insert(knob.clone()));
    found
}

/// What a spec uses.
fn used(spec: &ModelSpec, tree: &Node) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    used.extend(tree.entries().unwrap_or(&[]).iter().map(|e| e.key.clone()));
    for key in ["encoder", "decoder"] {
        let Some(stack) = tree.get(key) else { continue };
        used.extend(stack.entries().unwrap_or(&[]).iter().map(|e| format!("stack.{}", e.key)));
        let named = ["blocks", "ranges"].iter().filter_map(|k| stack.get(k)?.entries()).flatten();
        let blocks = std::iter::once(stack).chain(named.map(|e| &e.value));
        for block in blocks.filter(|b| b.get("block").is_some() || std::ptr::eq(*b, stack)) {
            let name = block.get("block").map_or(Some("pre_norm"), Node::text).unwrap_or("");
            used.insert(format!("wiring: {name}"));
        }
    }
    let mut note = |name: &str, shape: Shape, node: Node| uses(name, shape, &node, &mut used);
    for stack in [&spec.encoder, &spec.decoder].into_iter().flatten() {
        note("embed", Embed::describe(), stack.embed.encode());
        stack.final_norm.iter().for_each(|norm| note("norm", Norm::describe(), norm.encode()));
        for block in &stack.blocks {
            note("position", Position::describe(), block.position.encode());
            for instance in &block.instances {
                let (name, shape) = match &instance.part {
                    Part::Norm(_) => ("norm", Norm::describe()),
                    Part::Attention(_) => ("attention", Attention::describe()),
                    Part::Cross(_) => ("cross", Cross::describe()),
                    Part::Ffn(_) => ("ffn", Ffn::describe()),
                    Part::Gain(_) => ("gain", Gain::describe()),
                };
                note(name, shape, instance.part.encode());
            }
        }
    }
    note("head", Head::describe(), spec.head.encode());
    note("init", Init::describe(), spec.init.encode());
    used
}

/// A spec that a test computes with.
struct Fixture {
    name: String,
    /// Where it comes from: `numeric`, `hub`, `good` or `specs`.
    of: &'static str,
    spec: ModelSpec,
    graph: Verified,
    used: BTreeSet<String>,
}

fn fixtures() -> Vec<Fixture> {
    let mut all = Vec::new();
    let mut add = |of: &'static str, name: String, front: Front| {
        let found = front.compilation;
        let (Some(spec), Some(graph), Some(tree)) = (found.spec, found.graph, found.tree) else {
            panic!("{name} does not compile")
        };
        let used = used(&spec, &tree);
        all.push(Fixture { name, of, spec, graph, used });
    };
    for (of, folder) in [("numeric", "tests/numeric"), ("good", "tests/good"), ("specs", "specs")] {
        for (name, path) in specs(folder) {
            add(of, name, Front::of_file(&path));
        }
    }
    for (name, text) in crate::hub::texts() {
        add("hub", name, Front::of_text("spec.yaml", text, "tests"));
    }
    all
}

/// The family of two usual ones of a spec's form that says it, or what is in the way of the second.
fn export_of(fixture: &Fixture) -> Result<String, Vec<String>> {
    let forms = match (&fixture.spec.encoder, &fixture.spec.decoder) {
        (None, _) => ["gpt2", "llama"],
        (Some(_), None) => ["vit", "bert"],
        (Some(_), Some(_)) => ["t5", "bart"],
    };
    let mut way = Err(Vec::new());
    for family in forms {
        let mut sources = load::sources();
        way = match export(&fixture.spec, &Families::default(), Some(family), &mut sources, &mut Sink::new())
        {
            Ok(done) if done.lost.is_empty() => return Ok(done.family.name),
            Ok(done) => Err(done.lost),
            Err(obstacles) => Err(obstacles.knobs),
        };
    }
    way
}

/// Whether cached decoding is refused, as a model refuses it whose decoder sees the future.
fn refuses_cache(fixture: &Fixture) -> bool {
    let device = trafoc::interp::device::device("flex").unwrap().device;
    let Ok(weights) = Weights::init(&fixture.graph, &device, 1) else { return false };
    let model = Model::new(fixture.graph.clone(), weights).unwrap();
    matches!(model.forward_cached(&Inputs::new(), &mut model.cache()), Err(RunError::NoCache(_)))
}

#[test]
fn every_knob_is_computed_or_refused() {
    let fixtures = fixtures();
    let (mut missing, mut untested) = (Vec::new(), BTreeSet::new());
    let mut text = format!(
        "# What each target takes\n\nMade by `{COMMAND}`; do not edit. A row is a part (`norm: rms_norm`), a word of a key \
         (`pairing: half`) or a key set to something else than its default. A cell names a test \
         that computes it.\n\n\
         - **Numbers**: the interpreter's outputs and gradients are PyTorch's (`tests/numeric`), or Hugging Face's \
         (`hub/`), on flex, tch and wgpu alike, within the bounds of `tests/it/backend.rs`; `bits`: the interpreter is \
         compared with emitted Rust only, on flex. vulkan, metal, cuda, rocm and cpu share the code and are not tested.\n\
         - **Emitted Rust**: gives the interpreter's bits (`tests/emitted`).\n\
         - **Decoding**: with a cache as without, in the interpreter and emitted. `no-cache`: refused, with \
         the reason.\n\
         - **Export**: a Hugging Face model (`tests/hub`) or family that says it. `not shown`: none of these models \
         has it, and `trafoc export` of the test's spec, as the usual families of its form, stops and names what is in \
         the way; another spec with it may have a family. `noted`: it is about training only, and named as left out.\n\n\
         `none`: the part is tested, this key of it with its default only.\n\n\
         16 bits are asked of the device and refused where it does not compute in them; every kernel keeps its \
         element type (`tests/it/interp/traps.rs`).\n\n\
         | knob | numbers | emitted Rust | decoding | export |\n|---|---|---|---|---|\n"
    );
    let mut exports: BTreeMap<&str, Result<String, Vec<String>>> = BTreeMap::new();
    for knob in rows() {
        let with: Vec<&Fixture> = fixtures.iter().filter(|f| f.used.contains(&knob)).collect();
        // The simplest that uses it.
        let of = |from: &[&str]| {
            let from = with.iter().filter(|f| from.contains(&f.of));
            from.min_by_key(|f| (f.of == "specs", f.used.len(), &f.name)).copied()
        };
        let (numeric, hub, emitted) = (of(&["numeric"]), of(&["hub"]), of(&["good", "specs"]));
        let numbers = match (numeric, hub, emitted) {
            (Some(f), ..) => f.name.clone(),
            (None, Some(f), _) => format!("hub/{}", f.name),
            (None, None, Some(_)) => "bits".to_owned(),
            (None, None, None) => {
                untested.insert(knob.clone());
                let _ = writeln!(text, "| `{knob}` | none | none | none | none |");
                continue;
            }
        };
        let rust = emitted.map(|f| f.name.clone());
        if rust.is_none() {
            untested.insert(knob.clone());
        }
        let decodes = with.iter().filter(|f| f.of != "specs").find(|f| f.graph.decodes);
        let decoding = match decodes.or(with.iter().find(|f| f.graph.decodes)) {
            Some(f) => f.name.clone(),
            None if with.iter().filter(|f| f.of != "specs").all(|f| refuses_cache(f)) => {
                "`no-cache`".to_owned()
            }
            None => {
                missing.push(format!("no test decodes `{knob}`, and it is not refused"));
                String::new()
            }
        };
        let families: BTreeSet<&str> =
            with.iter().filter(|f| f.of == "hub").map(|f| f.name.as_str()).collect();
        let said = match (families.iter().next(), emitted.or(numeric)) {
            (Some(first), _) if families.len() == 1 => (*first).to_owned(),
            (Some(first), _) => format!("{first} and {} more", families.len() - 1),
            (None, Some(f)) => match exports.entry(&f.name).or_insert_with(|| export_of(f)) {
                Ok(family) => family.clone(),
                Err(why) if !why.is_empty() && why.iter().all(|w| is_training(w)) => "`noted`".to_owned(),
                Err(_) => "`not shown`".to_owned(),
            },
            (None, None) => String::new(),
        };
        let _ = writeln!(
            text,
            "| `{knob}` | {numbers} | {} | {decoding} | {said} |",
            rust.as_deref().unwrap_or("none")
        );
    }
    let known: BTreeSet<String> = UNTESTED.iter().map(|knob| (*knob).to_owned()).collect();
    missing.extend(untested.difference(&known).map(|knob| format!("no test computes, or emits, `{knob}`")));
    missing
        .extend(known.difference(&untested).map(|knob| format!("`{knob}` is tested now: list it no more")));
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    let path = repository("docs/capabilities.md");
    let is_fresh = std::fs::read_to_string(&path).ok().as_deref() == Some(text.as_str());
    if !is_fresh && std::env::var_os("CI").is_none() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(is_fresh, "docs/capabilities.md was stale; run `{COMMAND}` and commit");
}

/// Whether a line of an export's is about training alone.
fn is_training(line: &str) -> bool {
    line.starts_with("init") || line.contains("dropout")
}

#[test]
fn an_export_that_is_refused_says_what_is_in_the_way() {
    let text = "name: odd\nvocab: 97\ncontext: 40\nd_model: 32\nembed: {position: rotary}\nnorm: rms_norm\n\
                decoder: {layers: 2, attention: {heads: 4, bias: false, gate: headwise}, ffn: {glu: {bias: false}}}\n\
                head: lm\n";
    let mut sources = load::sources();
    let id = sources.add("spec", text);
    let found = compile(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles).unwrap();
    let (spec, tree) = (found.spec.unwrap(), found.tree.unwrap());
    let used = used(&spec, &tree);
    assert!(used.contains("gate: headwise"), "{used:?}");
    let fixture = Fixture { name: "odd".to_owned(), of: "good", spec, graph: found.graph.unwrap(), used };
    assert_eq!(
        export_of(&fixture),
        Err(vec!["decoder.attention.multi_head.gate: headwise, not none".to_owned()])
    );
}
