//! What imported models say of texts, with the special tokens and the token types of their tokenizers.
//!
//! `tests/reading/make.py` writes what the library says to `cases.json`.

use serde_json::{Value as Json, json};

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
        let mut command = crate::compiled::program();
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

/// A model's directory of `tests/hub` with more files.
fn directory(model: &str, files: &[(&str, Json)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["model.safetensors", "config.json"] {
        std::fs::copy(repository("tests/hub").join(model).join(name), folder.path().join(name)).unwrap();
    }
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.to_string()).unwrap();
    }
    folder
}

fn trafoc(arguments: &[&str]) -> (bool, String, String) {
    let output = crate::compiled::program().args(arguments).output().unwrap();
    let output = crate::cli::kept(output);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// The modules of a directory of sentence-transformers: the name of each and its folder.
fn modules(all: &[(&str, &str)]) -> Json {
    all.iter()
        .map(|(kind, path)| json!({ "type": format!("sentence_transformers.models.{kind}"), "path": path }))
        .collect()
}

/// What a directory of sentence-transformers says that no spec can say is refused, with the place and the reason.
#[test]
fn vectors_that_no_head_gives_are_refused() {
    let usual = || modules(&[("Transformer", ""), ("Pooling", "1_Pooling")]);
    let mean = json!({ "pooling_mode_mean_tokens": true });
    for (list, pooling, more, says) in [
        (
            modules(&[("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense")]),
            mean.clone(),
            None,
            "lists the modules Transformer, Pooling, Dense, and only",
        ),
        (
            modules(&[("Transformer", "0_Body"), ("Pooling", "1_Pooling")]),
            mean.clone(),
            None,
            "has its body in `0_Body`",
        ),
        (modules(&[("Transformer", ""), ("Pooling", "../p")]), mean.clone(), None, "not in the directory"),
        (usual(), json!({ "pooling_mode_cls_token": true }), None, "(cls, mean), but a head has one"),
        (
            usual(),
            json!({ "pooling_mode": "weightedmean" }),
            None,
            "it pools by `weightedmean`, but only cls, mean, max, lasttoken are supported",
        ),
        (usual(), json!({ "pooling_mode_mean_tokens": false }), None, "it names no way of pooling"),
        (usual(), mean, Some(json!({ "do_lower_case": true })), "sets `do_lower_case`"),
    ] {
        let more = more.map(|more| ("sentence_bert_config.json", more));
        let files: Vec<(&str, Json)> =
            [("modules.json", list), ("1_Pooling/config.json", pooling)].into_iter().chain(more).collect();
        let folder = directory("bert-mlm", &files);
        let (is_fine, _, err) = trafoc(&["check", folder.path().to_str().unwrap()]);
        assert!(!is_fine && err.contains(says), "{says}\n{err}");
    }
}

/// An import says what the directory does with positions, and an export keeps the files that say it, also over an
/// earlier export.
#[test]
fn files_beside_a_model_are_kept() {
    let bert = directory(
        "bert-mlm",
        &[
            (
                "modules.json",
                modules(&[("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]),
            ),
            ("1_Pooling/config.json", json!({ "pooling_mode": "mean" })),
            ("config_sentence_transformers.json", json!({ "prompts": {}, "default_prompt_name": null })),
            ("chat_template.jinja", json!("{{ messages }}")),
            ("processor_config.json", json!({})),
        ],
    );
    let (from, to) = (bert.path().to_str().unwrap(), bert.path().join("out"));
    let (is_fine, spec, err) = trafoc(&["import", from]);
    assert!(is_fine && spec.contains("normalize: true") && !spec.contains("project"), "{spec}\n{err}");
    for more in [&[][..], &["--force"]] {
        let (is_fine, _, err) = trafoc(&[&["export", from, "--to", to.to_str().unwrap()], more].concat());
        assert!(is_fine, "{err}");
        for name in [
            "modules.json",
            "1_Pooling/config.json",
            "config_sentence_transformers.json",
            "chat_template.jinja",
            "processor_config.json",
        ] {
            assert_eq!(
                std::fs::read_to_string(bert.path().join(name)).unwrap(),
                std::fs::read_to_string(to.join(name)).unwrap()
            );
        }
    }
    let (_, again, _) = trafoc(&["import", to.to_str().unwrap()]);
    let plain =
        |spec: &str| spec.lines().filter(|line| !line.starts_with("name: ")).collect::<Vec<_>>().join("\n");
    assert_eq!(plain(&again), plain(&spec));
}

/// Settings next to a tokenizer change what the library's own classes make of it, and nothing for the general class.
#[test]
fn settings_of_a_tokenizer_are_those_of_its_class() {
    use trafoc::learn::token::Subword;
    use trafoc::learn::token::configured::{configured, gives_types};
    let tokenizer = || {
        let mut json = read("tokenizer.json");
        json["normalizer"] = json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true });
        Subword::from_json(&json.to_string()).unwrap()
    };
    // As `transformers` 5.23 gives it for `T5` with these files.
    for (config, text) in [
        (json!({ "tokenizer_class": "BertTokenizer", "do_lower_case": false }), "T\u{e9}"),
        (json!({ "do_lower_case": false, "strip_accents": true }), "Te"),
        (json!({ "tokenizer_class": "BertTokenizerFast", "strip_accents": false }), "t\u{e9}"),
        (json!({ "tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": false }), "te"),
        (json!({}), "te"),
        (json!(null), "te"),
    ] {
        assert_eq!(configured(tokenizer(), &config).unwrap().normalized("T\u{e9}"), text, "{config}");
    }
    for (config, types) in [
        (json!({ "tokenizer_class": "BertTokenizer" }), true),
        (json!({ "tokenizer_class": "PreTrainedTokenizerFast" }), false),
        (
            json!({ "tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["token_type_ids"] }),
            true,
        ),
        (json!({ "tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids"] }), false),
        (json!(null), true),
    ] {
        assert_eq!(gives_types(&config), types, "{config}");
    }
}

/// Rotary positions that stretch with the text stretch from the length of training on, also where a longer context is set.
#[test]
fn a_text_beyond_the_training_is_read_as_the_library_reads_it() {
    let case = read("stretched.json");
    let config = std::fs::read_to_string(repository("tests/hub/llama/config.json")).unwrap();
    let mut config: Json = serde_json::from_str(&config).unwrap();
    config.as_object_mut().unwrap().extend(case["changes"].as_object().unwrap().clone());
    let general = json!({ "tokenizer_class": "PreTrainedTokenizerFast" });
    let files = [
        ("config.json", config),
        ("tokenizer.json", read("tokenizer.json")),
        ("tokenizer_config.json", general),
    ];
    let folder = directory("llama", &files);
    let prompt = case["prompt"].as_str().unwrap();
    let generate = |more: &[&str]| {
        let begin = ["generate", folder.path().to_str().unwrap(), "--prompt", prompt];
        trafoc(&[&begin, &["--temperature", "0", "--max-tokens", "6"][..], more].concat())
    };
    let (_, _, refused) = generate(&[]);
    assert!(refused.contains("has 25 tokens, the model's context 16"), "{refused}");
    let help =
        "its rotary positions stretch for texts of more than 16 tokens: `--set context=64` lets it read them";
    assert!(refused.contains(help), "{refused}");
    let (is_done, text, why) = generate(&["--set", "context=64"]);
    assert!(is_done && text.trim_end().ends_with(case["text"].as_str().unwrap()), "{text}\n{why}");
}

/// What the library's classes for Llama and BERT make of a tokenizer, for the types of models for which it takes them.
#[test]
fn a_tokenizer_is_what_its_class_makes_of_it() {
    use trafoc::learn::token::Subword;
    use trafoc::learn::token::configured::{configured, missing, remade};
    let made = read("classes.json");
    for case in made["cases"].as_array().unwrap() {
        let file = &made["tokenizers"][case["tokenizer"].as_u64().unwrap() as usize];
        let file = Subword::from_json(&file.to_string()).unwrap();
        let config = &case["config"];
        let own = configured(file, config).unwrap();
        let own = remade(own, config, case["model"].as_str().unwrap()).unwrap();
        let text = case["text"].as_str().unwrap();
        let ids = match own.framed(text).unwrap() {
            Some(ids) => ids,
            None => own.pieces(text).unwrap().into_iter().map(|piece| piece.id).collect(),
        };
        assert_eq!(json!(ids), case["ids"], "{case}");
    }
    // Tokens that only the settings have are named.
    let file = Subword::from_json(&read("tokenizer.json").to_string()).unwrap();
    let config =
        json!({ "added_tokens_decoder": { "0": { "content": "[PAD]" }, "97": { "content": "<x>" } } });
    assert_eq!(missing(&file, &config), ["<x>"]);
    let files = [("tokenizer.json", read("tokenizer.json")), ("tokenizer_config.json", config)];
    let folder = directory("gpt2", &files);
    let (_, _, err) =
        trafoc(&["generate", folder.path().to_str().unwrap(), "--prompt", "t5", "--max-tokens", "1"]);
    let note = "note: `tokenizer_config.json` has 1 token that `tokenizer.json` lacks, which trafoc does not read and the \
                library adds: `<x>`";
    assert!(err.contains(note), "{err}");
}
