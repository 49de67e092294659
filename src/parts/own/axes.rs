//! The axes of a product of two tensors, `"bhtd,hde->bhte"`, as an author writes them.

use crate::ir::op::Axes;

/// The most axes of a tensor.
const MOST: usize = 4;

/// The most characters of a text that a message shows.
const SHOWN: usize = 40;

/// Reads axes: a letter for each axis of both tensors and of the result.
///
/// # Errors
/// Why they are none, in words.
pub(super) fn axes(text: &str) -> Result<Axes, String> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    // A hostile text may be of any length.
    let shown = || format!("\"{}\"", text.trim().chars().take(SHOWN).collect::<String>());
    let Some((given, result)) = plain.split_once("->") else {
        return Err(format!("{} has no `->` before the axes of the result", shown()));
    };
    let Some((left, right)) = given.split_once(',') else {
        return Err(format!("{} does not have the axes of two tensors, with a comma between them", shown()));
    };
    for letters in [left, right, result] {
        if let Some(other) = letters.chars().find(|c| !c.is_ascii_alphabetic()) {
            return Err(format!("{} has `{other}` where a letter should be", shown()));
        }
        if letters.is_empty() || letters.len() > MOST {
            return Err(format!(
                "{} has a tensor of {} axes; 1 to {MOST} are possible",
                shown(),
                letters.len()
            ));
        }
        let mut seen = String::new();
        for c in letters.chars() {
            if seen.contains(c) {
                return Err(format!("{} has the axis `{c}` twice in one tensor", shown()));
            }
            seen.push(c);
        }
    }
    if let Some(new) = result.chars().find(|c| !left.contains(*c) && !right.contains(*c)) {
        return Err(format!("{} has the axis `{new}` in the result alone", shown()));
    }
    Ok(Axes { left: left.to_owned(), right: right.to_owned(), result: result.to_owned() })
}
