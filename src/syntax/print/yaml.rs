//! Prints an outline as YAML.

use super::lines::{AUTHOR_WIDTH, WIDTH, push_below, push_lead};
use crate::syntax::notation::Notation;
use crate::syntax::outline::{Group, Outline, Value};
use crate::syntax::text::{is_dedented, is_hidden, one_line};
use crate::syntax::token::may_be_value;
use crate::syntax::tree::Style;

/// The text of a whole document.
pub fn print(root: &Outline) -> String {
    let mut root = root.clone();
    root.hoist(&|text, style| {
        needs_lines(text, style) && literal(text).is_none() && is_plain(&one_line(text), false)
    });
    raise(&mut root);
    let root = &root;
    let mut out = String::new();
    push_lead(&mut out, &root.lead, 0, comment);
    let anchor = root.anchor.as_ref().map(|a| format!("&{a}\n")).unwrap_or_default();
    match &root.value {
        Value::Group(group) if !group.items.is_empty() => {
            out.push_str(&anchor);
            let head = group.head.iter().cloned().collect::<Vec<_>>();
            push_lead(&mut out, &head, 0, comment);
            group_lines(&mut out, group, 0);
            push_below(&mut out, root, comment);
        }
        Value::Group(group) => {
            // Between the brackets of an empty map there is no line for comments.
            let lines: Vec<String> = group.head.iter().chain(&group.rest).cloned().collect();
            push_lead(&mut out, &lines, 0, comment);
            out.push_str(&format!("{anchor}{}\n", if group.is_list { "[]" } else { "{}" }));
            push_below(&mut out, root, comment);
        }
        // An empty document stays empty.
        Value::Null if root.anchor.is_none() => push_below(&mut out, root, comment),
        value => {
            out.push_str(&anchor);
            value_after(&mut out, value, 0, "", None);
            push_below(&mut out, root, comment);
            // Words such as `model a` alone would be taken for the beginning of the DSL.
            if Notation::guess(&out) == Notation::Dsl {
                out.insert_str(0, "---\n");
            }
        }
    }
    out
}

/// Moves comments between a dash and its item above the dash, where parsing the YAML finds them again.
fn raise(outline: &mut Outline) {
    let Value::Group(group) = &mut outline.value else { return };
    for item in &mut group.items {
        raise(item);
        if let Value::Group(inner) = &mut item.value
            && group.is_list
        {
            item.lead.extend(inner.head.take());
            if let Some(first) = inner.items.first_mut() {
                item.lead.extend(first.lead.drain(..).filter(|l| !l.is_empty()));
            }
        }
    }
}

/// A comment that begins with `#` in place of `//`.
fn comment(text: &str) -> String {
    match text.strip_prefix("//") {
        Some(rest) => format!("#{rest}"),
        None => text.to_owned(),
    }
}

fn tail(text: Option<&str>) -> String {
    text.map(|t| format!("  {}", comment(t))).unwrap_or_default()
}

/// The entries or items of a group, each on lines of its own.
fn group_lines(out: &mut String, group: &Group, indent: usize) {
    for item in &group.items {
        item_lines(out, item, group.is_list, indent);
    }
    let mut rest = group.rest.as_slice();
    // Blank lines at the end of a group separate nothing.
    while let [head @ .., last] = rest
        && last.is_empty()
    {
        rest = head;
    }
    push_lead(out, rest, indent, comment);
}

fn item_lines(out: &mut String, item: &Outline, in_list: bool, indent: usize) {
    push_lead(out, &item.lead, indent, comment);
    if let Value::Group(group) = &item.value
        && group.items.is_empty()
    {
        // `{}` has no line inside of it, so its comments are written above it.
        let lines: Vec<String> = group.head.iter().chain(&group.rest).cloned().collect();
        push_lead(out, &lines, indent, comment);
    }
    let mut opening = match &item.key {
        _ if in_list => format!("{}-", " ".repeat(indent)),
        Some(key) => format!("{}{}:", " ".repeat(indent), key_text(item, key, false)),
        None => " ".repeat(indent),
    };
    if let Some(anchor) = &item.anchor {
        opening.push_str(&format!(" &{anchor}"));
    }
    match &item.value {
        Value::Group(group) if !group.items.is_empty() => {
            // What its author put on one line may stay there if it is a little longer than the printer's
            // lines.
            let width = if group.spread == Some(false) { AUTHOR_WIDTH } else { WIDTH };
            let flat = group.wants_one_line(width).then(|| flat_group(group)).flatten();
            if let Some(flat) = flat.filter(|f| {
                opening.chars().count().saturating_add(1).saturating_add(f.chars().count()) <= width
            }) {
                out.push_str(&format!("{opening} {flat}{}\n", tail(item.tail.as_deref())));
                return;
            }
            // The first entry follows the dash on its line, unless an anchor takes that place.
            if in_list && !group.is_list && item.anchor.is_none() {
                let mut inner = String::new();
                group_lines(&mut inner, group, indent.saturating_add(2));
                out.push_str(&format!("{opening} {}", inner.trim_start_matches(' ')));
            } else {
                out.push_str(&format!("{opening}{}\n", tail(group.head.as_deref())));
                group_lines(out, group, indent.saturating_add(2));
            }
            // After the last line of a block it would belong to the last entry, so it gets its own line
            // below.
            let after: Vec<String> = item.tail.iter().cloned().collect();
            push_lead(out, &after, indent, comment);
        }
        value => value_after(out, value, indent, &opening, item.tail.as_deref()),
    }
}

/// A scalar or an empty group, after its key or dash.
fn value_after(out: &mut String, value: &Value, indent: usize, opening: &str, after: Option<&str>) {
    let gap = if opening.is_empty() { "" } else { " " };
    if let Value::Scalar { text, style, spread } = value
        && (*style == Style::Block && *spread || needs_lines(text, *style))
        && let Some(lines) = literal(text)
    {
        // YAML takes the indentation of the text from its first line, unless a number gives it.
        let deeper = lines.first().is_some_and(|l| l.starts_with([' ', '\t']));
        out.push_str(&format!("{opening}{gap}|{}\n", if deeper { "2" } else { "" }));
        for line in lines {
            if line.is_empty() {
                out.push('\n');
            } else {
                out.push_str(&format!("{}{line}\n", " ".repeat(indent.saturating_add(2))));
            }
        }
        let after: Vec<String> = after.map(str::to_owned).into_iter().collect();
        push_lead(out, &after, indent, comment);
        return;
    }
    let text = flat_value(value, false).unwrap_or_default();
    out.push_str(&format!("{opening}{gap}{text}{}\n", tail(after)));
}

/// A group on one line; `None` if something in it needs lines of its own.
fn flat_group(group: &Group) -> Option<String> {
    let mut parts = Vec::with_capacity(group.items.len());
    for item in &group.items {
        let value = flat_value(&item.value, true)?;
        let anchor = item.anchor.as_ref().map(|a| format!("&{a} ")).unwrap_or_default();
        parts.push(match &item.key {
            Some(key) if !group.is_list => format!("{}: {anchor}{value}", key_text(item, key, true)),
            Some(_) | None => format!("{anchor}{value}"),
        });
    }
    let (open, close) = if group.is_list { ("[", "]") } else { ("{", "}") };
    Some(format!("{open}{}{close}", parts.join(", ")))
}

fn flat_value(value: &Value, in_flow: bool) -> Option<String> {
    match value {
        Value::Null => Some("null".to_owned()),
        Value::Delete => Some("!delete".to_owned()),
        Value::Alias(name) => Some(format!("*{name}")),
        Value::Scalar { text, style, .. } => match style {
            Style::Quoted => Some(quoted(text)),
            // Quotes would change its meaning: a quoted text is never a number.
            Style::Plain | Style::Block if is_plain(text, in_flow) => Some(text.clone()),
            // In brackets it would need quotes, on a line of its own it does not.
            Style::Plain | Style::Block
                if in_flow && (is_plain(text, false) || needs_lines(text, *style)) =>
            {
                None
            }
            Style::Plain | Style::Block if needs_lines(text, *style) && is_plain(&one_line(text), false) => {
                Some(one_line(text))
            }
            Style::Plain | Style::Block => Some(quoted(text)),
        },
        Value::Group(group) => flat_group(group),
    }
}

fn key_text(item: &Outline, key: &str, in_flow: bool) -> String {
    if item.is_merge {
        return "<<".to_owned();
    }
    // An ordinary key that is spelled `<<` must not become a merge.
    let plain = is_plain(key, in_flow) && key != "<<" && !(in_flow && key.contains(':'));
    if plain { key.to_owned() } else { quoted(key) }
}

/// Whether a text must be written on lines of its own: it may be a number or an expression, so it must not be
/// quoted, and on the line of its key it would need quotes.
fn needs_lines(text: &str, style: Style) -> bool {
    style != Style::Quoted && !is_plain(text, false) && may_be_value(text) && is_dedented(text)
}

/// The lines of a text to be written below `|`. `None` if it would not read back the same.
fn literal(text: &str) -> Option<Vec<&str>> {
    let sound = !text.chars().any(|c| is_hidden(c) || matches!(c, '\r' | '\u{feff}'));
    (sound && !text.is_empty() && is_dedented(text)).then(|| text.split('\n').collect())
}

/// Whether a text begins with `mark`, the `---` or `...` that separates documents.
fn starts_document(text: &str, mark: &str) -> bool {
    text.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether a text reads back the same if it is written without quotes.
fn is_plain(text: &str, in_flow: bool) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let sound = text.trim_matches([' ', '\t']) == text
        && !text.chars().any(|c| is_hidden(c) || matches!(c, '\n' | '\r' | '\t' | '\u{feff}'));
    let begins = match first {
        '-' => text.len() > 1 && !text.starts_with("- ") && !starts_document(text, "---"),
        '.' => !starts_document(text, "..."),
        '?' | ':' | ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
        | '@' | '`' | '=' => false,
        _ => true,
    };
    let null = crate::syntax::yaml::is_null(text);
    // Each of these ends a plain scalar, or makes it a key.
    let marks = text.contains(": ") || text.ends_with(':') || text.contains(" #");
    let flow = in_flow
        && (text.contains([',', '[', ']', '{', '}']) || text.contains(":") || first == '-' && text.len() < 2);
    // The survey takes an open bracket before a comma for an expression that the comma has cut.
    let cut = in_flow && text.matches('(').count() > text.matches(')').count();
    sound && begins && !null && !marks && !flow && !cut
}

/// A text in double quotes, or in single quotes if these make escapes unnecessary.
pub(super) fn quoted(text: &str) -> String {
    let simple = !text.chars().any(|c| is_hidden(c) || matches!(c, '\n' | '\r' | '\t' | '\u{feff}' | '\''));
    if simple && text.contains(['"', '\\']) {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // A file with such a character would be refused; its escape is not.
            c if is_hidden(c) || c == '\u{feff}' => match c as u32 {
                code @ 0..=0xff => out.push_str(&format!("\\x{code:02x}")),
                code => out.push_str(&format!("\\u{code:04x}")),
            },
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
