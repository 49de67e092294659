//! What each target supports: `docs/capabilities.md`, generated from the field tables and from what the
//! tests cover. A knob that no test computes and no test emits is a failure.
//!
//! Rows are the parts, keys and words of the tables that the decoder reads, so a new part gets its row.
//! What a spec uses is found in the spec as it is decoded and written again. A fixture counts if it sets a
//! key to something else than its default.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use trafoc::compile::compile;
use trafoc::diag::Sink;
use trafoc::emit::pytorch;
use trafoc::field::value::{DefaultDoc, Field, Shape, Value as _};
use trafoc::hub::export::export;
use trafoc::hub::shelf::Families;
use trafoc::interp::device::{BACKENDS, DTYPES};
use trafoc::interp::run::RunError;
use trafoc::interp::{Inputs, Model, Weights};
use trafoc::ir::Verified;
use trafoc::parts::{Attention, Cross, Embed, Ffn, Gain, Head, Init, Norm, Position};
use trafoc::source::SourceMap;
use trafoc::spec::block::Part;
use trafoc::spec::{ModelSpec, load, model, stack, wiring};
use trafoc::syntax::tree::{Kind, Node};
use trafoc::syntax::{Notation, parse};

use crate::backend::BOUNDS;
use crate::compiled::{repository, specs};
use crate::front::Front;

const COMMAND: &str = "cargo test --test it capabilities";

/// Keys of the whole spec and of a stack that contain parts but have no effect themselves. Names and lists
/// of words for readers are not knobs either.
const AROUND: &[&str] = &["trafo", "name", "norm", "embed", "encoder", "decoder", "head", "init", "block"];

/// A word of a key is one row, wherever the key occurs: `activation: relu`.
fn said(path: &str, word: &str) -> String {
    format!("{}: {word}", path.rsplit('.').next().unwrap_or(path))
}

/// Collects every knob of a shape under a name.
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
        Shape::List(inner, _) | Shape::Map(inner) => knobs(name, inner(), seen, found),
        Shape::Choice(words) => found.extend(words.iter().map(|word| said(name, word.name))),
        Shape::Bool
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Text
        | Shape::Texts
        | Shape::Equation
        | Shape::Part
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

/// What a node uses of a shape.
fn uses(name: &str, shape: Shape, node: &Node, used: &mut BTreeSet<String>) {
    if let Kind::List(items) = &node.kind
        && !matches!(shape, Shape::List(..))
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
        (Shape::List(inner, _), Kind::List(items)) => {
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

/// Everything that a spec may contain, in the order of the tables.
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

/// Whether a node has the key `qkv` for its biases, which is decoded as three keys.
fn is_short_of_biases(node: &Node) -> bool {
    node.entries()
        .unwrap_or(&[])
        .iter()
        .any(|e| (e.key == "bias" && e.value.get("qkv").is_some()) || is_short_of_biases(&e.value))
}

/// What a spec uses: `own` is the text itself, `tree` includes what it extends.
fn used(spec: &ModelSpec, own: &Node, tree: &Node) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    used.extend(own.entries().unwrap_or(&[]).iter().map(|e| e.key.clone()));
    used.extend(tree.entries().unwrap_or(&[]).iter().map(|e| e.key.clone()));
    used.extend(is_short_of_biases(own).then(|| "bias.qkv".to_owned()));
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
                let (name, shape) = match instance.part.as_ref() {
                    Part::Norm(_) => ("norm", Norm::describe()),
                    Part::Attention(_) => ("attention", Attention::describe()),
                    Part::Cross(_) => ("cross", Cross::describe()),
                    Part::Ffn(_) => ("ffn", Ffn::describe()),
                    Part::Gain(_) => ("gain", Gain::describe()),
                    // Its fields are the author's.
                    Part::Own(_) | Part::Reading(_) => continue,
                };
                note(name, shape, instance.part.encode());
            }
        }
    }
    note("head", Head::describe(), spec.head.encode());
    note("init", Init::describe(), spec.init.encode());
    used
}

/// A spec with which a test computes.
struct Fixture {
    name: String,
    /// Its source: `numeric`, `hub`, `good` or `specs`.
    of: &'static str,
    spec: ModelSpec,
    graph: Verified,
    used: BTreeSet<String>,
}

impl Fixture {
    /// Its name, preceded by the folder unless it is one of PyTorch's.
    fn shown(&self) -> String {
        if self.of == "hub" { format!("hub/{}", self.name) } else { self.name.clone() }
    }
}

fn fixture(of: &'static str, name: String, (text, notation): (&str, Notation), front: Front) -> Fixture {
    let found = front.compilation;
    let (Some(spec), Some(graph), Some(tree)) = (found.spec, found.graph, found.tree) else {
        panic!("{name} does not compile")
    };
    let mut sources = load::sources();
    let id = sources.add("spec", text);
    let own = parse(&sources, id, notation, &mut Sink::new()).unwrap();
    let used = used(&spec, &own, &tree);
    Fixture { name, of, spec, graph, used }
}

fn fixtures() -> Vec<Fixture> {
    let mut all = Vec::new();
    for (of, folder) in [("numeric", "tests/numeric"), ("good", "tests/good"), ("specs", "specs")] {
        for (name, path) in specs(folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            let notation = Notation::from_path(path.to_str().unwrap()).unwrap();
            all.push(fixture(of, name, (&text, notation), Front::of_file(&path)));
        }
    }
    for (name, text) in crate::hub::texts() {
        let front = Front::of_text("spec.yaml", text, "tests");
        all.push(fixture("hub", name, (text, Notation::Yaml), front));
    }
    all
}

/// The fixtures that test a knob. For numbers, those of PyTorch come first, then Hugging Face's, then
/// emitted Rust alone.
struct Evidence<'a> {
    knob: String,
    with: Vec<&'a Fixture>,
    numbers: Option<&'a Fixture>,
    emitted: Option<&'a Fixture>,
}

fn evidence(fixtures: &[Fixture]) -> Vec<Evidence<'_>> {
    let show = |knob: String| {
        let with: Vec<&Fixture> = fixtures.iter().filter(|f| f.used.contains(&knob)).collect();
        // The simplest fixture that uses the knob.
        let of = |from: &[&str]| {
            let from = with.iter().filter(|f| from.contains(&f.of));
            from.min_by_key(|f| (f.of == "specs", f.used.len(), &f.name)).copied()
        };
        let emitted = of(&["good", "specs"]).or_else(|| of(&["hub"]));
        let numbers = of(&["numeric"]).or_else(|| of(&["hub"])).or(emitted);
        Evidence { knob, with, numbers, emitted }
    };
    rows().into_iter().map(show).collect()
}

/// The knobs that no other implementation's numbers cover, by name.
pub fn without_numbers() -> BTreeMap<String, Verified> {
    let all = fixtures();
    let shown = evidence(&all);
    let shown = shown.iter().filter_map(|e| e.numbers).filter(|f| matches!(f.of, "good" | "specs"));
    shown.map(|f| (f.name.clone(), f.graph.clone())).collect()
}

/// The first usual family that can express the form of a spec, or what prevents it.
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

/// Whether cached decoding is refused, as for a model whose decoder sees the future.
fn refuses_cache(fixture: &Fixture) -> bool {
    let device = trafoc::interp::device::device("flex").unwrap().device;
    let Ok(weights) = Weights::init(&fixture.graph, &device, 1) else { return false };
    let model = Model::new(fixture.graph.clone(), weights).unwrap();
    matches!(model.forward_cached(&Inputs::new(), &mut model.cache()), Err(RunError::NoCache(_)))
}

#[test]
fn every_knob_is_computed_or_refused() {
    let fixtures = fixtures();
    let mut missing = Vec::new();
    let backends: Vec<&str> = BOUNDS.iter().map(|bounds| bounds.backend).collect();
    let ci = std::fs::read_to_string(repository(".ci/run")).unwrap();
    assert!(
        ci.contains(&format!("devices=({})", backends.join(" "))),
        "`.ci/run numbers` runs other devices"
    );
    let mut text = format!(
        "# What each target supports\n\nGenerated by `{COMMAND}`; do not edit. A row is a part (`norm: rms_norm`), a word of a key \
         (`pairing: half`), or a key that is set to something else than its default. A cell names a test that computes it, \
         or the numbers with which its own are compared.\n\n\
         - **Numbers** of the interpreter, and the spec that shows them. On flex, tch and wgpu they equal those of \
         `PyTorch` in double precision, outputs and gradients (`tests/numeric`), or those of `Hugging Face` \
         (`tests/hub`), within the bounds of `tests/it/backend.rs`. What neither of them covers, for example a \
         distribution of initial values, equals the bits of emitted `Rust` on flex, and the numbers of `flex` elsewhere. \
         On an NVIDIA H200, the numbers of `tests/numeric` and `tests/hub` were computed by hand with wgpu, vulkan and tch-cuda \
         (LibTorch 2.11), within the bounds of that file; gradients with tch-cuda alone. metal, cuda, rocm and cpu share the code \
         and are not tested.\n\
         - **Emitted Rust**: computes the same bits as the interpreter (`tests/emitted`).\n\
         - **Emitted PyTorch**: computes the interpreter's numbers to 1e-5 and PyTorch's gradients to 1e-4 \
         (`tests/pytorch`). Only a name is refused (exit code 3): an instance that is called `training`.\n\
         - **Decoding**: the same with a cache as without, in the interpreter and in emitted code. `refused (2)`: \
         `trafoc generate` ends with exit code 2 and the reason.\n\
         - **Export**: a Hugging Face model (`tests/hub`) or family that can express it. `refused (3)`: none of these models \
         has it; `trafoc export --family` of the test's spec, with the usual families of its form, ends with exit code 3 and \
         names the reason, but another spec with it may have a family; without `--family` the directory has code of its \
         own. `noted`: it concerns only training, and is listed as left out.\n\n"
    );
    text += &dtypes();
    let cells = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let heads =
        [&["knob", "spec"][..], &backends, &["emitted Rust", "emitted PyTorch", "decoding", "export"]]
            .concat();
    text += &cells(&heads);
    text += &cells(&vec!["---"; heads.len()]);
    let mut exports: BTreeMap<&str, Result<String, Vec<String>>> = BTreeMap::new();
    for Evidence { knob, with, numbers, emitted } in evidence(&fixtures) {
        let (Some(numbers), Some(emitted)) = (numbers, emitted) else {
            missing.push(format!("no test computes, or emits, `{knob}`"));
            continue;
        };
        let decodes = with.iter().filter(|f| f.of != "specs").find(|f| f.graph.decodes);
        let decoding = match decodes.or(with.iter().find(|f| f.graph.decodes)) {
            Some(f) => f.shown(),
            None if with.iter().filter(|f| f.of != "specs").all(|f| refuses_cache(f)) => {
                "`refused (2)`".to_owned()
            }
            None => {
                missing.push(format!("no test decodes `{knob}`, and it is not refused"));
                String::new()
            }
        };
        let families: BTreeSet<&str> =
            with.iter().filter(|f| f.of == "hub").map(|f| f.name.as_str()).collect();
        let said = match families.iter().next() {
            Some(first) if families.len() == 1 => (*first).to_owned(),
            Some(first) => format!("{first} and {} more", families.len() - 1),
            None => match exports.entry(&emitted.name).or_insert_with(|| export_of(emitted)) {
                Ok(family) => family.clone(),
                Err(why) if !why.is_empty() && why.iter().all(|w| is_training(w)) => "`noted`".to_owned(),
                Err(_) => "`refused (3)`".to_owned(),
            },
        };
        let compared = |backend: &&str| match (numbers.of, *backend) {
            ("numeric", _) => "PyTorch",
            ("hub", _) => "Hugging Face",
            (_, "flex") => "Rust",
            (_, _) => "flex",
        };
        let compared: Vec<&str> = backends.iter().map(compared).collect();
        let pytorch = match pytorch::source(&emitted.graph, &SourceMap::new(), &emitted.name) {
            Ok(_) => emitted.shown(),
            Err(why) => {
                missing.push(format!("`{knob}` cannot be emitted for PyTorch: {why}"));
                String::new()
            }
        };
        let (knob, spec, rust) = (format!("`{knob}`"), numbers.shown(), emitted.shown());
        let targets = [rust.as_str(), &pytorch, &decoding, &said];
        text += &cells(&[&[knob.as_str(), &spec], &compared[..], &targets].concat());
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    let path = repository("docs/capabilities.md");
    let is_fresh = std::fs::read_to_string(&path).ok().as_deref() == Some(text.as_str());
    // The next run then passes. On CI, where nobody commits the file, it stays as it was.
    if !is_fresh && std::env::var_os("CI").is_none() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(is_fresh, "docs/capabilities.md was stale; run `{COMMAND}` and commit");
}

/// The element types of `--dtype` by device.
fn dtypes() -> String {
    let mut text = "A 16-bit type is refused with exit code 5 before anything is computed if the device does not support it; \
                    norms, softmax and the loss stay in 32 bits (`tests/it/interp/traps.rs`). `yes`: tested; `asked`: \
                    as the device itself reports.\n\n| device | feature |"
        .to_owned();
    let names: Vec<&str> = DTYPES.iter().map(|(name, _)| *name).collect();
    let _ = writeln!(text, " {} |\n{}|", names.join(" | "), "|---".repeat(names.len() + 2));
    for backend in BACKENDS {
        let bounds = BOUNDS.iter().find(|bounds| bounds.backend == backend.name);
        let cell =
            |dtype: &&str| if bounds.is_some_and(|b| b.dtypes.contains(dtype)) { "yes" } else { "asked" };
        let cells: Vec<&str> = names.iter().map(cell).collect();
        let _ = writeln!(text, "| `{}` | `{}` | {} |", backend.name, backend.feature, cells.join(" | "));
    }
    text + "\n"
}

/// Whether a line about an export concerns only training.
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
    let used = used(&spec, &tree, &tree);
    assert!(used.contains("gate: headwise"), "{used:?}");
    let fixture = Fixture { name: "odd".to_owned(), of: "good", spec, graph: found.graph.unwrap(), used };
    assert_eq!(
        export_of(&fixture),
        Err(vec!["decoder.attention.multi_head.gate: headwise, not none".to_owned()])
    );
}
