//! The languages of a body that translates: its sources and targets are read with the tokens that its
//! tokenizer and its configs prescribe, or the command says what has to be named.

use std::path::Path;

use serde_json::{Value as Json, json};
use trafoc::learn::data::Codebook;

use super::recipe;
use crate::cli::trafoc_in;
use crate::compiled::repository;

/// A directory of M2M-100 with a small vocabulary, whose sources have a language before them.
fn body(folder: &Path, target: Option<&str>) {
    std::fs::create_dir_all(folder).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(repository("tests/hub/m2m_100").join(name), folder.join(name)).unwrap();
    }
    let words =
        ["<s>", "<pad>", "</s>", "<unk>", "wheat", "prices", "rose", "ble", "prix", "__en__", "__fr__"];
    let ids: serde_json::Map<String, Json> =
        words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let mark = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let of = |name: &str, id: u32| json!({ "id": name, "ids": [id], "tokens": [name] });
    let one = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "decoder": null,
        "post_processor": {
            "type": "TemplateProcessing", "single": [mark("__en__"), one, mark("</s>")],
            "pair": [mark("__en__"), one, one, mark("</s>")],
            "special_tokens": { "__en__": of("__en__", 9), "</s>": of("</s>", 2) },
        },
        "model": { "type": "WordLevel", "unk_token": "<unk>", "vocab": ids },
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({ "tokenizer_class": "M2M100Tokenizer", "src_lang": "en", "tgt_lang": target });
    std::fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
}

#[test]
fn texts_have_their_languages() {
    let folder = tempfile::tempdir().unwrap();
    body(&folder.path().join("body"), None);
    std::fs::write(folder.path().join("pairs.tsv"), "wheat prices\tprix ble\nrose\tble\n".repeat(8)).unwrap();
    let recipe = recipe();
    let data = ["--with", "data={format: pairs, train: pairs.tsv}", "--with", "evaluate.metrics=[loss]"];
    let train = ["train", "body", "--recipe", &recipe, "--out", "run", "--with", "steps=1"];
    let eval = ["eval", "body", "--recipe", &recipe];
    let generate = ["generate", "body", "--prompt", "wheat", "--max-tokens", "4"];
    let run = |arguments: &[&str]| trafoc_in(folder.path(), arguments);
    for all in [[&train[..], &data].concat(), [&eval[..], &data].concat(), generate.to_vec()] {
        let said = run(&all);
        assert!(said.code == 2 && said.err.contains("`tgt_lang`"), "{all:?}: {}", said.err);
    }
    let named = run(&[&generate[..], &["--language", "fr"]].concat());
    assert_eq!(named.code, 0, "{}", named.err);
    body(&folder.path().join("body"), Some("fr"));
    let own = run(&generate);
    assert_eq!((own.code, &own.out), (0, &named.out), "{}", own.err);
    for all in [[&train[..], &data].concat(), [&eval[..], &data].concat()] {
        let said = run(&all);
        assert_eq!(said.code, 0, "{all:?}: {}", said.err);
    }
    let book = folder.path().join("run/checkpoints/step-000000001/codebook.json");
    let book = Codebook::from_json(&std::fs::read_to_string(book).unwrap()).unwrap();
    assert_eq!(book.framed_source(&[4, 5]), [9, 4, 5, 2]);
    // The start token of the config, and the language.
    assert_eq!(book.before_target(), [2, 10]);
    let said = run(&["export", "run", "--to", "exported"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let own = std::fs::read(folder.path().join("exported/generation_config.json")).unwrap();
    let own: Json = serde_json::from_slice(&own).unwrap();
    assert_eq!((&own["decoder_start_token_id"], &own["forced_bos_token_id"]), (&json!(2), &json!(10)));
    let more = ["--prompt", "wheat", "--max-tokens", "4"];
    let (first, second) = (
        run(&[&["generate", "run"], &more[..]].concat()),
        run(&[&["generate", "exported"], &more[..]].concat()),
    );
    assert_eq!((first.code, &first.out), (0, &second.out), "{}{}", first.err, second.err);
    body(&folder.path().join("body"), Some("xx"));
    let said = run(&generate);
    assert!(said.code == 4 && said.err.contains("`xx`"), "{}", said.err);
}

/// A directory of Marian or M2M-100 without a `tokenizer.json`: sources and targets are divided by models of
/// SentencePiece, and the result is exported with them.
#[test]
fn a_body_with_two_models_of_sentencepiece_is_trained_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = "wheat prices\tprices of wheat\nthe harbour closed\tseven freighters wait\n".repeat(8);
    std::fs::write(folder.path().join("pairs.tsv"), pairs).unwrap();
    let read = |path: &str| std::fs::read(repository(path)).unwrap();
    let expected: Json = serde_json::from_slice(&read("tests/sentencepiece/expected.json")).unwrap();
    let recipe = recipe();
    let run = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        said
    };
    for (name, kind, sizes) in [
        ("marian-symbols", "marian", &["vocab_size", "decoder_vocab_size"][..]),
        ("marian-separate", "marian", &["vocab_size", "decoder_vocab_size"]),
        ("m2m-100-from-french", "m2m_100", &["vocab_size"]),
    ] {
        let own = &expected["folders"][name];
        let body = folder.path().join("body");
        let _ = std::fs::remove_dir_all(&body);
        std::fs::create_dir(&body).unwrap();
        let text = read(&format!("tests/hub/{kind}/config.json"));
        let mut config: Json = serde_json::from_slice(&text).unwrap();
        // Rows enough for all ids; M2M-100 has a hundred languages.
        sizes.iter().for_each(|size| config[*size] = json!(400));
        std::fs::write(body.join("config.json"), config.to_string()).unwrap();
        let model = |key: &str, usual: &str| own[key].as_str().unwrap_or(usual).to_owned();
        let source = model("model", "");
        let mut files =
            vec![(if kind == "marian" { "source.spm" } else { "sentencepiece.bpe.model" }, source.clone())];
        if kind == "marian" {
            files.push(("target.spm", model("target_model", &source)));
        }
        for (file, model) in files {
            std::fs::write(body.join(file), read(&format!("tests/sentencepiece/models/{model}.model")))
                .unwrap();
        }
        for key in ["vocab", "target_vocab", "tokenizer_config", "special_tokens_map", "added_tokens"] {
            let mut content = own.get(key).cloned();
            if kind == "m2m_100" && key == "tokenizer_config" {
                content = content.map(|mut own| {
                    own["tgt_lang"] = json!("de");
                    own
                });
            }
            if let Some(content) = content {
                std::fs::write(body.join(format!("{key}.json")), content.to_string()).unwrap();
            }
        }
        let _ = std::fs::remove_dir_all(folder.path().join("run"));
        let data = ["--with", "data={format: pairs, train: pairs.tsv}", "--with", "evaluate.metrics=[loss]"];
        let train =
            ["train", "body", "--from-scratch", "--recipe", &recipe, "--out", "run", "--with", "steps=2"];
        run(&[&train[..], &data].concat());
        // Nothing says where the tokenizer of a run from random weights came from, so it does not come along.
        let said = run(&["export", "run", "--to", "whole"]);
        assert!(said.err.contains("so the tokenizer is not written"), "{name}: {}", said.err);
        for file in std::fs::read_dir(&body).unwrap().map(|file| file.unwrap().path()) {
            let to = folder.path().join("whole").join(file.file_name().unwrap());
            if !to.exists() {
                std::fs::copy(&file, to).unwrap();
            }
        }
        let train = ["train", "whole", "--recipe", &recipe, "--out", "tuned", "--with", "steps=1"];
        run(&[&train[..], &data].concat());
        let book = folder.path().join("tuned/checkpoints/step-000000001/codebook.json");
        let book = Codebook::from_json(&std::fs::read_to_string(book).unwrap()).unwrap();
        let text = "wheat<sym>prices <new> rise<other>s";
        let at = expected["texts"].as_array().unwrap().iter().position(|own| own == text).unwrap();
        let ids = |key: &str| serde_json::from_value::<Vec<u32>>(own[key][at.to_string()].clone()).unwrap();
        let source = book.source_tokenizer().unwrap().encode(text).unwrap();
        assert_eq!(book.framed_source(&source), ids("ids"), "{name}");
        if kind == "marian" {
            let target = book.tokenizer.as_ref().unwrap().encode(text).unwrap();
            assert_eq!(
                [target, vec![ids("target").last().copied().unwrap()]].concat(),
                ids("target"),
                "{name}"
            );
        }
        run(&["export", "tuned", "--to", "exported"]);
        let more = ["--prompt", "wheat prices", "--max-tokens", "4"];
        let out = |model: &str| run(&[&["generate", model], &more[..]].concat()).out;
        assert_eq!(out("tuned"), out("exported"), "{name}");
        for left in ["whole", "tuned", "exported"] {
            std::fs::remove_dir_all(folder.path().join(left)).unwrap();
        }
    }
}
