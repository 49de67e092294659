//! Words separated by spaces, as in "Dive into Deep Learning".
//!
//! No-break spaces (U+202F, U+00A0) count as spaces, and `,`, `.`, `!` and `?` begin a word of their own.
//! The vocabulary has the four special tokens, then the words by frequency; equally frequent words are in
//! alphabetical order.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Piece, SpecialTokens, all_distinct};

/// The special tokens, ids 0 to 3.
pub const SPECIAL: [&str; 4] = ["<unk>", "<pad>", "<bos>", "<eos>"];

/// The id of a special token; `None` for any other word.
fn special(word: &str) -> Option<u32> {
    (0u32..).zip(SPECIAL).find(|(_, name)| *name == word).map(|(id, _)| id)
}

/// The tokenizer of a vocabulary of words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Words {
    /// Whether text is first converted to lower case.
    pub lower: bool,
    /// The words after the special tokens, by id.
    words: Vec<String>,
    ids: BTreeMap<String, u32>,
}

/// What is saved of a vocabulary: the ids follow from the order of the words.
#[derive(Clone, Serialize, Deserialize)]
struct Saved {
    lower: bool,
    words: Vec<String>,
}

impl From<Words> for Saved {
    fn from(words: Words) -> Self {
        Self { lower: words.lower, words: words.words }
    }
}

impl TryFrom<Saved> for Words {
    type Error = String;

    fn try_from(saved: Saved) -> Result<Self, String> {
        all_distinct(&saved.words, "vocabulary").map(|()| Self::of(saved))
    }
}

impl Words {
    fn of(saved: Saved) -> Self {
        let first = SPECIAL.len() as u32;
        let ids = saved.words.iter().cloned().zip(first..).collect();
        Self { lower: saved.lower, words: saved.words, ids }
    }
}

/// The words of a text, with the bytes that each comes from.
pub fn split(text: &str, lower: bool) -> Vec<(String, Range<usize>)> {
    let mut words: Vec<(String, Range<usize>)> = Vec::new();
    let mut is_open = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            is_open = false;
            continue;
        }
        // As in the book, there is a space before a mark and none after it: `a,b` has the words `a` and `,b`.
        if matches!(c, ',' | '.' | '!' | '?') {
            is_open = false;
        }
        if !is_open {
            words.push((String::new(), at..at));
            is_open = true;
        }
        if let Some((word, bytes)) = words.last_mut() {
            match lower {
                true => word.extend(c.to_lowercase()),
                false => word.push(c),
            }
            bytes.end = at + c.len_utf8();
        }
    }
    words
}

/// Counts the words of the training data, of which a vocabulary is made.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    counts: BTreeMap<String, u64>,
}

impl Counter {
    /// Counts the words of a text, in lower case if `lower` is set.
    pub fn add(&mut self, text: &str, lower: bool) {
        for (word, _) in split(text, lower) {
            *self.counts.entry(word).or_default() += 1;
        }
    }

    /// The words that occur at least `min_frequency` times, at most `vocab` including the special tokens.
    pub fn finish(self, lower: bool, min_frequency: u64, vocab: Option<u64>) -> Words {
        // A special token that is written out, such as `<unk>` in many data sets, has its id already.
        let is_word = |(word, count): &(String, u64)| *count >= min_frequency && special(word).is_none();
        let mut counted: Vec<(String, u64)> = self.counts.into_iter().filter(is_word).collect();
        // Sorting is stable, and the map is ordered, so equally frequent words stay in alphabetical order.
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let most = vocab.and_then(|v| usize::try_from(v).ok()).unwrap_or(usize::MAX);
        counted.truncate(most.saturating_sub(SPECIAL.len()));
        Words::of(Saved { lower, words: counted.into_iter().map(|(word, _)| word).collect() })
    }
}

impl Words {
    /// The number of ids: of the special tokens and of the words.
    pub fn vocab(&self) -> usize {
        SPECIAL.len() + self.words.len()
    }

    /// The ids of those in [`SPECIAL`]; a word that is not in the vocabulary becomes `<unk>`.
    pub fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens { pad: 1, start: Some(2), end: Some(3), unknown: Some(0), mask: None, twice: false }
    }

    /// The words of a text as tokens.
    pub fn pieces(&self, text: &str) -> Vec<Piece> {
        let piece = |(word, bytes): (String, Range<usize>)| {
            // 0 is the id of `<unk>`.
            let id = self.ids.get(&word).copied().or_else(|| special(&word)).unwrap_or(0);
            Piece { id, bytes }
        };
        split(text, self.lower).into_iter().map(piece).collect()
    }

    /// The words of ids with spaces between them, without special tokens except the one for unknown words.
    pub fn decode(&self, ids: &[u32]) -> String {
        let word = |id: &u32| match id {
            // An unknown word is a word of the text, and leaving it out would shorten the text for BLEU.
            0 => self.token(0),
            id if (*id as usize) < SPECIAL.len() => None,
            id => self.token(*id),
        };
        ids.iter().filter_map(word).collect::<Vec<String>>().join(" ")
    }

    /// How a token is displayed.
    pub fn token(&self, id: u32) -> Option<String> {
        let id = id as usize;
        match id.checked_sub(SPECIAL.len()) {
            Some(index) => self.words.get(index).cloned(),
            None => SPECIAL.get(id).map(|m| (*m).to_owned()),
        }
    }
}
