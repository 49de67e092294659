//! Converts text to token ids and back.
//!
//! A [`Tokenizer`] is trained on data or read from a file, and is saved with each checkpoint. It never adds
//! start and end tokens itself: the code that builds a sequence from a text decides where they go, and
//! takes them from [`SpecialTokens`].
//!
//! To add a kind, add a file here, a variant below and a row in the recipe's `tokens`.

pub mod bytes;
pub mod characters;
mod class;
pub mod configured;
mod conventions;
pub mod exchange;
mod growing;
mod guard;
mod languages;
pub mod layout;
mod maker;
pub mod merges;
mod renumbered;
mod second;
mod sentencepiece;
pub mod subword;
pub mod vocabulary;
pub mod words;

pub use bytes::Bytes;
pub use characters::Characters;
pub use growing::Growing;
pub use layout::Layout;
pub use maker::{Fault, Maker, from_files};
pub use subword::Subword;
pub use words::Words;

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The ids of the special tokens of a vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecialTokens {
    /// The token that fills rows up to the length of the longest one.
    pub pad: u32,
    /// The token before the first one, if any.
    pub start: Option<u32>,
    /// The token after the last one, if any.
    pub end: Option<u32>,
    /// The token for unknown text, if any.
    pub unknown: Option<u32>,
    /// The token that replaces masked tokens, if any.
    pub mask: Option<u32>,
    /// Whether two texts are separated by two end tokens; they then have no token types (RoBERTa, BART).
    // Absent where it is false, as in codebooks that were written before there was this field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub twice: bool,
}

impl SpecialTokens {
    /// No special token except 0 for padding.
    pub const NONE: SpecialTokens =
        SpecialTokens { pad: 0, start: None, end: None, unknown: None, mask: None, twice: false };
}

/// A token, and the bytes of the text that it encodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The id of the token.
    pub id: u32,
    /// The range of bytes in the text.
    pub bytes: Range<usize>,
}

/// A text that a tokenizer cannot encode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The part of the text that has no token.
    pub what: String,
}

/// Checks that a vocabulary, which `of` names, has no item twice: only one of them could have an id.
fn all_distinct<T: Ord + ToString>(items: &[T], of: &str) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match items.iter().find(|item| !seen.insert(*item)) {
        Some(item) => Err(format!("the {of} has `{}` twice", item.to_string().escape_debug())),
        None => Ok(()),
    }
}

/// A tokenizer of some kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// Every character is a token.
    Characters(Characters),
    /// Words separated by spaces.
    Words(Words),
    /// Every byte is a token.
    Bytes(Bytes),
    /// Subwords, learnt or read from files, in the form of a `tokenizer.json`.
    // In a box: an enum is as large as its largest variant, and this one is far larger than the others.
    Subword(Box<Subword>),
}

impl Tokenizer {
    /// The number of ids; the embedding table needs a row for each.
    pub fn vocab(&self) -> usize {
        match self {
            Self::Characters(t) => t.vocab(),
            Self::Words(t) => t.vocab(),
            Self::Bytes(t) => t.vocab(),
            Self::Subword(t) => t.vocab(),
        }
    }

    /// The ids of the special tokens. Without a token for padding, the end token or 0 is used for it.
    pub fn special_tokens(&self) -> SpecialTokens {
        match self {
            Self::Characters(t) => t.special_tokens(),
            Self::Words(t) => t.special_tokens(),
            Self::Bytes(t) => t.special_tokens(),
            Self::Subword(t) => t.special_tokens(),
        }
    }

    /// The rows of texts that are read as a whole, as a tokenizer's own template makes them; `None` if it has
    /// none.
    pub fn own_layout(&self) -> Option<&Layout> {
        match self {
            Self::Subword(t) => t.layout(),
            Self::Characters(_) | Self::Words(_) | Self::Bytes(_) => None,
        }
    }

    /// The rows of texts that are read as a whole: those of its own template, or what is usual with its
    /// special tokens.
    pub fn layout(&self) -> Layout {
        self.own_layout().cloned().unwrap_or_else(|| Layout::usual(self.special_tokens()))
    }

    /// The tokens of a text, with the bytes that each encodes.
    ///
    /// # Errors
    /// A piece of the text has no token.
    pub fn pieces(&self, text: &str) -> Result<Vec<Piece>, Unknown> {
        match self {
            Self::Characters(t) => t.pieces(text),
            Self::Words(t) => Ok(t.pieces(text)),
            Self::Bytes(t) => Ok(t.pieces(text)),
            Self::Subword(t) => t.pieces(text).map_err(|what| Unknown { what }),
        }
    }

    /// The ids of a text.
    ///
    /// # Errors
    /// A piece of the text has no token.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Unknown> {
        self.pieces(text).map(|pieces| pieces.into_iter().map(|p| p.id).collect())
    }

    /// The text of ids, without special tokens.
    pub fn decode(&self, ids: &[u32]) -> String {
        match self {
            Self::Characters(t) => t.decode(ids),
            Self::Words(t) => t.decode(ids),
            Self::Bytes(t) => t.decode(ids),
            Self::Subword(t) => t.decode(ids),
        }
    }

    /// How a token is displayed in tables and pictures.
    pub fn token(&self, id: u32) -> Option<String> {
        match self {
            Self::Characters(t) => t.token(id),
            Self::Words(t) => t.token(id),
            Self::Bytes(t) => t.token(id),
            Self::Subword(t) => t.token(id),
        }
    }
}
