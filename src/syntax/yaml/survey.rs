//! Finds everything that a spec may not contain in the YAML parser's events, before a tree is built.
//!
//! The memory is proportional to the text: the size of aliases is computed without expanding them, so a
//! text that would grow without bound is refused before it does.

use std::collections::BTreeMap;

use serde_yaml::granit_parser::{self, Event, Parser, Span as ParserSpan, StructureStyle, Tag};

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceId, Span};
use crate::syntax::text::{Limits, MAX_DEPTH, MAX_KEY, too_many_values};

use super::fault;
use super::rules::{MAX_ALIASES, most_expanded};

/// Reports everything that a text may not contain, and returns whether a tree can be built from it.
pub fn survey(limits: Limits, text: &str, id: SourceId, sink: &mut Sink) -> bool {
    let mut survey = Survey {
        limits,
        text,
        id,
        sink,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        nodes: 0,
        expanded: 0,
        aliases: 0,
        documents: 0,
        sound: true,
    };
    let options = granit_parser::options! { emit_comments: false };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, place) = match event {
            Ok(found) => found,
            Err(fault) => {
                // A bracket that is never closed is noticed at the end of the text; the author wants its
                // beginning.
                let open = survey.open.last().map(|o| o.start);
                let outermost = survey.open.iter().find(|o| o.flow).map(|o| o.start);
                survey.sink.push(fault::syntax(&fault, text, id, open, outermost));
                // The parser cannot go on after a fault, so nothing more is found in this run.
                return false;
            }
        };
        if !survey.event(&event, &place) {
            return false;
        }
    }
    survey.sound
}

/// The size of an anchored value with all its aliases expanded.
#[derive(Clone, Copy)]
struct Weight {
    nodes: usize,
    depth: usize,
}

impl Weight {
    const LEAF: Weight = Weight { nodes: 1, depth: 0 };
}

/// A map or list that is not closed yet.
struct Open {
    start: usize,
    anchor: usize,
    weight: Weight,
    /// The keys of a map with their places; `None` for a list.
    keys: Option<BTreeMap<String, Span>>,
    /// Whether the next node of a map is a key.
    key_next: bool,
    /// Whether it is written in brackets.
    flow: bool,
}

struct Survey<'a, 's> {
    limits: Limits,
    text: &'a str,
    id: SourceId,
    sink: &'s mut Sink,
    open: Vec<Open>,
    /// Every anchor seen so far; it has no weight until its value is complete.
    anchors: BTreeMap<usize, Option<Weight>>,
    nodes: usize,
    expanded: usize,
    aliases: usize,
    documents: usize,
    /// Whether a tree can be built: no fault has been found that leaves a value unknown.
    sound: bool,
}

impl Survey<'_, '_> {
    /// Handles one event, and returns whether to go on.
    fn event(&mut self, event: &Event<'_>, place: &ParserSpan) -> bool {
        let range = place.byte_range().unwrap_or(0..0);
        let span = Span::within(self.id, self.text, range.start, range.end);
        match event {
            Event::DocumentStart(..) => {
                self.documents = self.documents.saturating_add(1);
                if self.documents == 1 {
                    return true;
                }
                let message = "a second document begins here, but a file contains one spec";
                let at = fault::word_at(self.text, self.id, range.start);
                self.sink.push(
                    Diagnostic::error(Code::SeveralDocuments, at, message)
                        .help("put it in a file of its own, or use `sweep:` for variants"),
                );
                false
            }
            Event::Scalar(value, style, anchor, tag) => {
                let plain = *style == granit_parser::ScalarStyle::Plain;
                self.tag(tag.as_deref(), place);
                if *anchor > 0 {
                    self.anchors.insert(*anchor, Some(Weight::LEAF));
                }
                if *anchor > 0 && self.open.last().is_some_and(|o| o.key_next) {
                    self.bad_key(span, "a value with an anchor");
                }
                if plain && self.open.last().is_some_and(|o| o.flow) {
                    self.cut(value, span);
                }
                if self.takes_key() {
                    if plain && super::rules::is_null(value) {
                        self.bad_key(span, "nothing")
                    } else {
                        self.key(value, span)
                    }
                }
                // Two bounds: on the values of the text, and on those of the tree, in which aliases are
                // expanded.
                self.count(span) && self.weigh(Weight::LEAF, span)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.tag(tag.as_deref(), place);
                self.begin(*anchor, range.start, None, *style == StructureStyle::Flow)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.tag(tag.as_deref(), place);
                self.begin(*anchor, range.start, Some(BTreeMap::new()), *style == StructureStyle::Flow)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.end();
                true
            }
            Event::Alias(target) => self.alias(*target, span),
            // The events of the stream itself, and events that the options switch off.
            _ => true,
        }
    }

    /// Whether the node that begins here is a key; the node after it is then a value.
    fn takes_key(&mut self) -> bool {
        match self.open.last_mut() {
            Some(Open { keys: Some(_), key_next, .. }) => std::mem::replace(key_next, !*key_next),
            Some(_) | None => false,
        }
    }

    /// Inside of brackets a comma ends a value, so `max(1, 2)` would become two values.
    fn cut(&mut self, value: &str, span: Span) {
        let after = self.text.get(span.end as usize..).unwrap_or("").trim_start();
        if value.matches('(').count() <= value.matches(')').count() || !after.starts_with(',') {
            return;
        }
        let message = format!("the value `{value}` ends at the comma, before its bracket is closed");
        let help = "inside `{ }` and `[ ]` a comma ends the value: put this one on its own line";
        self.sink.push(Diagnostic::error(Code::Syntax, span, message).help(help));
        self.sound = false;
    }

    fn key(&mut self, key: &str, span: Span) {
        if key.chars().count() > MAX_KEY {
            let message = format!("a key is at most {MAX_KEY} characters long");
            self.sink.push(Diagnostic::error(Code::BadKey, span, message));
            self.sound = false;
            return;
        }
        let Some(keys) = self.open.last_mut().and_then(|o| o.keys.as_mut()) else { return };
        // Duplicates do not end the survey: the first value counts, and the rest of the spec is still
        // checked.
        match keys.get(&canonical(key)) {
            None => {
                keys.insert(canonical(key), span);
            }
            Some(first) => {
                let message = format!("`{key}` is given twice");
                let diagnostic = Diagnostic::error(Code::DuplicateKey, span, message).here("again here");
                self.sink.push(diagnostic.label(*first, "first given here").help("keep one of the two"));
            }
        }
    }

    fn bad_key(&mut self, span: Span, what: &str) {
        let message = format!("a key is a word, not {what}");
        self.sink.push(Diagnostic::error(Code::BadKey, span, message).help("write `key: value`"));
        self.sound = false;
    }

    fn begin(
        &mut self,
        anchor: usize,
        start: usize,
        keys: Option<BTreeMap<String, Span>>,
        flow: bool,
    ) -> bool {
        let span = fault::word_at(self.text, self.id, start);
        if self.takes_key() {
            self.bad_key(span, if keys.is_some() { "a map" } else { "a list" });
        }
        if self.open.len() >= MAX_DEPTH {
            // Later passes recurse on what is nested, so nothing more of this text is read.
            return self.too_deep(span);
        }
        if anchor > 0 {
            // Without a weight until it is complete, so that an alias inside of its own value is noticed.
            self.anchors.insert(anchor, None);
        }
        let key_next = keys.is_some();
        self.open.push(Open { start, anchor, weight: Weight::LEAF, keys, key_next, flow });
        self.count(span) && self.expand(1, span)
    }

    fn end(&mut self) {
        let Some(closed) = self.open.pop() else { return };
        if closed.anchor > 0 {
            self.anchors.insert(closed.anchor, Some(closed.weight));
        }
        if let Some(outer) = self.open.last_mut() {
            outer.weight.nodes = outer.weight.nodes.saturating_add(closed.weight.nodes);
            outer.weight.depth = outer.weight.depth.max(closed.weight.depth.saturating_add(1));
        }
    }

    fn alias(&mut self, target: usize, span: Span) -> bool {
        self.aliases = self.aliases.saturating_add(1);
        if self.takes_key() {
            self.bad_key(span, "an alias");
        }
        if self.aliases > MAX_ALIASES {
            let message = format!("the text uses more than {MAX_ALIASES} aliases");
            self.sink.push(Diagnostic::error(Code::TooLarge, span, message));
            return false;
        }
        let name = self.text.get(span.range()).unwrap_or("*");
        match self.anchors.get(&target).copied() {
            Some(Some(weight)) => self.count(span) && self.weigh(weight, span),
            Some(None) => {
                let message = format!("`{name}` is inside the value it refers to");
                self.sink.push(Diagnostic::error(Code::BadAlias, span, message));
                self.sound = false;
                true
            }
            None => {
                let message = format!("nothing before `{name}` is marked with this name");
                self.sink.push(Diagnostic::error(Code::BadAlias, span, message));
                self.sound = false;
                true
            }
        }
    }

    /// Counts a node of the text. Returns whether to go on.
    fn count(&mut self, span: Span) -> bool {
        self.nodes = self.nodes.saturating_add(1);
        let most = self.limits.nodes;
        if self.nodes <= most {
            return true;
        }
        self.sink.push(too_many_values(self.limits, span));
        false
    }

    /// Adds a complete node to the map or list that contains it.
    fn weigh(&mut self, weight: Weight, span: Span) -> bool {
        if self.open.len().saturating_add(weight.depth) > MAX_DEPTH {
            return self.too_deep(span);
        }
        if let Some(outer) = self.open.last_mut() {
            outer.weight.nodes = outer.weight.nodes.saturating_add(weight.nodes);
            outer.weight.depth = outer.weight.depth.max(weight.depth.saturating_add(1));
        }
        self.expand(weight.nodes, span)
    }

    /// Counts nodes of the tree. Returns whether to go on.
    fn expand(&mut self, nodes: usize, span: Span) -> bool {
        self.expanded = self.expanded.saturating_add(nodes);
        let most = most_expanded(self.limits);
        if self.expanded <= most {
            return true;
        }
        let message = format!("with its aliases expanded the text contains more than {most} keys and values");
        self.sink.push(Diagnostic::error(Code::TooLarge, span, message));
        false
    }

    fn too_deep(&mut self, span: Span) -> bool {
        let message = format!("maps and lists are nested more than {MAX_DEPTH} deep");
        self.sink.push(Diagnostic::error(Code::TooDeep, span, message).help("a spec needs about ten levels"));
        false
    }

    /// Refuses every tag except `!delete` and those that state the kind that a node has anyway.
    fn tag(&mut self, tag: Option<&Tag>, place: &ParserSpan) {
        let Some(tag) = tag else { return };
        // Others of YAML's own, such as `!!int`, would decide what a text means, and here its field does
        // that.
        let core = tag.handle() == "tag:yaml.org,2002:" && matches!(tag.suffix(), "str" | "map" | "seq");
        let own = tag.handle() == "!" && tag.suffix() == "delete";
        if core || own {
            return;
        }
        let range = place.tag_span().and_then(|s| s.byte_range()).or(place.byte_range()).unwrap_or(0..0);
        let written = self.text.get(range.clone()).unwrap_or("").to_owned();
        let message = format!("trafoc does not know the tag `{written}`");
        let help = match tag.suffix() {
            "include" => "build on another spec with `extends: base.yaml`",
            "merge" | "int" | "float" | "bool" | "null" | "binary" => "leave it out",
            _ => "leave it out, or put a text that begins with `!` in quotes",
        };
        let span = Span::within(self.id, self.text, range.start, range.end);
        self.sink.push(Diagnostic::error(Code::UnknownTag, span, message).help(help));
        self.sound = false;
    }
}

/// Keys are equal if they are spelled the same or are the same integer, such as `0x0B` and `11`.
fn canonical(key: &str) -> String {
    let digits = |prefix: &str, radix: u32| {
        key.strip_prefix(prefix).and_then(|d| u128::from_str_radix(&d.replace('_', ""), radix).ok())
    };
    match digits("0x", 16).or_else(|| digits("0o", 8)) {
        Some(number) => number.to_string(),
        None => key.to_owned(),
    }
}
