//! What imported models say of texts, with the special tokens and the token types of their tokenizers.
//!
//! `tests/reading/make.py` writes what the library says to `cases.json`.

use std::process::Command;

use serde_json::Value as Json;

use crate::compiled::repository;

fn read(name: &str) -> Json {
    let text = std::fs::read_to_string(repository("tests/reading").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The numbers of a prediction, in the order of the library's.
fn numbers(kind: &str, said: &Json) -> Vec<f64> {
    let number = |json: &Json| json.as_f64().unwrap_or_else(|| panic!("{said}"));
    match kind {
        "classify" => {
            let mut all: Vec<(&str, f64)> = said["classes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| (one["class"].as_str().unwrap(), number(&one["probability"])))
                .collect();
            all.sort_by(|a, b| a.0.cmp(b.0));
            all.into_iter().map(|(_, probability)| probability).collect()
        }
        "tag" => said["tags"].as_array().unwrap().iter().map(|tag| number(&tag["probability"])).collect(),
        "mlm" => vec![number(&said["hidden"][0]["probability"])],
        "qa" => vec![number(&said["probability"])],
        _ => said["embedding"].as_array().unwrap().iter().map(number).collect(),
    }
}

#[test]
fn imported_models_read_what_the_library_reads() {
    for case in read("cases.json").as_array().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let model = repository("tests/hub").join(case["model"].as_str().unwrap());
        for name in ["model.safetensors", "config.json"] {
            std::fs::copy(model.join(name), path(name)).unwrap();
        }
        let mut tokenizer = read("tokenizer.json");
        tokenizer["post_processor"] = case["template"].clone();
        std::fs::write(path("tokenizer.json"), tokenizer.to_string()).unwrap();
        for (name, content) in case["files"].as_object().unwrap() {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), content.to_string()).unwrap();
        }
        let (kind, text) = (case["kind"].as_str().unwrap(), case["text"].as_str().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_trafoc"));
        command.arg("predict").arg(folder.path()).args(["--format", "json", "--text", text]);
        if let Some(second) = case["second"].as_str() {
            command.args([if kind == "qa" { "--question" } else { "--second" }, second]);
        }
        let output = crate::cli::kept(command.output().unwrap());
        assert!(output.status.success(), "{case}\n{}", String::from_utf8_lossy(&output.stderr));
        let said: Json = serde_json::from_slice(&output.stdout).unwrap();
        let said = &said["data"]["predictions"][0];
        let wanted: Vec<f64> = match &case["says"] {
            Json::Array(all) => all.iter().map(|number| number.as_f64().unwrap()).collect(),
            one => vec![one.as_f64().unwrap()],
        };
        let found = numbers(kind, said);
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-3 * b.abs() + 1e-6;
        assert!(found.len() == wanted.len() && found.iter().zip(&wanted).all(is_near), "{case}\n{said}");
    }
}
