//! Protects against a malicious or damaged `tokenizer.json`.
//!
//! The `tokenizers` crate trusts its files: it allocates tables of the size that a file gives, and panics if
//! the parts of a file do not fit together. So everything that determines the use of memory is checked before
//! the crate gets a file ([`check`]), and a panic becomes an error ([`guarded`]).

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use serde_json::{Map, Value as Json};

/// The greatest factor by which a part of a tokenizer may lengthen a text. Normalizers of real models have 12,
/// because they replace a character by several, and a space by a character of three bytes.
const GROWTH: f64 = 64.0;
/// The most bytes that a part may put before a text, or before each piece of it that is between two added tokens.
/// Those of real models put one character there.
const ADDED: usize = 1_000;
/// The most normalizers, pre-tokenizers, decoders or post-processors within one. Those of real models have about ten.
const PARTS: usize = 1_000;
/// The most characters that a decoder may remove from an end of a text. Those of real models remove one.
const STRIPPED: u64 = 1_000;
/// The most characters of a token in a vocabulary with scores, of which the crate makes a tree with a level for each, and frees it
/// level by level on the stack. Those of real models have some dozens.
const PIECE: usize = 1_000;

/// Checks that a `tokenizer.json` does not need far more memory than its own length. `json` is the parsed
/// `text`.
///
/// # Errors
/// What would need too much memory.
pub fn check(text: &str, json: &Json) -> Result<(), String> {
    ids(json, text.len() as u64)?;
    pieces(json)?;
    for (name, part) in [
        ("normalizer", "a normalizer"),
        ("pre_tokenizer", "a pre_tokenizer"),
        ("decoder", "a decoder"),
        ("post_processor", "a post_processor"),
    ] {
        let Growth { times, added, parts } = grown(json.get(name).unwrap_or(&Json::Null))?;
        if parts > PARTS {
            return Err(format!("{part} consists of {parts} parts, but {PARTS} is the limit"));
        }
        if times > GROWTH {
            return Err(format!(
                "{part} makes a text up to {times:.0} times as long, but {GROWTH} times is the limit"
            ));
        }
        if added > ADDED {
            return Err(format!("{part} puts {added} bytes before a text, but {ADDED} is the limit"));
        }
    }
    Ok(())
}

/// Checks that no id exceeds `most`, the length of the file in bytes, because tables have a row for every id
/// up to the largest. A file has fewer tokens than bytes.
fn ids(json: &Json, most: u64) -> Result<(), String> {
    let named = |what: &str, token: &str, id: u64| {
        let token: String = token.chars().take(40).collect();
        match id > most {
            true => {
                Err(format!("{what} `{token}` has the id {id}, far beyond the number of tokens in the file"))
            }
            false => Ok(()),
        }
    };
    let model = json.get("model").unwrap_or(&Json::Null);
    if let Some(vocab) = model.get("vocab").and_then(Json::as_object) {
        for (token, id) in vocab {
            named("the token", token, id.as_u64().unwrap_or(0))?;
        }
    }
    for token in json.get("added_tokens").and_then(Json::as_array).into_iter().flatten() {
        let content = token.get("content").and_then(Json::as_str).unwrap_or("");
        named("the added token", content, token.get("id").and_then(Json::as_u64).unwrap_or(0))?;
    }
    Ok(())
}

/// Checks that no token with a score is longer than [`PIECE`].
fn pieces(json: &Json) -> Result<(), String> {
    for entry in json.pointer("/model/vocab").and_then(Json::as_array).into_iter().flatten() {
        let length = entry.get(0).and_then(Json::as_str).map_or(0, |token| token.chars().count());
        if length > PIECE {
            return Err(format!("a token has {length} characters, but {PIECE} is the limit"));
        }
    }
    Ok(())
}

/// How much a part, with the parts inside it, lengthens a text.
#[derive(Clone, Copy)]
struct Growth {
    /// The factor by which its replacements lengthen a text at most.
    times: f64,
    /// The bytes that it puts before a text.
    added: usize,
    /// The number of parts.
    parts: usize,
}

impl Growth {
    /// That of no part.
    const NONE: Growth = Growth { times: 1.0, added: 0, parts: 0 };

    /// That of two parts of which one acts after the other, so that their factors are multiplied.
    fn then(self, next: Growth) -> Growth {
        Growth {
            times: self.times * next.times,
            added: self.added.saturating_add(next.added),
            parts: self.parts.saturating_add(next.parts),
        }
    }
}

/// How much a part, and the parts inside it, lengthen a text if they are applied one after the other.
fn grown(part: &Json) -> Result<Growth, String> {
    match part {
        Json::Array(parts) => parts.iter().try_fold(Growth::NONE, |all, part| Ok(all.then(grown(part)?))),
        Json::Object(map) => {
            for key in ["start", "stop"] {
                if map.get(key).and_then(Json::as_u64).is_some_and(|n| n > STRIPPED) {
                    return Err(format!(
                        "a decoder takes more than {STRIPPED} characters from an end of a text"
                    ));
                }
            }
            let repeated = template(map)?;
            let own = match (map.get("pattern"), map.get("content").and_then(Json::as_str)) {
                (Some(pattern), Some(content)) => {
                    // The fewest bytes that are replaced: a regular expression may match a single one.
                    let least = pattern.get("String").and_then(Json::as_str).map_or(1, |s| s.len().max(1));
                    // A regular expression can match the empty text between two characters, which are then
                    // kept in addition to the replacement.
                    let kept = if pattern.get("Regex").is_some() { 1.0 } else { 0.0 };
                    // A replacement that shortens texts must not make up for one before it: each may act on
                    // other text.
                    (content.len() as f64 / least as f64 + kept).max(1.0)
                }
                _ => 1.0,
            };
            let is_empty = |key: &str| map.get(key).and_then(Json::as_str) == Some("");
            let (is_bytes, puts_spaces) = (
                // Every byte becomes a character, and most of these characters have two bytes. So a few dozen
                // of them, one after the other, would fill any memory.
                map.get("type").and_then(Json::as_str) == Some("ByteLevel"),
                // These texts are replaced by a space, and the empty one is between any two characters.
                is_empty("suffix") || is_empty("word_delimiter_token"),
            );
            let twice = if is_bytes || puts_spaces { 2.0 } else { 1.0 };
            let mapped = match map.get("precompiled_charsmap").and_then(Json::as_str) {
                Some(map) => charsmap(map)?,
                None => 1.0,
            };
            let own = Growth {
                times: own * twice * mapped * repeated,
                added: map.get("prepend").and_then(Json::as_str).map_or(0, str::len),
                parts: 1,
            };
            let inner = ["normalizers", "pretokenizers", "decoders", "processors"];
            let inner = inner.iter().filter_map(|key| map.get(*key));
            inner.map(grown).try_fold(own, |all, more| Ok(all.then(more?)))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(Growth::NONE),
    }
}

/// How many times the templates of a post-processor have a text: each time adds all of its tokens again. The template
/// of one text must have it.
fn template(map: &Map<String, Json>) -> Result<f64, String> {
    let mut most = 1;
    for key in ["single", "pair"] {
        let Some(items) = map.get(key).and_then(Json::as_array) else { continue };
        for text in ["A", "B"] {
            let is_text = |item: &&Json| item.pointer("/Sequence/id").and_then(Json::as_str) == Some(text);
            let count = items.iter().filter(is_text).count();
            if count == 0 && (key, text) == ("single", "A") {
                return Err("the template of one text does not have the text `A`".to_owned());
            }
            most = most.max(count);
        }
    }
    Ok(most as f64)
}

/// The greatest factor by which a map of characters lengthens a text: that of its longest replacement in place of a
/// character of three bytes, as the maps of real models have it for an Arabic ligature. The crate allocates as much
/// as the length says with which the map begins, before it reads any further, so that this is checked, too.
fn charsmap(base64: &str) -> Result<f64, String> {
    let bad = || "the map of characters of a normalizer is damaged".to_owned();
    let bytes = decoded(base64).ok_or_else(bad)?;
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(bad)?;
    // The table with the places of the replacements, and then these, each with a zero at its end.
    let length = usize::try_from(u32::from_le_bytes(*length)).ok();
    let replacements = length.and_then(|length| rest.get(length..)).ok_or_else(bad)?;
    let longest = replacements.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0);
    Ok((longest as f64 / 3.0).max(1.0))
}

/// The bytes of a text in base64.
fn decoded(base64: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| -> Option<u32> {
        Some(u32::from(match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }))
    };
    let mut bytes = Vec::with_capacity(base64.len());
    for digits in base64.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            // The digits that the last four lack are zeros.
            bits = (bits << 6) | digits.get(place).map_or(Some(0), |c| digit(*c))?;
        }
        // Four digits are three bytes, and each digit that is missing is a byte less.
        let [_, three @ ..] = bits.to_be_bytes();
        bytes.extend(three.iter().take(digits.len().saturating_sub(1)));
    }
    Some(bytes)
}

thread_local! {
    /// Whether a panic on this thread is one that [`guarded`] will report.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function of the crate. A panic becomes an error and is not printed.
///
/// # Errors
/// The function fails or panics.
pub fn guarded<T, E: std::fmt::Display>(f: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    // Once for the process: each further hook would call the one before it.
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    // Of this thread only: another thread's panic is a bug of ours and must be printed.
    let before = QUIET.replace(true);
    // After a panic the tokenizer is not used any more, so it may be in an inconsistent state.
    let answer = panic::catch_unwind(AssertUnwindSafe(f));
    // Not to `false`: the call may be within another one that is guarded, too.
    QUIET.set(before);
    match answer {
        Ok(answer) => answer.map_err(|e| e.to_string()),
        Err(message) => {
            let message = message
                .downcast_ref::<&str>()
                .copied()
                .or(message.downcast_ref::<String>().map(String::as_str));
            let message = message.and_then(|s| s.lines().next()).unwrap_or("no reason given");
            Err(format!(
                "the parts of this tokenizer do not fit each other; the library that runs it stopped with: {message}"
            ))
        }
    }
}
