//! A text with its layout: the tree together with comments, blank lines, and which entries the author wrote
//! on one line.
//!
//! The printers of both notations work on it, so that a comment survives conversion from either into the
//! other. [`Outline::of`] makes one from a bare tree, [`read`](super::comments::read) from a text. Every
//! comment of the text is in exactly one place of it.

use super::text::{comments_in, one_line};
use super::tree::{Kind, Node, Style};

/// A value with its comments and its layout.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The key; `None` for an item of a list and for the whole text.
    pub key: Option<String>,
    /// The lines above it: comments and blank lines.
    pub lead: Vec<String>,
    /// A comment after it on its last line; for the whole text, the lines below it.
    pub tail: Option<String>,
    /// The name of `&name`, under which YAML can repeat the value later.
    pub anchor: Option<String>,
    /// Whether it begins on the line on which the previous entry ends; in the DSL the author can choose
    /// that.
    pub is_on_same_line: bool,
    /// Whether the key is the `<<` with which YAML merges maps.
    pub is_merge: bool,
    /// The value, which for a group consists of outlines.
    pub value: Value,
    /// Where the key or the item begins; 0 if it has no source.
    pub start: usize,
    /// Where the value ends: the offset after its last byte.
    pub end: usize,
}

/// The value of an entry, with its layout.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value: `null`, or nothing after the key.
    Null,
    /// `!delete` in YAML, `delete!` in the DSL.
    Delete,
    /// The name of `*name`, with which YAML repeats an anchored value.
    Alias(String),
    /// A word, a number, an expression or a text.
    Scalar {
        /// The text, without quotes.
        text: String,
        /// How it was written, which says whether a printer may quote it.
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
    /// Whether the author wrote it on several lines; `None` if it has no source.
    pub spread: Option<bool>,
    /// Whether it was written as a part with its fields in parentheses.
    pub call: bool,
    /// A comment on the line that opens it.
    pub head: Option<String>,
    /// The lines after the last item: comments and blank lines.
    pub rest: Vec<String>,
    /// Where it ends, if a bracket closes it.
    pub close: Option<usize>,
}

impl Outline {
    /// The outline of a bare tree: without comments; the printers choose the line breaks.
    pub fn of(node: &Node) -> Self {
        Self::build(node, &|_| None, &|_| false, &|_| None)
    }

    /// The outline of a tree, where `spread`, `call` and `close` determine these fields of each map and
    /// list.
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
                // Without a source, a text that once was on lines of its own stays so.
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
        Outline::bare(value, start, end)
    }

    /// A value at a place, without comments and without a key.
    pub fn bare(value: Value, start: usize, end: usize) -> Self {
        Self {
            key: None,
            lead: Vec::new(),
            tail: None,
            anchor: None,
            is_on_same_line: false,
            is_merge: false,
            value,
            start,
            end,
        }
    }

    /// Moves the comments of expressions out of them, to the lines above, wherever `is_lost` says that a
    /// notation cannot write an expression with its comments.
    pub fn hoist(&mut self, is_lost: &dyn Fn(&str, Style) -> bool) {
        match &mut self.value {
            Value::Group(group) => group.items.iter_mut().for_each(|item| item.hoist(is_lost)),
            Value::Scalar { text, style, spread } if is_lost(text, *style) => {
                self.lead.extend(comments_in(text));
                *text = one_line(text);
                (*style, *spread) = (Style::Plain, false);
            }
            Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } => {}
        }
    }

    /// Whether it can share a line with others: it has no comments and no text of several lines.
    pub fn is_bare(&self) -> bool {
        // Blank lines alone do not need a line: they are dropped if the group fits on one.
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

    /// Takes a place of `room` for each value in it. Returns whether there were enough.
    fn takes_values(&self, room: &mut usize) -> bool {
        let Some(left) = room.checked_sub(1) else { return false };
        *room = left;
        match &self.value {
            Value::Group(group) => group.items.iter().all(|item| item.takes_values(room)),
            Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } => true,
        }
    }

    /// The depth of the maps and lists in it.
    pub fn height(&self) -> usize {
        match &self.value {
            Value::Group(group) => {
                group.items.iter().map(Outline::height).max().unwrap_or(0).saturating_add(1)
            }
            Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } => 0,
        }
    }
}

impl Group {
    /// Whether it can be written on one line: it has no comments and no text of several lines.
    pub fn is_bare(&self) -> bool {
        self.head.is_none()
            && self.rest.iter().all(String::is_empty)
            && self.items.iter().all(Outline::is_bare)
    }

    /// Whether it should be written on one line if it fits into this number of characters.
    pub fn wants_one_line(&self, width: usize) -> bool {
        // First, because the rest looks at everything below, which would be done again at each level of a deep text: each
        // value takes at least one character.
        let mut room = width;
        if !self.items.iter().all(|item| item.takes_values(&mut room)) || !self.is_bare() {
            return false;
        }
        // Without an author's choice, what is nested deeper than two levels is easier to read on several
        // lines.
        let height = self.items.iter().map(Outline::height).max().unwrap_or(0);
        !self.spread.unwrap_or(height > 2)
    }

    /// The entry with this key.
    pub fn get(&self, key: &str) -> Option<&Outline> {
        self.items.iter().find(|i| i.key.as_deref() == Some(key))
    }
}
