//! Snippets of YAML between the backticks of a line of help.

use super::tree::Node;
use super::{Notation, parse};
use crate::diag::{Severity, Sink};
use crate::source::SourceMap;

/// A snippet of YAML: either entries, such as `norm: rms_norm`, or a map to write as a value, such as `{norm: rms_norm}`.
#[derive(Clone, Debug)]
pub struct Snippet {
    /// The map, with places in the text of the snippet.
    pub node: Node,
    /// Whether the text consists of entries.
    pub is_entry: bool,
}

impl Snippet {
    /// The snippet that a text is; `None` if it is something else, such as an equation or a command.
    pub fn of(text: &str) -> Option<Self> {
        let begins =
            text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '"' || c == '.')).next()?;
        let is_entry = text.get(begins.len()..).is_some_and(|rest| rest.starts_with(": "));
        if !is_entry && !text.starts_with('{') {
            return None;
        }
        // In a map of its own: the text is ours, and no diagnostic about it may reach the author.
        let mut sources = SourceMap::new();
        let id = sources.add("", text);
        let mut sink = Sink::new();
        let node = parse(&sources, id, Notation::Yaml, &mut sink)?;
        let is_wrong = sink.iter().any(|d| d.severity == Severity::Error);
        (!is_wrong).then_some(Self { node, is_entry })
    }
}

/// A line of help with another text for every piece between backticks for which there is one, given the piece before it and
/// itself. What belongs in the recipe is left as it is, because that is always YAML.
pub fn replaced(help: &str, other: impl Fn(&str, &str) -> Option<String>) -> String {
    // Backticks come in pairs, so the text between them can be told by counting.
    let pieces: Vec<&str> = help.split('`').collect();
    let said = pieces.iter().enumerate().map(|(i, piece)| {
        let before = i.checked_sub(1).and_then(|i| pieces.get(i)).unwrap_or(&"");
        let of_recipe =
            pieces.get(i.saturating_add(1)).is_some_and(|next| next.starts_with(" in the recipe"));
        // The pieces with odd indices are between backticks.
        match i % 2 {
            1 if !of_recipe => other(before, piece).unwrap_or_else(|| (*piece).to_owned()),
            _ => (*piece).to_owned(),
        }
    });
    said.collect::<Vec<_>>().join("`")
}
