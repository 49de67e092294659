//! A tokenizer and its special tokens as files of Hugging Face: `tokenizer.json`, `tokenizer_config.json`.
//!
//! What is read back gives the same ids, including special tokens.

use serde_json::{Map, Value as Json, json};

use super::subword::added;
use super::{Layout, SpecialTokens, Tokenizer};

/// The special tokens that frame a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The token before the text.
    pub start: Option<u32>,
    /// The token after the text, and after a second one.
    pub end: Option<u32>,
    /// Whether there are two end tokens between two texts, which then have no token types.
    pub twice: bool,
    /// Whether the model reads two texts as one sequence.
    pub has_pairs: bool,
}

impl Frame {
    /// Whether a tokenizer puts these tokens around one text and around two by itself.
    fn is_own(self, tokenizer: &Tokenizer) -> bool {
        let Frame { start, end, twice, has_pairs } = self;
        let wanted = Layout::usual(SpecialTokens { start, end, twice, ..SpecialTokens::NONE });
        tokenizer.own_layout().is_some_and(|own| {
            // What a template does with two texts does not matter to a model that never reads two.
            own.one == wanted.one && (!has_pairs || own.two == wanted.two)
        })
    }
}

/// The text of a `tokenizer.json` that puts the special tokens of `frame` around a text, or those of the
/// tokenizer itself without a frame. `None` if the tokenizer cannot be written as one.
pub fn tokenizer_json(tokenizer: &Tokenizer, frame: Option<Frame>) -> Option<String> {
    let every_character = || {
        // Not `.`, which does not match a line break.
        let pattern = json!({ "Regex": "[\\s\\S]" });
        json!({ "type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false })
    };
    let byte_level =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false });
    let lower = |lower: bool| if lower { json!({ "type": "Lowercase" }) } else { Json::Null };
    let mut json = match tokenizer {
        // Ids of a second vocabulary are an extension of trafoc's, which the library would not read.
        Tokenizer::Subword(own) => serde_json::from_str(own.is_plain().then_some(own.to_json())?).ok()?,
        Tokenizer::Characters(own) => {
            words(tokenizer, lower(own.lower()), every_character(), json!({ "type": "Fuse" }))
        }
        Tokenizer::Words(own) => {
            // A punctuation mark begins a word.
            let pattern = json!({ "Regex": "[,.!?]" });
            let split = json!({
                "type": "Split", "pattern": pattern, "behavior": "MergedWithNext", "invert": false,
            });
            let split =
                json!({ "type": "Sequence", "pretokenizers": [{ "type": "WhitespaceSplit" }, split] });
            words(tokenizer, lower(own.lower), split, Json::Null)
        }
        Tokenizer::Bytes(_) => {
            // The byte level makes a character of each byte, and the split a word of each character.
            let split = json!({ "type": "Sequence", "pretokenizers": [byte_level, every_character()] });
            let mut json = words(tokenizer, Json::Null, split, byte_level.clone());
            let special =
                json["model"]["vocab"].as_object()?.iter().filter(|(_, id)| id.as_u64() > Some(255));
            let mut vocab: Map<String, Json> =
                shown_bytes().zip(0..256).map(|(c, id)| (c.to_string(), json!(id))).collect();
            vocab.extend(special.map(|(token, id)| (token.clone(), id.clone())));
            json["model"]["vocab"] = Json::Object(vocab);
            json
        }
    };
    // The model was trained with this frame, whatever template the tokenizer had before.
    if let Some(frame) = frame.filter(|frame| !frame.is_own(tokenizer)) {
        json["post_processor"] = template(tokenizer, frame);
    }
    serde_json::to_string_pretty(&json).ok().map(|text| text + "\n")
}

/// The content of a `tokenizer_config.json`, for a model that reads token types or does not.
pub fn config_json(tokenizer: &Tokenizer, longest: u64, has_types: bool) -> Json {
    let SpecialTokens { pad, start, end, unknown, mask, twice: _ } = tokenizer.special_tokens();
    // The class that takes all rules from `tokenizer.json` and adds none of its own.
    let mut json = json!({ "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest });
    // Without this key older versions of the library give all three, and a model fails at an input that it does not
    // know; newer ones give no types, and a model that has them computes something else.
    json["model_input_names"] = match has_types {
        true => json!(["input_ids", "token_type_ids", "attention_mask"]),
        false => json!(["input_ids", "attention_mask"]),
    };
    let special = [
        ("bos_token", start),
        ("eos_token", end),
        ("pad_token", Some(pad)),
        ("unk_token", unknown),
        ("mask_token", mask),
    ];
    for (key, id) in special {
        if let Some(token) = id.and_then(|id| tokenizer.token(id)) {
            json[key] = Json::from(token);
        }
    }
    json
}

/// A vocabulary of whole words or characters, as the pre-tokenizer splits them.
fn words(tokenizer: &Tokenizer, normalizer: Json, split: Json, decoder: Json) -> Json {
    let ids = 0..u32::try_from(tokenizer.vocab()).unwrap_or(u32::MAX);
    let vocab: Map<String, Json> =
        ids.filter_map(|id| Some((tokenizer.token(id)?, Json::from(id)))).collect();
    let special = tokenizer.special_tokens();
    let mut ids: Vec<u32> = [special.unknown, Some(special.pad), special.start, special.end, special.mask]
        .into_iter()
        .flatten()
        .collect();
    // A boundary is several special tokens at once, and must be listed once.
    ids.sort_unstable();
    ids.dedup();
    let named: Vec<(String, u32)> = ids.iter().filter_map(|id| Some((tokenizer.token(*id)?, *id))).collect();
    let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    // The format requires a name. If the vocabulary does not have it, unknown text is an error there, too.
    let unknown = special.unknown.and_then(|id| tokenizer.token(id)).unwrap_or_else(|| "<unk>".to_owned());
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added(&names, |name| named.iter().find(|(n, _)| n == name).map_or(0, |(_, id)| *id)),
        "normalizer": normalizer, "pre_tokenizer": split, "post_processor": null, "decoder": decoder,
        "model": { "type": "WordLevel", "vocab": vocab, "unk_token": unknown },
    })
}

/// The characters that represent the bytes 0 to 255 in GPT-2's alphabet: visible characters represent
/// themselves, the others are represented by characters from U+0100 on.
fn shown_bytes() -> impl Iterator<Item = char> {
    let mut other = 256u32;
    (0u32..256).map(move |byte| {
        let is_seen = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let code = if is_seen { byte } else { other };
        other += u32::from(!is_seen);
        char::from_u32(code).unwrap_or('?')
    })
}

/// The special tokens that frame one text, and two texts.
fn template(tokenizer: &Tokenizer, frame: Frame) -> Json {
    let named = |id: Option<u32>| id.and_then(|id| Some((tokenizer.token(id)?, id)));
    let (start, end) = (named(frame.start), named(frame.end));
    // A template without special tokens would do nothing.
    if start.is_none() && end.is_none() {
        return Json::Null;
    }
    let mark = |mark: &Option<(String, u32)>, which: u32| {
        mark.as_ref().map(|(name, _)| json!({ "SpecialToken": { "id": name, "type_id": which } }))
    };
    let text = |name: &str, which: u32| Some(json!({ "Sequence": { "id": name, "type_id": which } }));
    let single = [mark(&start, 0), text("A", 0), mark(&end, 0)];
    let (which, again) = if frame.twice { (0, mark(&end, 0)) } else { (1, None) };
    let pair = single.iter().cloned().chain([again, text("B", which), mark(&end, which)]);
    let all = start
        .iter()
        .chain(&end)
        .map(|(name, id)| (name.clone(), json!({ "id": name, "ids": [id], "tokens": [name] })));
    json!({
        "type": "TemplateProcessing",
        "pair": pair.flatten().collect::<Vec<_>>(),
        "single": single.iter().flatten().collect::<Vec<_>>(),
        "special_tokens": all.collect::<Map<String, Json>>(),
    })
}
