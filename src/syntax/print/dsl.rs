//! Prints an outline in the DSL.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::lines::{AUTHOR_WIDTH, WIDTH, push_below, push_lead};
use crate::syntax::dsl::{fits_braces, is_interval, is_key, is_part_word, is_plain, is_word};
use crate::syntax::equation;
use crate::syntax::merge::IsPart;
use crate::syntax::outline::{Group, Outline, Value};
use crate::syntax::text::{MAX_DEPTH, dedent, is_dedented, is_hidden, one_line};
use crate::syntax::token::may_be_value;
use crate::syntax::tree::Style;

/// The text of a whole document.
pub fn print(root: &Outline, is_part: IsPart<'_>) -> String {
    // Reading counts the brackets in a scalar together with those of the maps around it.
    let room = MAX_DEPTH.saturating_sub(root.height().saturating_add(1)).min(ROOM);
    let own = own_parts(root);
    let is_part = |word: &str| is_part(word) || own.contains(word);
    let printer = Printer { is_part: &is_part, room };
    // Whether an expression can be written only without the comments in it. In quotes it would not be a
    // number any more.
    let is_lost = |text: &str, style: Style| {
        is_unquoted_value(text, style)
            && !is_plain(text, room)
            && long_text(text, 0).or_else(|| unquoted(text)).is_none()
            && is_plain(&one_line(text), room)
    };
    let mut root = root.clone();
    root.hoist(&is_lost);
    let root = &root;
    let mut out = String::new();
    push_lead(&mut out, &root.lead, 0, str::to_owned);
    match &root.value {
        Value::Group(group) => {
            if group.is_list {
                out.push_str(&format!("{}\n", printer.value(&root.value, 0, 0)));
            } else if let Some(parts) = library(group, printer.room) {
                printer.parts(&mut out, parts, 0);
                push_lead(&mut out, &group.rest, 0, str::to_owned);
            } else {
                // `model` writes these comments itself, together with those of `name`.
                out.clear();
                printer.model(&mut out, &root.lead, group);
            }
            push_below(&mut out, root, str::to_owned);
        }
        // An empty document stays empty.
        Value::Null => push_below(&mut out, root, str::to_owned),
        value => {
            let text = printer.value(value, 0, 0);
            out.push_str(&format!("{text}\n"));
            push_below(&mut out, root, str::to_owned);
        }
    }
    out
}

/// The most brackets that may be open at a time in an expression that is not written between `"""`.
const ROOM: usize = 16;

struct Printer<'a> {
    is_part: IsPart<'a>,
    /// The most brackets that may be open at a time in a scalar, not counting the maps and lists around it.
    room: usize,
}

fn tail(text: Option<&str>) -> String {
    text.map(|t| format!("  {t}")).unwrap_or_default()
}

impl Printer<'_> {
    /// Writes `model NAME { ... }`, with the comments of `above` before it.
    fn model(&self, out: &mut String, above: &[String], group: &Group) {
        let mut items: Vec<Outline> = group.items.clone();
        let mut above = above.to_vec();
        let at = items
            .iter()
            .position(|i| i.key.as_deref() == Some("name") && matches!(i.value, Value::Scalar { .. }));
        let mut opening = "model ".to_owned();
        let mut head = group.head.clone();
        if let Some(Outline { value: Value::Scalar { text, style, .. }, lead, tail, .. }) =
            at.map(|i| items.remove(i))
        {
            let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            let title = style != Style::Quoted && !text.is_empty() && text.chars().all(bare);
            opening = format!("model {} ", if title { text } else { quoted(&text) });
            above.extend(lead.into_iter().filter(|l| !l.is_empty()));
            // Only one comment fits on the line of the brace, so the other goes above it.
            if head.is_some() && tail.is_some() {
                above.extend(tail);
            } else {
                head = head.or(tail);
            }
        }
        push_lead(out, &above, 0, str::to_owned);
        if items.is_empty() && head.is_none() && group.rest.iter().all(String::is_empty) {
            out.push_str(&format!("{opening}{{}}\n"));
            return;
        }
        out.push_str(&format!("{opening}{{{}\n", tail(head.as_deref())));
        self.lines(out, &items, &group.rest, 2);
        out.push_str("}\n");
    }

    /// Writes the entries of a body, each on lines of its own, and the comments of `rest` after them.
    fn lines(&self, out: &mut String, items: &[Outline], rest: &[String], indent: usize) {
        for (i, item) in items.iter().enumerate() {
            let mut text = String::new();
            self.entry(&mut text, item, indent);
            let last = out.trim_end_matches('\n').rsplit('\n').next().unwrap_or("");
            let one_line = |t: &str| !t.trim_end_matches('\n').contains('\n');
            let before = i.checked_sub(1).and_then(|i| items.get(i));
            let joins =
                item.is_on_same_line && item.lead.is_empty() && before.is_some_and(|b| b.tail.is_none());
            let width = last.chars().count().saturating_add(2).saturating_add(text.trim().chars().count());
            // What ends in a bracket or a quotation mark has a line of its own, so that only short settings
            // share one.
            if joins
                && one_line(&text)
                && !last.trim_end().ends_with(['}', ')', ']', '{', '"'])
                && width <= AUTHOR_WIDTH
            {
                out.truncate(out.trim_end_matches('\n').len());
                out.push_str(&format!("  {}", text.trim_start()));
                continue;
            }
            push_lead(out, &item.lead, indent, str::to_owned);
            out.push_str(&text);
        }
        let mut rest = rest;
        // Blank lines at the end of a group separate nothing.
        while let [head @ .., last] = rest
            && last.is_empty()
        {
            rest = head;
        }
        push_lead(out, rest, indent, str::to_owned);
    }

    /// Writes `part NAME(x) { ... }` for each entry of `parts`, with the comments between them.
    fn parts(&self, out: &mut String, parts: &Group, indent: usize) {
        let margin = " ".repeat(indent);
        for part in &parts.items {
            push_lead(out, &part.lead, indent, str::to_owned);
            if let Some(wiring) = Wiring::of_part(part, self.room) {
                let end = tail(part.tail.as_deref());
                out.push_str(&format!("{margin}{}{end}\n", wiring.print(indent)));
            }
        }
        push_lead(out, &parts.rest, indent, str::to_owned);
    }

    fn entry(&self, out: &mut String, item: &Outline, indent: usize) {
        let key = item.key.as_deref().unwrap_or("");
        let margin = " ".repeat(indent);
        if let Some(ranges) = ranges(item) {
            let (above, ranges) = with_tail(ranges, item);
            push_lead(out, &above, indent, str::to_owned);
            for range in &ranges.items {
                push_lead(out, &range.lead, indent, str::to_owned);
                let opening = format!("{margin}layers {}", range.key.as_deref().unwrap_or(""));
                self.braces(out, &opening, range, None, indent);
            }
            push_lead(out, &ranges.rest, indent, str::to_owned);
            return;
        }
        if let Some(parts) = parts(item, self.room) {
            let (above, parts) = with_tail(parts, item);
            push_lead(out, &above, indent, str::to_owned);
            self.parts(out, &parts, indent);
            return;
        }
        if let Some(wiring) = Wiring::of(item, self.room) {
            out.push_str(&format!("{margin}{}{}\n", wiring.print(indent), tail(item.tail.as_deref())));
            return;
        }
        match &item.value {
            Value::Group(group) if !group.is_list && !self.is_call(group) => {
                let count = repeat_count(group, self.room);
                let opening = match &count {
                    Some((text, _)) => format!("{margin}{} x {text}", key_text(key)),
                    None => format!("{margin}{}", key_text(key)),
                };
                self.braces(out, &opening, item, count.map(|(_, at)| at), indent);
            }
            value => {
                let opening = format!("{margin}{} = ", key_text(key));
                let text = self.value(value, indent, opening.chars().count());
                out.push_str(&format!("{opening}{text}{}\n", tail(item.tail.as_deref())));
            }
        }
    }

    /// Writes `opening { ... }` with the entries of a map, leaving out the one with index `without`.
    fn braces(&self, out: &mut String, opening: &str, item: &Outline, without: Option<usize>, indent: usize) {
        let Value::Group(group) = &item.value else { return };
        let mut group = Cow::Borrowed(group);
        if let Some(at) = without.filter(|at| *at < group.items.len()) {
            let group = group.to_mut();
            let count = group.items.remove(at);
            // The line of the brace may have a comment already.
            if group.head.is_some() {
                push_lead(out, &count.tail.into_iter().collect::<Vec<_>>(), indent, str::to_owned);
            } else {
                group.head = count.tail;
            }
        }
        let end = tail(item.tail.as_deref());
        let width = if group.spread == Some(false) { AUTHOR_WIDTH } else { WIDTH };
        if let Some(flat) = group.wants_one_line(width).then(|| self.flat_body(&group)).flatten()
            && opening.chars().count().saturating_add(1).saturating_add(flat.chars().count()) <= width
        {
            out.push_str(&format!("{opening} {flat}{end}\n"));
            return;
        }
        if group.items.is_empty() && group.is_bare() {
            out.push_str(&format!("{opening} {{}}{end}\n"));
            return;
        }
        out.push_str(&format!("{opening} {{{}\n", tail(group.head.as_deref())));
        self.lines(out, &group.items, &group.rest, indent.saturating_add(2));
        out.push_str(&format!("{}}}{end}\n", " ".repeat(indent)));
    }

    /// A value after `key = `. `used` is the number of columns that are taken on its first line; further
    /// lines are indented.
    fn value(&self, value: &Value, indent: usize, used: usize) -> String {
        let Value::Group(group) = value else { return self.leaf(value, indent) };
        let width = if group.spread == Some(false) { AUTHOR_WIDTH } else { WIDTH };
        if let Some(flat) = group.wants_one_line(width).then(|| self.flat(value)).flatten()
            && used.saturating_add(flat.chars().count()) <= width
        {
            return flat;
        }
        let margin = " ".repeat(indent);
        let mut out = String::new();
        if group.is_list {
            if group.items.is_empty() && group.is_bare() {
                return "[]".to_owned();
            }
            out.push_str(&format!("[{}\n", tail(group.head.as_deref())));
            for item in &group.items {
                push_lead(&mut out, &item.lead, indent.saturating_add(2), str::to_owned);
                let text = self.value(&item.value, indent.saturating_add(2), indent.saturating_add(3));
                out.push_str(&format!("{margin}  {text},{}\n", tail(item.tail.as_deref())));
            }
            push_lead(&mut out, &group.rest, indent.saturating_add(2), str::to_owned);
            out.push_str(&format!("{margin}]"));
            return out;
        }
        // A part with one value keeps its parentheses even if the line is too long: written differently, it
        // would be formatted differently the next time.
        if self.is_call(group)
            && let [only] = group.items.as_slice()
            && !matches!(only.value, Value::Group(_))
        {
            let word = only.key.as_deref().unwrap_or("");
            return format!("{word}({})", self.leaf(&only.value, indent));
        }
        if self.is_call(group)
            && let [only] = group.items.as_slice()
            && let Value::Group(fields) = &only.value
        {
            if fields.is_list {
                let text = self.value(&only.value, indent, used);
                return format!("{}({text})", only.key.as_deref().unwrap_or(""));
            }
            out.push_str(&format!(
                "{}({}\n",
                only.key.as_deref().unwrap_or(""),
                tail(fields.head.as_deref())
            ));
            for field in &fields.items {
                push_lead(&mut out, &field.lead, indent.saturating_add(2), str::to_owned);
                let opening = format!("{margin}  {}: ", key_text(field.key.as_deref().unwrap_or("")));
                let text = self.value(&field.value, indent.saturating_add(2), opening.chars().count());
                out.push_str(&format!("{opening}{text},{}\n", tail(field.tail.as_deref())));
            }
            push_lead(&mut out, &fields.rest, indent.saturating_add(2), str::to_owned);
            out.push_str(&format!("{margin})"));
            return out;
        }
        if group.items.is_empty() && group.is_bare() {
            return "{}".to_owned();
        }
        out.push_str(&format!("{{{}\n", tail(group.head.as_deref())));
        self.lines(&mut out, &group.items, &group.rest, indent.saturating_add(2));
        out.push_str(&format!("{margin}}}"));
        out
    }

    /// A value that is neither a map nor a list.
    fn leaf(&self, value: &Value, indent: usize) -> String {
        match value {
            Value::Scalar { text, style: Style::Block, spread: true } => {
                long_text(text, indent).unwrap_or_else(|| quoted(text))
            }
            // In quotes it would not be a number any more.
            Value::Scalar { text, style, .. } if is_unquoted_value(text, *style) => {
                self.flat(value).or_else(|| long_text(text, indent)).unwrap_or_else(|| quoted(text))
            }
            Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } | Value::Group(_) => {
                self.flat(value).unwrap_or_default()
            }
        }
    }

    /// A value on one line; `None` if something in it needs lines of its own.
    fn flat(&self, value: &Value) -> Option<String> {
        match value {
            Value::Null => Some("null".to_owned()),
            Value::Delete => Some("delete!".to_owned()),
            // Conversion replaces aliases by their values; in the DSL one could only be a text.
            Value::Alias(name) => Some(quoted(&format!("*{name}"))),
            Value::Scalar { text, style, .. } => match style {
                Style::Plain | Style::Block if is_plain(text, self.room) => Some(text.clone()),
                Style::Plain | Style::Block if may_be_value(text) && is_dedented(text) => unquoted(text),
                Style::Plain | Style::Block | Style::Quoted => Some(quoted(text)),
            },
            Value::Group(group) if group.is_list => {
                let items: Option<Vec<String>> = group.items.iter().map(|i| self.flat(&i.value)).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            Value::Group(group) if self.is_call(group) => {
                let only = group.items.first()?;
                let word = only.key.as_deref().unwrap_or("");
                let Value::Group(Group { is_list: false, items: fields, .. }) = &only.value else {
                    return Some(format!("{word}({})", self.flat(&only.value)?));
                };
                let mut parts = Vec::with_capacity(fields.len());
                for field in fields {
                    let key = key_text(field.key.as_deref().unwrap_or(""));
                    parts.push(format!("{key}: {}", self.flat(&field.value)?));
                }
                Some(format!("{word}({})", parts.join(", ")))
            }
            Value::Group(group) => self.flat_body(group),
        }
    }

    /// `{ a = 1  b { c = 2 } }`
    fn flat_body(&self, group: &Group) -> Option<String> {
        let mut parts = Vec::with_capacity(group.items.len());
        for item in &group.items {
            let key = key_text(item.key.as_deref().unwrap_or(""));
            if let Some(ranges) = ranges(item) {
                for range in &ranges.items {
                    let text = self.flat(&range.value)?;
                    parts.push(format!("layers {} {text}", range.key.as_deref().unwrap_or("")));
                }
                continue;
            }
            if let Some(own) = self::parts(item, self.room) {
                for part in &own.items {
                    parts.push(Wiring::of_part(part, self.room)?.flat()?);
                }
                continue;
            }
            if let Some(wiring) = Wiring::of(item, self.room) {
                parts.push(wiring.flat()?);
                continue;
            }
            parts.push(match &item.value {
                Value::Group(inner) if !inner.is_list && !self.is_call(inner) => {
                    match repeat_count(inner, self.room) {
                        Some((count, at)) => {
                            let mut rest = inner.clone();
                            rest.items.remove(at);
                            format!("{key} x {count} {}", self.flat_body(&rest)?)
                        }
                        None => format!("{key} {}", self.flat_body(inner)?),
                    }
                }
                value => format!("{key} = {}", self.flat(value)?),
            });
        }
        if parts.is_empty() {
            return Some("{}".to_owned());
        }
        Some(format!("{{ {} }}", parts.join("  ")))
    }

    /// Whether a map is written `part(...)`.
    fn is_call(&self, group: &Group) -> bool {
        let [only] = group.items.as_slice() else { return false };
        let word = only.key.as_deref().unwrap_or("");
        let named = !group.is_list && is_part_word(word) && (group.call || (self.is_part)(word));
        // A comment has no place between the word and its parenthesis.
        let alone =
            only.lead.is_empty() && only.tail.is_none() && group.head.is_none() && group.rest.is_empty();
        let inside = match &only.value {
            Value::Group(fields) if !fields.is_list => true,
            Value::Group(_) => only.is_bare(),
            Value::Null | Value::Delete | Value::Alias(_) => true,
            Value::Scalar { text, style, spread } => {
                let has_lines = *style == Style::Block && *spread && long_text(text, 0).is_some();
                let needs_lines = is_unquoted_value(text, *style) && self.flat(&only.value).is_none();
                !has_lines && !needs_lines && !text.contains('\n')
            }
        };
        named && alone && inside
    }
}

/// The ranges of layers under `ranges`, if all of them can be written `layers 0..3 { ... }`.
fn ranges(item: &Outline) -> Option<&Group> {
    let Value::Group(group) = &item.value else { return None };
    let fits = |i: &Outline| {
        i.key.as_deref().is_some_and(is_interval) && matches!(&i.value, Value::Group(g) if !g.is_list)
    };
    let ours = item.key.as_deref() == Some("ranges") && !group.is_list && !group.items.is_empty();
    (ours && group.items.iter().all(fits)).then_some(group)
}

/// The parts under `parts`, if all of them can be written `part NAME(x) { ... }`.
fn parts(item: &Outline, room: usize) -> Option<&Group> {
    let Value::Group(group) = &item.value else { return None };
    let ours = item.key.as_deref() == Some("parts") && !group.is_list && !group.items.is_empty();
    (ours && group.items.iter().all(|part| Wiring::of_part(part, room).is_some())).then_some(group)
}

/// A group without brackets of its own, such as all ranges or parts, with the comment at its end at the end of its last item, and
/// the comments that go above it. The last item has the same end, so a comment there is read as one of the group.
fn with_tail(group: &Group, item: &Outline) -> (Vec<String>, Group) {
    let mut group = group.clone();
    let mut above = item.tail.clone();
    if let Some(last) = group.items.last_mut().filter(|last| last.tail.is_none()) {
        last.tail = above.take();
    }
    (above.into_iter().chain(group.head.take()).collect(), group)
}

/// The parts of a document that has nothing else, if every one can be written as `part NAME(x) { ... }`.
fn library(group: &Group, room: usize) -> Option<&Group> {
    let [only] = group.items.as_slice() else { return None };
    let has_comments = only.tail.is_some() || !only.lead.iter().all(String::is_empty) || group.head.is_some();
    parts(only, room).filter(|parts| parts.head.is_none() && !has_comments)
}

/// The names of the parts that a document defines.
fn own_parts(root: &Outline) -> BTreeSet<String> {
    let Value::Group(group) = &root.value else { return BTreeSet::new() };
    let Some(Outline { value: Value::Group(parts), .. }) = group.get("parts") else { return BTreeSet::new() };
    parts.items.iter().filter_map(|part| part.key.clone()).collect()
}

/// The number of layers of a map, which is written as `x N` before its brace, and the index of its entry.
fn repeat_count(group: &Group, room: usize) -> Option<(String, usize)> {
    let at = group.items.iter().position(|i| i.key.as_deref() == Some("layers"))?;
    let item = group.items.get(at)?;
    match &item.value {
        // A count with comments above it stays an entry, where they have a place.
        Value::Scalar { text, style: Style::Plain, .. }
            if is_plain(text, room) && item.lead.iter().all(String::is_empty) =>
        {
            Some((text.clone(), at))
        }
        _ => None,
    }
}

/// The equation of a block or of a part, which is written in braces.
struct Wiring<'a> {
    /// What is before the parameters: `block`, or `part NAME`.
    word: String,
    params: Vec<&'a str>,
    text: &'a str,
    spread: bool,
}

impl<'a> Wiring<'a> {
    /// The equation under `block`, unless it is one word or does not fit into braces.
    fn of(item: &'a Outline, room: usize) -> Option<Self> {
        let Value::Scalar { text, style, .. } = &item.value else { return None };
        // The name of a wiring stays `block = pre_norm`.
        let word =
            *style == Style::Plain && is_plain(text, room) && !text.contains(['(', '+', '-', '*', '/', '^']);
        if item.key.as_deref() != Some("block") || word {
            return None;
        }
        Self::in_braces("block".to_owned(), equation::split_header, &item.value, room)
    }

    /// A part under `parts`, unless its name is no word or its text does not fit into braces.
    fn of_part(item: &'a Outline, room: usize) -> Option<Self> {
        let name = item.key.as_deref().filter(|name| is_word(name))?;
        Self::in_braces(format!("part {name}"), equation::split_part_header, &item.value, room)
    }

    fn in_braces(
        word: String,
        split: fn(&str) -> (Vec<&str>, &str),
        value: &'a Value,
        room: usize,
    ) -> Option<Self> {
        let Value::Scalar { text, style, spread } = value else { return None };
        if *style == Style::Quoted || text.trim().is_empty() {
            return None;
        }
        let (params, body) = split(text);
        let spread = *spread || body.trim().contains('\n') || body.contains('#') || body.contains("//");
        let wiring = Wiring { word, params, text: body, spread };
        // White space beyond ASCII at an end belongs to the text, but braces would lose it.
        let ends_plainly = body.trim() == body.trim_matches([' ', '\t', '\r', '\n']);
        // Deep in a document, the brackets of an equation and those around it may be more than the most that
        // are allowed, so the text is written between quotes there.
        let fits = room == ROOM
            && fits_braces(body)
            && ends_plainly
            && dedent(&wiring.body(0)) == body.trim_matches('\n');
        fits.then_some(wiring)
    }

    fn body(&self, indent: usize) -> String {
        let mut out = String::from("\n");
        for line in self.text.trim_matches('\n').split('\n') {
            if !line.is_empty() {
                out.push_str(&format!("{}{line}", " ".repeat(indent.saturating_add(2))));
            }
            out.push('\n');
        }
        out.push_str(&" ".repeat(indent));
        out
    }

    fn print(&self, indent: usize) -> String {
        match self.flat().filter(|f| !self.spread && indent.saturating_add(f.chars().count()) <= AUTHOR_WIDTH)
        {
            Some(flat) => flat,
            None => format!("{}({}) {{{}}}", self.word, self.params.join(", "), self.body(indent)),
        }
    }

    fn flat(&self) -> Option<String> {
        let one = !self.spread && !self.text.trim().contains('\n');
        one.then(|| format!("{}({}) {{ {} }}", self.word, self.params.join(", "), self.text.trim()))
    }
}

/// Whether a text may be a number or an expression, so that it must not be written in quotes.
fn is_unquoted_value(text: &str, style: Style) -> bool {
    style != Style::Quoted && may_be_value(text) && is_dedented(text)
}

/// A key as the DSL writes it, in quotes unless it is a word.
pub(super) fn key_text(key: &str) -> String {
    if is_key(key) { key.to_owned() } else { quoted(key) }
}

/// A text on lines of its own between `"""`, or between more quotation marks if it contains three in a row.
/// `None` if it would not read back the same.
fn long_text(text: &str, indent: usize) -> Option<String> {
    let quotes = text.split(|c| c != '"').map(str::len).max().unwrap_or(0);
    let marks = "\"".repeat(quotes.saturating_add(1).max(3));
    let mut lines = String::from("\n");
    for line in text.split('\n') {
        if !line.is_empty() {
            lines.push_str(&format!("{}{line}", " ".repeat(indent.saturating_add(2))));
        }
        lines.push('\n');
    }
    lines.push_str(&" ".repeat(indent));
    (is_literal(text) && dedent(&lines) == text).then(|| format!("{marks}{lines}{marks}"))
}

/// A text of one line between `"""`, which unlike `"` leave it a number or an expression. `None` if it would
/// not read back the same.
fn unquoted(text: &str) -> Option<String> {
    let one =
        !text.contains('\n') && !text.contains("\"\"\"") && !text.starts_with('"') && !text.ends_with('"');
    (one && is_literal(text)).then(|| format!("\"\"\"{text}\"\"\""))
}

/// Whether a text can be written without escapes.
fn is_literal(text: &str) -> bool {
    !text.chars().any(|c| is_hidden(c) || matches!(c, '\r' | '\u{feff}'))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_hidden(c) || c == '\u{feff}' => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
