//! A map in the line of its key without braces, `mask: window: 4`, of which the parser notices the second colon.

/// What is to be written if a line, in which the parser stops at a colon, was meant as a map within a map; `None` if its value
/// can only be a text.
pub(super) fn braced(text: &str, at: usize) -> Option<String> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |n| n.saturating_add(1));
    let line = text.get(start..)?.lines().next()?.trim();
    let (key, value) = line.trim_start_matches("- ").split_once(": ")?;
    let map = map(value.trim()).filter(|_| is_key(key))?;
    // A word may be the end of a text.
    let is_word = value.rsplit(": ").next().is_some_and(|last| is_key(last) && !is_constant(last));
    Some(if is_word {
        format!("for a map write `{key}: {map}`; put a text that contains `: ` in quotes")
    } else {
        format!("write `{key}: {map}`")
    })
}

/// The most maps that are written so in one line, each in another; a text may have any number of colons.
const MOST_MAPS: usize = 3;

/// A value with the braces that it lacks.
fn map(value: &str) -> Option<String> {
    let words: Vec<&str> = value.split(": ").map(str::trim).take(MOST_MAPS.saturating_add(2)).collect();
    let (inner, keys) = words.split_last()?;
    let is_in_brackets =
        (inner.starts_with('{') && inner.ends_with('}')) || (inner.starts_with('[') && inner.ends_with(']'));
    let is_value = is_in_brackets || inner.parse::<f64>().is_ok() || is_key(inner);
    let is_map = (1..=MOST_MAPS).contains(&keys.len()) && keys.iter().all(|key| is_key(key));
    let within = |inner: String, key: &&str| format!("{{{key}: {inner}}}");
    (is_map && is_value).then(|| keys.iter().rev().fold((*inner).to_owned(), within))
}

fn is_key(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic()) && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn is_constant(word: &str) -> bool {
    matches!(word, "true" | "false" | "none")
}
