//! The spanned tree both notations parse to.
//!
//! A tree knows nothing of transformers: maps, lists and scalars with their places. Scalars keep
//! their source text, so `0755`, `yes` and `1e-5` mean what the decoder of a field says and not what
//! a YAML schema guessed. A part with fields, `layer_norm(eps: 1e-5)` in the DSL and
//! `{layer_norm: {eps: 1e-5}}` in YAML, is a map with one key; a part without, a scalar.

use crate::source::Span;

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub kind: Kind,
    /// Where it stands.
    pub span: Span,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Nothing: an empty value or `null`.
    Null,
    /// A word, number, expression or text, as written (unquoted).
    Scalar(Scalar),
    /// Values in order.
    List(Vec<Node>),
    /// Keys with values in order; keys are distinct.
    Map(Vec<Entry>),
}

/// A scalar's text and how it was written.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The text, without quotes, escapes resolved.
    pub text: String,
    /// How it was written.
    pub style: Style,
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `gelu`, `12`, `8/3 * d_model`
    Plain,
    /// `"a text"`: never a number or a word of the language
    Quoted,
    /// `|` in YAML, a `block(x) { ... }` body in the DSL: text whose lines keep their places
    Block,
}

/// One key of a map and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key as written.
    pub key: String,
    /// Where the key stands.
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
            Kind::Null | Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// The entries, if this is a map.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            Kind::Null | Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// The text, if this is a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(s) => Some(&s.text),
            Kind::Null | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// What this is, in an author's words: `a map`, `a list`, `nothing`, `the text 'x'`.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".to_owned(),
            Kind::Scalar(s) => {
                let short: String = s.text.chars().take(40).collect();
                format!("`{short}`")
            }
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a map".to_owned(),
        }
    }
}

/// Trees are equal when they say the same, wherever it stands and however it was quoted.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Null, Kind::Null) => true,
            (Kind::Scalar(a), Kind::Scalar(b)) => a.text.trim() == b.text.trim(),
            (Kind::List(a), Kind::List(b)) => a == b,
            (Kind::Map(a), Kind::Map(b)) => {
                a.len() == b.len()
                    && a.iter().all(|e| b.iter().any(|o| o.key == e.key && o.value == e.value))
            }
            (Kind::Null | Kind::Scalar(_) | Kind::List(_) | Kind::Map(_), _) => false,
        }
    }
}
