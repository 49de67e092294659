//! Nothing is lost on the way in and out: a spec reads the weights of an imported directory without its
//! config, and an export has the names of classes again.

use serde_json::{Value as Json, json};
use trafoc::compile::compile;
use trafoc::diag::render;
use trafoc::field::record::entry;
use trafoc::hub::checkpoint::Checkpoint;
use trafoc::hub::mapping::{map, parameters};
use trafoc::hub::own_names::weights;
use trafoc::hub::shelf::Families;
use trafoc::hub::tensors::Tensors;
use trafoc::hub::written::keep;
use trafoc::ir::ModelKind;
use trafoc::report::compare::nearest::nearest;
use trafoc::source::Span;
use trafoc::spec::load;
use trafoc::syntax::tree::Node;
use trafoc::syntax::{Notation, fmt, print};

use super::{Fixture, exported, mapped, models};
use crate::compiled::{program, repository};
use crate::front::{Front, known, shipped};

/// The spec of a directory with the names of its tensors, in a notation.
fn whole(model: &Fixture, notation: Notation, tensors: Option<&[&str]>) -> String {
    let names = weights(&model.imported, tensors, &model.graph);
    let map = Node::map(vec![entry("weights", names)], Span::default());
    let text = format!("{}\n{}", model.imported.text, print::yaml(&map));
    if notation == Notation::Yaml {
        return text;
    }
    let mut sources = load::sources();
    let id = sources.add("spec", text.clone());
    let mut sink = trafoc::diag::Sink::new();
    let (from, is_part) = (Notation::Yaml, trafoc::spec::is_part);
    fmt::convert(&sources, id, from, notation, &is_part, &mut sink).unwrap_or_else(|| panic!("{text}"))
}

/// Every parameter comes from the same place of the same tensor, whether the directory's config is there or
/// the spec alone.
#[test]
fn an_imported_spec_reads_the_weights_of_its_directory() {
    for model in models() {
        let (checkpoint, wanted) = mapped(&model.imported, &model.graph, &model.folder);
        let tensors: Vec<&str> = checkpoint.names().collect();
        for (notation, tensors) in
            [(Notation::Yaml, Some(&*tensors)), (Notation::Dsl, Some(&*tensors)), (Notation::Yaml, None)]
        {
            let text = whole(model, notation, tensors);
            let mut sources = load::sources();
            let id = sources.add("spec", text.clone());
            let found = compile(&mut sources, id, notation, &[], &mut load::NoFiles).unwrap();
            let shown = render::render(&found.diagnostics, &sources, false, 100);
            assert!(found.diagnostics.is_empty(), "{}\n{text}\n{shown}", model.name);
            // Without the files, it is what the library writes that is read.
            if tensors.is_none() {
                continue;
            }
            let (spec, graph) = (found.spec.unwrap(), found.graph.unwrap());
            let names = spec.weights.as_ref().unwrap().names();
            let mapping = map(&parameters(&graph).unwrap(), names, &spec.keys(), &checkpoint);
            assert!(mapping.mismatches.is_empty(), "{}\n{text}\n{:?}", model.name, mapping.mismatches);
            assert_eq!(mapping.origins, wanted.origins, "{}\n{text}", model.name);
            // Copies and what is ignored may hold other numbers in the files of a model.
            if let Err(error) = Tensors::new(Checkpoint::open(&model.folder).unwrap(), mapping) {
                panic!("{}\n{text}\n{error}", model.name);
            }
        }
    }
}

/// Older files of BERT call the weight of a norm `gamma`.
#[test]
fn older_names_are_read_too() {
    let model = models().iter().find(|model| model.name == "bert-mlm").unwrap();
    let checkpoint = Checkpoint::open(&model.folder).unwrap();
    let renamed = |name: &str| {
        let older = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        older.replace("LayerNorm.bias", "LayerNorm.beta")
    };
    let tensors: Vec<String> = checkpoint.names().map(renamed).collect();
    let tensors: Vec<&str> = tensors.iter().map(String::as_str).collect();
    let text = whole(model, Notation::Yaml, Some(&tensors));
    assert!(text.contains("attention.output.LayerNorm.gamma: norm1.weight"), "{text}");
    assert!(text.contains("embeddings.LayerNorm.beta: embed.norm.bias"), "{text}");
}

/// Names of classes and what else a config says of running go out again, and never what would change the
/// model.
#[test]
fn an_export_keeps_what_the_config_said() {
    let families = Families::default();
    for (name, more) in [
        ("bert-classify", json!({"problem_type": "single_label_classification"})),
        ("roberta-classify", json!({})),
        ("gpt2-classify", json!({})),
        ("modernbert-tag", json!({})),
        ("deit", json!({})),
    ] {
        let model = models().iter().find(|model| model.name == name).unwrap();
        let text = std::fs::read_to_string(model.folder.join("config.json")).unwrap();
        let mut own: Json = serde_json::from_str(&text).unwrap();
        let count = match &own["id2label"] {
            Json::Object(labels) => labels.len(),
            // The library's default.
            _ => 2,
        };
        let words: Vec<String> = (0..count).map(|i| format!("class {i}")).collect();
        own["id2label"] = words.iter().enumerate().map(|(i, w)| (i.to_string(), json!(w))).collect();
        own["label2id"] = words.iter().enumerate().map(|(i, w)| (w.clone(), json!(i))).collect();
        own["task_specific_params"] = json!({"a": {"b": 1}});
        own["bos_token_id"] = json!(1);
        own["dtype"] = json!("bfloat16");
        for (key, value) in more.as_object().unwrap() {
            own[key] = value.clone();
        }
        let family = model.imported.family.name.clone();
        let mut config = exported(&model.spec, &family).config(name);
        let before = config.clone();
        keep(&mut config, &own, &families);
        for key in ["id2label", "label2id", "task_specific_params", "bos_token_id"] {
            assert_eq!(config[key], own[key], "{name}: {key}");
        }
        for (key, value) in more.as_object().unwrap() {
            assert_eq!(config[key], *value, "{name}: {key}");
        }
        assert_eq!(config["torch_dtype"], "float32");
        assert!(config["dtype"].is_null(), "{name}: the file is in single precision");
        // A model with another number of classes does not get the names of those it had.
        if matches!(name, "bert-classify" | "roberta-classify") {
            let mut changed = before.clone();
            let other = count + 3;
            changed["num_labels"] = json!(other);
            keep(&mut changed, &own, &families);
            assert!(changed["id2label"].is_null() && changed["label2id"].is_null(), "{name}: {changed}");
            assert_eq!(changed["task_specific_params"], own["task_specific_params"], "{name}");
        }
    }
}

/// The shipped spec that is nearest to a model is of its kind, and of its family where one is shipped.
#[test]
fn the_nearest_spec_has_the_same_stacks() {
    let shipped = shipped();
    let known = known(&shipped);
    let kind = |name: &str| known.iter().find(|k| k.name == name).unwrap().spec.kind();
    for model in models() {
        let near = nearest(&model.spec, &model.graph, &known);
        let first = &near[0];
        assert_eq!(kind(&first.name), model.spec.kind(), "{}: {near:?}", model.name);
        assert!(near.iter().all(|n| (0.0..=1.0).contains(&n.distance)), "{near:?}");
        let family = match model.name.as_str() {
            "gemma3_text" | "gemma2" => Some("gemma2-2b"),
            "gpt_neox" => Some("pythia-160m"),
            "mixtral" => Some("mixtral-8x7b"),
            _ => None,
        };
        assert!(family.is_none_or(|family| family == first.name), "{}: {near:?}", model.name);
    }
    // nGPT: normalised residual steps with learned rates, and norms of queries and keys.
    let ngpt = "trafo: 1\nname: ngpt\nvocab: 50257\ncontext: 1024\nd_model: 1024\nembed: {position: rotary}\n\
        norm: {rms_norm: {affine: false}}\ndecoder:\n  layers: 24\n  block: |\n    \
        x = norm(x + gain(norm(attention(x)) - x))\n    x = norm(x + gain(norm(ffn(x)) - x))\n  \
        attention: {heads: 16, bias: false, qk_norm: {norm: rms_norm}, scale: sqrt(head_dim)}\n  \
        ffn: {glu: {hidden: 4096, activation: silu, bias: false}}\n  final_norm: false\n\
        head: {lm: {tied: false}}\n";
    let front = Front::of_text("ngpt.yaml", ngpt, "specs");
    let spec = front.compilation.spec.as_ref().unwrap_or_else(|| panic!("{}", front.rendered()));
    let near = nearest(spec, front.compilation.graph.as_ref().unwrap(), &known);
    assert_eq!(kind(&near[0].name), ModelKind::Decoder, "{near:?}");
}

/// What a directory has and its model does not is named: a mask token, a head for contacts. Tables that the library
/// computes itself are not.
#[test]
fn an_export_says_which_tensors_it_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    let export = |model: &str| {
        let mut command = program();
        command.arg("export").arg(repository("tests/hub").join(model)).arg("--to");
        let done = command.arg(folder.path().join(model)).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let said = export("esm");
    let named = "from them: `esm.contact_head.regression.bias`, `esm.contact_head.regression.weight`\n";
    assert!(said.contains(named), "{said}");
    let said = export("dinov2_with_registers");
    assert!(said.contains("from them: `dinov2_with_registers.embeddings.mask_token`\n"), "{said}");
    for whole in ["gpt2", "minimax", "pegasus", "marian"] {
        let said = export(whole);
        assert!(!said.contains("not written"), "{said}");
    }
}

/// To try families takes seconds, so what they have nothing to do with is refused before.
#[test]
fn an_export_without_values_is_refused_before_families_are_tried() {
    let folder = tempfile::tempdir().unwrap();
    for (more, reason) in [
        (&["--family", "gpt2"][..], "an export needs weights"),
        (&["--family", "gpt2", "--weights", "none.safetensors"], "cannot use `none.safetensors`"),
        (&["--family", "none"], "there is no family `none`"),
        (&["--adapter"], "`--adapter` is for a run"),
    ] {
        // GPT-2 has no encoder.
        let mut command = program();
        command.args(["export", "@transformer", "--to", "made"]).args(more).current_dir(&folder);
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains(reason), "{more:?}: {said}");
    }
}

/// A spec has no key for them, so a file that `import` writes lacks them.
#[test]
fn import_says_that_the_names_of_classes_stay_behind() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(repository("tests/hub/bert-classify/config.json")).unwrap();
    let mut config: Json = serde_json::from_str(&text).unwrap();
    let said = |config: &Json| {
        std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        crate::cli::trafoc_in(folder.path(), &["import", "."]).err
    };
    let note = "a spec has no names for classes; `trafoc export . --to DIR` keeps those of this model";
    assert!(!said(&config).contains(note), "LABEL_0 names nothing");
    config["id2label"]["3"] = json!("surprise");
    let err = said(&config);
    assert!(err.contains(note), "{err}");
}
