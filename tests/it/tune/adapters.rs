//! A directory of peft is used as the model that peft merges (`tests/tune/adapters.py`), and what is more
//! than plain low-rank adaptation is refused.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use trafoc::tensor_file::TensorFile;

use super::{NEW, recipe};
use crate::cli::trafoc_in;
use crate::compiled::repository;

fn folder(name: &str) -> PathBuf {
    repository("tests/tune/adapters").join(name)
}

/// The whole model is exported, with the numbers of peft.
#[test]
fn adapters_are_merged_as_peft_does() {
    for name in ["bert", "bert-stabilised", "gpt2"] {
        let to = tempfile::tempdir().unwrap();
        let from = folder(name).display().to_string();
        let said = trafoc_in(to.path(), &["export", &from, "--to", "whole"]);
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        let mut own = TensorFile::open(&to.path().join("whole/model.safetensors")).unwrap();
        let mut there = TensorFile::open(&folder(name).join("expected/merged.safetensors")).unwrap();
        let names: Vec<String> = there.entries().keys().cloned().collect();
        assert!(!names.is_empty());
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
        ("rank_pattern", serde_json::json!({ "query": 2 }), "`rank_pattern`"),
        ("modules_to_save", serde_json::json!(["classifier"]), "`modules_to_save`"),
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
    // A change of another body.
    let gpt2 = repository("tests/hub/gpt2").display().to_string();
    let from = changed(&to.path().join("other"), "base_model_name_or_path", gpt2.into());
    let said = trafoc_in(to.path(), &["export", &from, "--to", "whole"]);
    assert!(said.code != 0 && said.err.contains("its model does not have"), "{}", said.err);
}
