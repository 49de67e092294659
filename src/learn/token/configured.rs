//! What a `tokenizer_config.json` says in addition to the `tokenizer.json` next to it.
//!
//! The library's classes for single families, such as `BertTokenizer`, make some parts of a tokenizer anew from the
//! settings there; the class for all families takes `tokenizer.json` as it is. As in `transformers` 5.23.

use serde_json::Value as Json;

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
