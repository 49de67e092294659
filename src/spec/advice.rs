//! Advice in the author's notation: the YAML that a diagnostic suggests is written in the DSL for an author
//! of the DSL.

use super::model;
use crate::diag::{Code, Diagnostic};
use crate::field::as_setting::in_settings;
use crate::source::{SourceId, SourceMap};
use crate::syntax::snippet::{self, Snippet};
use crate::syntax::tree::{Entry, Kind, Node};
use crate::syntax::{Notation, print};

/// The diagnostics about a spec as its author writes it: those about its text in its notation, those about settings as they are
/// typed.
pub fn as_written(
    found: Vec<Diagnostic>,
    sources: &SourceMap,
    (id, notation): (SourceId, Notation),
    tree: Option<&Node>,
) -> Vec<Diagnostic> {
    let found = match notation {
        Notation::Dsl => in_dsl(found, sources, id),
        Notation::Yaml => found,
    };
    in_settings(found, sources, &model::fields(), tree)
}

/// The diagnostics about a source in the DSL, with the snippets of their help in it. Syntax errors are about
/// that notation already.
pub fn in_dsl(diagnostics: Vec<Diagnostic>, sources: &SourceMap, id: SourceId) -> Vec<Diagnostic> {
    let said = |mut d: Diagnostic| {
        if d.span().source == id && d.code != Code::Syntax {
            // Fields in parentheses are written as in YAML.
            let is_call = d.code == Code::MissingKey && is_call(sources.text(d.span()));
            d.help = d.help.iter().map(|text| converted(text, is_call)).collect();
        }
        d
    };
    diagnostics.into_iter().map(said).collect()
}

/// Whether a text is a part with its fields, `window(sinks: 4)`, or the fields alone.
fn is_call(text: &str) -> bool {
    let name = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("");
    text.get(name.len()..).is_some_and(|rest| rest.starts_with('('))
}

/// A line of help in which every snippet of YAML is converted. With `in_call`, a snippet is a field in parentheses.
fn converted(help: &str, in_call: bool) -> String {
    snippet::replaced(help, |_, piece| {
        let Snippet { node, is_entry } = Snippet::of(piece)?;
        Some(match is_entry {
            true if in_call => fields(node.entries()?),
            true => body(node.entries()?),
            false => value(&node),
        })
    })
}

/// The entries of a map as they are written between braces, on one line.
fn body(entries: &[Entry]) -> String {
    let entry = |e: &Entry| match (e.key.as_str(), &e.value.kind) {
        // In a snippet `...` are further entries; YAML reads it as a key without a value.
        ("...", Kind::Null) => "...".to_owned(),
        // Ranges have a syntax of their own in the DSL.
        ("ranges", Kind::Map(ranges)) => {
            let one = |e: &Entry| format!("layers {} {}", e.key, braced(&e.value));
            ranges.iter().map(one).collect::<Vec<_>>().join("  ")
        }
        (key, Kind::Map(_)) => match part(&e.value) {
            Some(part) => format!("{} = {part}", print::dsl_key(key)),
            None => format!("{} {}", print::dsl_key(key), braced(&e.value)),
        },
        (key, _) => format!("{} = {}", print::dsl_key(key), value(&e.value)),
    };
    entries.iter().map(entry).collect::<Vec<_>>().join("  ")
}

/// The entries of a map as they are written between parentheses.
fn fields(entries: &[Entry]) -> String {
    let entry = |e: &Entry| match (e.key.as_str(), &e.value.kind) {
        ("...", Kind::Null) => "...".to_owned(),
        (key, _) => format!("{}: {}", print::dsl_key(key), value(&e.value)),
    };
    entries.iter().map(entry).collect::<Vec<_>>().join(", ")
}

fn braced(node: &Node) -> String {
    match node.entries() {
        Some([]) | None => "{}".to_owned(),
        Some(entries) => format!("{{ {} }}", body(entries)),
    }
}

/// A value as the DSL writes it after `=` and in lists.
fn value(node: &Node) -> String {
    match &node.kind {
        Kind::Map(_) => part(node).unwrap_or_else(|| braced(node)),
        Kind::List(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(", ")),
        Kind::Delete => "delete!".to_owned(),
        Kind::Scalar(_) | Kind::Null => super::explain::flow(node),
    }
}

/// A map whose only key is a part: `rms_norm(eps: 1e-6)`, `window(1024)`.
fn part(node: &Node) -> Option<String> {
    let [only] = node.entries()? else { return None };
    if !super::is_part(&only.key) {
        return None;
    }
    Some(match &only.value.kind {
        Kind::Null => only.key.clone(),
        Kind::Map(entries) if entries.is_empty() => only.key.clone(),
        Kind::Map(entries) => format!("{}({})", only.key, fields(entries)),
        Kind::Scalar(_) | Kind::List(_) | Kind::Delete => format!("{}({})", only.key, value(&only.value)),
    })
}
