//! What stands between a foreign `tokenizer.json` and the crate that runs it.
//!
//! The crate trusts its files: it makes tables as long as a file says, and panics where parts of a file do not
//! fit each other. So what decides about memory is checked before it sees a file ([`check`]), and what
//! it panics with is an error ([`guarded`]).

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use serde_json::Value as Json;

/// How many times longer a text may become before it is cut into pieces. Normalizers of real models write three
/// bytes for a space.
const GROWTH: f64 = 64.0;
/// Characters a decoder may take from the ends of a text; real ones take one.
const STRIPPED: u64 = 1_000;

/// Whether the memory that a `tokenizer.json` takes is in proportion to its own length.
///
/// # Errors
/// What is out of proportion.
pub fn check(text: &str, json: &Json) -> Result<(), String> {
    ids(json, text.len() as u64)?;
    for (name, part) in
        [("normalizer", "a normalizer"), ("pre_tokenizer", "a pre_tokenizer"), ("decoder", "a decoder")]
    {
        let part_of = json.get(name).unwrap_or(&Json::Null);
        let growth = grown(part_of)?;
        if growth > GROWTH {
            return Err(format!(
                "{part} makes a text up to {growth:.0} times as long, and {GROWTH} is the most"
            ));
        }
    }
    Ok(())
}

/// Tables have a row for every id up to the largest, so no id may exceed what a file of this length can list.
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

/// How many times longer a text becomes at most by the replacements of a part and of those inside it, one after
/// the other.
fn grown(part: &Json) -> Result<f64, String> {
    match part {
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
                    let least = pattern.get("String").and_then(Json::as_str).map_or(1, |s| s.len().max(1));
                    // An empty match is between any two characters, which stay.
                    let kept = if pattern.get("Regex").is_some() { 1.0 } else { 0.0 };
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

/// A map of characters begins with the length of its table, four bytes in base64, for which memory is taken
/// before the table is read.
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
    let first: Option<Vec<u32>> = base64.bytes().take(6).map(digit).collect();
    let bits = match first.as_deref() {
        Some([a, b, c, d, e, f]) => {
            let high = (a << 18) | (b << 12) | (c << 6) | d;
            let low = ((e << 6) | f) >> 4;
            (high << 8) | low
        }
        _ => return Err(bad()),
    };
    // The four bytes are the length's, least first.
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

/// What the crate answers; a panic is an error as well, and nothing is printed of it.
///
/// # Errors
/// The crate's own, or that it panicked.
pub fn guarded<T, E: std::fmt::Display>(f: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    // What a panic may leave half done is thrown away with the tokenizer.
    let answer = panic::catch_unwind(AssertUnwindSafe(f));
    QUIET.set(before);
    match answer {
        Ok(answer) => answer.map_err(|e| e.to_string()),
        Err(said) => {
            let said =
                said.downcast_ref::<&str>().copied().or(said.downcast_ref::<String>().map(String::as_str));
            let said = said.and_then(|s| s.lines().next()).unwrap_or("no reason given");
            Err(format!("the parts of this tokenizer do not fit each other ({said})"))
        }
    }
}
