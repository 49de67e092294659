//! Words between spaces, as "Dive into Deep Learning" makes them.
//!
//! No-break spaces (U+202F, U+00A0) are spaces, and `,`, `.`, `!` and `?` begin a word of their own. The
//! vocabulary has the four marks, then words by frequency, those of one frequency in order.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Marks, Piece};

/// The marks, ids 0 to 3.
pub const MARKS: [&str; 4] = ["<unk>", "<pad>", "<bos>", "<eos>"];

/// A vocabulary of words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct Words {
    /// Whether text becomes lower case first.
    pub lower: bool,
    /// The words behind the marks, by id.
    words: Vec<String>,
    ids: BTreeMap<String, u32>,
}

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

impl From<Saved> for Words {
    fn from(saved: Saved) -> Self {
        let first = MARKS.len() as u32;
        let ids = saved.words.iter().cloned().zip(first..).collect();
        Self { lower: saved.lower, words: saved.words, ids }
    }
}

/// Words of a text with the bytes each stands for.
pub fn split(text: &str, lower: bool) -> Vec<(String, Range<usize>)> {
    let mut words: Vec<(String, Range<usize>)> = Vec::new();
    let mut is_open = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            is_open = false;
            continue;
        }
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

/// Counts words.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    counts: BTreeMap<String, u64>,
}

impl Counter {
    /// Takes in a text.
    pub fn add(&mut self, text: &str, lower: bool) {
        for (word, _) in split(text, lower) {
            *self.counts.entry(word).or_default() += 1;
        }
    }

    /// The words seen at least so often, at most so many together with the marks.
    pub fn finish(self, lower: bool, min_frequency: u64, vocab: Option<u64>) -> Words {
        let mut counted: Vec<(String, u64)> =
            self.counts.into_iter().filter(|(_, count)| *count >= min_frequency).collect();
        // Sorting is stable, and the map has brought words of one frequency into order.
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let most = vocab.and_then(|v| usize::try_from(v).ok()).unwrap_or(usize::MAX);
        counted.truncate(most.saturating_sub(MARKS.len()));
        Saved { lower, words: counted.into_iter().map(|(word, _)| word).collect() }.into()
    }
}

impl Words {
    /// How many ids there are.
    pub fn vocab(&self) -> usize {
        MARKS.len() + self.words.len()
    }

    /// The ids that are no word.
    pub fn marks(&self) -> Marks {
        Marks { pad: 1, start: Some(2), end: Some(3), unknown: Some(0), mask: None, twice: false }
    }

    /// The words of a text.
    pub fn pieces(&self, text: &str) -> Vec<Piece> {
        let piece = |(word, bytes): (String, Range<usize>)| {
            let id = self.ids.get(&word).copied().unwrap_or(0);
            Piece { id, bytes }
        };
        split(text, self.lower).into_iter().map(piece).collect()
    }

    /// The words of ids with spaces between them, marks left out but that of the unknown.
    pub fn decode(&self, ids: &[u32]) -> String {
        let word = |id: &u32| match id {
            0 => self.token(0),
            id if (*id as usize) < MARKS.len() => None,
            id => self.token(*id),
        };
        ids.iter().filter_map(word).collect::<Vec<String>>().join(" ")
    }

    /// How a token is written.
    pub fn token(&self, id: u32) -> Option<String> {
        let id = id as usize;
        match id.checked_sub(MARKS.len()) {
            Some(index) => self.words.get(index).cloned(),
            None => MARKS.get(id).map(|m| (*m).to_owned()),
        }
    }
}
