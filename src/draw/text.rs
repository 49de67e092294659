//! Text in pictures: escaped, measured without a font, shortened to fit.
//!
//! Widths are those of Helvetica, which Arial and Liberation Sans share; the other fonts of the theme are
//! similar. Layouts leave a little room, so that another font does not overlap.

use crate::diag::render::visible;
use crate::source::is_wide;

/// The text as XML character data or attribute value: markup is escaped, and hidden or forbidden characters
/// are replaced by their number.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before: Option<char> = None;
    let visible = visible(text);
    let mut characters = visible.chars().peekable();
    while let Some(c) = characters.next() {
        let is_inside = before.is_some_and(joins) && characters.peek().copied().is_some_and(joins);
        before = Some(c);
        match c {
            // Within a word of a joined script or within an emoji they are how it is spelled.
            '\u{200c}' | '\u{200d}' if is_inside => out.push(c),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Readers of XML take a carriage return for the end of a line.
            '\r' => out.push_str("\\r"),
            // XML cannot represent these characters.
            '\u{fffe}' | '\u{ffff}' => out.push_str(&c.escape_unicode().to_string()),
            // Invisible characters that reorder or join their neighbours.
            '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{061c}' => {
                out.push_str(&c.escape_unicode().to_string());
            }
            c => out.push(c),
        }
    }
    out
}

/// Whether a character belongs to a script whose letters join, such as Arabic and those of India, or to an emoji.
/// Between other letters a joiner is nothing but hidden.
fn joins(c: char) -> bool {
    matches!(u32::from(c), 0x0620..=0x06d3 | 0x06fa..=0x08ff | 0x0900..=0x0fff | 0x1000..=0x109f | 0x1780..=0x18af
        | 0x2600..=0x27bf | 0xfb50..=0xfdff | 0xfe0f | 0xfe70..=0xfefc | 0x1f300..=0x1faff)
}

/// As [`escape`], on one line.
pub fn escape_line(text: &str) -> String {
    escape(&text.replace(['\n', '\t'], " "))
}

/// A coordinate: two decimals, no trailing zeros, no negative zero.
pub fn coordinate(n: f64) -> String {
    let rounded = (n * 100.0).round() / 100.0;
    // `-0` and `0` are the same place, and a NaN would make a viewer refuse the whole file.
    if rounded == 0.0 || !rounded.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{rounded:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The width of a line in pixels at a font size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// The width of a line in the font for code.
pub fn mono_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| if is_wide(c) { 1.2 } else { 0.61 }).sum::<f64>() * size
}

/// The text, or its beginning followed by `…` if it would be wider than `most`.
pub fn fit(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let room = most - width("…", size);
    let mut used = 0.0;
    let mut out = String::new();
    for c in text.chars() {
        used += advance(c) * size;
        if used > room {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// The advance width of a character in ems.
fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' => 0.222,
        ' ' | '!' | ',' | '.' | '/' | ':' | ';' | 'I' | '[' | ']' | 'f' | 't' | '\\' | '|' | '·' => 0.278,
        '(' | ')' | '-' | 'r' | '`' | '{' | '}' => 0.333,
        '*' => 0.389,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' | 'J' => 0.5,
        '+' | '<' | '=' | '>' | '~' | '×' | '−' => 0.584,
        'F' | 'T' | 'Z' => 0.611,
        '&' | 'A' | 'B' | 'E' | 'K' | 'P' | 'S' | 'V' | 'X' | 'Y' => 0.667,
        'C' | 'D' | 'H' | 'N' | 'R' | 'U' | 'w' => 0.722,
        'G' | 'O' | 'Q' => 0.778,
        'm' | 'M' => 0.833,
        '%' => 0.889,
        'W' => 0.944,
        '@' | '→' | '…' => 1.015,
        // Digits and most small letters of Helvetica.
        c if c.is_ascii() => 0.556,
        c if is_wide(c) => 1.0,
        // Accents that are drawn over the letter before them, and what only says how letters join.
        '\u{0300}'..='\u{036f}' | '\u{200c}' | '\u{200d}' => 0.0,
        // Shown as its number, `\u{202e}`.
        c if crate::source::is_hidden(c) => 3.8,
        // An average letter of another alphabet.
        _ => 0.62,
    }
}
