//! The tokens of the classes that take their ids from a second vocabulary (Marian, M2M-100), and the names that
//! their pieces have in the model that divides texts.
//!
//! The library finds tokens of two kinds in a text: those of its class and of its files, around which each part
//! is divided as a text of its own, and the symbols of the model of SentencePiece, which are pieces like any
//! other. All other tokens, such as the languages of M2M-100, are found in no text, however it is written.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use super::renumbered::HIDDEN;
use super::sentencepiece::{Entry, Model, Use};
use super::subword::set;
use super::vocabulary::{AddedMark, Files, Mark};

/// The characters that take the place of symbols: a plane for private use, which no text of a corpus has.
const PRIVATE: std::ops::RangeInclusive<char> = '\u{100000}'..='\u{10fffd}';

/// The tokens of such a class.
pub(super) struct Second {
    /// The ids of all tokens: those of `vocab.json`, of languages, and of what the files add.
    ids: IndexMap<String, u32>,
    /// The tokens that are found in texts, and are no pieces.
    pub found: Vec<Mark>,
    /// Those of them that stay where tokens become text.
    plain: BTreeSet<String>,
    /// The symbols of the model, longest first, each with the character that takes its place.
    symbols: Vec<(String, char)>,
    /// The token for each name of a piece that is not the token itself.
    names: IndexMap<String, String>,
}

impl Second {
    /// `own` are the special tokens of the class, and `languages` its tokens that get the ids after those of
    /// `vocab.json`.
    ///
    /// # Errors
    /// A file is missing, or gives a token another id than the library does: a sentence without a full stop.
    pub fn of(model: &Model, files: &Files, own: Vec<Mark>, languages: &[String]) -> Result<Self, String> {
        let Some(text) = &files.ids else {
            return Err("its class needs a vocab.json, which is missing".to_owned());
        };
        let mut ids: IndexMap<String, u32> =
            serde_json::from_str(text).map_err(|error| format!("vocab.json: {error}"))?;
        let size = u32::try_from(ids.len()).map_err(|_| "vocab.json has too many tokens")?;
        let of_languages: IndexMap<&str, u32> = languages.iter().map(String::as_str).zip(size..).collect();
        let mut found = own;
        let mut next = size;
        let mut plain = BTreeSet::new();
        for AddedMark { mark, is_special, id: given } in files.more_marks()? {
            let text = &mark.text;
            // The library gives the next id to a token that it does not know.
            let id = ids.get(text).copied().unwrap_or(next);
            let of_language = of_languages.get(text.as_str());
            let taken = of_language.is_none() && of_languages.values().any(|language| *language == id);
            if of_language.is_some_and(|language| *language != id) || taken && !ids.contains_key(text) {
                return Err(format!(
                    "the files add the token `{text}`, to which the library gives the id {id}, and the class \
                     gives that to a language or the token another one"
                ));
            }
            if given.is_some_and(|given| given != u64::from(id)) {
                return Err(format!(
                    "the files give the token `{text}` the id {}, which is not that of vocab.json",
                    given.unwrap_or_default()
                ));
            }
            if !ids.contains_key(text) {
                ids.insert(text.clone(), id);
                next = next.saturating_add(1);
            }
            if found.iter().all(|other| other.text != mark.text) {
                if !is_special {
                    plain.insert(mark.text.clone());
                }
                found.push(mark.found_as_written());
            }
        }
        ids.extend(of_languages.into_iter().map(|(text, id)| (text.to_owned(), id)));
        let is_found = |text: &str| found.iter().any(|mark| mark.text == text);
        let hidden = languages.iter().filter(|text| !is_found(text));
        let mut names: IndexMap<String, String> =
            hidden.map(|text| (format!("{HIDDEN}{text}"), text.clone())).collect();
        let mut texts: Vec<&str> =
            model.pieces.iter().filter(|p| p.used == Use::Symbol).map(|p| &*p.text).collect();
        // Where one symbol begins with another, the longer one is found.
        texts.sort_by_key(|text| (std::cmp::Reverse(text.len()), *text));
        texts.dedup();
        // A character that is in no other piece is always a piece of its own, and no map replaces these.
        let is_plain = |text: &str| match text.as_bytes() {
            [one] => one.is_ascii_graphic() && !one.is_ascii_uppercase(),
            _ => false,
        };
        let is_alone = |text: &str| model.pieces.iter().all(|p| p.text == text || !p.text.contains(text));
        texts.retain(|text| !(is_found(text) || is_plain(text) && is_alone(text)));
        if let Some(text) = texts.iter().find(|text| text.contains(['\u{2581}', ' '])) {
            return Err(format!(
                "its model of SentencePiece has the symbol `{text}` with a space, which is not supported"
            ));
        }
        let taken: BTreeSet<char> = model.pieces.iter().flat_map(|piece| piece.text.chars()).collect();
        let free = PRIVATE.filter(|c| !taken.contains(c));
        let symbols: Vec<(String, char)> = texts.into_iter().map(str::to_owned).zip(free).collect();
        names.extend(symbols.iter().map(|(text, c)| (c.to_string(), text.clone())));
        Ok(Self { ids, found, plain, symbols, names })
    }

    /// The pieces of the model with names by which only those are found in texts that are to be found, and
    /// the tokens that are no pieces.
    pub fn pieces(&self, model: &Model) -> Vec<(String, f32)> {
        let name = |(at, piece): (usize, &Entry)| {
            let symbol = self.symbols.iter().find(|(text, _)| *text == piece.text);
            match (symbol, piece.used) {
                (Some((_, c)), _) => (c.to_string(), 0.0),
                // A special token of the class is found as such, wherever the model has a piece for it.
                (None, Use::Text | Use::Symbol) if at != model.unknown => (piece.text.clone(), piece.score),
                (None, _) => (format!("{HIDDEN}{}", piece.text), piece.score),
            }
        };
        let mut pieces: Vec<(String, f32)> = model.pieces.iter().enumerate().map(name).collect();
        let there: BTreeSet<String> = pieces.iter().map(|(text, _)| text.clone()).collect();
        let others: BTreeSet<&String> =
            self.found.iter().map(|mark| &mark.text).chain(self.names.keys()).collect();
        let others = others.into_iter().filter(|text| !there.contains(*text));
        pieces.extend(others.map(|text| (text.clone(), 0.0)));
        pieces
    }

    /// The tokens that are found in texts, as a `tokenizer.json` lists them, with their ids in the model that
    /// divides texts. `size` is the number of those.
    ///
    /// # Errors
    /// None of these tokens has an id from a file, so there are none in fact.
    pub fn added(&self, size: u32, id: impl Fn(&str) -> Option<u32>) -> Result<Json, String> {
        let mut added = Files::default().added(&self.found, size, id)?;
        for token in added.as_array_mut().into_iter().flatten() {
            if token["content"].as_str().is_some_and(|text| self.plain.contains(text)) {
                set(token, "special", json!(false));
            }
        }
        Ok(added)
    }

    /// The name of a token in the model that divides texts.
    pub fn name<'t>(&'t self, token: &'t str) -> &'t str {
        self.names.iter().find(|(_, other)| *other == token).map_or(token, |(name, _)| name)
    }

    /// The normalizers that put a character in the place of each symbol, before and after those of the model:
    /// a symbol is found as it is written, and where the model's replacements make it.
    pub fn normalizers(&self, own: Option<Json>) -> Vec<Json> {
        let replaced =
            |pattern: Json, to: &str| json!({ "type": "Replace", "pattern": pattern, "content": to });
        let symbols =
            || self.symbols.iter().map(|(text, c)| replaced(json!({ "String": text }), &c.to_string()));
        // The same characters in a text are no symbols.
        let aside =
            self.symbols.iter().map(|(_, c)| replaced(json!({ "String": c.to_string() }), "\u{fffd}"));
        let again: Vec<Json> = if own.is_some() { symbols().collect() } else { Vec::new() };
        aside.chain(symbols()).chain(own).chain(again).collect()
    }

    /// What the text of the tokenizer says about its ids. `needed` are the tokens for unknown text, for the end
    /// of a text, and for padding; `start` is that before a sequence, if the class has one.
    ///
    /// # Errors
    /// `vocab.json` does not have one of them.
    pub fn written(&self, needed: [&str; 3], start: Option<&str>, has_codes: bool) -> Result<Json, String> {
        if let Some(missing) = needed.iter().find(|text| !self.ids.contains_key(**text)) {
            return Err(format!("vocab.json does not have the token `{missing}`"));
        }
        let [unknown, end, pad] = needed;
        let start = start.filter(|start| self.ids.contains_key(*start));
        Ok(json!({
            "vocab": self.ids, "names": self.names, "unknown": unknown, "start": start, "end": end, "pad": pad,
            "has_codes": has_codes,
        }))
    }
}
