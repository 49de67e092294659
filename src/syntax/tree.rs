//! The tree to which both notations are parsed, with source places.
//!
//! A tree knows nothing about transformers: it consists of maps, lists and scalars with their places.
//! Scalars keep their source text, so the decoder of a field decides what `0755`, `yes` and `1e-5` mean,
//! and not a YAML schema. A part with fields, `layer_norm(eps: 1e-5)` in the DSL and `{layer_norm: {eps:
//! 1e-5}}` in YAML, is a map with one key; a part without fields is a scalar.

use std::ops::Range;

use crate::source::{SourceMap, Span};

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub kind: Kind,
    /// The place in the source.
    pub span: Span,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub enum Kind {
    /// No value: an empty value or `null`.
    Null,
    /// A word, number, expression or text, as written (unquoted).
    Scalar(Scalar),
    /// A list of values.
    List(Vec<Node>),
    /// Keys with values, in order; keys are distinct.
    Map(Vec<Entry>),
    /// `!delete` in YAML, `delete!` in the DSL: removes the key from the spec that is being extended.
    Delete,
}

/// A scalar's text and how it was written.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The text without quotes, with escapes resolved.
    pub text: String,
    /// How it was written.
    pub style: Style,
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `gelu`, `12`, `8/3 * d_model`
    Plain,
    /// `"a text"`: never a number or a word of the language.
    Quoted,
    /// `|` in YAML, a `block(x) { ... }` body in the DSL: text that keeps its lines.
    Block,
}

/// One key of a map and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key as written.
    pub key: String,
    /// The place of the key, without quotes.
    pub key_span: Span,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// A map node.
    pub fn map(entries: Vec<Entry>, span: Span) -> Self {
        Self { kind: Kind::Map(entries), span }
    }

    /// A plain scalar node.
    pub fn plain(text: impl Into<String>, span: Span) -> Self {
        Self { kind: Kind::Scalar(Scalar { text: text.into(), style: Style::Plain }), span }
    }

    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|e| &e.value)
    }

    /// The entry of a key, if this is a map that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|e| e.key == key),
            Kind::Null | Kind::Delete | Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// The entries, if this is a map.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            Kind::Null | Kind::Delete | Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// The text, if this is a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(s) => Some(&s.text),
            Kind::Null | Kind::Delete | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// A scalar node of any style.
    pub fn scalar(text: impl Into<String>, style: Style, span: Span) -> Self {
        Self { kind: Kind::Scalar(Scalar { text: text.into(), style }), span }
    }

    /// Whether both decode alike: equal, and quoted in the same places, since a quoted text is no number.
    pub fn is_written_as(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Scalar(a), Kind::Scalar(b)) => {
                a.text.trim() == b.text.trim() && (a.style == Style::Quoted) == (b.style == Style::Quoted)
            }
            (Kind::List(a), Kind::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_written_as(b))
            }
            (Kind::Map(a), Kind::Map(b)) => {
                a.len() == b.len()
                    && a.iter().all(|e| other.get(&e.key).is_some_and(|value| e.value.is_written_as(value)))
            }
            (Kind::Null | Kind::Delete | Kind::Scalar(_) | Kind::List(_) | Kind::Map(_), _) => self == other,
        }
    }

    /// How many nodes this is, itself and everything below.
    pub fn count(&self) -> usize {
        1 + match &self.kind {
            Kind::Map(entries) => entries.iter().map(|e| e.value.count()).sum(),
            Kind::List(items) => items.iter().map(Node::count).sum(),
            Kind::Null | Kind::Delete | Kind::Scalar(_) => 0,
        }
    }

    /// A description for messages: `a map`, `a list`, `nothing`, or the text between backticks.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".to_owned(),
            Kind::Scalar(s) => {
                let short: String = s.text.chars().take(40).collect();
                format!("`{short}`")
            }
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a map".to_owned(),
            Kind::Delete => "a deletion".to_owned(),
        }
    }
}

/// Trees are equal if they have the same content, regardless of places and quoting.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Null, Kind::Null) | (Kind::Delete, Kind::Delete) => true,
            (Kind::Scalar(a), Kind::Scalar(b)) => a.text.trim() == b.text.trim(),
            (Kind::List(a), Kind::List(b)) => a == b,
            (Kind::Map(a), Kind::Map(b)) => {
                a.len() == b.len() && a.iter().all(|e| b.iter().any(|o| o.key == e.key && o.value == e.value))
            }
            (Kind::Null | Kind::Delete | Kind::Scalar(_) | Kind::List(_) | Kind::Map(_), _) => false,
        }
    }
}

/// The place in the source of a byte range of a scalar's text.
///
/// The place is exact if the text is written in the source as it is: for plain scalars on one line, for
/// quoted ones without escapes, and line by line for block texts. Otherwise, and for a node that is not a
/// scalar, it is the whole node. A range at the end of the text may be empty; its place is then after the
/// last character.
pub fn locate(sources: &SourceMap, node: &Node, range: Range<usize>) -> Span {
    let exact = || {
        let text = node.text()?;
        let written = sources.get(node.span.source)?.text.get(node.span.range())?;
        let base = node.span.start as usize;
        if written == text {
            return Some((base + range.start, base + range.end));
        }
        let mut inner = written.chars();
        let quoted =
            matches!((inner.next(), inner.next_back()), (Some('"'), Some('"')) | (Some('\''), Some('\'')));
        if quoted && inner.as_str() == text {
            return Some((base + 1 + range.start, base + 1 + range.end));
        }
        let start = locate_in_lines(sources, node, range.start)?;
        let end = locate_in_lines(sources, node, range.end)?;
        Some((start, end.max(start)))
    };
    match exact() {
        Some((start, end)) => Span::new(node.span.source, start, end),
        None => node.span,
    }
}

/// The source offset of an offset in a block text, whose lines differ from those of the source only at
/// their start and end.
fn locate_in_lines(sources: &SourceMap, node: &Node, offset: usize) -> Option<usize> {
    let source = &sources.get(node.span.source)?.text;
    let first = node.span.start as usize;
    let line_start = source.get(..first)?.rfind('\n').map_or(0, |i| i + 1);
    let region = source.get(line_start..node.span.end as usize)?;
    let text = node.text()?;
    let leading = text.len() - text.trim_start_matches('\n').len();
    let mut text_at = leading;
    let mut source_at = line_start;
    let mut lines = region.split('\n');
    for line in text.get(leading..)?.split('\n') {
        let trimmed = line.trim_end();
        let Some(written) = lines.next() else {
            // The line break at the end of the text may be after the end of the node.
            return (trimmed.is_empty() && offset >= text_at).then_some(node.span.end as usize);
        };
        let content = written.trim_end();
        let begin = source_at + content.len().checked_sub(trimmed.len())?;
        if !content.ends_with(trimmed) {
            return None;
        }
        if offset <= text_at + line.len() {
            return Some(begin + (offset.max(text_at) - text_at).min(trimmed.len()));
        }
        text_at += line.len() + 1;
        source_at += written.len() + 1;
    }
    None
}
