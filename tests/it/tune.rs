//! Fine-tuning: a trained body, and a new head, as PyTorch computes it (`tests/tune/make.py`), and every way
//! in which it could silently be something else.

mod adapters;
mod classes;
mod exported;
mod languages;
mod said;

use std::path::Path;

use serde_json::Value as Json;
use trafoc::learn::token::vocabulary::Files;
use trafoc::tensor_file::TensorFile;

use crate::cli::trafoc_in;
use crate::compiled::repository;

fn body() -> String {
    repository("tests/tune/bert").display().to_string()
}

fn recipe() -> String {
    repository("tests/tune/recipe.yaml").display().to_string()
}

fn expected() -> Json {
    let text = std::fs::read_to_string(repository("tests/tune/expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Trains in a folder and returns what was said.
fn train(folder: &Path, more: &[&str]) -> String {
    let (body, recipe) = (body(), recipe());
    let all = [&["train", &body, "--recipe", &recipe, "--out", "run"], more].concat();
    let said = trafoc_in(folder, &all);
    assert_eq!(said.code, 0, "{}", said.err);
    said.err
}

fn losses(run: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    lines.filter(|line| line.get("rate").is_some()).map(|line| line["loss"].as_f64().unwrap()).collect()
}

const NEW: [&str; 4] = ["--head", "classify", "--classes", "3"];

/// The first 20 losses are those of PyTorch, from the same start and in the same order.
#[test]
fn losses_are_those_of_pytorch() {
    let cases: [(&str, &[&str]); 4] = [
        ("head", &[]),
        ("frozen", &["--with", "freeze=[\"embed.*\", \"encoder.blocks.0.*\"]"]),
        ("rates", &["--with", "optimizer.adamw.rates={\"head.*\": 1e-2, \"encoder.blocks.0.*\": 1e-4}"]),
        ("lora", &["--with", LORA]),
    ];
    let expected = expected();
    for (name, more) in cases {
        let folder = tempfile::tempdir().unwrap();
        train(folder.path(), &[&NEW[..], more].concat());
        let (own, there) = (losses(&folder.path().join("run")), expected[name].as_array().unwrap());
        assert_eq!((own.len(), there.len()), (20, 20), "{name}");
        for (step, (own, there)) in own.iter().zip(there).enumerate() {
            let there = there.as_f64().unwrap();
            assert!((own - there).abs() < 1e-4, "{name}, step {}: {own} and {there}", step + 1);
        }
    }
}

/// Rank 4 on queries and values.
const LORA: &str = "adapt={lora: {rank: 4, alpha: 8, on: [\"*.query\", \"*.value\"]}}";

/// What is added to a body is in a file of its own, as peft has it, a checkpoint's weights have it added
/// already, and a run that was interrupted goes on as if it had not been.
#[test]
fn what_is_added_is_saved_alone_and_merged() {
    let folder = tempfile::tempdir().unwrap();
    let more = [&NEW[..], &["--with", LORA, "--with", "checkpoint.every=10"]].concat();
    let said = train(folder.path(), &more);
    assert!(said.contains("fresh: head.output.weight"), "{said}");
    let at = |step: u32, name: &str| folder.path().join(format!("run/checkpoints/step-{step:09}/{name}"));
    let file = TensorFile::open(&at(20, "adapter_model.safetensors")).unwrap();
    let shape = |name: &str| file.entries().get(name).map(|entry| entry.shape.clone());
    assert_eq!(shape("base_model.model.encoder.blocks.1.attention.value.lora_A.weight"), Some(vec![4, 32]));
    assert_eq!(shape("base_model.model.encoder.blocks.0.attention.query.lora_B.weight"), Some(vec![32, 4]));
    assert_eq!(shape("base_model.model.head.output.weight"), Some(vec![3, 32]));
    // Two matrices for each of the four projections, and the new head.
    assert_eq!(file.entries().len(), 4 * 2 + 2);
    let config: Json =
        serde_json::from_slice(&std::fs::read(at(20, "adapter_config.json")).unwrap()).unwrap();
    assert_eq!((&config["r"], &config["lora_alpha"]), (&serde_json::json!(4), &serde_json::json!(8.0)));
    let mut own = TensorFile::open(&at(20, "model.safetensors")).unwrap();
    let mut there = TensorFile::open(&repository("tests/tune/bert/model.safetensors")).unwrap();
    let pairs = [("query", true), ("key", false), ("value", true)];
    for (part, is_changed) in pairs {
        let own = own.floats(&format!("encoder.blocks.0.attention.{part}.weight")).unwrap();
        let there = there.floats(&format!("encoder.layer.0.attention.self.{part}.weight")).unwrap();
        assert_eq!(own != there, is_changed, "{part}");
    }
    // Without the last checkpoint, it continues from the one before.
    let whole = std::fs::read(at(20, "model.safetensors")).unwrap();
    std::fs::remove_dir_all(at(20, "")).unwrap();
    let said = trafoc_in(folder.path(), &["train", "--resume", "--out", "run"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("continues from step 10"), "{}", said.err);
    assert!(std::fs::read(at(20, "model.safetensors")).unwrap() == whole);
    // From its first step on as well: `reproduce` begins with the same body and compares the adapters, too.
    let said = trafoc_in(folder.path(), &["reproduce", "run"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.starts_with("equal bits at step 20: 10 tensors of adapter_model"), "{}", said.out);
}

/// Ids from `vocab.txt` are those of the reference library, special tokens included.
#[test]
fn a_vocabulary_gives_the_ids_of_its_library() {
    let read = |name: &str| std::fs::read_to_string(repository("tests/tune").join(name)).unwrap();
    let files = Files { words: Some(read("bert/vocab.txt")), model: "bert".to_owned(), ..Files::default() };
    let tokenizer = files.tokenizer().unwrap();
    let expected = expected();
    let (texts, all) = (expected["texts"].as_array().unwrap(), expected["ids"].as_array().unwrap());
    for (text, ids) in texts.iter().zip(all) {
        let (text, ids): (&str, Vec<u32>) =
            (text.as_str().unwrap(), serde_json::from_value(ids.clone()).unwrap());
        assert_eq!(tokenizer.framed(text).unwrap(), Some(ids), "{text}");
    }
    assert_eq!(all.len(), 36);
}

/// What is taken over and what is fresh is said, and the result is a model like any other: it is evaluated,
/// predicts with the names of its classes, and is exported with them.
#[test]
fn a_new_head_is_said_used_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let limit = ["--verbose", "--with", "evaluate.limit=5"];
    let said = train(folder.path(), &[&NEW[..], &limit].concat());
    assert!(said.contains("evaluates the first 5 of the"), "{said}");
    assert!(said.contains("tests/tune/bert: 39 tensors with"), "{said}");
    assert!(said.contains("  head.hidden.weight  pooler.dense.weight"), "{said}");
    // The same tensor as the old head's.
    assert!(!said.contains("not used of it"), "{said}");
    assert!(
        said.contains("fresh: 2 tensors with 99 parameters\n  head.output.weight\n  head.output.bias"),
        "{said}"
    );
    let run = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    };
    let text = "Wheat prices rose in Genève";
    let predicted = run(&["predict", "run", "--text", text]);
    assert!(["ship", "trade", "wheat"].iter().any(|class| predicted.contains(class)), "{predicted}");
    assert!(run(&["eval", "run"]).contains("accuracy"));
    run(&["export", "run", "--to", "exported"]);
    let config = std::fs::read_to_string(folder.path().join("exported/config.json")).unwrap();
    let config: Json = serde_json::from_str(&config).unwrap();
    assert_eq!(config["architectures"][0], "BertForSequenceClassification");
    assert_eq!(config["id2label"], serde_json::json!({ "0": "ship", "1": "trade", "2": "wheat" }));
    assert_eq!(run(&["predict", "exported", "--text", text]), predicted);
    // A run goes on as a new one, with its own head.
    let said = trafoc_in(folder.path(), &["train", "run", "--recipe", &recipe(), "--out", "again"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("starts from run, checkpoint") && !said.err.contains("fresh:"), "{}", said.err);
}

/// A spec of one's own starts from a body by the paths of its parameters, and is then the same training.
#[test]
fn a_spec_of_ones_own_starts_from_a_body() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said
    };
    let spec = run(&["expand", &body()]).out;
    std::fs::write(folder.path().join("own.yaml"), spec).unwrap();
    let head = "head={classify: {pool: cls, hidden: [32], activation: tanh, classes: 3}}";
    let from = format!("start={{from: {}, except: [\"head.output.*\"]}}", body());
    let all = ["train", "own.yaml", "--set", head, "--recipe", &recipe(), "--with", &from, "--out", "run"];
    let said = run(&all).err;
    assert!(said.contains("fresh: head.output.weight, head.output.bias (99 parameters)"), "{said}");
    let there = expected();
    for (own, there) in losses(&folder.path().join("run")).iter().zip(there["head"].as_array().unwrap()) {
        assert!((own - there.as_f64().unwrap()).abs() < 1e-4, "{own} and {there}");
    }
}

/// A spec that was imported gets a new head as its directory does: the head's own tensors are no longer used,
/// which is said.
#[test]
fn an_imported_spec_gets_a_new_head() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said.err
    };
    let recipe = recipe();
    for (model, tensor) in [("tests/tune/bert", "pooler.dense"), ("tests/hub/bert-classify", "classifier")] {
        let body = repository(model).display().to_string();
        run(&["import", &body, "--out", "own.yaml", "--force"]);
        let file = format!("{body}/model.safetensors");
        let all = ["train", "own.yaml", "--recipe", &recipe, "--head", "tag", "--classes", "4"];
        let data = format!("data={{format: tagged, train: {}}}", repository("data/people.tsv").display());
        let tokens = "tokens={wordpiece: {vocab: 60}}";
        let more = ["--with", &data, "--with", "steps=1", "--with", "data.too_long=cut", "--dry-run"];
        let weights = ["--weights", &file, "--with", tokens, "--with", "start.except=[\"embed.tokens.*\"]"];
        let said = run(&[&all[..], &more, &weights].concat());
        assert!(said.contains("these tensors of `weights` are not used") && said.contains(tensor), "{said}");
        assert!(said.contains("fresh: embed.tokens.weight, head.output.weight, head.output.bias"), "{said}");
        // Without weights, nothing is loaded, which is said too.
        let said = run(&[&all[..], &more, &["--with", tokens]].concat());
        assert!(said.contains("all parameters are fresh"), "{said}");
    }
    // Another number of classes is a new head as well.
    let body = repository("tests/hub/bert-classify").display().to_string();
    let data = format!("data.train={}", repository("tests/tune/data.csv").display());
    let all = ["train", "own.yaml", "--weights", &body, "--recipe", &recipe, "--head", "classify"];
    let more = [
        "--with",
        "data.too_long=cut",
        "--classes",
        "7",
        "--with",
        &data,
        "--with",
        "tokens={wordpiece: {vocab: 60}}",
        "--dry-run",
    ];
    let said = run(&[&all[..], &more, &["--with", "start.except=[\"embed.tokens.*\"]"]].concat());
    assert!(said.contains("fresh: embed.tokens.weight, head.output.weight"), "{said}");
}

/// What a new head leaves of the old one is listed: of a directory, and of a run.
#[test]
fn the_old_head_is_listed_as_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = recipe();
    let new = |model: &str, more: &[&str]| {
        let data = format!("data={{format: tagged, train: {}}}", repository("data/people.tsv").display());
        let all = ["train", model, "--recipe", &recipe, "--head", "tag", "--classes", "4", "-v", "--dry-run"];
        let with = ["--with", &data, "--with", "steps=1", "--with", "data.too_long=cut"];
        let said = trafoc_in(folder.path(), &[&all[..], &with, more].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.err
    };
    let tokens = ["--with", "tokens={wordpiece: {vocab: 60}}", "--with", "start.except=[\"embed.tokens.*\"]"];
    let said = new(&repository("tests/hub/bert-classify").display().to_string(), &tokens);
    let unused = said.split("not used of it: ").nth(1).unwrap();
    assert!(unused.contains("\n  head.output.weight\n") && unused.contains("head.hidden"), "{said}");
    train(folder.path(), &[&NEW[..], &["--with", "steps=1"]].concat());
    let said = new("run", &[]);
    let unused = said.split("not used of it: ").nth(1).unwrap();
    assert!(unused.contains("\n  head.output.weight\n"), "{said}");
}

/// A body that reads images, with new classes: its images are prepared as its own file says, also for the
/// exported model.
#[test]
fn a_body_that_reads_images_gets_new_classes() {
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("vit");
    std::fs::create_dir(&body).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(repository("tests/hub/vit").join(name), body.join(name)).unwrap();
    }
    let processor = serde_json::json!({
        "image_processor_type": "ViTImageProcessor", "do_resize": true, "size": { "height": 16, "width": 16 },
        "resample": 2, "do_rescale": true, "rescale_factor": 1.0 / 255.0, "do_normalize": true,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    });
    std::fs::write(body.join("preprocessor_config.json"), processor.to_string()).unwrap();
    let run = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    };
    let images = repository("tests/tune/images").display().to_string();
    let data = format!("data={{format: images, train: {images}}}");
    run(&[&["train", "vit", "--recipe", &recipe(), "--out", "run", "--with", &data][..], &NEW].concat());
    let there = expected();
    let there = there["image"].as_array().unwrap();
    let own = losses(&folder.path().join("run"));
    assert_eq!((own.len(), there.len()), (20, 20));
    for (own, there) in own.iter().zip(there) {
        assert!((own - there.as_f64().unwrap()).abs() < 1e-4, "{own} and {there}");
    }
    let image = format!("{images}/magenta/2.png");
    let predicted = run(&["predict", "run", "--image", &image]);
    assert!(["cyan", "magenta", "yellow"].iter().any(|class| predicted.contains(class)), "{predicted}");
    run(&["export", "run", "--to", "exported"]);
    assert_eq!(run(&["predict", "exported", "--image", &image]), predicted);
}

/// Bodies are compared with the same new head and from the same data, and a body with its own start from
/// random weights.
#[test]
fn trained_bodies_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (body, recipe) = (body(), recipe());
    let with = ["--train", &recipe, "--with", "steps=2", "--seeds", "1"];
    let run = |models: &[&str], more: &[&str]| {
        let said = trafoc_in(folder.path(), &[&["compare"], models, &NEW, &with, more].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said
    };
    train(folder.path(), &NEW);
    let said = run(&[&body, "run"], &[]);
    assert!(
        said.err.contains("starts from") && said.err.contains("starts from run, checkpoint"),
        "{}",
        said.err
    );
    assert!(said.out.contains("what they learned"), "{}", said.out);
    let said = run(&[&body, "run"], &["--from-scratch"]);
    assert!(!said.err.contains("starts from"), "{}", said.err);
    let said = trafoc_in(folder.path(), &["compare", &body, "run", "--from-scratch"]);
    assert!(said.code == 2 && said.err.contains("no model is trained"), "{}", said.err);
}

/// How far each parameter is from where it started: not at all where it was frozen.
#[test]
fn changes_of_parameters_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    };
    train(folder.path(), &[&NEW[..], &["--with", "freeze=[\"embed.*\"]"]].concat());
    let json: Json = serde_json::from_str(&run(&["inspect", "changes", "run", "--format", "json"])).unwrap();
    let rows = json["data"]["parts"][1]["table"]["rows"].as_array().unwrap();
    let share = |path: &str| {
        let row = rows.iter().find(|row| row[0] == path).unwrap();
        row[5].as_str().unwrap().to_owned()
    };
    assert_eq!(share("embed.tokens.weight"), "unchanged");
    assert_eq!(share("head.output.weight"), "not there before");
    let mut own =
        TensorFile::open(&folder.path().join("run/checkpoints/step-000000020/model.safetensors")).unwrap();
    let mut there = TensorFile::open(&repository("tests/tune/bert/model.safetensors")).unwrap();
    let (own, there) = (
        own.floats("encoder.blocks.1.ffn.up.weight").unwrap(),
        there.floats("encoder.layer.1.intermediate.dense.weight").unwrap(),
    );
    let length = |values: Vec<f32>| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let by = length(own.iter().zip(&there).map(|(own, there)| own - there).collect());
    let expected = format!("{:.2} %", 100.0 * by / length(there));
    assert_eq!(share("encoder.blocks.1.ffn.up.weight"), expected);
    let body = body();
    let against = ["--against", &body, "--text", "Wheat prices rose", "--layer", "1"];
    let said = run(&[&["inspect", "attention", "run"], &against[..]].concat());
    assert!(said.contains(": run") && said.contains(&format!(": {body}")), "{said}");
    run(&["inspect", "changes", "run", "--against", &body, "--out", "changes.html"]);
    // A text that is too long is refused in the user's words.
    let long = "Wheat prices rose. ".repeat(200);
    for what in ["attention", "layers", "flow"] {
        let refused = trafoc_in(folder.path(), &["inspect", what, "run", "--text", &long]).err;
        assert!(
            refused.contains("the text `Wheat prices rose.") && refused.contains("the model's context"),
            "{refused}"
        );
    }
}

/// With dropout in front of what is added, another share of the input is seen in each step, and only in
/// training.
#[test]
fn what_is_added_has_dropout_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let lora = |dropout: &str| {
        format!("adapt={{lora: {{rank: 4, alpha: 8, dropout: {dropout}, on: [\"*.query\", \"*.value\"]}}}}")
    };
    let mut all = Vec::new();
    for (name, dropout) in [("none", "0"), ("some", "0.5"), ("again", "0.5")] {
        let (body, recipe, lora) = (body(), recipe(), lora(dropout));
        let more = ["train", &body, "--recipe", &recipe, "--out", name, "--with", &lora];
        let said = trafoc_in(folder.path(), &[&more[..], &NEW].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        all.push(losses(&folder.path().join(name)));
    }
    // `B` is zero at first, so nothing is added in the first step.
    assert!((all[0][0] - all[1][0]).abs() < 1e-6);
    assert!((all[0][19] - all[1][19]).abs() > 1e-6);
    assert_eq!(all[1], all[2]);
    let config = folder.path().join("some/checkpoints/step-000000020/adapter_config.json");
    let config: Json = serde_json::from_slice(&std::fs::read(config).unwrap()).unwrap();
    assert_eq!(config["lora_dropout"], 0.5);
}

/// Pairs of texts train their vectors: the losses are those of PyTorch, and the model embeds.
#[test]
fn pairs_of_texts_train_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let (body, recipe) = (body(), recipe());
    let pairs = format!("data={{format: pairs, train: {}}}", repository("tests/tune/pairs.tsv").display());
    let all = ["train", &body, "--head", "embed", "--recipe", &recipe, "--with", &pairs];
    let all = [&all[..], &["--out", "run"]].concat();
    let said = trafoc_in(folder.path(), &all);
    assert_eq!(said.code, 0, "{}", said.err);
    let there = expected();
    let there = there["pairs"].as_array().unwrap();
    let own = losses(&folder.path().join("run"));
    assert_eq!((own.len(), there.len()), (20, 20));
    for (step, (own, there)) in own.iter().zip(there).enumerate() {
        let there = there.as_f64().unwrap();
        assert!((own - there).abs() < 1e-4, "step {}: {own} and {there}", step + 1);
    }
    let run = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    };
    assert!(run(&["eval", "run"]).contains("accuracy"));
    assert!(run(&["predict", "run", "--text", "Wheat prices", "--format", "json"]).contains("["));
    run(&[&all[..all.len() - 2], &["--dry-run"]].concat());
}

/// A directory with a model of SentencePiece and no `tokenizer.json`.
#[test]
fn a_model_of_sentencepiece_is_the_tokenizer_of_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("albert");
    std::fs::create_dir(&root).unwrap();
    let config = std::fs::read_to_string(repository("tests/hub/albert/config.json")).unwrap();
    let mut config: Json = serde_json::from_str(&config).unwrap();
    config["vocab_size"] = 200.into();
    std::fs::write(root.join("config.json"), config.to_string()).unwrap();
    let model = repository("tests/sentencepiece/models/albert.model");
    std::fs::copy(model, root.join("spiece.model")).unwrap();
    let (recipe, text) = (recipe(), "Wheat prices rose");
    let more = [
        "--head",
        "classify",
        "--classes",
        "3",
        "--recipe",
        &recipe,
        "--with",
        "steps=1",
        "--with",
        "data.too_long=cut",
    ];
    let said = trafoc_in(
        folder.path(),
        &[&["train", "albert", "--from-scratch", "--out", "run"], &more[..]].concat(),
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let said = trafoc_in(folder.path(), &["export", "run", "--to", "exported"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let predict = |model: &str| trafoc_in(folder.path(), &["predict", model, "--text", text]).out;
    assert_eq!(predict("run"), predict("exported"));
    // What is cut off is refused, and names the file.
    let bytes = std::fs::read(root.join("spiece.model")).unwrap();
    std::fs::write(root.join("spiece.model"), &bytes[..bytes.len() / 2]).unwrap();
    let said = trafoc_in(
        folder.path(),
        &[&["train", "albert", "--from-scratch", "--out", "other"], &more[..]].concat(),
    );
    assert!(said.code == 4 && said.err.contains("albert"), "{}: {}", said.code, said.err);
}

/// Frozen parameters keep their numbers and no state of the optimizer, and a forecast counts neither their
/// gradients nor what a backward pass would keep for them.
#[test]
fn what_is_frozen_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let frozen = ["--with", "freeze=[\"embed.*\", \"encoder.*\"]"];
    train(folder.path(), &[&NEW[..], &frozen].concat());
    let at = |name: &str| folder.path().join("run/checkpoints/step-000000020").join(name);
    let optimizer = TensorFile::open(&at("optimizer.safetensors")).unwrap();
    assert!(optimizer.entries().keys().all(|name| name.starts_with("head.")), "{:?}", optimizer.entries());
    assert!(!optimizer.entries().is_empty());
    let (mut own, mut there) = (
        TensorFile::open(&at("model.safetensors")).unwrap(),
        TensorFile::open(&repository("tests/tune/bert/model.safetensors")).unwrap(),
    );
    let name = "embeddings.word_embeddings.weight";
    assert!(own.floats("embed.tokens.weight").unwrap() == there.floats(name).unwrap());
    let forecast = |more: &[&str]| {
        let (body, recipe) = (body(), recipe());
        let all = [&["train", &body, "--recipe", &recipe, "--dry-run"], &NEW[..], more].concat();
        let said = trafoc_in(folder.path(), &all);
        assert_eq!(said.code, 0, "{}", said.err);
        let line =
            |start: &str| said.out.lines().find(|line| line.trim().starts_with(start)).unwrap().to_owned();
        (line("trained"), line("memory"))
    };
    let (whole, part) = (forecast(&[]), forecast(&frozen));
    assert!(whole.0.contains("23,587"), "{whole:?}");
    assert!(part.0.contains("1,155"), "{part:?}");
    let of_batch = |line: &str| line.split(", ").nth(1).unwrap().to_owned();
    assert_ne!(of_batch(&whole.1), of_batch(&part.1));
}

/// `--from-scratch` starts from other weights than the directory's.
#[test]
fn from_scratch_is_another_start() {
    let folder = tempfile::tempdir().unwrap();
    let said = train(folder.path(), &[&NEW[..], &["--from-scratch"]].concat());
    assert!(!said.contains("starts from"), "{said}");
    let first = losses(&folder.path().join("run"))[0];
    let there = expected()["head"][0].as_f64().unwrap();
    assert!((first - there).abs() > 1e-4, "{first}");
}

/// `tests/tune/refused`: command lines that must not train, each in a file; what they say is a snapshot. Of
/// several that follow one another, only the last one fails.
#[test]
fn what_would_be_silently_wrong_is_refused() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(repository("tests/snap/tune"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut paths: Vec<_> =
        std::fs::read_dir(repository("tests/tune/refused")).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let folder = tempfile::tempdir().unwrap();
        let root = repository("").display().to_string();
        let other = folder.path().join("other.csv");
        std::fs::write(&other, "text,label\nwheat fields,wheat\nsteel tea,gold\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let commands: Vec<&str> = text.trim().split(" && ").collect();
        for (i, command) in commands.iter().enumerate() {
            let words = words(command).into_iter().map(|word| {
                let word = word.replace("BERT", &body()).replace("RECIPE", &recipe());
                let word = word.replace("HUB", &format!("{root}/tests/hub"));
                word.replace("OTHER", other.to_str().unwrap())
            });
            let words: Vec<String> = words.collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let said = trafoc_in(folder.path(), &words);
            let is_last = i + 1 == commands.len();
            assert_eq!(said.code != 0, is_last, "{}: {}", path.display(), said.err);
            if is_last {
                let name = path.file_stem().unwrap().to_str().unwrap();
                let shown = said.err.replace(&root, "").replace(folder.path().to_str().unwrap(), "TMP");
                settings.set_description(text.trim());
                settings.bind(|| insta::assert_snapshot!(name, shown));
                assert!(!folder.path().join("again").exists(), "{name}");
            }
        }
    }
}

/// The words of a command line. A value of an option may have spaces inside of brackets.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut depth) = (vec![String::new()], 0);
    for c in command.chars() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        match c {
            ' ' if depth == 0 => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}
