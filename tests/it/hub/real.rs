//! Trained models of other authors, read from a folder of the user: `TRAFOC_REAL`, or
//! `../shared/oracles/real` next to the repository. A test whose model is missing prints that, bypassing
//! the test harness, and does nothing.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::compiled::repository;

/// How far a number may be off, relative to the largest one.
const TOLERANCE: f64 = 1e-4;

/// A model's directory, and the expected results.
fn real(model: &str) -> Option<(PathBuf, Json)> {
    let folder = std::env::var_os("TRAFOC_REAL").map(PathBuf::from);
    let path = folder.unwrap_or_else(|| repository("../shared/oracles/real")).join(model);
    match std::fs::read_to_string(path.join("expected.json")) {
        Ok(text) => Some((path, serde_json::from_str(&text).unwrap())),
        Err(_) => {
            // The harness hides what `eprintln!` prints in a test that passes.
            let note =
                format!("SKIPPED: no `{}`; TRAFOC_REAL names the folder of the models\n", path.display());
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            None
        }
    }
}

fn trafoc(arguments: &[&str]) -> Vec<u8> {
    let output = crate::cli::kept(crate::compiled::program().args(arguments).output().unwrap());
    assert!(output.status.success(), "{arguments:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A model's outputs for the ids of all cases in one batch.
fn outputs(model: &Path, cases: &[Json], more: &[&str]) -> Json {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, outputs) = (folder.path().join("inputs.json"), folder.path().join("outputs.json"));
    let ids = |case: &Json| case["ids"].as_array().unwrap().clone();
    let width = cases.iter().map(|case| ids(case).len()).max().unwrap();
    let padded = |case: &Json, of: &dyn Fn(&Json) -> Json| -> Vec<Json> {
        let row = ids(case);
        (0..width).map(|i| row.get(i).map_or(json!(0), of)).collect()
    };
    let tokens: Vec<Vec<Json>> = cases.iter().map(|case| padded(case, &Json::clone)).collect();
    let mask: Vec<Vec<Json>> = cases.iter().map(|case| padded(case, &|_| json!(1))).collect();
    std::fs::write(&inputs, json!({ "tokens": tokens, "mask": mask }).to_string()).unwrap();
    let (model, inputs) = (model.to_str().unwrap(), inputs.to_str().unwrap());
    let mut arguments = vec!["run", model, "--inputs", inputs, "--outputs", outputs.to_str().unwrap()];
    arguments.extend(more);
    trafoc(&arguments);
    serde_json::from_str(&std::fs::read_to_string(&outputs).unwrap()).unwrap()
}

fn numbers(value: &Json) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect()
}

fn agree(found: &Json, wanted: &Json, what: &str) {
    let (found, wanted) = (numbers(found), numbers(wanted));
    assert_eq!(found.len(), wanted.len(), "{what}");
    let scale = wanted.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let off = found.iter().zip(&wanted).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(off <= TOLERANCE * scale, "{what} is off by {off} at a scale of {scale}");
}

#[test]
fn minilm_embeds_sentences() {
    let Some((model, expected)) = real("minilm") else { return };
    let cases = expected["cases"].as_array().unwrap();
    // The mean over the tokens, with a length of 1, in place of BERT's pooler, which the config implies.
    let head = "head={embed: {pool: mean, project: none, activation: none, normalize: true}}";
    let head = ["--set", head];
    let found = outputs(&model, cases, &head);
    for (i, case) in cases.iter().enumerate() {
        agree(&found["embedding"][i], &case["embedding"], &case["text"].to_string());
    }
}

#[test]
fn classifiers_score_documents() {
    for name in ["bert-categorium-en", "bert-categorium-fr"] {
        let Some((model, expected)) = real(name) else { continue };
        let cases = expected["cases"].as_array().unwrap();
        let found = outputs(&model, cases, &[]);
        for (i, case) in cases.iter().enumerate() {
            agree(&found["logits"][i], &case["logits"], &format!("{name}: {}", case["text"]));
        }
    }
}

/// 64 tokens, each the most probable one: the text must be the same to the last character.
#[test]
fn stories_are_told_word_by_word() {
    let Some((model, expected)) = real("stories260k") else { return };
    let (model, prompt) = (model.to_str().unwrap(), expected["prompt"].as_str().unwrap());
    let greedy = ["--temperature", "0", "--max-tokens", "64", "--format", "json"];
    let said = trafoc(&[&["generate", model, "--prompt", prompt], &greedy[..]].concat());
    let said: Json = serde_json::from_slice(&said).unwrap();
    let text = said["data"]["texts"][0]["text"].as_str();
    let wanted = expected["text"].as_str().unwrap();
    assert!(text.is_some_and(|t| format!("{prompt}{t}") == wanted || t == wanted), "{said:#}");
}
