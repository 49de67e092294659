//! What a `tokenizer_config.json` says in addition to the `tokenizer.json` next to it.
//!
//! The library's classes for single families, such as `BertTokenizer`, make some parts of a tokenizer anew from the
//! settings there; the class for all families takes `tokenizer.json` as it is. As in `transformers` 5.23.

use serde_json::{Map, Value as Json, json};

use super::Subword;

/// The classes that take `tokenizer.json` as it is.
const GENERAL: &[&str] = &["PreTrainedTokenizerFast", "PreTrainedTokenizer", "TokenizersBackend"];

/// A setting with the type of the part of a `tokenizer.json` that has it, and with the key there.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("do_lower_case", "BertNormalizer", "lowercase"),
    ("strip_accents", "BertNormalizer", "strip_accents"),
    ("tokenize_chinese_chars", "BertNormalizer", "handle_chinese_chars"),
    ("add_prefix_space", "ByteLevel", "add_prefix_space"),
];

/// The model types for which the library takes `tokenizer.json` as it is, whatever class is named: those to which its
/// table gives a general class, or another one than that of their files.
const UNTOUCHED: &[&str] = &[
    "ernie4_5",
    "ernie4_5_moe",
    "flex_olmo",
    "glm",
    "glm4",
    "glm4_moe",
    "glm4_moe_lite",
    "gpt_bigcode",
    "granite",
    "granitemoe",
    "granitemoehybrid",
    "granitemoeshared",
    "hyperclovax",
    "internlm3",
    "iquestcoder",
    "jamba",
    "minicpm3",
    "minimax_m2",
    "ministral",
    "ministral3",
    "mistral",
    "mixtral",
    "modernbert",
    "nemotron",
    "olmo2",
    "olmo3",
    "persimmon",
    "phi3",
    "phimoe",
    "qwen2",
    "stablelm",
    "umt5",
    "xlm-roberta-xl",
];

/// A tokenizer as the class that its `tokenizer_config.json` names makes it for a model of this type: the classes of
/// Llama and BERT make more of it anew than single settings.
///
/// # Errors
/// The tokenizer cannot be read again.
pub fn remade(tokenizer: Subword, config: &Json, model: &str) -> Result<Subword, String> {
    let class = config["tokenizer_class"].as_str().unwrap_or_default();
    let class = class.strip_suffix("Fast").unwrap_or(class);
    // A tokenizer can be large, so it is read again only for these two.
    if UNTOUCHED.contains(&model) || !matches!(class, "LlamaTokenizer" | "BertTokenizer") {
        return Ok(tokenizer);
    }
    let json: Json = serde_json::from_str(tokenizer.to_json()).map_err(|e| e.to_string())?;
    let remade = match class {
        "LlamaTokenizer" => as_llama(json, config),
        _ => as_bert(json, config, |name| tokenizer.id(name)),
    };
    match remade {
        Some(json) => Subword::from_json(&json.to_string()),
        None => Ok(tokenizer),
    }
}

/// What `LlamaTokenizer` makes of a tokenizer that marks words with `▁`: nothing is left of the normalizer, and the mark
/// before the first word is that of `add_prefix_space`. Byte-level tokenizers are left to the general class.
fn as_llama(mut json: Json, config: &Json) -> Option<Json> {
    const MARK: &str = "\u{2581}";
    let normalizers: Vec<&Json> = match &json["normalizer"] {
        Json::Null => Vec::new(),
        all if all["type"] == "Sequence" => all["normalizers"].as_array()?.iter().collect(),
        one => vec![one],
    };
    // Only these two make of a text what the class makes of it.
    let is_marking = |own: &Json| {
        (own["type"] == "Prepend" && own["prepend"] == MARK)
            || (own["type"] == "Replace" && own["pattern"]["String"] == " " && own["content"] == MARK)
    };
    let pre = &json["pre_tokenizer"];
    let is_metaspace = pre["type"] == "Metaspace" && pre["replacement"] == MARK;
    let is_known = if normalizers.is_empty() { is_metaspace } else { pre.is_null() || is_metaspace };
    if !is_known || !normalizers.iter().all(|own| is_marking(own)) || json["model"]["type"] != "BPE" {
        return None;
    }
    let has_prefix = config["add_prefix_space"] != false;
    let scheme = match (has_prefix, config["legacy"] == true) {
        (false, _) => "never",
        (true, true) => "always",
        (true, false) => "first",
    };
    json["normalizer"] = Json::Null;
    json["pre_tokenizer"] =
        json!({ "type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": false });
    let model = &mut json["model"];
    (model["fuse_unk"], model["byte_fallback"]) = (true.into(), true.into());
    (model["unk_token"], model["dropout"]) = (Json::Null, Json::Null);
    (model["continuing_subword_prefix"], model["end_of_word_suffix"]) = (Json::Null, Json::Null);
    model["ignore_merges"] = false.into();
    let mut decoders = vec![
        json!({ "type": "Replace", "pattern": { "String": MARK }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if has_prefix {
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    json["decoder"] = json!({ "type": "Sequence", "decoders": decoders });
    Some(json)
}

/// What `BertTokenizer` puts around texts where the file puts nothing.
fn as_bert(mut json: Json, config: &Json, id_of: impl Fn(&str) -> Option<u32>) -> Option<Json> {
    if !json["post_processor"].is_null() {
        return None;
    }
    let token = |key: &str, usual: &str| {
        let given = &config[key];
        given.as_str().or(given["content"].as_str()).unwrap_or(usual).to_owned()
    };
    let (begin, end) = (token("cls_token", "[CLS]"), token("sep_token", "[SEP]"));
    let (first, last) = (id_of(&begin)?, id_of(&end)?);
    let special = |name: &str, kind: u32| json!({ "SpecialToken": { "id": name, "type_id": kind } });
    let text = |name: &str, kind: u32| json!({ "Sequence": { "id": name, "type_id": kind } });
    let single = vec![special(&begin, 0), text("A", 0), special(&end, 0)];
    let pair = [single.clone(), vec![text("B", 1), special(&end, 1)]].concat();
    let mut marks = Map::new();
    for (name, id) in [(&begin, first), (&end, last)] {
        marks.insert(name.clone(), json!({ "id": name, "ids": [id], "tokens": [name] }));
    }
    json["post_processor"] =
        json!({ "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": marks });
    Some(json)
}

/// The tokens that only `tokenizer_config.json` has. The library adds them to those of `tokenizer.json`.
pub fn missing(tokenizer: &Subword, config: &Json) -> Vec<String> {
    let Some(all) = config["added_tokens_decoder"].as_object() else { return Vec::new() };
    let names = all.values().filter_map(|own| own["content"].as_str());
    names.filter(|name| tokenizer.id(name).is_none()).map(str::to_owned).collect()
}

fn is_general(config: &Json) -> bool {
    config["tokenizer_class"].as_str().is_some_and(|class| GENERAL.contains(&class))
}

/// A tokenizer with the settings of its `tokenizer_config.json`.
///
/// # Errors
/// The tokenizer cannot be read again.
pub fn configured(tokenizer: Subword, config: &Json) -> Result<Subword, String> {
    if is_general(config) {
        return Ok(tokenizer);
    }
    let mut json: Json = serde_json::from_str(tokenizer.to_json()).map_err(|e| e.to_string())?;
    let mut has_changed = false;
    for (setting, part, key) in SETTINGS {
        let Some(value) = config.get(*setting).filter(|value| value.is_boolean()) else { continue };
        // The decoder has the same part, where the setting has no effect.
        for place in ["normalizer", "pre_tokenizer"] {
            let Some(own) = json.get_mut(place) else { continue };
            let inner = match own["type"].as_str() {
                Some("Sequence") => {
                    let list = if place == "normalizer" { "normalizers" } else { "pretokenizers" };
                    own.get_mut(list).and_then(Json::as_array_mut).map(|all| all.iter_mut().collect())
                }
                Some(_) | None => Some(vec![own]),
            };
            let all: Vec<&mut Json> = inner.unwrap_or_default();
            for own in all.into_iter().filter(|own| own["type"].as_str() == Some(part)) {
                if own.get(*key) != Some(value) {
                    own[*key] = value.clone();
                    has_changed = true;
                }
            }
        }
    }
    if has_changed { Subword::from_json(&json.to_string()) } else { Ok(tokenizer) }
}

/// Whether the library gives a model token types with such a tokenizer: as `model_input_names` says, or else as its
/// class does, of which the general one gives none.
pub fn gives_types(config: &Json) -> bool {
    match config["model_input_names"].as_array() {
        Some(names) => names.iter().any(|name| name == "token_type_ids"),
        None => !is_general(config),
    }
}
