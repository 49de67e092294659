//! What imported models generate, with the special tokens of their `generation_config.json` or config.
//!
//! `tests/writing/make.py` writes the results of the library's `generate` to `cases.json`.

use serde_json::{Value as Json, json};
use trafoc::learn::writing::Writing;

use crate::compiled::repository;

/// A tokenizer with a word for every id, `t0` to `t96`.
fn words(frame: Json) -> Json {
    let vocab: serde_json::Map<String, Json> = (0..97).map(|id| (format!("t{id}"), json!(id))).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": frame, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocab, "unk_token": "t3" },
    })
}

fn text(ids: &[Json]) -> String {
    ids.iter().map(|id| format!("t{id}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn imported_models_write_what_the_library_writes() {
    let cases = std::fs::read_to_string(repository("tests/writing/cases.json")).unwrap();
    let cases: Vec<Json> = serde_json::from_str(&cases).unwrap();
    for case in &cases {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let model = repository("tests/hub").join(case["model"].as_str().unwrap());
        std::fs::copy(model.join("model.safetensors"), path("model.safetensors")).unwrap();
        let config = std::fs::read_to_string(model.join("config.json")).unwrap();
        let mut config: Json = serde_json::from_str(&config).unwrap();
        config.as_object_mut().unwrap().extend(case["config"].as_object().unwrap().clone());
        std::fs::write(path("config.json"), config.to_string()).unwrap();
        if !case["generation"].is_null() {
            std::fs::write(path("generation_config.json"), case["generation"].to_string()).unwrap();
        }
        let source = case["source"].as_array().unwrap();
        let is_translator = case["model"] != "llama";
        // The last id of a source is its end token, which the tokenizer's template adds.
        let (end, inner) = source.split_last().unwrap();
        let frame = json!({
            "type": "TemplateProcessing", "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }],
            "single": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "SpecialToken": { "id": "end", "type_id": 0 } }],
            "special_tokens": { "end": { "id": "end", "ids": [end], "tokens": ["end"] } },
        });
        let tokenizer = words(if is_translator { frame } else { Json::Null });
        std::fs::write(path("tokenizer.json"), tokenizer.to_string()).unwrap();
        let mut command = crate::compiled::program();
        command.arg("generate").arg(folder.path()).args(["--format", "json"]);
        if case["beam"].is_null() {
            command.args(["--temperature", "0", "--repetition-penalty", &case["penalty"].to_string()]);
        } else {
            command.args(["--beam", &case["beam"].to_string()]);
            command.args(["--length-penalty", &case["length_penalty"].to_string()]);
        }
        command.args(["--prompt", &text(if is_translator { inner } else { source })]);
        if let Some(most) = case["most"].as_u64() {
            // Here, a forced end token counts among the requested tokens, and a forced first token does
            // not.
            command.args(["--max-tokens", &most.to_string()]);
        }
        let output = crate::cli::kept(command.output().unwrap());
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case}\n{err}");
        let said: Json = serde_json::from_slice(&output.stdout).unwrap();
        let said = &said["data"]["texts"][0];
        let found = said["text"].as_str().unwrap();
        let found = if is_translator { found } else { found.strip_prefix(&(text(source) + " ")).unwrap() };
        assert_eq!(found.trim(), text(case["written"].as_array().unwrap()), "{case}\n{said}");
        assert_eq!(said["ended"], case["ended"], "{case}");
        if let Some(wanted) = case["log_probability"].as_f64() {
            let found = said["log_probability"].as_f64().unwrap();
            assert!((found - wanted).abs() < 1e-3 * wanted.abs().max(1.0), "{case}\n{said}");
        }
    }
}

/// A directory with a model of `tests/hub` and words as its tokens.
struct Model(tempfile::TempDir);

impl Model {
    fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in ["model.safetensors", "config.json"] {
            std::fs::copy(repository("tests/hub").join(name).join(file), folder.path().join(file)).unwrap();
        }
        let model = Self(folder);
        model.write("tokenizer.json", words(Json::Null).to_string());
        model
    }

    /// Makes all of its weights NaN.
    fn spoil(&self) {
        let path = self.0.path().join("model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        let header = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        bytes[8 + header..].fill(0xff);
        std::fs::write(path, bytes).unwrap();
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn run(&self, command: &str, more: &[&str]) -> std::process::Output {
        let mut program = crate::compiled::program();
        program.current_dir(self.0.path()).args([command, "."]).args(more).output().unwrap()
    }

    /// What a command that succeeds writes to stdout and to stderr.
    fn said(&self, command: &str, more: &[&str]) -> (String, String) {
        let output = self.run(command, more);
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{more:?}: {err}");
        (out, err)
    }

    /// What a command that fails with this code says.
    fn refused(&self, code: i32, command: &str, more: &[&str]) -> String {
        let output = self.run(command, more);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{more:?}: {err}");
        err
    }
}

/// The text of a prompt and its continuation is that of all their tokens: with a space between two words, whichever way
/// the tokens are chosen, and where a stop is looked for.
#[test]
fn a_continuation_is_decoded_after_its_prompt() {
    let model = Model::of("llama");
    model.write("generation_config.json", json!({"eos_token_id": []}).to_string());
    let text = |more: &[&str]| model.said("generate", &[&["--max-tokens", "3"], more].concat()).0;
    let greedy = text(&["--temperature", "0", "--prompt", "t5 t70"]);
    let all: Vec<&str> = greedy.trim_end().split(' ').collect();
    let ["t5", "t70", first, second, _] = all.as_slice() else { panic!("{greedy}") };
    assert_eq!(text(&["--beam", "1", "--prompt", "t5 t70"]), greedy);
    // A space without a token of its own is not written twice.
    assert_eq!(text(&["--temperature", "0", "--prompt", "t5 t70 "]), greedy);
    let stopped = |stop: &str| text(&["--temperature", "0", "--prompt", "t5 t70", "--stop", stop]);
    assert_eq!(stopped(&format!(" {first}")), "t5 t70\n");
    assert_eq!(stopped(&format!("{first} {second}")), "t5 t70 \n");
}

/// A token or a class whose score is NaN would be none, or the best one.
#[test]
fn scores_that_are_not_numbers_end_with_an_error() {
    let model = |name| {
        let model = Model::of(name);
        model.spoil();
        model
    };
    for how in [["--temperature", "0"], ["--temperature", "1"], ["--beam", "2"]] {
        for (name, text) in [("llama", "t5"), ("bart", "t5 t70")] {
            let said = model(name).refused(4, "generate", &[&how[..], &["--prompt", text]].concat());
            assert!(said.contains("the model's scores are NaN"), "{said}");
        }
    }
    let asked = ["--text", "t5 t70 t8", "--question", "t5 t9"];
    for (name, arguments) in [("bart-classify", &asked[..2]), ("bert-qa", &asked[..])] {
        let said = model(name).refused(4, "predict", arguments);
        assert!(said.contains("the model's scores are NaN"), "{said}");
    }
}

/// Editors on Windows write a byte order mark before a text.
#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    for (name, command, option, more) in [
        ("llama", "generate", "--prompts", &["--temperature", "0"][..]),
        ("bart-classify", "predict", "--texts", &[][..]),
    ] {
        let model = Model::of(name);
        model.write("plain.txt", "t5 t70\nt8\n");
        model.write("marked.txt", "\u{feff}t5 t70\r\nt8\r\n");
        let said = |file| model.said(command, &[&[option, file], more].concat()).0;
        assert_eq!(said("marked.txt"), said("plain.txt"), "{name}");
        model.write("latin.txt", b"t5 \xe9\n");
        assert!(model.refused(4, command, &[option, "latin.txt"]).contains("it is not UTF-8 text"));
        // The files of the directory, too.
        let plain = said("plain.txt");
        for file in ["config.json", "tokenizer.json"] {
            let text = std::fs::read_to_string(model.0.path().join(file)).unwrap();
            model.write(file, format!("\u{feff}{text}"));
        }
        assert_eq!(said("plain.txt"), plain, "{name}");
    }
    let model = Model::of("llama");
    model.write("inputs.json", "\u{feff}{\"tokens\": [[5, 70]]}");
    model.said("run", &["--inputs", "inputs.json"]);
}

/// A text that does not fit is named, by its beginning, with what would help.
#[test]
fn a_text_that_is_too_long_is_named() {
    let long = "t5 ".repeat(60);
    let beginning = "`t5 t5 t5 t5 t5 t5 t5 t5 t5 t5 t5 t5 t5 t...`";
    let cases: &[(&str, &str, &[&str], &str)] = &[
        ("llama", "generate", &["--prompt", &long], "the prompt B has 60 tokens"),
        ("bart", "generate", &["--prompt", &long], "the prompt B has 60 tokens, the model's context 40"),
        (
            "bart-classify",
            "predict",
            &["--text", "t5", "--second", &long],
            "the second text B has 60 tokens and leaves no room",
        ),
        (
            "bert-qa",
            "predict",
            &["--text", "t5", "--question", &long],
            "the question B has 60 tokens and leaves no room",
        ),
    ];
    for (name, command, arguments, wanted) in cases {
        let said = Model::of(name).refused(2, command, arguments);
        assert!(said.contains(&wanted.replace('B', beginning)), "{name}: {said}");
        assert!(said.contains("help: give a shorter one") && !said.contains("note:"), "{name}: {said}");
    }
}

/// What is missing is named, and what would have named it.
#[test]
fn weights_that_are_missing_are_named() {
    let model = Model::of("llama");
    let said = model.refused(4, "generate", &["--weights", "nothere.safetensors"]);
    assert!(said.contains("`nothere.safetensors`: there is no such file"), "{said}");
    let said = model.refused(2, "generate", &["--checkpoint", "best"]);
    assert!(said.contains("`--checkpoint` would have no effect: `.` is no run"), "{said}");
    std::fs::remove_file(model.0.path().join("model.safetensors")).unwrap();
    let index = json!({"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}});
    model.write("model.safetensors.index.json", index.to_string());
    let said = model.refused(4, "generate", &[]);
    for part in ["model-00002-of-00002.safetensors`: there is no such file", "index.json` names it"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Before it is said how much memory they would take.
    let config = repository("tests/hub/llama/config.json");
    let mut config: Json = serde_json::from_str(&std::fs::read_to_string(config).unwrap()).unwrap();
    config["hidden_size"] = json!(1_048_576);
    config["vocab_size"] = json!(1_048_576);
    model.write("config.json", config.to_string());
    std::fs::remove_file(model.0.path().join("model.safetensors.index.json")).unwrap();
    let said = model.refused(4, "generate", &[]);
    assert!(said.contains("`.` has no model.safetensors"), "{said}");
    // A spec has no tokenizer of its own.
    let mut program = crate::compiled::program();
    let output = program.args(["generate", "@gpt1", "--weights", "w.safetensors"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("--weights needs --codebook, too"), "{said}");
}

/// Where a limit has cut a text, this is said, and JSON has the limit that held.
#[test]
fn a_text_that_a_limit_has_cut_is_reported() {
    let most = |model: &Model, more: &[&str]| {
        let said = model.said("generate", &[&["--prompt", "t5", "--format", "json"], more].concat()).0;
        serde_json::from_str::<Json>(&said).unwrap()["data"]["max_tokens"].as_u64().unwrap()
    };
    let cut = |model: &Model, more: &[&str]| {
        let said = model.said("generate", &[&["--prompt", "t5", "--temperature", "0"], more].concat()).1;
        let is_note = |line: &&str| line.contains("ended before") || line.contains("did not end");
        said.lines().find(is_note).unwrap_or_default().to_owned()
    };
    let translator = Model::of("bart");
    let set = json!({"eos_token_id": [], "decoder_start_token_id": 2, "bos_token_id": 0, "max_length": 9});
    translator.write("generation_config.json", set.to_string());
    assert_eq!(most(&translator, &[]), 8);
    let wanted =
        "1 of 1 translation did not end within 8 tokens, the most that the settings of its model allow";
    assert!(cut(&translator, &[]).contains(wanted));
    assert_eq!(most(&translator, &["--max-tokens", "3"]), 3);
    assert_eq!(cut(&translator, &["--max-tokens", "3"]), "");
    // The position of the last token is not computed, and the first one is that of the start token.
    let wanted = "1 of 1 text ended before 1000 tokens: the model's context has 40 positions";
    assert_eq!(most(&translator, &["--max-tokens", "1000"]), 40);
    assert!(cut(&translator, &["--max-tokens", "1000"]).contains(wanted));
    translator.write("generation_config.json", json!({"eos_token_id": []}).to_string());
    assert_eq!(most(&translator, &[]), 40);
    assert!(cut(&translator, &[]).contains("40 tokens, all that the model's context has room for"));
    let writer = Model::of("llama");
    writer.write("generation_config.json", json!({"eos_token_id": []}).to_string());
    assert_eq!(cut(&writer, &[]), "");
    assert!(cut(&writer, &["--max-tokens", "1000"]).contains(wanted));
}

#[test]
fn ids_that_cannot_be_are_refused() {
    let of = |config: Json| Writing::of(&config, 97).unwrap_err().join("; ");
    assert!(of(json!({"decoder_start_token_id": 97})).contains("a token's id, below 97"));
    assert!(of(json!({"forced_bos_token_id": -1})).contains("`forced_bos_token_id` is -1"));
    let several = of(json!({"eos_token_id": "x", "max_length": 0, "bad_words_ids": [[1, 2]]}));
    assert!(
        several.contains("or a list of them; ") && several.contains("words of one token each"),
        "{several}"
    );
    // An end token outside of the vocabulary, as in a model that was cut down, never occurs.
    let idle = json!({"eos_token_id": [2, 50256], "bos_token_id": 50256, "forced_eos_token_id": null});
    assert_eq!(Writing::of(&idle, 97).unwrap(), Writing { ends: vec![2], ..Writing::default() });
    let aside = Writing::left_aside(&json!({"num_beams": 4, "temperature": 0.6, "length_penalty": 1.0}));
    assert_eq!(aside, ["num_beams 4 (--beam)"]);
    // What beam search does here, and what the library does if it is not told.
    let stopping = |how: Json| Writing::left_aside(&json!({"num_beams": 4, "early_stopping": how}));
    assert_eq!(stopping(json!("never")), ["num_beams 4 (--beam)"]);
    assert_eq!(stopping(json!(false)), ["num_beams 4 (--beam)", "early_stopping false"]);
    assert!(Writing::left_aside(&json!({"early_stopping": false})).is_empty());
    // As the summarizer bart-large-cnn has it, and keys that change greedy texts.
    let aside = Writing::left_aside(&json!({
        "bos_token_id": 0, "decoder_start_token_id": 2, "early_stopping": true, "eos_token_id": 2,
        "forced_bos_token_id": 0, "forced_eos_token_id": 2, "length_penalty": 2.0, "max_length": 142,
        "min_length": 56, "no_repeat_ngram_size": 3, "num_beams": 4, "pad_token_id": 1,
        "transformers_version": "4.27.0.dev0", "use_cache": true, "typical_p": 0.5,
    }));
    let wanted = [
        "early_stopping true",
        "length_penalty 2.0 (--length-penalty)",
        "min_length 56",
        "no_repeat_ngram_size 3",
        "num_beams 4 (--beam)",
    ];
    assert_eq!(aside, wanted);
    let aside = Writing::left_aside(&json!({
        "begin_suppress_tokens": [220, 50256], "sequence_bias": [[[5], 1.5]], "stop_strings": ["\n"],
        "exponential_decay_length_penalty": [5, 1.1], "watermarking_config": {"bias": 2.0},
        "encoder_repetition_penalty": 1.2, "guidance_scale": 1.5, "suppress_tokens": [1], "forced_decoder_ids": [],
        "do_sample": true, "typical_p": 0.5, "epsilon_cutoff": 0.001, "length_penalty": 2.0, "some_new_key": false,
    }));
    let wanted = [
        "begin_suppress_tokens",
        "sequence_bias",
        "stop_strings",
        "exponential_decay_length_penalty",
        "watermarking_config",
        "encoder_repetition_penalty 1.2",
        "guidance_scale 1.5",
        "typical_p 0.5",
        "epsilon_cutoff 0.001",
        "some_new_key",
    ];
    assert_eq!(aside, wanted);
}

/// Two texts are separated as the tokenizer's own template says, and a model that classifies them computes
/// the same as for the ids.
#[test]
fn pairs_are_framed_as_their_tokenizer_frames_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["model.safetensors", "config.json"] {
        std::fs::copy(repository("tests/hub/bart-classify").join(name), path(name)).unwrap();
    }
    let text = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    let mark = |id: &str| json!({ "SpecialToken": { "id": id, "type_id": 0 } });
    let named = |id: &str, at: u32| json!({ "id": id, "ids": [at], "tokens": [id] });
    let frame = json!({
        "type": "TemplateProcessing", "single": [mark("<s>"), text("A"), mark("</s>")],
        "pair": [mark("<s>"), text("A"), mark("</s>"), mark("</s>"), text("B"), mark("</s>")],
        "special_tokens": { "<s>": named("<s>", 0), "</s>": named("</s>", 2) },
    });
    let mut tokenizer = words(frame);
    let vocab = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    for (mark, id) in [("<s>", 0), ("<pad>", 1), ("</s>", 2)] {
        vocab.remove(&format!("t{id}"));
        vocab.insert(mark.into(), json!(id));
    }
    std::fs::write(path("tokenizer.json"), tokenizer.to_string()).unwrap();
    let said = |arguments: &[&str]| {
        let mut command = crate::compiled::program();
        let (first, rest) = arguments.split_first().unwrap();
        let output = crate::cli::kept(command.arg(first).arg(folder.path()).args(rest).output().unwrap());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for (second, ids) in [(None, json!([[0, 5, 70, 2]])), (Some("t8 t9"), json!([[0, 5, 70, 2, 2, 8, 9, 2]]))]
    {
        std::fs::write(path("inputs.json"), json!({ "source": ids }).to_string()).unwrap();
        let (inputs, out) = (path("inputs.json"), path("out.json"));
        said(&["run", "--inputs", inputs.to_str().unwrap(), "-o", out.to_str().unwrap(), "--force"]);
        let logits: Json = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
        let logits: Vec<f64> = serde_json::from_value(logits["logits"][0].clone()).unwrap();
        let sum: f64 = logits.iter().map(|x| x.exp()).sum();
        let best = logits.iter().map(|x| x.exp() / sum).fold(0.0, f64::max);
        let mut arguments = vec!["predict", "--format", "json", "--text", "t5 t70"];
        arguments.extend(second.into_iter().flat_map(|second| ["--second", second]));
        let found: Json = serde_json::from_str(&said(&arguments)).unwrap();
        let found = &found["data"]["predictions"][0]["classes"][0]["probability"];
        assert!((found.as_f64().unwrap() - best).abs() < 1e-5, "{found} {best}");
    }
}
