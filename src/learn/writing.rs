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

/// Settings of search and sampling that trafoc takes from the command line, each with the value that has no
/// effect and with the option that sets it.
const OWN: &[(&str, f64, &str)] = &[
    ("num_beams", 1.0, "--beam"),
    ("repetition_penalty", 1.0, "--repetition-penalty"),
    ("no_repeat_ngram_size", 0.0, ""),
    ("min_length", 0.0, ""),
    ("min_new_tokens", 0.0, ""),
];

/// Settings of sampling, which have an effect only with `do_sample`, each with the library's default.
const DRAW: &[(&str, f64, &str)] = &[
    ("temperature", 1.0, "--temperature"),
    ("top_k", 50.0, "--top-k"),
    ("top_p", 1.0, "--top-p"),
    ("min_p", 0.0, "--min-p"),
];

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

    /// Its settings of search and sampling, which are given on the command line instead: `num_beams 4
    /// (--beam)`.
    pub fn left_aside(config: &Json) -> Vec<String> {
        let draws = config.get("do_sample").and_then(Json::as_bool) == Some(true);
        let all = OWN.iter().chain(DRAW.iter().filter(|_| draws));
        let settings = all.filter_map(|(key, idle, option)| {
            let value = config.get(*key)?.as_f64().filter(|value| value != idle)?;
            let option = if option.is_empty() { String::new() } else { format!(" ({option})") };
            Some(format!("{key} {value}{option}"))
        });
        settings.collect()
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
