//! Words: how messages name records and lists of names, and what authors write for a boolean.

/// How messages name a record.
pub fn titled(title: &str) -> String {
    if title == "spec" { "the spec".to_owned() } else { format!("`{title}`") }
}

/// A list for sentences: "`a`, `b` and `c`".
pub fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// The boolean that other languages write as this word.
pub fn boolean(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" | "1" => Some("true"),
        "no" | "off" | "n" | "false" | "0" => Some("false"),
        _ => None,
    }
}

/// Whether a word in the place of a number is one that no author means as a name: `true`, `off`, `auto`.
pub fn is_no_number(word: &str) -> bool {
    // A single letter, or a digit, may be a name or a number.
    let is_boolean = word.len() > 1 && boolean(word).is_some();
    is_boolean || ["auto", "automatic", "default"].iter().any(|known| word.eq_ignore_ascii_case(known))
}
