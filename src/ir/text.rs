//! Numbers and flags as graphs and reports write them.

/// The text if the flag is set, else nothing.
pub(super) fn flag(on: bool, text: &'static str) -> &'static str {
    if on { text } else { "" }
}

/// ` name=value` if there is a value, else nothing.
pub(super) fn optional(name: &str, value: Option<String>) -> String {
    value.map(|value| format!(" {name}={value}")).unwrap_or_default()
}

/// A number of a spec; if it has more than seven characters, it is rounded to four decimals.
pub fn factor(by: f64) -> String {
    let text = format!("{by}");
    // A short number stays as the author wrote it, `0.125`; a root would have 16 digits.
    let text = if text.len() <= 7 { text } else { format!("{by:.4}") };
    text.replace('-', "−")
}

/// Digits in groups of three: `124,439,808`.
pub fn thousands(n: u128) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && digits.len().saturating_sub(i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
