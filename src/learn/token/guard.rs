//! Protects against a malicious or damaged `tokenizer.json`.
//!
//! The `tokenizers` crate trusts its files: it allocates tables of the size that a file gives, and panics if
//! the parts of a file do not fit together. So everything that determines the use of memory is checked before
//! the crate gets a file ([`check`]), and a panic becomes an error ([`guarded`]).

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use serde_json::Value as Json;

/// The greatest factor by which a part of a tokenizer may lengthen a text. Normalizers of real models have 3,
/// because they replace a space by a character of three bytes.
const GROWTH: f64 = 64.0;
/// The most characters that a decoder may remove from an end of a text. Those of real models remove one.
const STRIPPED: u64 = 1_000;

/// Checks that a `tokenizer.json` does not need far more memory than its own length. `json` is the parsed
/// `text`.
///
/// # Errors
/// What would need too much memory.
pub fn check(text: &str, json: &Json) -> Result<(), String> {
    ids(json, text.len() as u64)?;
    for (name, part) in
        [("normalizer", "a normalizer"), ("pre_tokenizer", "a pre_tokenizer"), ("decoder", "a decoder")]
    {
        let part_of = json.get(name).unwrap_or(&Json::Null);
        let growth = grown(part_of)?;
        if growth > GROWTH {
            return Err(format!(
                "{part} makes a text up to {growth:.0} times as long, but {GROWTH} times is the limit"
            ));
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

/// The greatest factor by which the replacements of a part, and of the parts inside it, lengthen a text if
/// they are applied one after the other.
fn grown(part: &Json) -> Result<f64, String> {
    match part {
        // The parts of a list act one after the other, so their factors are multiplied.
        Json::Array(parts) => parts.iter().try_fold(1.0, |all, part| Ok(all * grown(part)?)),
        Json::Object(map) => {
            if let Some(map) = map.get("precompiled_charsmap").and_then(Json::as_str) {
                charsmap(map)?;
            }
            for key in ["start", "stop"] {
                if map.get(key).and_then(Json::as_u64).is_some_and(|n| n > STRIPPED) {
                    return Err(format!(
                        "a decoder takes more than {STRIPPED} characters from an end of a text"
                    ));
                }
            }
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
            let inner = ["normalizers", "pretokenizers", "decoders"].iter().filter_map(|key| map.get(*key));
            inner.map(grown).try_fold(own, |all, more| Ok(all * more?))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(1.0),
    }
}

/// Checks the length of the table with which a map of characters begins: four bytes in base64. The crate
/// allocates that much before it reads the table.
fn charsmap(base64: &str) -> Result<(), String> {
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
    let bad = || "the map of characters of a normalizer is damaged".to_owned();
    // Six digits have 36 bits, of which the first 32 are the length.
    let first: Option<Vec<u32>> = base64.bytes().take(6).map(digit).collect();
    let bits = match first.as_deref() {
        Some([a, b, c, d, e, f]) => {
            let high = (a << 18) | (b << 12) | (c << 6) | d;
            let low = ((e << 6) | f) >> 4;
            (high << 8) | low
        }
        _ => return Err(bad()),
    };
    // The length is stored in little-endian order.
    let length = u64::from(bits.swap_bytes());
    match length > base64.len() as u64 {
        true => Err(bad()),
        false => Ok(()),
    }
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
            Err(format!("the parts of this tokenizer do not fit each other ({message})"))
        }
    }
}
