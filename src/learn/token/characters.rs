//! Every character is a token: the alphabet of the training data, in an order of the recipe's.

use std::cmp::Reverse;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Piece, SpecialTokens, Unknown, all_distinct};
use crate::learn::recipe::tokens::Order;

/// The special tokens of an alphabet without a boundary, ids 0 to 3.
pub const SPECIAL: [&str; 4] = ["<unk>", "<pad>", "<bos>", "<eos>"];

/// The tokenizer whose tokens are the characters of an alphabet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Characters {
    stored: Stored,
    /// Every character with its place in the alphabet, ascending by character.
    places: Vec<(char, u32)>,
}

/// An alphabet as it is saved in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    /// The single special token for start, end and padding, id 0; without it, those of [`SPECIAL`] come
    /// first.
    boundary: Option<char>,
    /// Whether text is first converted to lower case.
    lower: bool,
    /// The characters after the special tokens, in the order of their ids.
    alphabet: Vec<char>,
}

impl TryFrom<Stored> for Characters {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        all_distinct(&stored.alphabet, "alphabet").map(|()| Self::of(stored))
    }
}

impl Characters {
    fn of(stored: Stored) -> Self {
        let mut places: Vec<(char, u32)> = stored.alphabet.iter().copied().zip(0..).collect();
        // Sorted for a binary search, since the alphabet is in the order of ids.
        places.sort_unstable();
        Self { stored, places }
    }
}

impl From<Characters> for Stored {
    fn from(characters: Characters) -> Self {
        characters.stored
    }
}

/// Collects the characters of the training data, of which an alphabet is made.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    /// How often every character was seen, in the order in which they were seen first.
    seen: IndexMap<char, u64>,
}

impl Collector {
    /// Counts the characters of a text, in lower case if `lower` is set.
    pub fn add(&mut self, text: &str, lower: bool) {
        let mut see = |c| *self.seen.entry(c).or_default() += 1;
        match lower {
            true => text.chars().flat_map(char::to_lowercase).for_each(&mut see),
            false => text.chars().for_each(&mut see),
        }
    }

    /// Whether a character was seen.
    pub fn has(&self, c: char) -> bool {
        self.seen.contains_key(&c)
    }

    /// The collected alphabet. A boundary that occurs in the texts remains a special token, and these texts
    /// then cannot be encoded.
    pub fn finish(self, boundary: Option<char>, lower: bool, order: Order) -> Characters {
        let mut seen: Vec<(char, u64)> =
            self.seen.into_iter().filter(|(c, _)| Some(*c) != boundary).collect();
        // Characters are distinct, so an unstable sort has only one result.
        match order {
            Order::Unicode => seen.sort_unstable_by_key(|(c, _)| *c),
            // The map has kept the order.
            Order::Appearance => {}
            Order::Frequency => seen.sort_unstable_by_key(|(c, count)| (Reverse(*count), *c)),
        }
        Characters::of(Stored { boundary, lower, alphabet: seen.into_iter().map(|(c, _)| c).collect() })
    }
}

impl Characters {
    /// The id of the first character, after the special tokens.
    fn first(&self) -> usize {
        self.stored.boundary.map_or(SPECIAL.len(), |_| 1)
    }

    /// Whether text becomes lower case first.
    pub fn lower(&self) -> bool {
        self.stored.lower
    }

    /// Whether a text is the character that marks start and end.
    pub fn is_boundary(&self, text: &str) -> bool {
        let mut all = text.chars();
        self.stored.boundary.is_some() && all.next() == self.stored.boundary && all.next().is_none()
    }

    /// The number of ids: of the special tokens and of the alphabet.
    pub fn vocab(&self) -> usize {
        self.first() + self.stored.alphabet.len()
    }

    /// One token for padding, start and end if there is a boundary, otherwise those of [`SPECIAL`].
    pub fn special_tokens(&self) -> SpecialTokens {
        match self.stored.boundary {
            Some(_) => SpecialTokens {
                pad: 0,
                start: Some(0),
                end: Some(0),
                unknown: None,
                mask: None,
                twice: false,
            },
            None => SpecialTokens {
                pad: 1,
                start: Some(2),
                end: Some(3),
                unknown: Some(0),
                mask: None,
                twice: false,
            },
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
            let id = match self.places.binary_search_by_key(&c, |(known, _)| *known) {
                Ok(at) => {
                    let place = self.places.get(at).map_or(0, |(_, place)| *place);
                    u32::try_from(self.first()).unwrap_or(u32::MAX).saturating_add(place)
                }
                // An alphabet with a boundary has no token for unknown text.
                Err(_) => self.special_tokens().unknown.ok_or_else(|| Unknown { what: c.to_string() })?,
            };
            pieces.push(Piece { id, bytes: at..at + len });
            Ok(())
        };
        for (at, c) in text.char_indices() {
            match self.stored.lower {
                // All of them come from the one character of the text: `İ` becomes `i` and a combining dot.
                true => c.to_lowercase().try_for_each(|l| add(at, c.len_utf8(), l))?,
                false => add(at, c.len_utf8(), c)?,
            }
        }
        Ok(pieces)
    }

    /// The text of ids, without special tokens.
    pub fn decode(&self, ids: &[u32]) -> String {
        ids.iter()
            .filter_map(|id| self.stored.alphabet.get((*id as usize).checked_sub(self.first())?))
            .collect()
    }

    /// How a token is displayed.
    pub fn token(&self, id: u32) -> Option<String> {
        let id = id as usize;
        match (self.stored.boundary, id.checked_sub(self.first())) {
            (_, Some(index)) => self.stored.alphabet.get(index).map(char::to_string),
            (Some(boundary), None) => Some(boundary.to_string()),
            (None, None) => SPECIAL.get(id).map(|m| (*m).to_owned()),
        }
    }
}
