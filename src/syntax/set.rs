//! `--set decoder.layers=24`: parses a path and a value, and applies them to a spec.
//!
//! A setting has the effect of a file that extends the spec and contains `decoder: {layers: 24}`. Each
//! setting is a source of its own, `--set #1`, so that a diagnostic can point into it. The value is YAML.

use std::collections::BTreeSet;

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceId, SourceMap, Span};

use super::merge::{IsAlong, Layers, Parts};
use super::text::{Limits, MAX_DEPTH};
use super::tree::{Entry, Kind, Node};
use super::yaml;

/// The parsed argument of one `--set`.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The keys from the root down, with their places; a number is an index into a list.
    pub path: Vec<(String, Span)>,
    /// The value that is set.
    pub value: Node,
}

/// Shows the path of the setting, `decoder.layers`.
impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<&str> = self.path.iter().map(|(key, _)| key.as_str()).collect();
        f.write_str(&keys.join("."))
    }
}

/// Parses the argument of one `--set`. A key that contains a dot must be in double quotes.
pub fn parse_set(sources: &mut SourceMap, argument: &str) -> Result<Setting, Diagnostic> {
    parse_setting(sources, ("--set", "decoder.layers=24"), argument)
}

/// Parses the argument of an option with another name, such as `--with` for recipes; messages show
/// `example`.
pub fn parse_setting(
    sources: &mut SourceMap,
    (option, example): (&str, &str),
    argument: &str,
) -> Result<Setting, Diagnostic> {
    let named = format!("{option} #");
    // Settings of a later call are numbered on, so that no two sources have the same name.
    let last = sources.iter().rev().find_map(|(_, source)| source.name.strip_prefix(&named)?.parse().ok());
    let number = last.unwrap_or(0usize).saturating_add(1);
    let id = sources.add(format!("{named}{number}"), argument);
    let mut sink = Sink::new();
    if !super::text::check(sources, id, &mut sink) {
        return Err(first(sink, id));
    }
    let fail = |start: usize, end: usize, message: &str| {
        Diagnostic::error(Code::BadSetting, Span::new(id, start, end), message)
            .help(format!("write it like `{option} {example}`"))
    };
    let mut path = Vec::new();
    let mut at = 0;
    let equals = loop {
        let rest = argument.get(at..).unwrap_or("");
        let Some((key, len)) = first_key(rest) else {
            return Err(fail(at, argument.len(), "a quote is not closed"));
        };
        let start = if rest.starts_with('"') { at.saturating_add(1) } else { at };
        // `a..b=1`, `.a=1` and `=1` would otherwise set a key without a name.
        if key.trim().is_empty() {
            return Err(fail(at, at.saturating_add(len), "a key is missing in the path"));
        }
        if path.len() >= MAX_DEPTH {
            let message = format!("the path has more than {MAX_DEPTH} keys, and no spec nests deeper");
            return Err(Diagnostic::error(
                Code::TooDeep,
                Span::new(id, start, start.saturating_add(key.len())),
                message,
            ));
        }
        // Shells and people put spaces around `=`.
        path.push((key.trim().to_owned(), Span::new(id, start, start.saturating_add(key.len()))));
        at = at.saturating_add(len);
        match argument.get(at..).and_then(|r| r.chars().next()) {
            Some('.') => at = at.saturating_add(1),
            Some('=') => break at,
            Some(_) => return Err(fail(at, argument.len(), "expected `.` or `=` here")),
            None => return Err(fail(0, argument.len(), "expected `=` followed by a value")),
        }
    };
    if let [(key, span)] = path.as_slice()
        && option == "--set"
        && READ_BEFORE.contains(&key.as_str())
    {
        return Err(too_late(key, *span));
    }
    // The value is parsed at its own offset, with spaces instead of the path, so that its places are right.
    let mut alone = SourceMap::new();
    let padded =
        " ".repeat(equals.saturating_add(1)) + argument.get(equals.saturating_add(1)..).unwrap_or("");
    let inner = alone.add("", padded);
    match yaml::parse(Limits::SPEC, &alone, inner, &mut sink) {
        Some(mut value) if !sink.has_errors() => {
            relocate(&mut value, id);
            // An empty value has no place, so the `=` is shown.
            if matches!(value.kind, Kind::Null) {
                value.span = Span::new(id, equals, equals.saturating_add(1));
            }
            Ok(Setting { path, value })
        }
        Some(_) | None => Err(first(sink, id)),
    }
}

/// The first key of a path with dots and the length of its text: a word, anything between quotation marks, or a range of layers
/// with its own dots, `0..2`. `None` if a quotation mark is not closed.
fn first_key(path: &str) -> Option<(&str, usize)> {
    if let Some(quoted) = path.strip_prefix('"') {
        let end = quoted.find('"')?;
        return Some((quoted.get(..end)?, end.saturating_add(2)));
    }
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let first = digits(path);
    let range = path.get(first..).and_then(|rest| rest.strip_prefix("..")).filter(|_| first > 0);
    let end = match range {
        Some(last) => first.saturating_add(2).saturating_add(digits(last)),
        None => path.find(['.', '=']).unwrap_or(path.len()),
    };
    Some((path.get(..end)?, end))
}

/// The keys of a path with dots.
pub fn keys_of(path: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut rest = path;
    while let Some((key, len)) = first_key(rest) {
        keys.push(key);
        match rest.get(len..) {
            None | Some("") => return keys,
            Some(after) if let Some(below) = after.strip_prefix('.') => rest = below,
            Some(_) => break,
        }
    }
    // Anything else is no path as a setting has it.
    path.split('.').collect()
}

/// A key as a path has it: in quotation marks if it would be read as several.
pub fn in_path(key: &str) -> String {
    // After a range without an end, the dot of the next key would be hard to see.
    let is_one = keys_of(key) == [key] && !key.contains('=') && !key.ends_with('.');
    if is_one { key.to_owned() } else { format!("\"{key}\"") }
}

/// The options whose arguments people write as settings. That of `--head` becomes one.
const TYPED: [&str; 2] = ["--set", "--with"];

/// The option and the argument of the setting in which a place is, such as `--set`; `None` for a place in a file.
pub fn argument_at(sources: &SourceMap, place: Span) -> Option<(&str, &str)> {
    let source = sources.get(place.source)?;
    let (option, _) = source.name.split_once(" #").filter(|(option, _)| TYPED.contains(option))?;
    Some((option, &source.text))
}

/// An option with its argument as a shell takes them. `None` if that takes more than a pair of quotes.
pub fn as_typed(option: &str, argument: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=.,_-+/".contains(c);
    if argument.chars().all(is_plain) {
        return Some(format!("{option} {argument}"));
    }
    // A shell would take the quotes of a range away.
    (!argument.contains(['\'', '"', '\n'])).then(|| format!("{option} '{argument}'"))
}

/// The keys of a spec that name other files, which are read before anything is set.
const READ_BEFORE: [&str; 2] = ["extends", "uses"];

/// The error for a key that names files where it comes too late for them to be read.
pub fn too_late(key: &str, place: Span) -> Diagnostic {
    let message = format!("the files under `{key}` are read with the spec, before anything is set");
    Diagnostic::error(Code::WrongKind, place, message).help(format!("write `{key}` into the spec itself"))
}

/// Applies settings to a tree, one after the other: the last one counts where several give a key. Alternatives of each other
/// are all kept, and refused where the tree is decoded. A setting that cannot be applied is reported and left out.
pub fn apply(tree: Node, settings: &[Setting], parts: &dyn Parts, sink: &mut Sink) -> Node {
    let mut layers = Layers::new(tree);
    // A setting that trafoc itself adds has no place in a text.
    let places = settings.iter().map(|setting| setting.value.span).filter(|place| *place != Span::default());
    let own: BTreeSet<SourceId> = places.map(|place| place.source).collect();
    let is_along = |at: Span| own.contains(&at.source);
    for setting in settings {
        if let Err(diagnostic) = descend(&mut layers, &setting.path, setting, &is_along, parts, sink) {
            sink.push(diagnostic);
        }
    }
    layers.into_node()
}

fn descend(
    layers: &mut Layers,
    path: &[(String, Span)],
    setting: &Setting,
    is_along: IsAlong<'_>,
    parts: &dyn Parts,
    sink: &mut Sink,
) -> Result<(), Diagnostic> {
    let Some(((key, span), rest)) = path.split_first() else {
        layers.set(&setting.value, is_along, parts, sink);
        return Ok(());
    };
    let place = layers.span();
    if let Some(items) = layers.items() {
        let count = items.len();
        if let Some(item) = key.parse::<usize>().ok().and_then(|i| items.get_mut(i)) {
            return descend(item, rest, setting, is_along, parts, sink);
        }
        let message = format!("`{key}` is not an item of this list, which has {count}");
        let diagnostic = Diagnostic::error(Code::BadSetting, *span, message).label(place, "the list");
        return Err(match count {
            0 => diagnostic.help("give the whole list: `[a, b]`"),
            _ => diagnostic.help(format!("items are counted from 0 to {}", count.saturating_sub(1))),
        });
    }
    // Merging replaces a list as a whole, so the way to an item of one is walked key by key.
    if let Some(value) = layers.value(key)
        && reaches_list(value, rest)
    {
        return descend(value, rest, setting, is_along, parts, sink);
    }
    // Everything except lists is merged as a map with these keys would be.
    let whole = path.iter().rev().fold(setting.value.clone(), |value, (key, key_span)| {
        let span = key_span.to(value.span);
        Node::map(vec![Entry { key: key.clone(), key_span: *key_span, value }], span)
    });
    layers.set(&whole, is_along, parts, sink);
    Ok(())
}

/// Whether the path from here reaches a list before its last key.
fn reaches_list(layers: &mut Layers, path: &[(String, Span)]) -> bool {
    let Some(((key, _), rest)) = path.split_first() else { return false };
    layers.items().is_some() || layers.value(key).is_some_and(|value| reaches_list(value, rest))
}

/// Moves the places of a tree to another source, at the same offsets.
fn relocate(node: &mut Node, id: SourceId) {
    node.span.source = id;
    match &mut node.kind {
        Kind::Map(entries) => {
            for entry in entries {
                entry.key_span.source = id;
                relocate(&mut entry.value, id);
            }
        }
        Kind::List(items) => items.iter_mut().for_each(|i| relocate(i, id)),
        Kind::Null | Kind::Delete | Kind::Scalar(_) => {}
    }
}

/// The first diagnostic, with its places moved to the source of the setting.
fn first(sink: Sink, id: SourceId) -> Diagnostic {
    // An argument is one line, for which one diagnostic is enough.
    let found = sink.into_sorted().into_iter().next();
    let mut diagnostic = found.unwrap_or_else(|| {
        Diagnostic::error(Code::BadSetting, Span::new(id, 0, 0), "the value cannot be parsed")
    });
    for label in &mut diagnostic.labels {
        label.span.source = id;
    }
    diagnostic
}
