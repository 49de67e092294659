//! The special tokens with which a Hugging Face model generates, from its `generation_config.json` or, if
//! there is none, from `config.json`.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The special tokens with which a model generates. A field that is `None` leaves the choice to the
/// tokenizer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writing {
    /// The token before the first token of a translation.
    pub start: Option<u32>,
    /// The first token of a translation, regardless of its probability: often its language.
    pub first: Option<u32>,
    /// The tokens that end a text.
    pub ends: Vec<u32>,
    /// The token that ends a text when it reaches its greatest length.
    pub last: Option<u32>,
    /// Tokens that are never generated.
    pub never: Vec<u32>,
    /// The most tokens of a text, including the prompt.
    pub longest: Option<usize>,
    /// The most tokens that are generated.
    pub most: Option<usize>,
}

/// The keys that are read here.
const READ: &[&str] = &[
    "decoder_start_token_id",
    "bos_token_id",
    "eos_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "suppress_tokens",
    "bad_words_ids",
    "max_length",
    "max_new_tokens",
];

/// The keys that do not change a text: how it is computed, and what is returned besides.
const IDLE: &[&str] = &[
    "_commit_hash",
    "_from_model_config",
    "assistant_confidence_threshold",
    "assistant_early_exit",
    "assistant_ensemble_weight",
    "assistant_lookbehind",
    "cache_config",
    "cache_implementation",
    "compile_config",
    "continuous_batching_config",
    "disable_compile",
    // Whether the settings of sampling have an effect.
    "do_sample",
    "is_assistant",
    "low_memory",
    "max_cache_len",
    "max_matching_ngram_size",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_logits",
    "output_scores",
    "pad_token_id",
    "prefill_chunk_size",
    "prompt_lookup_num_tokens",
    "return_dict_in_generate",
    "return_legacy_cache",
    "speculation_type",
    "target_lookbehind",
    "transformers_version",
    "use_cache",
    "use_mtp",
];

/// When a setting has an effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// With `num_beams` above 1.
    Beams,
    /// With `do_sample`.
    Draws,
}

/// Settings of search and sampling with the value that has no effect or is the library's usual one, and with the
/// option of the command line that sets it, if there is one. Any other value of them, and any key that is in none
/// of these lists, is said to be ignored.
const CHOOSE: &[(&str, f64, &str, When)] = &[
    ("num_beams", 1.0, "--beam", When::Always),
    ("length_penalty", 1.0, "--length-penalty", When::Beams),
    // No number and neither truth value: beam search is that of the word in [`FOLLOWED`].
    ("early_stopping", f64::NAN, "", When::Beams),
    ("num_beam_groups", 1.0, "", When::Beams),
    ("diversity_penalty", 0.0, "", When::Beams),
    ("repetition_penalty", 1.0, "--repetition-penalty", When::Always),
    ("encoder_repetition_penalty", 1.0, "", When::Always),
    ("no_repeat_ngram_size", 0.0, "", When::Always),
    ("encoder_no_repeat_ngram_size", 0.0, "", When::Always),
    ("min_length", 0.0, "", When::Always),
    ("min_new_tokens", 0.0, "", When::Always),
    ("guidance_scale", 1.0, "", When::Always),
    ("penalty_alpha", 0.0, "", When::Always),
    ("remove_invalid_values", 0.0, "", When::Always),
    // After excluded tokens the probabilities of beams are scaled, or not, as they are here.
    ("renormalize_logits", 0.0, "", When::Beams),
    ("token_healing", 0.0, "", When::Always),
    ("temperature", 1.0, "--temperature", When::Draws),
    ("top_k", 50.0, "--top-k", When::Draws),
    ("top_p", 1.0, "--top-p", When::Draws),
    ("min_p", 0.0, "--min-p", When::Draws),
    ("top_h", 1.0, "", When::Draws),
    ("typical_p", 1.0, "", When::Draws),
    ("epsilon_cutoff", 0.0, "", When::Draws),
    ("eta_cutoff", 0.0, "", When::Draws),
];

/// Settings with the word that is followed.
const FOLLOWED: &[(&str, &str)] = &[("early_stopping", "never")];

impl Writing {
    /// The settings of a `generation_config.json`, or of a config if there is none, for a vocabulary of
    /// this size.
    ///
    /// # Errors
    /// Invalid settings, one sentence each.
    pub fn of(config: &Json, vocab: u64) -> Result<Self, Vec<String>> {
        let mut reading = Reading { config, vocab, faults: Vec::new() };
        let start = reading.one("decoder_start_token_id");
        let writing = Self {
            // As in the library, a translation without a start token of its own begins with that of texts.
            start: start.or_else(|| reading.several("bos_token_id").first().copied()),
            first: reading.one("forced_bos_token_id"),
            ends: reading.several("eos_token_id"),
            // The library accepts a list, any of whose tokens may then be the last one. One is enough to end
            // a text.
            last: reading.several("forced_eos_token_id").first().copied(),
            never: reading.never(),
            longest: reading.count("max_length"),
            most: reading.count("max_new_tokens"),
        };
        if reading.faults.is_empty() { Ok(writing) } else { Err(reading.faults) }
    }

    /// What a `generation_config.json` sets besides, which changes the texts that the library writes and is given on
    /// the command line instead, or not at all: `num_beams 4 (--beam)`. In the order of the file.
    pub fn left_aside(config: &Json) -> Vec<String> {
        let draws = config.get("do_sample").and_then(Json::as_bool) == Some(true);
        let searches = config.get("num_beams").and_then(Json::as_f64).is_some_and(|beams| beams > 1.0);
        let said = |(key, value): (&String, &Json)| {
            let is_empty = match value {
                Json::Null => true,
                Json::Array(all) => all.is_empty(),
                Json::Object(all) => all.is_empty(),
                Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
            };
            if is_empty || READ.contains(&key.as_str()) || IDLE.contains(&key.as_str()) {
                return None;
            }
            let Some((_, usual, option, when)) = CHOOSE.iter().find(|(own, ..)| own == key) else {
                return Some(key.clone());
            };
            let has_effect = match when {
                When::Always => true,
                When::Beams => searches,
                When::Draws => draws,
            };
            if FOLLOWED.iter().any(|(own, word)| own == key && value.as_str() == Some(word)) {
                return None;
            }
            let number = value.as_f64().or(value.as_bool().map(|is_set| f64::from(u8::from(is_set))));
            let option = if option.is_empty() { String::new() } else { format!(" ({option})") };
            (has_effect && number != Some(*usual)).then(|| format!("{key} {value}{option}"))
        };
        config.as_object().into_iter().flatten().filter_map(said).collect()
    }
}

struct Reading<'a> {
    config: &'a Json,
    vocab: u64,
    faults: Vec<String>,
}

impl Reading<'_> {
    /// Notes that the value of a key is not what it `needs` to be.
    fn fault(&mut self, key: &str, needs: &str) {
        self.faults.push(format!("`{key}` is {}, but must be {needs}", self.config[key]));
    }

    /// The id of a token; `None` if the vocabulary does not have it.
    fn id(&self, value: &Json) -> Option<u32> {
        value.as_u64().filter(|id| *id < self.vocab).and_then(|id| u32::try_from(id).ok())
    }

    /// A token that is always generated, and therefore must be in the vocabulary.
    fn one(&mut self, key: &str) -> Option<u32> {
        let value = self.config.get(key).filter(|value| !value.is_null())?;
        let found = self.id(value);
        if found.is_none() {
            self.fault(key, &format!("a token's id, below {}", self.vocab));
        }
        found
    }

    /// One id, or a list of them. An id outside of the vocabulary never occurs.
    fn several(&mut self, key: &str) -> Vec<u32> {
        let given = match self.config.get(key) {
            None | Some(Json::Null) => return Vec::new(),
            Some(Json::Array(all)) => all.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        // A negative id is no fault: like one beyond the vocabulary it never occurs, and is left out below.
        if given.iter().any(|id| id.as_i64().is_none()) {
            self.fault(key, "a token's id, or a list of them");
        }
        given.iter().filter_map(|id| self.id(id)).collect()
    }

    /// Tokens that are excluded, and words that consist of one such token.
    fn never(&mut self) -> Vec<u32> {
        let mut found = self.several("suppress_tokens");
        // Marian's models exclude padding in this way.
        for word in self.config.get("bad_words_ids").and_then(Json::as_array).into_iter().flatten() {
            match word.as_array().map(Vec::as_slice) {
                Some([one]) => found.extend(self.id(one)),
                Some(_) | None => self.fault("bad_words_ids", "words of one token each"),
            }
        }
        found
    }

    /// A number of tokens, at least 1; anything else is a fault.
    fn count(&mut self, key: &str) -> Option<usize> {
        let value = self.config.get(key).filter(|value| !value.is_null())?;
        // With 0 tokens there would be nothing to generate.
        let found = value.as_u64().filter(|n| *n > 0).and_then(|n| usize::try_from(n).ok());
        if found.is_none() {
            self.fault(key, "a number of tokens");
        }
        found
    }
}
