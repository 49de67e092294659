//! Numbers with what they count.

/// `1 step`, `2 steps`, `1,000 steps`: a number of things, whose name takes an `s` for several. The number may be written
/// with digits in groups.
pub fn counted(number: impl std::fmt::Display, thing: &str) -> String {
    let number = number.to_string();
    let end = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{end}")
}
