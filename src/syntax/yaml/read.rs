//! YAML text → tree, through serde.
//!
//! [`Raw`] accepts every kind of value from the deserializer. The text of each scalar is then taken from
//! the source, at the place of the value. Aliases arrive expanded, with the place of the value they refer
//! to. The text has passed the survey; the limits here only repeat its checks.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_yaml::{Location, NonFiniteFloatPolicy, Spanned, Tagged};

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceId, Span};
use crate::syntax::text::{Limits, MAX_DEPTH, dedent};
use crate::syntax::tree::{Entry, Kind, Node, Style};

use super::fault;
use super::rules::{MAX_ALIASES, most_expanded};

/// Builds the tree of a text in which the survey found no errors.
pub fn read(limits: Limits, text: &str, id: SourceId, sink: &mut Sink) -> Option<Node> {
    let most = most_expanded(limits);
    let options = serde_yaml::options! {
        budget: serde_yaml::budget! {
            // The survey allows one less, so its message is the one an author sees.
            max_depth: MAX_DEPTH + 1,
            max_nodes: most.saturating_add(1),
            max_events: most.saturating_mul(4),
            max_aliases: MAX_ALIASES,
            max_anchors: most,
            max_documents: 1,
            // A spec may repeat one small anchor in every block; what aliases may add in all is bounded
            // above.
            enforce_alias_anchor_ratio: false,
        },
        emit_comments: false,
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: most.saturating_mul(4) },
        // The survey has reported duplicate keys; the rest of the spec is still worth checking.
        duplicate_keys: DuplicateKeyPolicy::FirstWins,
        // `map` merges them, since it can report a `<<` of something else than a map with its place.
        merge_keys: MergeKeyPolicy::AsOrdinary,
        // What a scalar is taken for does not matter, as its text comes from the source: the parser only must
        // not refuse one.
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    };
    match serde_yaml::from_str_with_options::<Item>(text, options) {
        Ok(item) => {
            let mut builder = Builder { text, id, sink };
            Some(builder.node(item))
        }
        Err(error) => {
            // What the survey has missed, if anything, is reported in the parser's words.
            let at = error.location().and_then(|l| offset(&l)).unwrap_or(0);
            let message = "the text cannot be read as YAML";
            let detail = error.without_snippet().to_string();
            sink.push(Diagnostic::error(Code::Syntax, fault::word_at(text, id, at), message).help(detail));
            None
        }
    }
}

/// A value with its place and its tag.
type Item = Spanned<Tagged<Raw>>;

/// A value as serde delivers it. Numbers and booleans are not kept, because their text is.
enum Raw {
    Null,
    Typed,
    Text(String),
    List(Vec<Item>),
    Map(Vec<(Item, Item)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map, a list or a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    // Of numbers and booleans only the place matters: whether `no` or `0755` is one is for its field to say.
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Raw, E> {
        Ok(Raw::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

/// The byte offset at which a location begins.
fn offset(location: &Location) -> Option<usize> {
    location.span().byte_offset().and_then(|o| usize::try_from(o).ok())
}

struct Builder<'a, 's> {
    text: &'a str,
    id: SourceId,
    sink: &'s mut Sink,
}

impl Builder<'_, '_> {
    fn node(&mut self, item: Item) -> Node {
        // Where it is defined and not where it is used: an alias shows the value it refers to.
        let start = offset(&item.defined).unwrap_or(0).min(self.text.len());
        let len = item.defined.span().byte_len().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let end = start.saturating_add(len).min(self.text.len());
        let Tagged(raw, tag) = item.value;
        let node = match raw {
            // The reader takes `null` in any letters.
            Raw::Null if tag.is_none() && self.is_word(start, end) => {
                Node::plain(self.text.get(start..end).unwrap_or("").trim(), self.span(start, end))
            }
            Raw::Null => Node { kind: Kind::Null, span: self.span(start, end) },
            Raw::Typed => Node::plain(self.text.get(start..end).unwrap_or("").trim(), self.span(start, end)),
            Raw::Text(text) => self.scalar(text, start, end, tag.is_some()),
            Raw::List(items) => {
                let items: Vec<Node> = items.into_iter().map(|i| self.node(i)).collect();
                let span = self.closed(start, items.iter().map(|i| i.span));
                Node { kind: Kind::List(items), span }
            }
            Raw::Map(pairs) => self.map(pairs, start),
        };
        if tag.as_deref() == Some("!delete") { self.deleted(node) } else { node }
    }

    /// Whether a word that the reader takes for null is a text here.
    fn is_word(&self, start: usize, end: usize) -> bool {
        let written = self.text.get(start..end).unwrap_or("").trim();
        written.eq_ignore_ascii_case("null") && !super::rules::is_null(written)
    }

    fn scalar(&self, text: String, start: usize, end: usize, tagged: bool) -> Node {
        let written = self.text.get(start..end).unwrap_or("");
        let style = match written.chars().next() {
            // A quotation mark at the start of a block text belongs to the text.
            Some(_) if begins_block(self.text, start) => Style::Block,
            Some('"' | '\'') => Style::Quoted,
            // `!!str 12` is a text.
            Some(_) if tagged => Style::Quoted,
            Some(_) => Style::Plain,
            None => Style::Quoted,
        };
        let end = start.saturating_add(written.trim_end().len());
        let text = if style == Style::Block { dedent(&format!("\n{text}")) } else { text };
        Node::scalar(text, style, self.span(start, end))
    }

    fn map(&mut self, pairs: Vec<(Item, Item)>, start: usize) -> Node {
        let mut entries: Vec<Entry> = Vec::with_capacity(pairs.len());
        let mut merged: Vec<Node> = Vec::new();
        let mut last = None;
        for (key, value) in pairs {
            let (key, value) = (self.node(key), self.node(value));
            last = Some(value.span);
            let (key, value) = self.spaced(key, value);
            let is_merge = matches!(&key.kind, Kind::Scalar(s) if s.style == Style::Plain && s.text == "<<");
            match key.kind {
                Kind::Scalar(_) if is_merge => merged.push(value),
                Kind::Scalar(scalar) => {
                    // The place of a key is its word, without the quotes around it.
                    let quote = usize::from(scalar.style == Style::Quoted && key.span.range().len() > 1);
                    let range = key.span.range();
                    let key_span =
                        self.span(range.start.saturating_add(quote), range.end.saturating_sub(quote));
                    entries.push(Entry { key: scalar.text, key_span, value });
                }
                // The survey refuses texts with such keys.
                Kind::Null | Kind::Delete | Kind::List(_) | Kind::Map(_) => {}
            }
        }
        let places = entries.iter().map(|e| e.key_span.to(e.value.span)).chain(last);
        let span = self.closed(start, places);
        // A map's own keys win, wherever in it the `<<` is.
        for source in merged {
            self.merge(&mut entries, source, true);
        }
        Node::map(entries, span)
    }

    /// The key and the value of an entry in which no space follows a colon: of `{heads:4}`, all is taken for the key, and
    /// of lines of `heads:4` below a key, all for a text. That is reported, and read as it was meant. Any other entry
    /// stays as it is.
    fn spaced(&mut self, key: Node, value: Node) -> (Node, Node) {
        let is_absent = matches!(value.kind, Kind::Null) && value.span.range().is_empty();
        if is_absent && let Some(entry) = self.entry(&key) {
            let key_node = Node::plain(&entry.key, entry.key_span);
            self.unspaced(&entry);
            return (key_node, entry.value);
        }
        let entries = self.lines(&value).iter().map(|line| self.entry(line)).collect::<Option<Vec<Entry>>>();
        let Some(entries) = entries.filter(|entries| !entries.is_empty()) else { return (key, value) };
        entries.iter().for_each(|entry| self.unspaced(entry));
        (key, Node::map(entries, value.span))
    }

    /// The lines of a value that begins on a line of its own.
    fn lines(&self, value: &Node) -> Vec<Node> {
        let range = value.span.range();
        let before = self.text.get(..range.start).unwrap_or("").trim_end_matches(' ');
        if !matches!(&value.kind, Kind::Scalar(s) if s.style == Style::Plain) || !before.ends_with('\n') {
            return Vec::new();
        }
        let mut at = range.start;
        let lines = self.text.get(range).unwrap_or("").split_inclusive('\n').map(|line| {
            let word = line.trim();
            let start = at.saturating_add(line.find(word).unwrap_or(0));
            at = at.saturating_add(line.len());
            Node::plain(word, self.span(start, start.saturating_add(word.len())))
        });
        lines.collect()
    }

    /// The entry that a word like `heads:4` was meant as.
    fn entry(&self, word: &Node) -> Option<Entry> {
        let Kind::Scalar(scalar) = &word.kind else { return None };
        let colon = fault::unspaced_colon(&scalar.text).filter(|_| scalar.style == Style::Plain)?;
        let (key, value) = (scalar.text.get(..colon)?, scalar.text.get(colon.saturating_add(1)..)?);
        let range = word.span.range();
        let at = range.start.saturating_add(colon);
        let value = Node::plain(value, self.span(at.saturating_add(1), range.end));
        Some(Entry { key: key.to_owned(), key_span: self.span(range.start, at), value })
    }

    /// Reports the missing space of an entry.
    fn unspaced(&mut self, entry: &Entry) {
        let colon = entry.key_span.range().end;
        let help = format!("write `{}: {}`", entry.key, entry.value.text().unwrap_or_default());
        let place = self.span(colon, colon.saturating_add(1));
        self.sink.push(Diagnostic::error(Code::Syntax, place, fault::UNSPACED).help(help));
    }

    /// `<<: *base`: adds those entries whose keys do not exist yet.
    fn merge(&mut self, entries: &mut Vec<Entry>, source: Node, lists: bool) {
        match source.kind {
            Kind::Map(more) => {
                for entry in more {
                    if !entries.iter().any(|e| e.key == entry.key) {
                        entries.push(entry);
                    }
                }
            }
            // A list of maps, as the merge key's specification allows; but no list in that list.
            Kind::List(items) if lists => {
                for item in items {
                    self.merge(entries, item, false);
                }
            }
            Kind::List(_) | Kind::Null | Kind::Delete | Kind::Scalar(_) => {
                let message =
                    format!("`<<` needs a map whose entries it adds, but this is {}", source.describe());
                let help = "write `<<: *name`, where `&name` marks a map";
                self.sink.push(Diagnostic::error(Code::BadKey, source.span, message).help(help));
            }
        }
    }

    /// A node that is marked `!delete`, which must be empty.
    fn deleted(&mut self, node: Node) -> Node {
        let empty = match &node.kind {
            Kind::Null | Kind::Delete => true,
            Kind::Scalar(scalar) => scalar.text.is_empty(),
            Kind::List(items) => items.is_empty(),
            Kind::Map(entries) => entries.is_empty(),
        };
        if !empty {
            let message = "`!delete` removes a key, so no value can follow it";
            let help = "to replace the value by another one, leave `!delete` out";
            self.sink.push(Diagnostic::error(Code::UnknownTag, node.span, message).help(help));
            return node;
        }
        // The place of an empty value is empty, so the tag before it is shown.
        let start = node.span.start as usize;
        let before = self.text.get(..start).unwrap_or("").trim_end();
        let span = match before.strip_suffix("!delete") {
            Some(head) => self.span(head.len(), before.len()),
            None => node.span,
        };
        Node { kind: Kind::Delete, span }
    }

    /// The place of a map or list, from its first byte to its closing bracket or to the end of its last
    /// value.
    fn closed(&self, start: usize, parts: impl Iterator<Item = Span>) -> Span {
        let open = self.text.get(start..).and_then(|t| t.chars().next());
        let first = fault::word_at(self.text, self.id, start);
        let close = match open {
            Some('[') => ']',
            Some('{') => '}',
            _ => '\0',
        };
        // The values of aliases are elsewhere, before this node.
        let ends = parts.filter(|p| p.start as usize >= start).map(|p| p.end as usize).max();
        let end = ends.unwrap_or(if close == '\0' { first.end as usize } else { start.saturating_add(1) });
        if close == '\0' {
            return self.span(start, end.max(start));
        }
        // A comma and comments may be between the last value and the bracket.
        let mut at = end;
        while let Some(c) = self.text.get(at..).and_then(|t| t.chars().next()) {
            let len = match c {
                c if c == close => return self.span(start, at.saturating_add(1)),
                '#' => self.text.get(at..).and_then(|t| t.find('\n')).unwrap_or(1),
                c => c.len_utf8(),
            };
            at = at.saturating_add(len);
        }
        self.span(start, end)
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::within(self.id, self.text, start, end)
    }
}

/// Whether the text at `start` is the content of a block scalar: the nearest line above that is not blank
/// ends with a header such as `|` or `>-`.
fn begins_block(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or("");
    // Only white space is looked through, so that each of many values in one long line takes no longer than the first. YAML
    // ends lines with either character. A line of other white space, such as a wide space, is a line of text.
    if !before.trim_end_matches([' ', '\t']).ends_with(['\n', '\r']) {
        return false;
    }
    let head = before.trim_end_matches([' ', '\t', '\n', '\r']);
    let line = head.rsplit(['\n', '\r']).next().unwrap_or("");
    let line = line.split(" #").next().unwrap_or("").trim_end();
    let word = line.rsplit([' ', '\t']).next().unwrap_or("");
    let mut letters = word.chars();
    matches!(letters.next(), Some('|' | '>')) && letters.all(|c| matches!(c, '+' | '-' | '1'..='9'))
}
