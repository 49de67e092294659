//! Help for a fault in a setting of the command line: the YAML that it shows as the setting that can be typed.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::seek::{Parts, Search};
use super::value::{Field, Shape, SlotDoc};
use crate::diag::Diagnostic;
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::set::{Setting, argument_at, as_typed, in_path, parse_setting};
use crate::syntax::snippet::{Snippet, replaced};
use crate::syntax::tree::{Kind, Node};

/// The diagnostics about a document with these fields, with help for those in its settings as it is typed: in
/// `--set decoder.attention.rope=true`, `--set decoder.position=rotary` for `position: rotary`.
pub fn in_settings(
    found: Vec<Diagnostic>,
    sources: &SourceMap,
    fields: &[Field],
    tree: Option<&Node>,
) -> Vec<Diagnostic> {
    let mut reviser = Reviser::new(sources, fields, tree);
    found
        .into_iter()
        .map(|mut d| {
            reviser.revise(&mut d);
            d
        })
        .collect()
}

/// The diagnostic for a setting that cannot be parsed, which shows the setting as it is typed if its value is to be put in quotes:
/// a shell takes a pair of them away.
pub fn in_quotes(mut d: Diagnostic, option: &str, argument: &str) -> Diagnostic {
    let typed = || {
        let start = usize::try_from(d.span().start).ok()?;
        let (path, value) = argument.split_at_checked(start)?;
        if !path.trim_end().ends_with('=') || argument.contains(['\'', '"', '\\', '\n']) {
            return None;
        }
        let quoted = format!("{}\"{}\"", path.trim_end(), value.trim_end());
        let is_valid = parse_setting(&mut SourceMap::new(), ("", ""), &quoted).is_ok();
        is_valid.then(|| format!("`{option} '{quoted}'`"))
    };
    if let Some(typed) = typed() {
        d.help
            .iter_mut()
            .filter(|help| help.ends_with("in quotes"))
            .for_each(|help| *help += &format!(": {typed}"));
    }
    d
}

/// Changes the help of diagnostics one by one.
pub struct Reviser<'a> {
    sources: &'a SourceMap,
    document: Document<'a>,
    /// The settings so far, of which each may have many faults.
    settings: BTreeMap<SourceId, Option<Setting>>,
}

impl<'a> Reviser<'a> {
    /// For diagnostics about a document with these fields.
    pub fn new(sources: &'a SourceMap, fields: &'a [Field], tree: Option<&'a Node>) -> Self {
        Self { sources, document: Document { fields, tree }, settings: BTreeMap::new() }
    }

    /// Says the help of one about a setting as it is typed.
    pub fn revise(&mut self, d: &mut Diagnostic) {
        let Some((option, argument)) = argument_at(self.sources, d.span()) else { return };
        if let Some(several) = several(option, argument) {
            let is_in_value = argument.find('=').is_some_and(|equals| d.span().range().start > equals);
            // What a value is missing, or has too much of, only follows.
            if is_in_value {
                d.help.clear();
            }
            d.help.push(several);
            return;
        }
        // Parsed again: of the whole document, nothing tells which of its keys are those of the setting.
        let parsed = || parse_setting(&mut SourceMap::new(), ("", ""), argument).ok();
        let setting = self.settings.entry(d.span().source).or_insert_with(parsed);
        if let Some(around) = setting.as_ref().and_then(|setting| keys_around(setting, d.span())) {
            say_as_setting(d, option, around, &self.document);
        }
    }
}

/// What to write in place of an argument that is several settings with commas between them.
fn several(option: &str, argument: &str) -> Option<String> {
    let mut depth = 0usize;
    let mut is_quoted = false;
    let pieces = argument.split(|c: char| {
        match c {
            '"' | '\'' => is_quoted = !is_quoted,
            '(' | '[' | '{' => depth = depth.saturating_add(1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0 && !is_quoted
    });
    let is_key = |key: &str| {
        key.starts_with(|c: char| c.is_ascii_alphabetic())
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let typed = |piece: &str| {
        let (path, value) = piece.trim().split_once('=')?;
        let is_setting = path.split('.').all(is_key) && !value.is_empty() && !value.starts_with('=');
        if is_setting { as_typed(option, piece.trim()) } else { None }
    };
    let all: Vec<String> = pieces.map(typed).collect::<Option<_>>()?;
    (all.len() > 1).then(|| format!("repeat `{option}` for each setting: `{}`", all.join(" ")))
}

/// Says help as settings of this option, for a fault below these keys.
fn say_as_setting(d: &mut Diagnostic, option: &str, mut around: Vec<String>, document: &Document<'_>) {
    // The key of a map that only names its part, such as `type`, is no place.
    if document.at(&around).is_none() {
        around.pop();
    }
    for text in &mut d.help {
        // The last snippet was a map that became a setting, so that others of a list are such maps, too.
        let is_list = Cell::new(false);
        let said = replaced(text, |before, piece| {
            let is_next = is_list.replace(false) && matches!(before, ", " | " or ");
            let snippet = Snippet::of(piece)?;
            let path = if snippet.is_entry {
                document.place(&snippet, &around)?
            } else {
                // A map alone is to be written in place of what is wrong, or it is an example.
                is_list.set(is_next || before.ends_with("write "));
                is_list.get().then(|| around.clone())?
            };
            let (path, value) = settled(path, &snippet.node, piece)?;
            let written: Vec<String> = path.iter().map(|key| in_path(key)).collect();
            as_typed(option, &format!("{}={value}", written.join(".")))
        });
        if said != *text {
            // An argument has one notation alone.
            *text = said.strip_prefix("in YAML, ").map(str::to_owned).unwrap_or(said);
        }
    }
}

/// The keys of a setting above a place in it, including that of the value if the place is one. `None` if the place is in a
/// list, whose items have no keys.
fn keys_around(setting: &Setting, place: Span) -> Option<Vec<String>> {
    let has = |span: Span| span.range().start <= place.range().start && place.range().end <= span.range().end;
    let mut keys: Vec<String> = Vec::new();
    for (key, span) in &setting.path {
        if has(*span) {
            return Some(keys);
        }
        keys.push(key.clone());
    }
    let mut node = &setting.value;
    loop {
        match &node.kind {
            Kind::Map(entries) => {
                if entries.iter().any(|e| has(e.key_span)) {
                    return Some(keys);
                }
                let Some(e) = entries.iter().find(|e| has(e.value.span)) else { return Some(keys) };
                keys.push(e.key.clone());
                node = &e.value;
            }
            Kind::List(items) => return (!items.iter().any(|item| has(item.span))).then_some(keys),
            Kind::Scalar(_) | Kind::Null | Kind::Delete => return Some(keys),
        }
    }
}

/// A path with the keys of maps that have only one, and the value as it is written there.
fn settled<'t>(mut path: Vec<String>, node: &Node, text: &'t str) -> Option<(Vec<String>, &'t str)> {
    let mut node = node;
    while let Some([only]) = node.entries()
        // In a snippet `...` are further entries.
        && only.key != "..."
    {
        path.push(only.key.clone());
        node = &only.value;
    }
    let value = text.get(node.span.range())?;
    // Of a map with several keys outside of braces there is no value.
    let is_open = node.entries().is_some() && !value.starts_with('{');
    // A text of several lines begins with a sign, which a setting cannot.
    let is_text = !value.is_empty() && !value.starts_with(['|', '>']);
    (!path.is_empty() && is_text && !is_open).then_some((path, value))
}

/// What may be set.
struct Document<'a> {
    fields: &'a [Field],
    tree: Option<&'a Node>,
}

/// What is allowed at a path.
enum At {
    Record(Vec<Field>),
    Slot(SlotDoc),
    Other(Shape),
}

impl Document<'_> {
    /// The path of the map that takes the entry of a snippet, for a fault below some keys: the nearest one around it, or else
    /// the only one that is written further down.
    fn place(&self, snippet: &Snippet, around: &[String]) -> Option<Vec<String>> {
        let [first, ..] = snippet.node.entries()? else { return None };
        let key = first.key.as_str();
        let near = (0..=around.len()).rev().find_map(|count| {
            let above = around.get(..count)?;
            let at = self.at(above)?;
            takes(&at, key).then(|| above.to_vec())
        });
        near.or_else(|| {
            let tree = self.tree?;
            let search = Search { key, value: Some(&first.value), above: &[] };
            let given: Vec<Field> =
                self.fields.iter().filter(|f| tree.get(f.name).is_some()).copied().collect();
            let mut places = (1..=DEEPEST)
                .flat_map(|depth| search.below(&given, tree, depth, Parts::Present).collect::<Vec<_>>());
            let mut path = places.find(|place| place.path.last().map(String::as_str) == Some(key))?.path;
            path.pop();
            Some(path)
        })
    }

    fn at(&self, path: &[String]) -> Option<At> {
        path.iter().try_fold(At::Record(self.fields.to_vec()), |at, key| below(&at, key))
    }
}

/// How many levels below the document a key is looked for.
const DEEPEST: usize = 4;

fn of(shape: Shape) -> At {
    match shape {
        Shape::Record(_, fields) => At::Record(fields()),
        Shape::Slot(doc) => At::Slot(doc()),
        other => At::Other(other),
    }
}

/// What is allowed at a key.
fn below(at: &At, key: &str) -> Option<At> {
    // `norm1` is an instance of `norm`.
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let field = |fields: &[Field]| {
        let found = fields.iter().find(|f| f.name == key).or_else(|| fields.iter().find(|f| f.name == stem));
        found.map(|f| of((f.shape)()))
    };
    match at {
        // A record may be written as one part of one of its fields.
        At::Record(fields) => field(fields).or_else(|| {
            fields.iter().filter_map(|f| (f.shape)().slot()).find_map(|doc| below_part(&doc, key))
        }),
        At::Slot(doc) => {
            let implied = doc.parts.iter().filter(|p| Some(p.name) == doc.implied);
            below_part(doc, key).or_else(|| implied.into_iter().find_map(|p| field(&(p.fields)())))
        }
        At::Other(Shape::Map(inner)) => Some(of(inner())),
        At::Other(Shape::List(inner, _)) if key.parse::<usize>().is_ok() => Some(of(inner())),
        At::Other(_) => None,
    }
}

fn below_part(doc: &SlotDoc, key: &str) -> Option<At> {
    doc.parts.iter().find(|p| p.name == key).map(|p| At::Record((p.fields)()))
}

/// Whether a place takes an entry with this key.
fn takes(at: &At, key: &str) -> bool {
    let has = |fields: &[Field]| fields.iter().any(|f| f.name == key);
    let is_part = |doc: &SlotDoc| doc.parts.iter().any(|p| p.name == key);
    match at {
        At::Record(fields) => {
            has(fields) || fields.iter().filter_map(|f| (f.shape)().slot()).any(|doc| is_part(&doc))
        }
        At::Slot(doc) => {
            let mut implied = doc.parts.iter().filter(|p| Some(p.name) == doc.implied);
            is_part(doc) || implied.any(|p| has(&(p.fields)()))
        }
        At::Other(_) => false,
    }
}
