//! What a run exports of a body that it fine-tuned: a tokenizer that frames texts as training did, and what
//! it added to the body, as peft has it.

use std::path::Path;

use serde_json::Value as Json;
use trafoc::learn::token::Subword;
use trafoc::tensor_file::TensorFile;

use super::recipe;
use crate::cli::trafoc_in;
use crate::compiled::repository;

/// A directory of GPT-2 with a small vocabulary, whose template is this.
fn gpt2(folder: &Path, processor: &Json) {
    std::fs::create_dir_all(folder).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(repository("tests/hub/gpt2").join(name), folder.join(name)).unwrap();
    }
    // GPT-2 itself has one special token.
    let [start, end] = if processor["type"] == "ByteLevel" { ["from", "to"] } else { ["<s>", "</s>"] };
    let words = ["<|endoftext|>", start, end, "<unk>", "wheat", "prices", "rose", "tea", "ships"];
    let ids: serde_json::Map<String, Json> =
        words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": processor, "decoder": null,
        "model": { "type": "WordLevel", "unk_token": "<unk>", "vocab": ids },
    });
    std::fs::write(folder.join("tokenizer.json"), json.to_string()).unwrap();
}

/// A text is read between the tokens that the directory's own tokenizer puts around it, and the exported
/// tokenizer puts around it what training did.
#[test]
fn texts_are_framed_as_their_tokenizer_frames_them() {
    use serde_json::json;
    use trafoc::learn::token::Tokenizer;
    let (one, two) = (
        json!({ "Sequence": { "id": "A", "type_id": 0 } }),
        json!({ "Sequence": { "id": "B", "type_id": 0 } }),
    );
    let mark = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let template = |single: &[&Json], pair: &[&Json]| {
        let names = [("<s>", 1), ("</s>", 2)];
        let all: serde_json::Map<String, Json> = names
            .iter()
            .map(|(name, id)| ((*name).to_owned(), json!({ "id": name, "ids": [id], "tokens": [name] })))
            .collect();
        json!({ "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": all })
    };
    let (start, end) = (mark("<s>"), mark("</s>"));
    let bytes =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let roberta = json!({
        "type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": true,
        "add_prefix_space": false,
    });
    // Before a text, between two, after them.
    let cases: [(&str, Json, [&[u32]; 3]); 7] = [
        ("nothing said", Json::Null, [&[], &[], &[]]),
        ("GPT-2", bytes, [&[], &[], &[]]),
        ("RoBERTa", roberta, [&[1], &[2, 2], &[2]]),
        ("BERT", template(&[&start, &one, &end], &[&start, &one, &end, &two, &end]), [&[1], &[2], &[2]]),
        ("T5", template(&[&one, &end], &[&one, &end, &two, &end]), [&[], &[2], &[2]]),
        ("Llama", template(&[&start, &one], &[&start, &one, &start, &two]), [&[1], &[1], &[]]),
        ("OPT", template(&[&end, &one], &[&end, &one, &end, &two]), [&[2], &[2], &[]]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let rows = "wheat prices,rose tea,wheat\nships tea,tea tea,ship\n".repeat(10);
    let data = format!("text,second,label\n{rows}");
    std::fs::write(folder.path().join("data.csv"), data).unwrap();
    std::fs::write(folder.path().join("data.txt"), "wheat prices rose\nships rose\n".repeat(10)).unwrap();
    let recipe = recipe();
    for (name, processor, [before, between, after]) in cases {
        let run = |arguments: &[&str]| {
            let said = trafoc_in(folder.path(), arguments);
            assert_eq!(said.code, 0, "{name}: {}", said.err);
            said.out
        };
        gpt2(&folder.path().join("gpt2"), &processor);
        let frames = |which: &str| {
            let text = std::fs::read_to_string(folder.path().join(which).join("tokenizer.json")).unwrap();
            let json = Subword::from_json(&text).unwrap();
            let single = json.framed("wheat ships").unwrap();
            (single, Tokenizer::Subword(Box::new(json)).own_layout().map(|own| own.parts()))
        };
        let table = "data={format: {table: {text: text, second: second, label: label}}, train: data.csv}";
        let all = ["--head", "classify", "--classes", "2", "--recipe", &recipe, "--with", table];
        let more = ["--with", "steps=1", "--with", "data.train=data.csv"];
        run(&[&["data", "gpt2", "--out", "arrays", "--force"], &all[..], &more].concat());
        let json = std::fs::read(folder.path().join("arrays/data.json")).unwrap();
        let json: Json = serde_json::from_slice(&json).unwrap();
        let sequence = &json["sequence"];
        assert_eq!(sequence["before"], json!(before), "{name}");
        assert_eq!(sequence["between"], json!(between), "{name}");
        assert_eq!(sequence["after"], json!(after), "{name}");
        let _ = std::fs::remove_dir_all(folder.path().join("run"));
        run(&[&["train", "gpt2", "--out", "run"], &all[..], &more].concat());
        run(&["export", "run", "--to", "exported", "--force"]);
        let framed = [before, &[4, 8], after].concat();
        let (single, pair) = frames("exported");
        assert_eq!(single.unwrap_or_else(|| vec![4, 8]), framed, "{name}");
        assert_eq!(pair.unwrap_or_default(), [before, between, after], "{name}");
        let text = ["--text", "wheat prices", "--text", "ships rose"];
        assert_eq!(
            run(&[&["predict", "run"], &text[..]].concat()),
            run(&[&["predict", "exported"], &text[..]].concat())
        );
        // A prompt begins as the texts did with which the model was trained, and has no end.
        let lines = "data={format: lines, train: data.txt}";
        let all = ["train", "gpt2", "--recipe", &recipe, "--with", lines, "--with", "steps=1", "--out", "lm"];
        let _ = std::fs::remove_dir_all(folder.path().join("lm"));
        run(&[&all[..], &["--with", "evaluate.metrics=[loss]"]].concat());
        run(&["export", "lm", "--to", "exported", "--force"]);
        let single = frames("exported").0.unwrap_or_else(|| vec![4, 8]);
        let expected: &[u32] = if name == "GPT-2" { &[4, 8] } else { &[1, 4, 8] };
        assert_eq!(single, expected, "{name}");
        let prompt = ["--prompt", "wheat", "--temperature", "0", "--max-tokens", "3"];
        assert_eq!(
            run(&[&["generate", "lm"], &prompt[..]].concat()),
            run(&[&["generate", "exported"], &prompt[..]].concat())
        );
    }
}

/// Changes of projections that share a tensor are exported as one change of that tensor, which peft adds: `A`
/// has the rows of all of them, `B` their blocks, and its own rank and alpha give the same factor. The
/// numbers are those of the export with everything added.
#[test]
fn adapters_of_fused_projections_are_exported() {
    // The body, what is adapted, the tensor and the number of changes in it, whether its inputs are first.
    let cases = [
        ("gpt2", "\"*.query\", \"*.value\", \"*.ffn.up\"", "transformer.h.1.attn.c_attn", 2, true),
        (
            "falcon-new",
            "\"*.query\", \"*.value\"",
            "transformer.h.1.self_attention.query_key_value",
            2,
            false,
        ),
        ("phi3", "\"*.key\", \"*.gate\", \"*.ffn.up\"", "model.layers.1.mlp.gate_up_proj", 2, false),
    ];
    for (name, on, fused, count, is_transposed) in cases {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let said = trafoc_in(folder.path(), arguments);
            assert_eq!(said.code, 0, "{name}: {}", said.err);
        };
        std::fs::write(folder.path().join("data.txt"), "wheat prices rose\nships sailed\n".repeat(10))
            .unwrap();
        let (body, recipe) = (repository(&format!("tests/hub/{name}")).display().to_string(), recipe());
        let adapt = format!("adapt={{lora: {{rank: 3, alpha: 6, on: [{on}]}}}}");
        let all =
            ["train", &body, "--recipe", &recipe, "--with", &adapt, "--with", "steps=3", "--out", "run"];
        let lines = "data={format: lines, train: data.txt}";
        let more = ["--with", lines, "--with", "tokens=characters", "--with", "evaluate.metrics=[loss]"];
        run(&[&all[..], &more].concat());
        run(&["export", "run", "--to", "whole"]);
        run(&["export", "run", "--adapter", "--to", "added"]);
        let config = std::fs::read(folder.path().join("added/adapter_config.json")).unwrap();
        let config: Json = serde_json::from_slice(&config).unwrap();
        assert_eq!(config["fan_in_fan_out"], is_transposed, "{name}");
        let mut before = TensorFile::open(&Path::new(&body).join("model.safetensors")).unwrap();
        let open = |name: &str| TensorFile::open(&folder.path().join(name)).unwrap();
        let (mut after, mut added) =
            (open("whole/model.safetensors"), open("added/adapter_model.safetensors"));
        let modules = config["target_modules"].as_array().unwrap();
        assert!(modules.iter().any(|module| module == fused), "{name}: {modules:?}");
        assert_eq!(added.entries().len(), 2 * modules.len());
        for module in modules {
            let module = module.as_str().unwrap();
            // As peft computes it: the factor, and the change of the weight.
            let rank = config["rank_pattern"].get(module).unwrap_or(&config["r"]).as_u64().unwrap() as usize;
            let alpha =
                config["alpha_pattern"].get(module).unwrap_or(&config["lora_alpha"]).as_f64().unwrap();
            assert_eq!(alpha / rank as f64, 2.0, "{name}: {module}");
            if module == fused {
                assert_eq!(rank, 3 * count, "{name}: {module}");
            }
            let down = added.floats(&format!("base_model.model.{module}.lora_A.weight")).unwrap();
            let up = added.floats(&format!("base_model.model.{module}.lora_B.weight")).unwrap();
            let tensor = format!("{module}.weight");
            let (before, after) = (before.floats(&tensor).unwrap(), after.floats(&tensor).unwrap());
            let (rows, columns) = (up.len() / rank, down.len() / rank);
            let mut changes = 0;
            for row in 0..rows {
                for column in 0..columns {
                    let products = (0..rank).map(|i| up[row * rank + i] * down[i * columns + column]);
                    let at = if is_transposed { column * rows + row } else { row * columns + column };
                    let sum = before[at] + 2.0 * products.sum::<f32>();
                    assert!((sum - after[at]).abs() < 1e-6, "{name}: {module}, {row}, {column}");
                    changes += usize::from(after[at] != before[at]);
                }
            }
            assert!(changes > columns, "{name}: {module} did not change");
        }
    }
}
