//! Subword tokenizers, which the `tokenizers` crate runs. They are read from `tokenizer.json`, or from the
//! vocabulary and the merges of GPT-1 or GPT-2, or they are learnt here.
//!
//! Each of them becomes a `tokenizer.json`, which is what is saved. Two are equal if these texts are equal.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};
use tokenizers::normalizer::{NormalizedString, OffsetReferential};
use tokenizers::{Normalizer as _, OffsetType, PreTokenizedString, PreTokenizer as _};

use super::guard::{check, guarded};
use super::layout::{Item, Layout};
use super::merges::{Learnt, Style, learn};
use super::renumbered::{RENUMBERED, Renumbered};
use super::{Piece, SpecialTokens};

/// A subword tokenizer: BPE, WordPiece, or any other that a `tokenizer.json` can describe.
#[derive(Clone, Debug)]
pub struct Subword {
    text: String,
    inner: tokenizers::Tokenizer,
    special: SpecialTokens,
    vocab: usize,
    /// The special tokens that it puts around texts itself; `None` if it does not say.
    frame: Option<Framed>,
    /// The rows that its template makes of texts; `None` if it has none.
    layout: Option<Layout>,
    /// The ids of another vocabulary, which take the place of its own.
    renumbered: Option<Renumbered>,
}

/// The special tokens around a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// The tokens before a text.
    pub before: Vec<u32>,
    /// The tokens after a text.
    pub after: Vec<u32>,
}

impl PartialEq for Subword {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Serialize for Subword {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // As a tree and not as a text within a text, so that a codebook can be read.
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

// The names of special tokens in the tokenizers of other libraries. The first that exists is used.

/// What stands for a space in the tokens of SentencePiece.
const SPACE: char = '\u{2581}';
const PAD: &[&str] = &["<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>"];
const START: &[&str] = &["[CLS]", "<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>"];
const END: &[&str] = &["[SEP]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"];
const UNKNOWN: &[&str] = &["[UNK]", "<unk>"];
const MASK: &[&str] = &["[MASK]", "<mask>"];

/// Texts that are encoded on trial when a tokenizer is read: characters of one to four bytes, digits, white
/// space, punctuation.
const PROBES: &[&str] = &[
    "",
    " ",
    "a",
    "The quick brown fox, 12 times: it's\n\tdone!",
    "\u{e9}\u{4e2d}\u{1f980}\u{ac00}\u{301}\u{0}",
];
/// The number of tokens that are decoded on trial when a tokenizer is read.
const PROBED: usize = 1_000;

// The special tokens of vocabularies that are learnt here. Their ids count from 0 in this order.

const BPE_SPECIAL: &[&str] = &["<pad>", "<s>", "</s>", "<mask>"];
const WORDPIECE_SPECIAL: &[&str] = &["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

impl Subword {
    /// Reads a `tokenizer.json`. Its settings for padding and truncation are ignored, and so is the dropout of BPE
    /// (Provilkov et al. 2020), by which the same text would have other tokens each time.
    ///
    /// # Errors
    /// The text is not JSON, or does not describe a tokenizer that can encode and decode.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let mut json: Json = serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?;
        check(text, &json)?;
        if let Some(dropout) = json.pointer_mut("/model/dropout") {
            *dropout = Json::Null;
        }
        let renumbered = Renumbered::of(&json, text.len())?;
        let Some(renumbered) = renumbered else { return guarded(|| Self::read(&json)) };
        let own = json.get(RENUMBERED).cloned().unwrap_or_default();
        if let Some(map) = json.as_object_mut() {
            map.remove(RENUMBERED);
        }
        guarded(|| Self::read(&json))?.renumber(renumbered, own)
    }

    /// [`Self::from_json`] for a tree that has been checked. The crate does not get the text, because it
    /// would read both values of a key that is there twice, and only one of them was checked.
    fn read(json: &Json) -> Result<Self, String> {
        let mut inner = tokenizers::Tokenizer::deserialize(json).map_err(|e| e.to_string())?;
        // Lengths are the business of the recipe: a text that was cut here would be cut without a word.
        inner.with_truncation(None).map_err(|e| format!("{e}"))?;
        inner.with_padding(None);
        // The crate's own text, so that two files that mean the same are equal, whatever their spaces and
        // order.
        let text = inner.to_string(false).map_err(|e| format!("{e}"))?;
        let last = inner.get_vocab(true).into_values().max();
        // Not the number of tokens: files may leave ids out, and tables have a row for each up to the last.
        let vocab = last.map_or(0, |id| id as usize + 1);
        // Most faults show with the first texts, and here the message can still name the file. That a probe
        // cannot be encoded is not a fault, because a vocabulary need not have a token for every text.
        for frame in PROBES.iter().filter_map(|probe| inner.encode(*probe, true).ok()) {
            if let Some(id) = frame.get_ids().iter().find(|id| **id as usize >= vocab) {
                return Err(format!("it gives the id {id}, and its vocabulary ends before {vocab}"));
            }
        }
        let find = |names: &[&str]| names.iter().find_map(|n| inner.token_to_id(n));
        let end = find(END);
        // GPT-2 has one special token both for the start and for the end of a text.
        let start = find(START).or(inner.token_to_id("<|endoftext|>").filter(|id| Some(*id) == end));
        let pad = find(PAD).or(end).unwrap_or(0);
        // The encoding of a pair of empty texts consists of the template's special tokens alone.
        let ends =
            |frame: tokenizers::Encoding| frame.get_ids().iter().filter(|id| Some(**id) == end).count();
        // One end token follows each text, and a third one is between them.
        let twice = start != end && inner.encode(("", ""), true).is_ok_and(|frame| ends(frame) > 2);
        let special = SpecialTokens { pad, start, end, unknown: find(UNKNOWN), mask: find(MASK), twice };
        let template = inner.get_post_processor().is_some().then(|| framed(&inner)).flatten();
        let (frame, layout) = template.unzip();
        let some: Vec<u32> = inner.get_vocab(true).into_values().take(PROBED).collect();
        // Decoding is tried as well: a decoder may fail where the encoder does not.
        inner.decode(&some, true).map_err(|e| format!("{e}"))?;
        Ok(Self { text, inner, special, vocab, frame, layout, renumbered: None })
    }

    /// The same tokenizer with the ids of another vocabulary, which its text has as `own`.
    fn renumber(mut self, renumbered: Renumbered, own: Json) -> Result<Self, String> {
        let mut json: Json = serde_json::from_str(&self.text).map_err(|e| e.to_string())?;
        set(&mut json, RENUMBERED, own);
        self.text = json.to_string();
        let special = renumbered.special_tokens();
        // The template was found with the ids of the model.
        let other = |id: &u32| renumbered.of_piece(self.inner.id_to_token(*id).as_deref(), "");
        let others = |ids: &Vec<u32>| ids.iter().map(other).collect();
        self.frame = self
            .frame
            .as_ref()
            .map(|frame| Framed { before: others(&frame.before), after: others(&frame.after) });
        let items = self.layout.iter_mut().flat_map(|all| all.one.iter_mut().chain(&mut all.two));
        for item in items {
            match item {
                Item::Mark { id, .. } => {
                    *id = renumbered.of_piece(self.inner.id_to_token(*id).as_deref(), "");
                }
                Item::Text { .. } => {}
            }
        }
        Ok(Self { special, vocab: renumbered.vocab(), renumbered: Some(renumbered), ..self })
    }

    /// Whether its text is a `tokenizer.json` that the library would read in the same way.
    pub fn is_plain(&self) -> bool {
        self.renumbered.is_none()
    }

    /// Reads the `encoder.json` and the merges of GPT-2, or those of GPT-1, where `</w>` ends the last token
    /// of a word.
    ///
    /// # Errors
    /// `encoder` is not a map from tokens to ids, or the two do not form a tokenizer.
    pub fn from_gpt(encoder: &str, merges: &str) -> Result<Self, String> {
        Self::from_json(&whole(bpe(encoder, merges, false)?).to_string())
    }

    /// The size of the vocabulary: the highest id plus one.
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// The ids of the special tokens, as far as their names are known.
    pub fn special_tokens(&self) -> SpecialTokens {
        self.special
    }

    /// The tokens that it puts around texts itself; `None` if it does not say, or none of the texts on trial
    /// has a token.
    pub fn frame(&self) -> Option<&Framed> {
        self.frame.as_ref()
    }

    /// The tokenizer with an empty template if it has none. Its files say all there is, so no special tokens
    /// are put around a text.
    ///
    /// # Errors
    /// The tokenizer cannot be read again.
    pub fn with_own_frame(self) -> Result<Self, String> {
        if self.inner.get_post_processor().is_some() {
            return Ok(self);
        }
        let mut json: Json = serde_json::from_str(&self.text).map_err(|e| e.to_string())?;
        let text = |name: &str, which: u32| json!({ "Sequence": { "id": name, "type_id": which } });
        let template = json!({
            "type": "TemplateProcessing", "single": [text("A", 0)], "pair": [text("A", 0), text("B", 1)],
            "special_tokens": {},
        });
        set(&mut json, "post_processor", template);
        Self::from_json(&json.to_string())
    }

    /// The rows that its own template makes of texts; `None` if it has none, or none of the texts on trial has
    /// a token.
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The tokens of a text, each with its range of bytes. No special tokens are added.
    ///
    /// # Errors
    /// The tokenizer cannot encode the text.
    pub fn pieces(&self, text: &str) -> Result<Vec<Piece>, String> {
        let code = self.renumbered.as_ref().and_then(|other| other.code(text));
        // The code is one token of the other vocabulary, which the model would divide like text.
        let first = code.as_ref().map_or(0, |(_, bytes)| bytes.end);
        let rest = text.get(first..).unwrap_or_default();
        let encoding = guarded(|| self.inner.encode(rest, false)).map_err(|_| self.unknown(rest))?;
        let pieces = encoding.get_ids().iter().zip(encoding.get_offsets()).map(|(id, (start, end))| {
            let id = match &self.renumbered {
                None => *id,
                Some(other) => {
                    let written = rest.get(*start..*end).unwrap_or_default();
                    other.of_piece(self.inner.id_to_token(*id).as_deref(), written)
                }
            };
            Piece { id, bytes: start.saturating_add(first)..end.saturating_add(first) }
        });
        Ok(code.map(|(id, bytes)| Piece { id, bytes }).into_iter().chain(pieces).collect())
    }

    /// The part of a text that has no token: its first character that has none alone, or else its first word. The crate says
    /// only that there is one, in words about its own settings.
    fn unknown(&self, text: &str) -> String {
        let fails = |part: &&str| guarded(|| self.inner.encode(*part, false)).is_err();
        // White space alone may be what has no token.
        let word = text.split_whitespace().find(fails).unwrap_or(text);
        let mut characters = word.char_indices().filter_map(|(at, c)| word.get(at..)?.get(..c.len_utf8()));
        characters.find(fails).unwrap_or(word).to_owned()
    }

    /// The ids of a text with the special tokens that the tokenizer's template puts around it. `None` if the
    /// tokenizer has no template.
    ///
    /// # Errors
    /// The tokenizer cannot encode the text.
    pub fn framed(&self, text: &str) -> Result<Option<Vec<u32>>, String> {
        if self.inner.get_post_processor().is_none() {
            return Ok(None);
        }
        if self.renumbered.is_some() {
            // The template itself has the model's ids, so it is applied here.
            let Some(Framed { before, after }) = &self.frame else { return Ok(None) };
            let ids = self.pieces(text)?.into_iter().map(|piece| piece.id);
            return Ok(Some(before.iter().copied().chain(ids).chain(after.iter().copied()).collect()));
        }
        let encoding = guarded(|| self.inner.encode(text, true)).map_err(|_| self.unknown(text))?;
        Ok(Some(encoding.get_ids().to_vec()))
    }

    /// A text as the tokenizer changes it before it looks for tokens: in lower case, without accents, or
    /// unchanged. It is the form in which [`Self::decode`] can give the text back.
    pub fn normalized(&self, text: &str) -> String {
        let Some(normalizer) = self.inner.get_normalizer() else { return text.to_owned() };
        let changed = guarded(|| {
            let mut own = NormalizedString::from(text);
            normalizer.normalize(&mut own).map(|()| own.get().to_owned())
        });
        match changed {
            // Marks that stand for spaces until texts are decoded are no part of the text.
            Ok(own) if own.contains(SPACE) && !text.contains(SPACE) => {
                own.replace(SPACE, " ").trim().to_owned()
            }
            Ok(own) => own,
            Err(_) => text.to_owned(),
        }
    }

    /// The id of a token, if the vocabulary has it.
    pub fn id(&self, token: &str) -> Option<u32> {
        match &self.renumbered {
            Some(other) => other.id(token),
            None => self.inner.token_to_id(token),
        }
    }

    /// The text of some ids without the special tokens. It is empty if they cannot be decoded.
    pub fn decode(&self, ids: &[u32]) -> String {
        match &self.renumbered {
            Some(other) => {
                other.decode(ids, |token| self.inner.get_added_vocabulary().is_special_token(token))
            }
            None => guarded(|| self.inner.decode(ids, true)).unwrap_or_default(),
        }
    }

    /// The token with this id as the vocabulary spells it, which need not be text: `Ġthe`, `##ing`.
    pub fn token(&self, id: u32) -> Option<String> {
        match &self.renumbered {
            Some(other) => other.token(id).map(str::to_owned),
            None => self.inner.id_to_token(id),
        }
    }

    /// The text of the tokenizer's `tokenizer.json`.
    pub fn to_json(&self) -> &str {
        &self.text
    }
}

/// The tokens that a template puts around a text, and the rows that it makes of texts, found by encoding texts
/// with and without it.
fn framed(inner: &tokenizers::Tokenizer) -> Option<(Framed, Layout)> {
    PROBES.iter().rev().find_map(|probe| {
        let own = inner.encode(*probe, false).ok()?;
        let own = own.get_ids();
        let single = inner.encode(*probe, true).ok()?;
        let (before, after) = around(single.get_ids(), own)?;
        let one = items(single.get_ids(), single.get_type_ids(), &[(false, before.len())], own.len());
        let two = inner.encode((*probe, *probe), true).ok().and_then(|pair| {
            // Which of the two texts comes first is seen by the numbers of the texts alone.
            let texts = pair.get_sequence_ids();
            let place = |which: usize| texts.iter().position(|text| *text == Some(which));
            let places = [(false, place(0)?), (true, place(1)?)];
            let is_own =
                |(_, at): &(bool, usize)| pair.get_ids().get(*at..).is_some_and(|rest| rest.starts_with(own));
            let is_whole = texts.iter().flatten().count() == 2 * own.len() && places.iter().all(is_own);
            is_whole.then(|| items(pair.get_ids(), pair.get_type_ids(), &places, own.len()))
        });
        // A template that says nothing of two texts: the second one follows as the first one did.
        let two = two.unwrap_or_else(|| {
            let text = Item::Text { is_second: true, kind: 1 };
            let again = after.iter().map(|id| Item::Mark { id: *id, kind: 1 });
            one.iter().copied().chain([text]).chain(again).collect()
        });
        Some((Framed { before: before.to_vec(), after: after.to_vec() }, Layout { one, two }))
    })
}

/// The items of a row, in which texts of `length` tokens begin at these places.
fn items(ids: &[u32], kinds: &[u32], texts: &[(bool, usize)], length: usize) -> Vec<Item> {
    let item = |(at, (id, kind)): (usize, (&u32, &u32))| {
        let kind = *kind;
        match texts.iter().find(|(_, first)| (*first..first.saturating_add(length)).contains(&at)) {
            // All of its tokens are one item.
            Some((is_second, first)) => (at == *first).then_some(Item::Text { is_second: *is_second, kind }),
            None => Some(Item::Mark { id: *id, kind }),
        }
    };
    ids.iter().zip(kinds).enumerate().filter_map(item).collect()
}

/// What is before and after `own` in `all`; `None` if it has no tokens, or is not there once.
fn around<'i>(all: &'i [u32], own: &[u32]) -> Option<(&'i [u32], &'i [u32])> {
    if own.is_empty() {
        return None;
    }
    let mut places = (0..all.len()).filter(|at| all.get(*at..).is_some_and(|rest| rest.starts_with(own)));
    let at = places.next().filter(|_| places.next().is_none())?;
    Some((all.get(..at)?, all.get(at + own.len()..)?))
}

/// The parts of a `tokenizer.json` for the vocabulary and the merges of GPT-2, or of GPT-1, where `</w>` ends
/// the last token of a word. With `prefix`, a space is put before a text.
pub(super) fn bpe(encoder: &str, merges: &str, prefix: bool) -> Result<Json, String> {
    let vocab: BTreeMap<String, u32> = serde_json::from_str(encoder).map_err(|e| e.to_string())?;
    // The first line of such a file may name the version of its format.
    let lines = merges.lines().filter(|l| !l.starts_with("#version") && !l.trim().is_empty());
    let merges: Vec<&str> = lines.collect();
    // GPT-1's files are told from GPT-2's by their merges alone.
    let ends_words = merges.iter().any(|m| m.ends_with("</w>"));
    let mut split = byte_level();
    set(&mut split, "add_prefix_space", json!(prefix));
    let mut json = match ends_words {
        true => json!({
            "normalizer": bert_normalizer(true),
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "decoder": { "type": "BPEDecoder", "suffix": "</w>" },
            "model": { "type": "BPE", "unk_token": "<unk>", "end_of_word_suffix": "</w>" },
        }),
        false => json!({
            "pre_tokenizer": split,
            "decoder": byte_level(),
            "model": { "type": "BPE" },
        }),
    };
    let special: Vec<&str> =
        ["<|endoftext|>", "<unk>"].into_iter().filter(|m| vocab.contains_key(*m)).collect();
    set(&mut json, "added_tokens", added(&special, |m| vocab.get(m).copied().unwrap_or(0)));
    if let Some(model) = json.get_mut("model") {
        set(model, "vocab", json!(vocab));
        set(model, "merges", json!(merges));
    }
    Ok(json)
}

/// Sets a key of an object; anything else stays as it is.
pub(super) fn set(json: &mut Json, key: &str, value: Json) {
    if let Some(map) = json.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

/// Adds the keys that every `tokenizer.json` must have; those that are not given become `null`.
pub(super) fn whole(mut json: Json) -> Json {
    set(&mut json, "version", json!("1.0"));
    for key in ["truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"] {
        if json.get(key).is_none() {
            set(&mut json, key, Json::Null);
        }
    }
    json
}

/// The `added_tokens` of a `tokenizer.json` for these special tokens, so that no special token is split into
/// pieces.
pub(super) fn added(special: &[&str], id: impl Fn(&str) -> u32) -> Json {
    let token = |m: &&str| {
        json!({ "id": id(m), "content": m, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    special.iter().map(token).collect()
}

fn byte_level() -> Json {
    json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true })
}

pub(super) fn bert_normalizer(lower: bool) -> Json {
    json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": lower })
}

/// The kinds of vocabularies that can be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Byte-level BPE, as in GPT-2: pairs of adjacent pieces are merged, beginning with bytes.
    Bpe,
    /// WordPiece, as in BERT: learnt by merging characters, and applied by taking the longest piece that
    /// matches.
    WordPiece,
}

/// Counts the words of texts, and learns a vocabulary from the counts.
#[derive(Debug)]
pub struct Learner {
    kind: Kind,
    lower: bool,
    /// Splits texts into words in the same way as the finished tokenizer.
    words: Option<tokenizers::Tokenizer>,
    counts: BTreeMap<String, u64>,
}

impl Learner {
    /// A learner that has seen no text. With `lower`, texts are converted to lower case first.
    pub fn new(kind: Kind, lower: bool) -> Self {
        let special = Learnt { tokens: vec!["[UNK]".to_owned()], merges: Vec::new() };
        let words = assembled(kind, lower, &special).parse().ok();
        Self { kind, lower, words, counts: BTreeMap::new() }
    }

    /// Counts the words of a text, as the finished tokenizer will separate them. A text that cannot be
    /// normalized is left out.
    pub fn add(&mut self, text: &str) {
        let Some(words) = &self.words else { return };
        // The steps of the crate one by one, because encoding would also apply a vocabulary, which is not
        // there yet.
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

    /// Learns a tokenizer of `vocab` tokens. It has fewer if no pair is left that occurs `min_frequency`
    /// times, and more if the special tokens and single characters alone are more.
    ///
    /// # Errors
    /// The vocabulary is not a valid tokenizer.
    pub fn finish(self, vocab: usize, min_frequency: u64) -> Result<Subword, String> {
        let alphabet: Vec<char> = match self.kind {
            Kind::Bpe => {
                // All 256 bytes are tokens, so that every text can be encoded. The set has no fixed order,
                // and ids must have one.
                let all = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
                let mut all: Vec<char> = all.into_iter().collect();
                all.sort_unstable();
                all
            }
            Kind::WordPiece => Vec::new(),
        };
        let style = match self.kind {
            Kind::Bpe => Style { special: BPE_SPECIAL, inside: "", alphabet: &alphabet },
            Kind::WordPiece => Style { special: WORDPIECE_SPECIAL, inside: "##", alphabet: &alphabet },
        };
        let learnt = learn(&self.counts, vocab, min_frequency, style);
        Subword::from_json(&assembled(self.kind, self.lower, &learnt))
    }
}

/// The text of the `tokenizer.json` for a vocabulary that has been learnt.
fn assembled(kind: Kind, lower: bool, learnt: &Learnt) -> String {
    let vocab: serde_json::Map<String, Json> =
        learnt.tokens.iter().enumerate().map(|(id, token)| (token.clone(), json!(id))).collect();
    // Asked for special tokens only, which come first, so the search is short.
    let id = |token: &str| learnt.tokens.iter().position(|t| t == token).unwrap_or(0) as u32;
    let there = |special: &[&'static str]| -> Vec<&'static str> {
        special.iter().copied().filter(|m| vocab.contains_key(*m)).collect()
    };
    let json = match kind {
        Kind::Bpe => {
            let normalizer = if lower { json!({ "type": "Lowercase" }) } else { Json::Null };
            let merges: Vec<[&String; 2]> = learnt.merges.iter().map(|(a, b)| [a, b]).collect();
            json!({
                "added_tokens": added(&there(BPE_SPECIAL), id),
                "normalizer": normalizer,
                "pre_tokenizer": byte_level(),
                "decoder": byte_level(),
                "model": { "type": "BPE", "vocab": vocab, "merges": merges },
            })
        }
        // As in BERT's own code, a word of more than 100 characters is unknown as a whole.
        Kind::WordPiece => json!({
            "added_tokens": added(&there(WORDPIECE_SPECIAL), id),
            "normalizer": bert_normalizer(lower),
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
            "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                       "max_input_chars_per_word": 100, "vocab": vocab },
        }),
    };
    whole(json).to_string()
}
