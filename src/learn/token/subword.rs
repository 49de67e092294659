//! Tokenizers of pieces of words, run by the `tokenizers` crate: read from `tokenizer.json` or from the
//! two files of GPT, or learnt here.
//!
//! What is learnt is written as a `tokenizer.json`, so both kinds are one. It is saved whole, and two
//! are equal when they are written alike.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};
use tokenizers::normalizer::{NormalizedString, OffsetReferential};
use tokenizers::{Normalizer as _, OffsetType, PreTokenizedString, PreTokenizer as _};

use super::guard::{check, guarded};
use super::merges::{Learnt, Style, learn};
use super::{Marks, Piece};

/// A tokenizer of pieces of words.
#[derive(Clone, Debug)]
pub struct Subword {
    text: String,
    inner: tokenizers::Tokenizer,
    marks: Marks,
    vocab: usize,
}

impl PartialEq for Subword {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Serialize for Subword {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json: Json = serde_json::from_str(&self.text).map_err(serde::ser::Error::custom)?;
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Subword {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Self::from_json(&json.to_string()).map_err(D::Error::custom)
    }
}

/// Names of marks in tokenizers of other libraries, the likeliest first.
const PAD: &[&str] = &["<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>"];
const START: &[&str] = &["[CLS]", "<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>"];
const END: &[&str] = &["[SEP]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"];
const UNKNOWN: &[&str] = &["[UNK]", "<unk>"];
const MASK: &[&str] = &["[MASK]", "<mask>"];

/// Texts that are encoded once when a tokenizer is read: letters of one to four bytes, digits, blanks, marks.
const PROBES: &[&str] = &[
    "",
    " ",
    "a",
    "The quick brown fox, 12 times: it's\n\tdone!",
    "\u{e9}\u{4e2d}\u{1f980}\u{ac00}\u{301}\u{0}",
];
/// Tokens that are decoded once.
const PROBED: usize = 1_000;

/// Marks of vocabularies that are learnt here, ids from 0.
const BPE_MARKS: &[&str] = &["<pad>", "<s>", "</s>", "<mask>"];
const WORDPIECE_MARKS: &[&str] = &["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

impl Subword {
    /// Reads a `tokenizer.json`. What it says of padding and cutting is left aside.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let json: Json = serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?;
        check(text, &json)?;
        guarded(|| Self::read(text))
    }

    /// The same for a text that has been checked.
    fn read(text: &str) -> Result<Self, String> {
        let mut inner: tokenizers::Tokenizer = text.parse().map_err(|e| format!("{e}"))?;
        inner.with_truncation(None).map_err(|e| format!("{e}"))?;
        inner.with_padding(None);
        let text = inner.to_string(false).map_err(|e| format!("{e}"))?;
        let last = inner.get_vocab(true).into_values().max();
        let vocab = last.map_or(0, |id| id as usize + 1);
        // Most of what does not fit shows with the first texts, while the file's name is at hand.
        // A text it has no token for is an error of that text, and not one of the tokenizer.
        for frame in PROBES.iter().filter_map(|probe| inner.encode(*probe, true).ok()) {
            if let Some(id) = frame.get_ids().iter().find(|id| **id as usize >= vocab) {
                return Err(format!("it gives the id {id}, and its vocabulary ends before {vocab}"));
            }
        }
        let find = |names: &[&str]| names.iter().find_map(|n| inner.token_to_id(n));
        let end = find(END);
        // GPT-2 has one mark for everything.
        let start = find(START).or(inner.token_to_id("<|endoftext|>").filter(|id| Some(*id) == end));
        let pad = find(PAD).or(end).unwrap_or(0);
        // Around nothing and nothing, a template's own marks are left.
        let ends =
            |frame: tokenizers::Encoding| frame.get_ids().iter().filter(|id| Some(**id) == end).count();
        let twice = start != end && inner.encode(("", ""), true).is_ok_and(|frame| ends(frame) > 2);
        let marks = Marks { pad, start, end, unknown: find(UNKNOWN), mask: find(MASK), twice };
        let some: Vec<u32> = inner.get_vocab(true).into_values().take(PROBED).collect();
        inner.decode(&some, true).map_err(|e| format!("{e}"))?;
        Ok(Self { text, inner, marks, vocab })
    }

    /// Reads the `encoder.json` and the merges of GPT-2, or of GPT-1, whose tokens say where a word ends.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_gpt(encoder: &str, merges: &str) -> Result<Self, String> {
        let vocab: BTreeMap<String, u32> = serde_json::from_str(encoder).map_err(|e| e.to_string())?;
        let lines = merges.lines().filter(|l| !l.starts_with("#version") && !l.trim().is_empty());
        let merges: Vec<&str> = lines.collect();
        let ends_words = merges.iter().any(|m| m.ends_with("</w>"));
        let mut json = match ends_words {
            true => json!({
                "normalizer": bert_normalizer(true),
                "pre_tokenizer": { "type": "BertPreTokenizer" },
                "decoder": { "type": "BPEDecoder", "suffix": "</w>" },
                "model": { "type": "BPE", "unk_token": "<unk>", "end_of_word_suffix": "</w>" },
            }),
            false => json!({
                "pre_tokenizer": byte_level(),
                "decoder": byte_level(),
                "model": { "type": "BPE" },
            }),
        };
        let marks: Vec<&str> =
            ["<|endoftext|>", "<unk>"].into_iter().filter(|m| vocab.contains_key(*m)).collect();
        set(&mut json, "added_tokens", added(&marks, |m| vocab.get(m).copied().unwrap_or(0)));
        if let Some(model) = json.get_mut("model") {
            set(model, "vocab", json!(vocab));
            set(model, "merges", json!(merges));
        }
        Self::from_json(&whole(json).to_string())
    }

    /// How many ids there are.
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// The ids that are no piece of a text, as far as their names are known.
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// The pieces of a text.
    ///
    /// # Errors
    /// The tokenizer's own fault.
    pub fn pieces(&self, text: &str) -> Result<Vec<Piece>, String> {
        let encoding = guarded(|| self.inner.encode(text, false))?;
        let pieces = encoding.get_ids().iter().zip(encoding.get_offsets());
        Ok(pieces.map(|(id, (start, end))| Piece { id: *id, bytes: *start..*end }).collect())
    }

    /// The ids of a text with the marks its own template puts around it, where it has one.
    ///
    /// # Errors
    /// The tokenizer's own fault.
    pub fn framed(&self, text: &str) -> Result<Option<Vec<u32>>, String> {
        if self.inner.get_post_processor().is_none() {
            return Ok(None);
        }
        let encoding = guarded(|| self.inner.encode(text, true))?;
        Ok(Some(encoding.get_ids().to_vec()))
    }

    /// The id of a token by how it is written.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The text of ids, marks left out.
    pub fn decode(&self, ids: &[u32]) -> String {
        guarded(|| self.inner.decode(ids, true)).unwrap_or_default()
    }

    /// How a token is written.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The `tokenizer.json`.
    pub fn to_json(&self) -> &str {
        &self.text
    }
}

fn set(json: &mut Json, key: &str, value: Json) {
    if let Some(map) = json.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

/// The other keys every `tokenizer.json` has.
fn whole(mut json: Json) -> Json {
    set(&mut json, "version", json!("1.0"));
    for key in ["truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"] {
        if json.get(key).is_none() {
            set(&mut json, key, Json::Null);
        }
    }
    json
}

/// Marks as tokens of their own.
pub(super) fn added(marks: &[&str], id: impl Fn(&str) -> u32) -> Json {
    let mark = |m: &&str| {
        json!({ "id": id(m), "content": m, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    marks.iter().map(mark).collect()
}

fn byte_level() -> Json {
    json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true })
}

fn bert_normalizer(lower: bool) -> Json {
    json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": lower })
}

/// Which kind is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes are joined, as in GPT-2.
    Bpe,
    /// Letters are joined, and the longest pieces taken, as in BERT.
    WordPiece,
}

/// Learns a vocabulary of pieces.
#[derive(Debug)]
pub struct Learner {
    kind: Kind,
    lower: bool,
    /// Splits texts into words just as the finished tokenizer does.
    words: Option<tokenizers::Tokenizer>,
    counts: BTreeMap<String, u64>,
}

impl Learner {
    /// A learner of that kind; `lower` says whether text becomes lower case first.
    pub fn new(kind: Kind, lower: bool) -> Self {
        let marks = Learnt { tokens: vec!["[UNK]".to_owned()], merges: Vec::new() };
        let words = assembled(kind, lower, &marks).parse().ok();
        Self { kind, lower, words, counts: BTreeMap::new() }
    }

    /// Takes in a text.
    pub fn add(&mut self, text: &str) {
        let Some(words) = &self.words else { return };
        let mut normalized = NormalizedString::from(text);
        if let Some(normalizer) = words.get_normalizer()
            && normalizer.normalize(&mut normalized).is_err()
        {
            return;
        }
        let mut split = PreTokenizedString::from(normalized);
        if let Some(pre) = words.get_pre_tokenizer()
            && pre.pre_tokenize(&mut split).is_err()
        {
            return;
        }
        for (word, _, _) in split.get_splits(OffsetReferential::Original, OffsetType::Byte) {
            *self.counts.entry(word.to_owned()).or_default() += 1;
        }
    }

    /// The tokenizer, of at most `vocab` tokens.
    ///
    /// # Errors
    /// It could not be assembled.
    pub fn finish(self, vocab: usize, min_frequency: u64) -> Result<Subword, String> {
        let alphabet: Vec<char> = match self.kind {
            Kind::Bpe => {
                let all = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
                let mut all: Vec<char> = all.into_iter().collect();
                all.sort_unstable();
                all
            }
            Kind::WordPiece => Vec::new(),
        };
        let style = match self.kind {
            Kind::Bpe => Style { marks: BPE_MARKS, inside: "", alphabet: &alphabet },
            Kind::WordPiece => Style { marks: WORDPIECE_MARKS, inside: "##", alphabet: &alphabet },
        };
        let learnt = learn(&self.counts, vocab, min_frequency, style);
        Subword::from_json(&assembled(self.kind, self.lower, &learnt))
    }
}

/// A `tokenizer.json`.
fn assembled(kind: Kind, lower: bool, learnt: &Learnt) -> String {
    let vocab: serde_json::Map<String, Json> =
        learnt.tokens.iter().enumerate().map(|(id, token)| (token.clone(), json!(id))).collect();
    let id = |mark: &str| learnt.tokens.iter().position(|t| t == mark).unwrap_or(0) as u32;
    let there = |marks: &[&'static str]| -> Vec<&'static str> {
        marks.iter().copied().filter(|m| vocab.contains_key(*m)).collect()
    };
    let json = match kind {
        Kind::Bpe => {
            let normalizer = if lower { json!({ "type": "Lowercase" }) } else { Json::Null };
            let merges: Vec<[&String; 2]> = learnt.merges.iter().map(|(a, b)| [a, b]).collect();
            json!({
                "added_tokens": added(&there(BPE_MARKS), id),
                "normalizer": normalizer,
                "pre_tokenizer": byte_level(),
                "decoder": byte_level(),
                "model": { "type": "BPE", "vocab": vocab, "merges": merges },
            })
        }
        Kind::WordPiece => json!({
            "added_tokens": added(&there(WORDPIECE_MARKS), id),
            "normalizer": bert_normalizer(lower),
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
            "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                       "max_input_chars_per_word": 100, "vocab": vocab },
        }),
    };
    whole(json).to_string()
}
