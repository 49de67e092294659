//! A text as it is laid out: its tree together with comments, blank lines and what its author wrote on
//! one line.
//!
//! The printers of both notations work on this, so that a comment survives from either into the other.
//! [`Outline::of`] makes one of a bare tree, [`read`](super::comments::read) of a text. Every comment of the text
//! is in exactly one place of it.

use super::tree::{Kind, Node, Style};

/// A value with everything that stands around it.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The key, unless this is an item of a list or the whole text.
    pub key: Option<String>,
    /// Lines above it: comments with their marks, and empty lines.
    pub lead: Vec<String>,
    /// A comment behind it on its last line; for the whole text, the lines below it.
    pub tail: Option<String>,
    /// `&name` in YAML.
    pub anchor: Option<String>,
    /// Whether it begins on the line the entry before it ends on, which is a choice in the DSL.
    pub beside: bool,
    /// Whether the key is the `<<` with which YAML merges maps.
    pub is_merge: bool,
    /// The value.
    pub value: Value,
    /// Where the key, or the item, begins; nothing for what has no source.
    pub start: usize,
    /// Where the value ends.
    pub end: usize,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing.
    Null,
    /// `!delete`
    Delete,
    /// `*name` in YAML.
    Alias(String),
    /// A text.
    Scalar {
        /// The text, without quotes.
        text: String,
        /// How it was written.
        style: Style,
        /// Whether it was written on lines of its own.
        spread: bool,
    },
    /// A map or a list.
    Group(Group),
}

/// A map or a list.
#[derive(Clone, Debug)]
pub struct Group {
    /// Whether it is a list.
    pub is_list: bool,
    /// Its entries or items.
    pub items: Vec<Outline>,
    /// Whether its author wrote it on several lines; nothing if there is no author.
    pub spread: Option<bool>,
    /// Whether it was written as a part with its fields in parentheses.
    pub call: bool,
    /// A comment on the line that opens it.
    pub head: Option<String>,
    /// Lines behind the last item: comments and empty lines.
    pub rest: Vec<String>,
    /// Where it ends if a bracket closes it.
    pub close: Option<usize>,
}

impl Outline {
    /// A bare tree: no comments, and lines are broken as the printers see fit.
    pub fn of(node: &Node) -> Self {
        Self::build(node, &|_| None, &|_| false, &|_| None)
    }

    /// A tree with what `spread` says of each node, `call` of each map and `close` of each map and list.
    pub fn build(
        node: &Node,
        spread: &dyn Fn(&Node) -> Option<bool>,
        call: &dyn Fn(&Node) -> bool,
        close: &dyn Fn(&Node) -> Option<usize>,
    ) -> Self {
        let inner = |n: &Node| Self::build(n, spread, call, close);
        let group = |is_list: bool, items: Vec<Outline>| {
            let (spread, call, close) = (spread(node), call(node), close(node));
            Value::Group(Group { is_list, items, spread, call, head: None, rest: Vec::new(), close })
        };
        let value = match &node.kind {
            Kind::Null => Value::Null,
            Kind::Delete => Value::Delete,
            Kind::Scalar(s) => Value::Scalar {
                text: s.text.clone(),
                style: s.style,
                spread: spread(node).unwrap_or(s.style == Style::Block),
            },
            Kind::List(items) => group(true, items.iter().map(inner).collect()),
            Kind::Map(entries) => {
                let entry = |e: &super::tree::Entry| {
                    let start = e.key_span.start as usize;
                    Outline { key: Some(e.key.clone()), start, ..inner(&e.value) }
                };
                group(false, entries.iter().map(entry).collect())
            }
        };
        let range = node.span.range();
        let (start, end) = (range.start, range.end);
        Outline {
            key: None,
            lead: Vec::new(),
            tail: None,
            anchor: None,
            beside: false,
            is_merge: false,
            value,
            start,
            end,
        }
    }

    /// Whether it can stand on one line with others: no comments, no text of several lines.
    pub fn is_bare(&self) -> bool {
        self.lead.iter().all(String::is_empty)
            && self.tail.is_none()
            && match &self.value {
                Value::Null | Value::Delete | Value::Alias(_) => true,
                Value::Scalar { text, style, spread } => {
                    (*style != Style::Block || !*spread) && !text.contains('\n')
                }
                Value::Group(group) => group.is_bare(),
            }
    }

    /// How deep maps and lists nest in it.
    pub fn height(&self) -> usize {
        match &self.value {
            Value::Group(group) => 1 + group.items.iter().map(Outline::height).max().unwrap_or(0),
            Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } => 0,
        }
    }
}

impl Group {
    /// Whether it can stand on one line: no comments, no text of several lines.
    pub fn is_bare(&self) -> bool {
        self.head.is_none()
            && self.rest.iter().all(String::is_empty)
            && self.items.iter().all(Outline::is_bare)
    }

    /// Whether it should stand on one line if it fits there.
    pub fn wants_one_line(&self) -> bool {
        let height = self.items.iter().map(Outline::height).max().unwrap_or(0);
        self.is_bare() && !self.spread.unwrap_or(height > 2)
    }

    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&Outline> {
        self.items.iter().find(|i| i.key.as_deref() == Some(key))
    }
}
