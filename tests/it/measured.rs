//! `compare` with models that run: times, training, and runs as subjects.

use std::process::Command;

use serde_json::Value as Json;

fn compare(arguments: &[&str]) -> Json {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trafoc"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("compare").args(arguments);
    let said = command.args(["--format", "json"]).env_remove("TRAFOC_DEVICE").output().unwrap();
    serde_json::from_slice(&said.stdout).unwrap_or_else(|e| panic!("{e}: {said:?}"))
}

#[test]
fn models_are_timed_in_turns() {
    let small = ["--set", "d_model=16", "--set", "decoder.layers=1", "--tokens", "8"];
    let data = compare(&[&["@gbt-mulm", "@gbt-mulm", "--measure"], small.as_slice()].concat());
    assert_eq!(data["status"], "ok", "{data}");
    let timing = &data["data"]["timing"];
    assert_eq!(timing["tokens"], 8);
    for model in timing["models"].as_array().unwrap() {
        for what in ["forward", "step"] {
            let spread = &model[what];
            assert!(spread["runs"].as_u64().unwrap() >= 10, "{model}");
            let number = |v: &Json| v.as_f64().unwrap();
            let median = number(&spread["median"]);
            assert!(number(&spread["interval"][0]) <= median && median <= number(&spread["interval"][1]));
            assert!(median * spread["runs"].as_f64().unwrap() > 1.0, "{model}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_number() {
    let data = compare(&["@llama3-8b", "@mixtral-8x7b", "--measure", "--set", "decoder.layers=4000"]);
    assert_eq!(data["status"], "refused");
    assert!(data["error"].as_str().unwrap().contains("TiB"), "{}", data["error"]);
    assert_eq!(compare(&["@gpt1", "@gpt2-small", "--device", "flex"])["status"], "usage");
}
