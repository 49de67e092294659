//! A directory of peft is used as the model that peft merges (`tests/tune/adapters.py`), and what is more
//! than plain low-rank adaptation is refused.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value as Json;
use trafoc::tensor_file::{Saved, TensorFile, write};

use super::{NEW, recipe};
use crate::cli::trafoc_in;
use crate::compiled::repository;

fn folder(name: &str) -> PathBuf {
    repository("tests/tune/adapters").join(name)
}

const CASES: [&str; 8] = [
    "bert",
    "bert-stabilised",
    "gpt2",
    "bert-patterns",
    "bert-classify",
    "bert-tag",
    "roberta-classify",
    "llama",
];

/// The whole model is exported, with the numbers of peft.
#[test]
fn adapters_are_merged_as_peft_does() {
    for name in CASES {
        let to = tempfile::tempdir().unwrap();
        let from = folder(name).display().to_string();
        let said = trafoc_in(to.path(), &["export", &from, "--to", "whole"]);
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        let mut own = TensorFile::open(&to.path().join("whole/model.safetensors")).unwrap();
        let mut there = TensorFile::open(&folder(name).join("expected/merged.safetensors")).unwrap();
        let names: Vec<String> = there.entries().keys().cloned().collect();
        assert!(!names.is_empty());
        assert_eq!(std::fs::read_dir(repository("tests/tune/adapters")).unwrap().count(), CASES.len());
        for tensor in names {
            let (own, there) = (own.floats(&tensor).unwrap(), there.floats(&tensor).unwrap());
            assert_eq!(own.len(), there.len(), "{name}, {tensor}");
            let far = own.iter().zip(&there).map(|(a, b)| (a - b).abs()).fold(0.0f32, f32::max);
            assert!(far < 1e-5, "{name}, {tensor}: {far}");
        }
    }
}

/// It is trained and predicts as any other directory, with the tokenizer of its body.
#[test]
fn training_starts_from_an_adapter() {
    let to = tempfile::tempdir().unwrap();
    let from = folder("bert").display().to_string();
    let all = ["train", &from, "--recipe", &recipe(), "--out", "run", "--with", "steps=1"];
    let said = trafoc_in(to.path(), &[&all[..], &NEW].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains(&format!("starts from {from}")), "{}", said.err);
    let said = trafoc_in(to.path(), &["predict", "run", "--text", "wheat prices"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

/// A copy of a directory whose config is changed.
fn changed(to: &Path, key: &str, value: Json) -> String {
    std::fs::create_dir_all(to).unwrap();
    let name = "adapter_model.safetensors";
    std::fs::copy(folder("bert").join(name), to.join(name)).unwrap();
    let text = std::fs::read_to_string(folder("bert").join("adapter_config.json")).unwrap();
    let mut config: Json = serde_json::from_str(&text).unwrap();
    config["base_model_name_or_path"] = repository("tests/tune/bert").display().to_string().into();
    config[key] = value;
    std::fs::write(to.join("adapter_config.json"), config.to_string()).unwrap();
    to.display().to_string()
}

#[test]
fn what_is_not_plain_is_refused() {
    let to = tempfile::tempdir().unwrap();
    let cases = [
        ("use_dora", true.into(), "`use_dora`"),
        ("rank_pattern", serde_json::json!({ "query": 2 }), "needs [2, 32]"),
        ("rank_pattern", serde_json::json!({ "query|value": 2 }), "the pattern `query|value`"),
        ("alpha_pattern", serde_json::json!({ "layer.[01].*": 2 }), "the pattern `layer.[01].*`"),
        ("alpha_pattern", serde_json::json!({ "query": 0 }), "no positive number"),
        ("modules_to_save", serde_json::json!(["classifier"]), "names `classifier` in `modules_to_save`"),
        ("peft_type", "IA3".into(), "`peft_type`"),
        ("bias", "all".into(), "`bias`"),
        ("r", 2.into(), "needs [2, 32]"),
        ("r", 0.into(), "`r` and `lora_alpha`"),
        ("base_model_name_or_path", Json::Null, "does not name the model"),
        ("base_model_name_or_path", "org/elsewhere".into(), "`org/elsewhere`"),
    ];
    for (i, (key, value, why)) in cases.into_iter().enumerate() {
        let from = changed(&to.path().join(i.to_string()), key, value);
        let said = trafoc_in(to.path(), &["export", &from, "--to", "whole"]);
        assert!(said.code != 0 && said.err.contains(why), "{key}: {}", said.err);
    }
    // A new head for which no task is named.
    let head = to.path().join("head");
    std::fs::create_dir(&head).unwrap();
    let name = "adapter_model.safetensors";
    std::fs::copy(folder("bert-classify").join(name), head.join(name)).unwrap();
    let text = std::fs::read_to_string(folder("bert-classify").join("adapter_config.json")).unwrap();
    let mut config: Json = serde_json::from_str(&text).unwrap();
    config["base_model_name_or_path"] = repository("tests/tune/bert").display().to_string().into();
    config["task_type"] = Json::Null;
    std::fs::write(head.join("adapter_config.json"), config.to_string()).unwrap();
    let said = trafoc_in(to.path(), &["export", head.to_str().unwrap(), "--to", "whole"]);
    assert!(said.code == 4 && said.err.contains("does not say for which task"), "{}", said.err);
    // Names without the prefix of peft, and with the name of the adapter in them.
    for (from, to_name, why) in [
        ("base_model.model.", "", "begin with `base_model.model.`"),
        ("lora_A.weight", "lora_A.default.weight", "neither a matrix of a low-rank change nor in a module"),
    ] {
        let other = changed(&to.path().join(format!("names {to_name}")), "r", 4.into());
        let mut there = TensorFile::open(&folder("bert").join(name)).unwrap();
        let names: Vec<_> = there.entries().iter().map(|(n, e)| (n.clone(), e.shape.clone())).collect();
        let shapes: Vec<_> =
            names.iter().map(|(n, shape)| (n.replace(from, to_name), "F32", shape.clone())).collect();
        write(&Path::new(&other).join(name), &shapes, &IndexMap::new(), |i| {
            Ok(Saved::floats(names[i].1.clone(), there.floats(&names[i].0).unwrap()))
        })
        .unwrap();
        let said = trafoc_in(to.path(), &["export", &other, "--to", "whole"]);
        assert!(said.code == 4 && said.err.contains(why), "{}", said.err);
    }
    // A change of another body.
    let gpt2 = repository("tests/hub/gpt2").display().to_string();
    let from = changed(&to.path().join("other"), "base_model_name_or_path", gpt2.into());
    let said = trafoc_in(to.path(), &["export", &from, "--to", "whole"]);
    assert!(said.code != 0 && said.err.contains("its model does not have"), "{}", said.err);
}

/// What a run added to a body, a new head included, is exported, and read again as the model that the run is:
/// with its classes by name, to be used, evaluated, exported as a whole, and trained further.
#[test]
fn own_adapters_are_read_again() {
    let to = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let said = trafoc_in(to.path(), arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        said
    };
    let bodies =
        [("tests/tune/bert", "\"*.query\", \"*.ffn.up\""), ("tests/hub/gpt2", "\"*.query\", \"*.value\"")];
    for (name, on) in bodies {
        let body = repository(name).display().to_string();
        let adapt = format!("adapt={{lora: {{rank: 3, alpha: 6, on: [{on}]}}}}");
        let all = ["train", &body, "--recipe", &recipe(), "--with", &adapt, "--out", "run"];
        let mut more = vec!["--with", "steps=3"];
        // The first body has a tokenizer, and the other one gets a new vocabulary of at most its size.
        if name.ends_with("gpt2") {
            more.extend(["--with", "tokens=characters", "--with", "data.too_long=cut"]);
        }
        let _ = std::fs::remove_dir_all(to.path().join("run"));
        run(&[&all[..], &NEW, &more].concat());
        run(&["export", "run", "--adapter", "--to", "added", "--force"]);
        let path = to.path().join("added/adapter_config.json");
        let config: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(config["task_type"], "SEQ_CLS");
        run(&["export", "added", "--to", "one", "--force"]);
        run(&["export", "run", "--to", "two", "--force"]);
        let open =
            |folder: &str| TensorFile::open(&to.path().join(folder).join("model.safetensors")).unwrap();
        let (mut one, mut two) = (open("one"), open("two"));
        assert_eq!(one.entries().len(), two.entries().len());
        let names: Vec<String> = two.entries().keys().cloned().collect();
        for tensor in names {
            let (one, two) = (one.floats(&tensor).unwrap(), two.floats(&tensor).unwrap());
            assert_eq!(one.len(), two.len());
            assert!(one.iter().zip(&two).all(|(a, b)| (a - b).abs() < 1e-6), "{name}: {tensor}");
        }
        let classes = |folder: &str| -> Json {
            let text = std::fs::read(to.path().join(folder).join("config.json")).unwrap();
            serde_json::from_slice::<Json>(&text).unwrap()["id2label"].clone()
        };
        assert_eq!(classes("one"), serde_json::json!({ "0": "ship", "1": "trade", "2": "wheat" }));
        if name == "tests/tune/bert" {
            let text = ["--text", "wheat prices rose"];
            let whole = run(&[&["predict", "run"], &text[..]].concat()).out;
            assert_eq!(run(&[&["predict", "added"], &text[..]].concat()).out, whole);
            // Its classes are those of the head, also in other data.
            let said = run(&["train", "added", "--recipe", &recipe(), "--with", "steps=1", "--out", "again"]);
            assert!(said.err.contains("starts from added") && !said.err.contains("fresh:"), "{}", said.err);
            // Another head takes the place of its own.
            let data = format!("data={{format: tagged, train: {}}}", repository("data/people.tsv").display());
            let tag = ["--head", "tag", "--classes", "4", "--with", &data, "--with", "data.too_long=cut"];
            let all = ["train", "added", "--recipe", &recipe(), "--with", "steps=1", "--dry-run"];
            let said = run(&[&all[..], &tag].concat());
            assert!(said.err.contains("fresh: head.output.weight"), "{}", said.err);
        }
    }
}
