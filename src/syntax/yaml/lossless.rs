//! A YAML text with its layout: comments, anchors and aliases are kept where they are.
//!
//! The tree of [`super::parse`] has its aliases expanded, which a formatter must not do. Only for texts in
//! which the survey found no errors.

use serde_yaml::granit_parser::{self, Event, Parser, ScalarStyle, StructureStyle, Tag};

use crate::syntax::comment::Comment;
use crate::syntax::outline::{Group, Outline, Value};
use crate::syntax::text::dedent;
use crate::syntax::tree::Style;

/// The outline of a text without its comments, and the comments.
pub struct Lossless {
    /// Keys, values, anchors and aliases.
    pub outline: Outline,
    /// The comments, in order.
    pub comments: Vec<Comment>,
}

/// Parses a text that the survey has found to be valid.
pub fn read(text: &str) -> Lossless {
    // A formatter must not lose a comment, however many there are; the length of the text bounds them.
    let options =
        granit_parser::options! { emit_anchor_events: true, max_buffered_comment_events: usize::MAX };
    let mut stack: Vec<Open> = Vec::new();
    let mut comments = Vec::new();
    let mut root = None;
    for found in Parser::new_from_str_with_options(text, options) {
        // The survey has found no error, so none is expected here.
        let Ok((event, place)) = found else { break };
        let range = place.byte_range().unwrap_or(0..0);
        let slice = text.get(range.clone()).unwrap_or("");
        let done = match event {
            Event::Comment(..) => {
                comments.push(Comment { text: slice.trim_end().to_owned(), start: range.start });
                None
            }
            Event::Anchor(_, name) => {
                match stack.last_mut() {
                    // The anchor of a map or list is reported right after its beginning.
                    Some(open) if open.fresh => {
                        open.anchor = Some(name.to_string());
                    }
                    // That of a scalar is reported after the scalar.
                    Some(open) => open.mark_last(&name),
                    None => {
                        if let Some(Outline { anchor, .. }) = &mut root {
                            *anchor = Some(name.to_string());
                        }
                    }
                }
                None
            }
            Event::Scalar(value, style, _, tag) => {
                let end = range.start.saturating_add(slice.trim_end().len());
                Some(Outline::bare(scalar(&value, style, tag.as_deref()), range.start, end))
            }
            // The event has only a number, so the name is read from the text.
            Event::Alias(_) => {
                let name = slice.trim_start_matches('*').to_owned();
                Some(Outline::bare(Value::Alias(name), range.start, range.end))
            }
            Event::SequenceStart(style, _, tag) => {
                stack.push(Open::new(true, style, range.start, is_delete(tag.as_deref())));
                None
            }
            Event::MappingStart(style, _, tag) => {
                stack.push(Open::new(false, style, range.start, is_delete(tag.as_deref())));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => stack.pop().map(|open| open.close(text, range.end)),
            // The beginning and end of the stream and of its document.
            _ => None,
        };
        let Some(done) = done else { continue };
        match stack.last_mut() {
            Some(open) => open.add(done),
            None => root = Some(done),
        }
    }
    let outline = root.unwrap_or_else(|| Outline::bare(Value::Null, 0, 0));
    Lossless { outline, comments }
}

fn is_delete(tag: Option<&Tag>) -> bool {
    tag.is_some_and(|t| t.handle() == "!" && t.suffix() == "delete")
}

fn scalar(value: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    if is_delete(tag) {
        return Value::Delete;
    }
    let style = match style {
        ScalarStyle::Plain if tag.is_none() && super::rules::is_null(value) => return Value::Null,
        // `!!str 12` is a text, as `"12"` is.
        ScalarStyle::Plain if tag.is_some() => Style::Quoted,
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    };
    // A text below `|` means the same in both notations only without the blanks that `dedent` removes.
    let text = if style == Style::Block { dedent(&format!("\n{value}")) } else { value.to_owned() };
    Value::Scalar { text, style, spread: style == Style::Block }
}

/// A map or list that is not closed yet.
struct Open {
    is_list: bool,
    flow: bool,
    start: usize,
    delete: bool,
    anchor: Option<String>,
    /// Whether nothing inside of it has been seen.
    fresh: bool,
    items: Vec<Outline>,
    /// The key whose value comes next.
    key: Option<Outline>,
}

impl Open {
    fn new(is_list: bool, style: StructureStyle, start: usize, delete: bool) -> Self {
        let flow = style == StructureStyle::Flow;
        Open { is_list, flow, start, delete, anchor: None, fresh: true, items: Vec::new(), key: None }
    }

    fn add(&mut self, child: Outline) {
        self.fresh = false;
        if self.is_list {
            self.items.push(child);
            return;
        }
        match self.key.take() {
            None => self.key = Some(child),
            Some(Outline { value: Value::Scalar { text, style, .. }, start, .. }) => {
                let is_merge = text == "<<" && style == Style::Plain;
                self.items.push(Outline { key: Some(text), is_merge, start, ..child });
            }
            // A valid text has no other keys.
            Some(_) => {}
        }
    }

    /// Gives an anchor to the last child.
    fn mark_last(&mut self, name: &str) {
        let last = if self.key.is_some() { self.key.as_mut() } else { self.items.last_mut() };
        if let Some(last) = last {
            last.anchor = Some(name.to_owned());
        }
    }

    fn close(mut self, text: &str, end: usize) -> Outline {
        // Comments and blank lines are above the dash of an item, and not between it and its value.
        if self.is_list && !self.flow {
            for item in &mut self.items {
                item.start = dash(text, item.start);
            }
        }
        if self.delete {
            return Outline::bare(Value::Delete, self.start, end);
        }
        // Without brackets the parser reports an end only where the next token begins, below any comments.
        let end = if self.flow { end } else { self.items.last().map_or(self.start, |i| i.end) };
        let spread = !self.flow || text.get(self.start..end).is_some_and(|t| t.contains('\n'));
        let group = Group {
            is_list: self.is_list,
            items: self.items,
            spread: Some(spread),
            call: false,
            head: None,
            rest: Vec::new(),
            close: self.flow.then_some(end),
        };
        Outline { anchor: self.anchor, ..Outline::bare(Value::Group(group), self.start, end) }
    }
}

/// The dash of the item that begins at `start`: the last one on its line or, if it is on its own line after
/// a tag, an anchor or `|`, on the line above.
fn dash(text: &str, start: usize) -> usize {
    let mut end = start;
    loop {
        let before = text.get(..end).unwrap_or("");
        let begin = before.rfind('\n').map_or(0, |i| i.saturating_add(1));
        let line = before.get(begin..).unwrap_or("");
        // On a line above, a dash may be in a comment.
        let code = if end == start { line } else { line.split(" #").next().unwrap_or("") };
        let is_dash = |at: usize| {
            let alone = |c: Option<char>| c.is_none_or(char::is_whitespace);
            alone(code.get(..at).and_then(|c| c.chars().next_back()))
                && alone(code.get(at.saturating_add(1)..).and_then(|c| c.chars().next()))
        };
        let found = code.match_indices('-').map(|(at, _)| at).rfind(|at| is_dash(*at));
        match found {
            Some(at) if !code.trim_start().starts_with('#') => return begin.saturating_add(at),
            Some(_) | None if begin == 0 => return start,
            Some(_) | None => end = begin.saturating_sub(1),
        }
    }
}
