//! What `predict` says of the classes of a directory of Hugging Face, as its config says what they are.

use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Value as Json, json};
use trafoc::tensor_file::{Saved, TensorFile, write};

use crate::cli::trafoc_in;
use crate::compiled::repository;

/// A classifier of the library with the keys of `more` in its config and a row of scores for each of these classes.
fn classifier(folder: &Path, more: &Json, classes: usize) {
    let from = repository("tests/hub/gpt2-classify");
    let mut config: Json = serde_json::from_slice(&std::fs::read(from.join("config.json")).unwrap()).unwrap();
    let keys = config.as_object_mut().unwrap();
    keys.retain(|key, _| !matches!(key.as_str(), "id2label" | "label2id"));
    keys.extend(more.as_object().unwrap().clone());
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let mut file = TensorFile::open(&from.join("model.safetensors")).unwrap();
    let of = |name: &String, shape: &[usize]| {
        let rows = if name == "score.weight" { classes } else { shape[0] };
        (name.clone(), "F32", [&[rows], &shape[1..]].concat())
    };
    let shapes: Vec<_> = file.entries().iter().map(|(name, entry)| of(name, &entry.shape)).collect();
    write(&folder.join("model.safetensors"), &shapes, &IndexMap::new(), |i| {
        let (name, _, shape) = &shapes[i];
        let count = shape.iter().product();
        Ok(Saved::floats(shape.clone(), file.floats(name).unwrap().into_iter().take(count)))
    })
    .unwrap();
    let words: serde_json::Map<String, Json> =
        ["pad", "a", "b", "c"].iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "unk_token": "pad", "vocab": words },
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

/// Classes exclude each other unless `problem_type` says that they do not, and a single one, or those of a regression,
/// have scores instead of probabilities.
#[test]
fn classes_are_what_the_config_says() {
    let predicted = |more: Json, classes: usize| {
        let folder = tempfile::tempdir().unwrap();
        classifier(folder.path(), &more, classes);
        let ask = |format: &str| {
            let said = trafoc_in(folder.path(), &["predict", ".", "--text", "a b c", "--format", format]);
            assert_eq!(said.code, 0, "{more}: {}", said.err);
            said.out
        };
        let data: Json = serde_json::from_str(&ask("json")).unwrap();
        (ask("text"), data["data"]["predictions"][0].clone())
    };
    let numbers = |prediction: &Json, list: &str, key: &str| -> Vec<f64> {
        let all = prediction[list].as_array().unwrap_or_else(|| panic!("{prediction}"));
        let mut named: Vec<(String, f64)> = all
            .iter()
            .map(|one| (one["class"].as_str().unwrap().to_owned(), one[key].as_f64().unwrap()))
            .collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        named.into_iter().map(|(_, number)| number).collect()
    };
    let (line, scores) = predicted(json!({"num_labels": 3, "problem_type": "regression"}), 3);
    let scores = numbers(&scores, "scores", "score");
    assert_eq!(line.matches("score ").count(), 3, "{line}");
    let near = |found: &[f64], wanted: Vec<f64>| {
        let far = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(found.len() == wanted.len() && far < 1e-6, "{found:?}, not {wanted:?}");
    };
    let (_, several) = predicted(json!({"num_labels": 3, "problem_type": "multi_label_classification"}), 3);
    let sigmoids = scores.iter().map(|score| 1.0 / (1.0 + (-score).exp())).collect();
    near(&numbers(&several, "classes", "probability"), sigmoids);
    let total: f64 = scores.iter().map(|score| score.exp()).sum();
    for problem in [Json::Null, json!("single_label_classification")] {
        let (_, one) = predicted(json!({"num_labels": 3, "problem_type": problem}), 3);
        near(&numbers(&one, "classes", "probability"), scores.iter().map(|s| s.exp() / total).collect());
    }
    for problem in [Json::Null, json!("regression")] {
        let (line, single) = predicted(json!({"num_labels": 1, "problem_type": problem}), 1);
        near(&numbers(&single, "scores", "score"), vec![scores[0]]);
        assert_eq!(line.trim_end(), format!("LABEL_0\tscore {:.4}", scores[0]));
    }
}
