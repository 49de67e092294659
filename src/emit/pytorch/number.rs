//! Numbers and texts as Python writes them.

/// A float that reads back to the same bits.
pub fn float(x: f64) -> String {
    if x.is_nan() {
        return "math.nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "math.inf".to_owned() } else { "-math.inf".to_owned() };
    }
    // Rust prints the fewest digits that read back to the same float, in a form that Python reads as well.
    format!("{x:?}")
}

/// A text in double quotes, in ASCII, so that no character of it can end the string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(c),
            other if u32::from(other) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(other))),
            other => out.push_str(&format!("\\U{:08x}", u32::from(other))),
        }
    }
    out.push('"');
    out
}

/// A line of an author's text that may be in a docstring or a comment: without characters that end a line,
/// turn the direction of the text around, or end the string.
pub fn harmless(line: &str) -> String {
    // Unicode's marks of width zero and of direction can make code look like something else than it is
    // ("Trojan Source", CVE-2021-42574), and Python takes U+2028 and U+2029 for no line ends while editors
    // do.
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let text: String = line.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    // A backslash would begin an escape, and a quotation mark could end the docstring.
    text.replace('\\', "/").replace('"', "'").trim().to_owned()
}
