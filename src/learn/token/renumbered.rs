//! The ids of a second vocabulary: a model of SentencePiece divides a text, and a `vocab.json` gives the
//! pieces their ids (Marian, M2M-100). A piece that is not in it is unknown text.

use std::ops::Range;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::SpecialTokens;

/// The beginning of the name of a piece that is found in no text.
pub(super) const HIDDEN: char = '\u{10ffff}';

/// The character that SentencePiece writes for a space (U+2581).
pub(super) const SPACE: &str = "\u{2581}";

/// The key of these ids in the text of a tokenizer. The `tokenizer.json` of the library has no such key.
pub const RENUMBERED: &str = "renumbered";

/// What the text of a tokenizer says under that key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The id of each token, as `vocab.json` gives it.
    vocab: IndexMap<String, u32>,
    /// The token for each name of a piece that is not the token itself.
    #[serde(default)]
    names: IndexMap<String, String>,
    /// The token that takes the place of text without one.
    unknown: String,
    /// The token before a sequence, if the class has one.
    #[serde(default)]
    start: Option<String>,
    /// The token after a text.
    end: String,
    /// The token that fills rows.
    pad: String,
    /// Whether a text may begin with a code such as `>>fra<<`, which is one token.
    has_codes: bool,
}

/// The ids of a second vocabulary.
#[derive(Clone, Debug)]
pub struct Renumbered {
    /// The token of each id; `None` for one without a token.
    names: Vec<Option<String>>,
    ids: IndexMap<String, u32>,
    /// The token for each name of a piece that is not the token itself.
    aliases: IndexMap<String, String>,
    unknown: u32,
    start: Option<u32>,
    end: u32,
    pad: u32,
    has_codes: bool,
}

impl Renumbered {
    /// What the text of a tokenizer says; `None` if its own ids are used. The ids are below `most`.
    ///
    /// # Errors
    /// What it says is damaged, or an id is too large or that of two tokens.
    pub fn of(json: &Json, most: usize) -> Result<Option<Self>, String> {
        let Some(own) = json.get(RENUMBERED) else { return Ok(None) };
        let Written { vocab: ids, names: aliases, unknown, start, end, pad, has_codes } =
            Written::deserialize(own).map_err(|error| format!("its ids are damaged: {error}"))?;
        let id =
            |token: &str| ids.get(token).copied().ok_or(format!("the special token `{token}` has no id"));
        let (unknown, end, pad) = (id(&unknown)?, id(&end)?, id(&pad)?);
        let start = start.as_deref().map(id).transpose()?;
        let last = ids.values().max().copied().unwrap_or(0) as usize;
        // Every id up to the last one has a row, and a damaged file could give any.
        if last > most {
            return Err(format!("it has the id {last}, far beyond the number of tokens in the file"));
        }
        let mut names = vec![None; last + 1];
        for (name, id) in &ids {
            if let Some(place) = names.get_mut(*id as usize) {
                // One of them could never be written again, and decoding would give the other.
                if let Some(other) = place {
                    return Err(format!("the tokens `{other}` and `{name}` have the same id {id}"));
                }
                *place = Some(name.clone());
            }
        }
        Ok(Some(Self { names, ids, aliases, unknown, start, end, pad, has_codes }))
    }

    /// The special tokens of the class.
    pub fn special_tokens(&self) -> SpecialTokens {
        let Self { pad, start, end, unknown, .. } = *self;
        SpecialTokens { pad, start, end: Some(end), unknown: Some(unknown), mask: None, twice: false }
    }

    /// The number of ids.
    pub fn vocab(&self) -> usize {
        self.names.len()
    }

    /// The id of a token, if it has one.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    /// The token with an id.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.names.get(id as usize)?.as_deref()
    }

    /// The id of a piece of a text, which the model knows by the name `own` if it knows it, and which is
    /// written as `written`.
    pub fn of_piece(&self, own: Option<&str>, written: &str) -> u32 {
        let token = own.map(|own| self.aliases.get(own).map_or(own, String::as_str));
        let id = match token.filter(|token| !token.starts_with(HIDDEN)) {
            Some(token) => self.id(token),
            // The other vocabulary may have a token for text that is unknown to the model.
            None => self.id(written),
        };
        id.unwrap_or(self.unknown)
    }

    /// The code with which a text begins: its id and its bytes.
    pub fn code(&self, text: &str) -> Option<(u32, Range<usize>)> {
        // The place in the rest of the text, with two bytes before the rest and two of the closing sign.
        let end = text.strip_prefix(">>").filter(|_| self.has_codes)?.find("<<")?.checked_add(4)?;
        Some((self.of_piece(None, text.get(..end)?), 0..end))
    }

    /// The text of some tokens without the special ones.
    pub fn decode(&self, ids: &[u32], is_special: impl Fn(&str) -> bool) -> String {
        let tokens = ids.iter().filter_map(|id| self.token(*id)).filter(|token| !is_special(token));
        let text: String = tokens.collect();
        text.replace(SPACE, " ").trim().to_owned()
    }
}
