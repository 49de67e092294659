//! The tree to which both notations are parsed, with source places.
//!
//! A tree knows nothing about transformers: it consists of maps, lists and scalars with their places.
//! Scalars keep their source text, so the decoder of a field decides what `0755`, `yes` and `1e-5` mean,
//! and not a YAML schema. A part with fields, `layer_norm(eps: 1e-5)` in the DSL and `{layer_norm: {eps:
//! 1e-5}}` in YAML, is a map with one key; a part without fields is a scalar.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use crate::source::{SourceMap, Span};

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The content of the node.
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
    /// The value of the key, null if nothing follows it.
    pub value: Node,
}

impl Node {
    /// A map with these entries, whose keys must be distinct.
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

    /// The only entry of a map that is written as a call, in the DSL: `window(4096)`.
    pub fn called(&self, sources: &SourceMap) -> Option<&Entry> {
        let entry = self.entries()?.first()?;
        let rest = sources.text(self.span).strip_prefix(&entry.key)?;
        rest.starts_with('(').then_some(entry)
    }

    /// The text, if this is a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(s) => Some(&s.text),
            Kind::Null | Kind::Delete | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// Whether the tree has at most this number of nodes. It stops counting when there are more, so that
    /// asking costs little however large the tree is.
    pub fn has_at_most(&self, most: usize) -> bool {
        self.nodes().nth(most).is_none()
    }

    /// This node and all those below it, in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = &Self> {
        let mut waiting = vec![self];
        std::iter::from_fn(move || {
            let node = waiting.pop()?;
            match &node.kind {
                Kind::Map(entries) => waiting.extend(entries.iter().map(|e| &e.value)),
                Kind::List(items) => waiting.extend(items),
                Kind::Null | Kind::Delete | Kind::Scalar(_) => {}
            }
            Some(node)
        })
    }

    /// A scalar node of any style.
    pub fn scalar(text: impl Into<String>, style: Style, span: Span) -> Self {
        Self { kind: Kind::Scalar(Scalar { text: text.into(), style }), span }
    }

    /// Whether both decode to the same value: equal, and quoted in the same places, since a quoted text is
    /// not a number.
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

    /// Whether both are the same text at the same places, so that they decode to the same value with the same
    /// diagnostics.
    pub fn is_same(&self, other: &Self) -> bool {
        let same_kind = match (&self.kind, &other.kind) {
            (Kind::Scalar(a), Kind::Scalar(b)) => a.style == b.style && a.text == b.text,
            (Kind::List(a), Kind::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
            }
            (Kind::Map(a), Kind::Map(b)) => {
                let same = |(a, b): (&Entry, &Entry)| {
                    a.key_span == b.key_span && a.key == b.key && a.value.is_same(&b.value)
                };
                a.len() == b.len() && a.iter().zip(b).all(same)
            }
            (Kind::Null | Kind::Delete | Kind::Scalar(_) | Kind::List(_) | Kind::Map(_), _) => self == other,
        };
        self.span == other.span && same_kind
    }

    /// A number that is the same for trees that decode to the same value ([`Node::is_written_as`]), so that
    /// equal ones among many are found without comparing each with each.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match &self.kind {
            Kind::Null => 0u8.hash(&mut hasher),
            Kind::Delete => 1u8.hash(&mut hasher),
            Kind::Scalar(s) => (2u8, s.text.trim(), s.style == Style::Quoted).hash(&mut hasher),
            Kind::List(items) => {
                (3u8, items.len()).hash(&mut hasher);
                items.iter().for_each(|item| item.digest().hash(&mut hasher));
            }
            Kind::Map(entries) => {
                // The order of keys has no meaning.
                let of_entry = |e: &Entry| {
                    let mut hasher = DefaultHasher::new();
                    (&e.key, e.value.digest()).hash(&mut hasher);
                    hasher.finish()
                };
                let sum = entries.iter().map(of_entry).fold(0u64, u64::wrapping_add);
                (4u8, entries.len(), sum).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// How many keys and values this is, itself and everything below.
    pub fn keys_and_values(&self) -> usize {
        let of_node = |node: &Node| match &node.kind {
            Kind::Map(entries) => entries.len().saturating_add(1),
            Kind::List(_) | Kind::Null | Kind::Delete | Kind::Scalar(_) => 1,
        };
        self.nodes().map(of_node).fold(0, usize::saturating_add)
    }

    /// How many nodes this is, itself and everything below.
    pub fn count(&self) -> usize {
        let below: usize = match &self.kind {
            Kind::Map(entries) => entries.iter().map(|e| e.value.count()).sum(),
            Kind::List(items) => items.iter().map(Node::count).sum(),
            Kind::Null | Kind::Delete | Kind::Scalar(_) => 0,
        };
        below.saturating_add(1)
    }

    /// A description for messages: `a map`, `an empty list`, `nothing`, or the text between backticks.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".to_owned(),
            Kind::Scalar(s) => {
                let short: String = s.text.chars().take(40).collect();
                format!("`{short}`")
            }
            Kind::List(items) if items.is_empty() => "an empty list".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(entries) if entries.is_empty() => "an empty map".to_owned(),
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

/// The places in the source of a scalar's text.
///
/// Exact where the text is in the source unchanged: plain scalars on one line, quoted ones without
/// escapes, and block texts line by line. Elsewhere, and for a node that is no scalar, the whole node.
#[derive(Clone, Debug)]
pub struct TextPlaces {
    span: Span,
    exact: Exact,
}

#[derive(Clone, Debug)]
enum Exact {
    /// The text begins at this offset of the source and is unchanged there.
    From(usize),
    /// The lines of a block text.
    Lines(Vec<BlockLine>),
    /// No part of the text has a place of its own.
    No,
}

/// A line of a block text. In the source, it differs only in its indentation and in the blanks at its end.
#[derive(Clone, Copy, Debug)]
struct BlockLine {
    /// The offset in the text at which it begins.
    at: usize,
    /// Its length in bytes, including the blanks at its end.
    whole: usize,
    /// Its length in bytes without these blanks.
    trimmed: usize,
    /// The offset in the source at which it begins.
    begin: usize,
}

impl TextPlaces {
    /// The places of a node's text.
    pub fn of(sources: &SourceMap, node: &Node) -> Self {
        Self { span: node.span, exact: Exact::of(sources, node).unwrap_or(Exact::No) }
    }

    /// The place of a byte range of the text. A range that ends where the text ends may be empty; it is then
    /// the place after the last character.
    pub fn span(&self, range: &Range<usize>) -> Span {
        let found = match &self.exact {
            Exact::From(base) => Some((base.saturating_add(range.start), base.saturating_add(range.end))),
            Exact::Lines(lines) => {
                let at = |offset: usize| in_lines(lines, offset, self.span.end as usize);
                at(range.start).zip(at(range.end)).map(|(start, end)| (start, end.max(start)))
            }
            Exact::No => None,
        };
        found.map_or(self.span, |(start, end)| Span::new(self.span.source, start, end))
    }
}

impl Exact {
    fn of(sources: &SourceMap, node: &Node) -> Option<Self> {
        let text = node.text()?;
        let source = &sources.get(node.span.source)?.text;
        let written = source.get(node.span.range())?;
        let base = node.span.start as usize;
        if written == text {
            return Some(Exact::From(base));
        }
        let mut inner = written.chars();
        let quoted =
            matches!((inner.next(), inner.next_back()), (Some('"'), Some('"')) | (Some('\''), Some('\'')));
        if quoted && inner.as_str() == text {
            return Some(Exact::From(base.saturating_add(1)));
        }
        // A block text, whose lines differ from the source's only in the blanks before and after them.
        let line_start = source.get(..base)?.rfind('\n').map_or(0, |i| i.saturating_add(1));
        let region = source.get(line_start..node.span.end as usize)?;
        let mut at = text.len().saturating_sub(text.trim_start_matches('\n').len());
        let mut source_at = line_start;
        let mut lines = Vec::new();
        let mut region = region;
        // In the DSL the parameters of an equation are before its brace, and in its text they are a line `(x, y):`. In
        // YAML they are written as such a line, which is read below as any other.
        if let Some((header, body)) = text.get(at..)?.split_once('\n')
            && !written.starts_with(header)
            && let Some(params) =
                header.strip_suffix(':').filter(|p| written.starts_with(*p) && p.starts_with('('))
        {
            lines.push(BlockLine { at, whole: header.len(), trimmed: params.len(), begin: base });
            at = at.saturating_add(header.len()).saturating_add(1);
            let (opening, rest) = written.split_once('{')?;
            let after = base.saturating_add(opening.len()).saturating_add(1);
            let blank = rest.len().saturating_sub(rest.trim_start().len());
            // The equation is on the line of the brace, or on the lines below.
            match rest.get(..blank)?.find('\n') {
                None if !body.contains('\n') => {
                    let begin = after.saturating_add(blank);
                    lines.push(BlockLine { at, whole: body.len(), trimmed: body.trim_end().len(), begin });
                    return Some(Exact::Lines(lines));
                }
                None => return None,
                Some(end) => {
                    source_at = after.saturating_add(end).saturating_add(1);
                    region = source.get(source_at..node.span.end as usize)?;
                }
            }
        }
        for (line, written) in text.get(at..)?.split('\n').zip(region.split('\n')) {
            let (trimmed, content) = (line.trim_end(), written.trim_end());
            if !content.ends_with(trimmed) {
                break;
            }
            let indent = content.len().saturating_sub(trimmed.len());
            let begin = source_at.saturating_add(indent);
            lines.push(BlockLine { at, whole: line.len(), trimmed: trimmed.len(), begin });
            at = at.saturating_add(line.len()).saturating_add(1);
            source_at = source_at.saturating_add(written.len()).saturating_add(1);
        }
        Some(Exact::Lines(lines))
    }
}

/// The source offset of a text offset; `end` is where the node ends.
fn in_lines(lines: &[BlockLine], offset: usize, end: usize) -> Option<usize> {
    let after = lines.partition_point(|line| line.at <= offset);
    let line = lines.get(after.saturating_sub(1))?;
    if offset <= line.at.saturating_add(line.whole) {
        return Some(line.begin.saturating_add(offset.saturating_sub(line.at).min(line.trimmed)));
    }
    // The line break that ends the text may be after the end of the node.
    (after == lines.len() && offset == line.at.saturating_add(line.whole).saturating_add(1)).then_some(end)
}
