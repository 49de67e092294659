//! `//`, which begins a comment, in the place of a quotient: Python has it as an operator, and what follows a comment is
//! not read.

/// Whether `//` is meant as an operator, as Python has it, although it begins a comment where it is: there is something
/// before it on its line, and nothing but a number after it.
pub fn is_meant(before: &str, rest: &str) -> bool {
    let below = rest.trim_start_matches('/').split('\n').next().unwrap_or("").trim();
    !before.trim().is_empty() && below.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The help for `//`, which has `above` before it and `below` after it on its line.
pub fn help(above: &str, below: &str) -> String {
    let is_factor = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '*' | ' ' | '(' | ')');
    let (above, below) = (above.trim(), below.trim());
    let are_factors = [above, below].iter().all(|side| !side.is_empty() && side.chars().all(is_factor));
    // Of more than factors it is not clear how far the quotient goes, and words after one another are a comment.
    let is_one = !below.contains([' ', '*']);
    let quotient =
        if are_factors && is_one { format!("floor({above} / {below})") } else { "floor(a / b)".to_owned() };
    format!("write a quotient without its remainder as `{quotient}`; a comment begins with `#`")
}
