//! How messages name records and lists of names.

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
