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

/// A value with the braces that it lacks.
fn map(value: &str) -> Option<String> {
    let (key, inner) = value.split_once(": ").filter(|(key, _)| is_key(key))?;
    let inner = inner.trim();
    if let Some(map) = map(inner) {
        return Some(format!("{{{key}: {map}}}"));
    }
    let is_in_brackets =
        (inner.starts_with('{') && inner.ends_with('}')) || (inner.starts_with('[') && inner.ends_with(']'));
    let is_value = is_in_brackets || inner.parse::<f64>().is_ok() || is_key(inner);
    is_value.then(|| format!("{{{key}: {inner}}}"))
}

fn is_key(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic()) && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn is_constant(word: &str) -> bool {
    matches!(word, "true" | "false" | "none")
}
