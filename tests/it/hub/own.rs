//! A spec's own `weights`: state dictionaries of modules written by hand compute the same numbers as in
//! PyTorch.
//!
//! A folder of `tests/weights` holds a spec, a checkpoint, inputs and the expected outputs; `make.py`
//! writes all of these except the spec.

use std::path::Path;

use trafoc::diag::Sink;
use trafoc::hub::checkpoint::Checkpoint;
use trafoc::hub::export::export;
use trafoc::hub::mapping::{Header, Mapping, map, parameters};
use trafoc::hub::shelf::Families;
use trafoc::hub::tensors::Tensors;
use trafoc::interp::{Inputs, Model, Options, Weights};
use trafoc::ir::Verified;
use trafoc::names::Names;
use trafoc::spec::ModelSpec;
use trafoc::spec::expand::expand;
use trafoc::syntax::Notation;
use trafoc::tensor_file::TensorFile;

use crate::compiled::repository;
use crate::front::Front;

/// How far a number may be off, relative to the largest one.
const TOLERANCE: f32 = 1e-5;

fn compiled(name: &str, text: &str) -> (ModelSpec, Verified) {
    let front = Front::of_text(name, text, "tests");
    assert!(front.codes().is_empty(), "{name}\n{text}\n{}", front.rendered());
    (front.compilation.spec.unwrap(), front.compilation.graph.unwrap())
}

fn mapped(spec: &ModelSpec, graph: &Verified, file: &Path) -> (Checkpoint, Mapping) {
    let checkpoint = Checkpoint::open(file).unwrap();
    let names = spec.weights.as_ref().unwrap().names();
    let mapping = map(&parameters(graph).unwrap(), names, &spec.keys(), &checkpoint);
    (checkpoint, mapping)
}

fn folders() -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(repository("tests/weights")).unwrap();
    let mut found: Vec<_> = all.map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

#[test]
fn checkpoints_with_names_of_their_own_compute_the_same() {
    let device = trafoc::interp::device::device("flex").unwrap().device;
    for folder in folders() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(folder.join("spec.yaml")).unwrap();
        let (spec, graph) = compiled("spec.yaml", &text);
        // The names survive being written in either notation.
        let dsl = compiled("spec.trafo", &expand(&spec, Notation::Dsl));
        assert_eq!(dsl.0, spec, "{name}");
        let (checkpoint, mapping) = mapped(&dsl.0, &dsl.1, &folder.join("model.safetensors"));
        assert!(mapping.mismatches.is_empty(), "{name}: {:#?}", mapping.mismatches);
        let mut tensors = Tensors::new(checkpoint, mapping).unwrap();
        let weights = Weights::build(&graph, &device, |path, slot| {
            Ok(tensors.sized(path, slot.shape.iter().product()).unwrap())
        });
        let weights = weights.unwrap();
        // What trafoc writes uses paths as names, and can be loaded too.
        let own = tempfile::tempdir().unwrap();
        let file = own.path().join("model.safetensors");
        weights.save(&file, &indexmap::IndexMap::new()).unwrap();
        assert!(mapped(&spec, &graph, &file).1.mismatches.is_empty(), "{name}");
        let run = Model::new(graph, weights).unwrap();
        let given = std::fs::read_to_string(folder.join("inputs.json")).unwrap();
        let given: serde_json::Value = serde_json::from_str(&given).unwrap();
        let inputs = Inputs::from_json(run.plan(), &given, &device).unwrap();
        let outputs = run.forward(&inputs, &Options::default()).unwrap();
        let mut expected = TensorFile::open(&folder.join("expected.safetensors")).unwrap();
        let wanted = expected.floats("logits").unwrap();
        let found = outputs["logits"].to_floats().unwrap();
        assert_eq!(found.len(), wanted.len(), "{name}");
        let scale = wanted.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let off = found.iter().zip(&wanted).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
        assert!(off <= TOLERANCE * scale, "{name} is off by {off} at a scale of {scale}");
    }
}

/// A spec with its own names for the tensors of a checkpoint can still be exported to a family.
#[test]
fn names_of_their_own_do_not_keep_a_spec_from_going_out() {
    let text = std::fs::read_to_string(repository("tests/weights/fused/spec.yaml")).unwrap();
    let (spec, _) = compiled("spec.yaml", &text);
    assert!(spec.weights.is_some());
    let mut sources = trafoc::spec::load::sources();
    let found = export(&spec, &Families::default(), None, &mut sources, &mut Sink::new());
    assert_eq!(found.map(|e| e.family.name).map_err(|o| o.knobs), Ok("gpt2".to_owned()));
}

/// An `into` at the top of `weights` applies to all of its names.
#[test]
fn all_names_may_be_of_one_module() {
    let spec = |names: &str| {
        let text = "trafo: 1\nname: t\nvocab: 9\ncontext: 8\nd_model: 4\nhead: lm\n\
                    decoder: {layers: 2, attention: {heads: 2}, ffn: {expansion: 2}}\n";
        compiled("spec.yaml", &format!("{text}weights:\n{names}"))
    };
    let rows = |spec: &ModelSpec| spec.weights.as_ref().unwrap().names().rows.clone();
    let short = spec("  into: decoder\n  h.{i}.ln: blocks.{i}.norm1\n  end: final_norm\n").0;
    let whole = spec("  h.{i}.ln: decoder.blocks.{i}.norm1\n  end: decoder.final_norm\n").0;
    assert_eq!(rows(&short).len(), 2);
    for (a, b) in rows(&short).iter().zip(rows(&whole)) {
        assert_eq!((&a.tensor, &a.parameters), (&b.tensor, &b.parameters));
    }
}

#[test]
fn what_the_names_leave_out_is_said() {
    let folder = repository("tests/weights/heads");
    let text = std::fs::read_to_string(folder.join("spec.yaml")).unwrap();
    let file = folder.join("model.safetensors");
    let mismatches = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let (spec, graph) = compiled("spec.yaml", &text.replace(from, to));
        mapped(&spec, &graph, &file).1.mismatches.into_iter().map(|m| m.message).collect::<Vec<_>>()
    };
    let found = mismatches("    norm: norm\n", "");
    // What is said of both layers is said once, and of the parameters of one shape, the one of the same kind is the likeliest.
    let wanted = ["weight", "bias"].map(|last| {
        format!("decoder.blocks.*.norm.{last} [24] is missing (2 times, * = 0 to 1); the file has `blocks.*.norm.{last}`")
    });
    // In the order of the file.
    let unknown = ["bias", "weight"].map(|last| {
        format!(
            "`blocks.*.norm.{last}` [24] is no parameter of the model (2 times, * = 0 to 1); \
             decoder.blocks.*.norm.{last}, which is missing, has that shape"
        )
    });
    assert_eq!(found, [wanted, unknown].concat());
    let found = mismatches("attention: {heads: 3}", "attention: {heads: 3, head_dim: 9}");
    assert!(
        found
            .iter()
            .any(|m| m.contains("the 3 tensors `blocks.0.heads.{h}.W_query.weight` together have 24 rows")),
        "{found:#?}"
    );
}

/// Tensors that a model knows nothing of.
struct Foreign(Vec<(String, Vec<usize>)>);

impl Header for Foreign {
    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }
    fn tensor(&self, name: &str) -> Option<(&str, &[usize])> {
        let index: usize = name.strip_prefix('t')?.parse().ok()?;
        self.0.get(index).map(|(_, shape)| ("F32", shape.as_slice()))
    }
}

/// Comparing each parameter with each tensor would take minutes here.
#[test]
fn a_file_of_many_other_tensors_is_told_in_full() {
    const MANY: usize = 60_000;
    let shape = |i: usize| vec![i + 1, 2];
    let file = Foreign((0..MANY).map(|i| (format!("t{i}"), shape(i))).collect());
    let parameters = (0..MANY).map(|i| (format!("blocks.{i}.weight"), shape(i))).collect();
    let text = std::fs::read_to_string(repository("specs/gbt-mulm.yaml")).unwrap();
    let (spec, _) = compiled("spec.yaml", &text);
    let mapping = map(&parameters, &Names::default(), &spec.keys(), &file);
    assert_eq!(mapping.mismatches.iter().map(|one| one.count).sum::<usize>(), 2 * MANY);
    let last = mapping.mismatches.last().unwrap();
    assert!(last.message.contains(&format!("blocks.{}.weight, which is missing, has that shape", MANY - 1)));
    assert_eq!(mapping.tensors.len(), MANY);
}
