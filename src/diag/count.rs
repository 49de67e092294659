//! Numbers with what they count.

/// `1 step`, `2 steps`, `1,000 steps`: a number of things, whose name takes an `s` for several, or `es` (`2
/// classes`). The number may be written with digits in groups.
pub fn counted(number: impl std::fmt::Display, thing: &str) -> String {
    // Compared as text, because the number may be any type, or be formatted already.
    let number = number.to_string();
    if number == "1" {
        return format!("{number} {thing}");
    }
    // English adds `es` after a hissing sound.
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| thing.ends_with(end));
    format!("{number} {thing}{}", if hisses { "es" } else { "s" })
}
