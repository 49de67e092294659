//! Every character is a token: the alphabet of the training data in the order of Unicode.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Marks, Piece, Unknown};

/// The special tokens of an alphabet without a boundary, ids 0 to 3.
pub const MARKS: [&str; 4] = ["<unk>", "<pad>", "<bos>", "<eos>"];

/// The tokenizer of an alphabet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Characters {
    /// The single special token for start, end and padding, id 0; without it, those of [`MARKS`] come
    /// first.
    pub boundary: Option<char>,
    /// Whether text is first converted to lower case.
    pub lower: bool,
    /// The characters after the special tokens, in ascending order.
    pub alphabet: Vec<char>,
}

/// Collects the characters of texts.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    seen: BTreeSet<char>,
}

impl Collector {
    /// Adds the characters of a text.
    pub fn add(&mut self, text: &str, lower: bool) {
        match lower {
            true => self.seen.extend(text.chars().flat_map(char::to_lowercase)),
            false => self.seen.extend(text.chars()),
        }
    }

    /// The collected alphabet. A boundary that occurs in the texts remains a special token, and these texts
    /// then cannot be encoded.
    pub fn finish(self, boundary: Option<char>, lower: bool) -> Characters {
        let alphabet = self.seen.into_iter().filter(|c| Some(*c) != boundary).collect();
        Characters { boundary, lower, alphabet }
    }
}

impl Characters {
    fn first(&self) -> usize {
        self.boundary.map_or(MARKS.len(), |_| 1)
    }

    /// The number of ids.
    pub fn vocab(&self) -> usize {
        self.first() + self.alphabet.len()
    }

    /// The special tokens.
    pub fn marks(&self) -> Marks {
        match self.boundary {
            Some(_) => {
                Marks { pad: 0, start: Some(0), end: Some(0), unknown: None, mask: None, twice: false }
            }
            None => {
                Marks { pad: 1, start: Some(2), end: Some(3), unknown: Some(0), mask: None, twice: false }
            }
        }
    }

    /// The tokens of a text. If lower case turns a character into two, these are two tokens with the same
    /// bytes.
    ///
    /// # Errors
    /// A character is not in the alphabet, and there is no token for unknown text.
    pub fn pieces(&self, text: &str) -> Result<Vec<Piece>, Unknown> {
        let mut pieces = Vec::with_capacity(text.len());
        let mut add = |at: usize, len: usize, c: char| {
            let id = match self.alphabet.binary_search(&c) {
                Ok(index) => u32::try_from(self.first() + index).unwrap_or(u32::MAX),
                Err(_) => self.marks().unknown.ok_or_else(|| Unknown { what: c.to_string() })?,
            };
            pieces.push(Piece { id, bytes: at..at + len });
            Ok(())
        };
        for (at, c) in text.char_indices() {
            match self.lower {
                true => c.to_lowercase().try_for_each(|l| add(at, c.len_utf8(), l))?,
                false => add(at, c.len_utf8(), c)?,
            }
        }
        Ok(pieces)
    }

    /// The text of ids, without special tokens.
    pub fn decode(&self, ids: &[u32]) -> String {
        ids.iter().filter_map(|id| self.alphabet.get((*id as usize).checked_sub(self.first())?)).collect()
    }

    /// How a token is displayed.
    pub fn token(&self, id: u32) -> Option<String> {
        let id = id as usize;
        match (self.boundary, id.checked_sub(self.first())) {
            (_, Some(index)) => self.alphabet.get(index).map(char::to_string),
            (Some(mark), None) => Some(mark.to_string()),
            (None, None) => MARKS.get(id).map(|m| (*m).to_owned()),
        }
    }
}
