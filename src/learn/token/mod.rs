//! Text to token ids and back.
//!
//! A [`Tokenizer`] is made from the training data or from a file, is saved beside a run and reads back
//! equal. It never adds marks of start and end itself: what is built from a text says where they go,
//! and takes them from [`Marks`].
//!
//! Adding one: a file here, a variant below and a row in the recipe's `tokens`.

pub mod bytes;
pub mod characters;
pub mod exchange;
mod maker;
pub mod merges;
pub mod subword;
pub mod words;

pub use bytes::Bytes;
pub use characters::Characters;
pub use maker::{Fault, Maker, from_files};
pub use subword::Subword;
pub use words::Words;

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The ids that are no piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Fills up a batch.
    pub pad: u32,
    /// Before the first token, where there is one.
    pub start: Option<u32>,
    /// Behind the last token, where there is one.
    pub end: Option<u32>,
    /// Stands for what is not known, where there is one.
    pub unknown: Option<u32>,
    /// Stands for a hidden token, where there is one.
    pub mask: Option<u32>,
    /// Whether the mark of the end stands twice between two texts, which have no types then (RoBERTa, BART).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub twice: bool,
}

impl Marks {
    /// No mark but 0 for padding.
    pub const NONE: Marks = Marks { pad: 0, start: None, end: None, unknown: None, mask: None, twice: false };

    /// How many marks stand between two texts.
    pub fn between(&self) -> usize {
        if self.end.is_some() { 1 + usize::from(self.twice) } else { 0 }
    }
}

/// A token and the bytes of the text it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its id.
    pub id: u32,
    /// The bytes of the text that was encoded.
    pub bytes: Range<usize>,
}

/// A text that a tokenizer cannot encode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What it does not know.
    pub what: String,
}

/// Text to ids and back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// Every character is a token.
    Characters(Characters),
    /// Words between spaces.
    Words(Words),
    /// Every byte is a token.
    Bytes(Bytes),
    /// Pieces of words: `tokenizer.json`.
    Subword(Box<Subword>),
}

impl Tokenizer {
    /// How many ids there are.
    pub fn vocab(&self) -> usize {
        match self {
            Self::Characters(t) => t.vocab(),
            Self::Words(t) => t.vocab(),
            Self::Bytes(t) => t.vocab(),
            Self::Subword(t) => t.vocab(),
        }
    }

    /// The ids that are no piece of a text.
    pub fn marks(&self) -> Marks {
        match self {
            Self::Characters(t) => t.marks(),
            Self::Words(t) => t.marks(),
            Self::Bytes(t) => t.marks(),
            Self::Subword(t) => t.marks(),
        }
    }

    /// The tokens of a text with the bytes each stands for.
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

    /// The text of ids, marks left out.
    pub fn decode(&self, ids: &[u32]) -> String {
        match self {
            Self::Characters(t) => t.decode(ids),
            Self::Words(t) => t.decode(ids),
            Self::Bytes(t) => t.decode(ids),
            Self::Subword(t) => t.decode(ids),
        }
    }

    /// How a token is written, for tables and pictures.
    pub fn token(&self, id: u32) -> Option<String> {
        match self {
            Self::Characters(t) => t.token(id),
            Self::Words(t) => t.token(id),
            Self::Bytes(t) => t.token(id),
            Self::Subword(t) => t.token(id),
        }
    }
}
