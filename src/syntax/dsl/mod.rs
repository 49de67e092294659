//! Parses the DSL to a tree.
//!
//! First, `brackets` checks brackets and quotes, which bounds the depth; `repair` finds which bracket is wrong.
//! Then the pest grammar in `grammar/trafo.pest` matches the text, `build` creates the tree, and
//! `fault` turns parse errors into diagnostics.

mod brackets;
mod build;
mod fault;
mod grammar;
mod repair;

pub(super) use brackets::string_len;

use std::num::NonZeroUsize;
use std::sync::Once;

use pest::Parser;

use crate::diag::Sink;
use crate::source::{SourceId, SourceMap};

use super::text;
use super::tree::Node;
use grammar::{Grammar, Rule};

/// The most steps that the parser may take; an ordinary text needs about twenty per character.
const MAX_STEPS: usize = 5_000_000;

/// Parses a DSL source to a tree.
pub fn parse(sources: &SourceMap, id: SourceId, sink: &mut Sink) -> Option<Node> {
    // pest has one limit for the whole process.
    static LIMIT: Once = Once::new();
    LIMIT.call_once(|| pest::set_call_limit(NonZeroUsize::new(MAX_STEPS)));
    if !text::check(sources, id, sink) {
        return None;
    }
    let source = sources.get(id)?;
    if !brackets::check(&source.text, id, sink) {
        return None;
    }
    match Grammar::parse(Rule::file, &source.text) {
        Ok(pairs) => build::tree(pairs, &source.text, id, sink),
        Err(error) => {
            sink.push(fault::syntax(&error, &source.text, id));
            None
        }
    }
}

/// Whether a text can be written between the braces of a `block(x) { ... }`.
pub fn fits_braces(wiring: &str) -> bool {
    // A comment on the last line would hide the closing brace, so a line break follows the text.
    let braced = format!("{{{wiring}\n}}");
    let closed = brackets::are_closed(&braced);
    // A file may not contain hidden characters, and a carriage return is read as the end of a line.
    let whole = Grammar::parse(Rule::wiring, wiring).is_ok_and(|p| p.as_str().len() == wiring.len());
    closed
        && whole
        && !wiring.contains('\r')
        && has_simple_texts(wiring)
        && !wiring.chars().any(|c| text::is_hidden(c) || c == '\u{feff}')
}

/// Whether every text in quotes is closed on its line, and is only letters and what is between them in the axes of a
/// product. In any other text a bracket or the sign of a comment could be meant as itself.
fn has_simple_texts(wiring: &str) -> bool {
    let is_simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | ',' | '-' | '>');
    wiring.lines().all(|line| {
        let pieces: Vec<&str> = line.split('"').collect();
        let mut texts = pieces.iter().skip(1).step_by(2);
        pieces.len() % 2 == 1 && texts.all(|text| !text.is_empty() && text.chars().all(is_simple))
    })
}

/// Whether a scalar's text can be written in the DSL as it is, as one word or expression, with brackets at
/// most `depth` deep.
pub fn is_plain(text: &str, depth: usize) -> bool {
    // `#` and `//` would begin a comment, and `"` a text. A text of thousands of characters
    // is no word and no number, and is not parsed to find out.
    let simple = text.len() < 2_000 && !text.contains(['\n', '\r', '\t', '#', '"']) && !text.contains("//");
    simple
        // The word for no value: a text that is spelled so needs quotes.
        && text != "null"
        && nesting(text) <= depth
        && Grammar::parse(Rule::plain, text).is_ok_and(|p| p.as_str().len() == text.len())
        // What begins as a call, `window(4)`, would be read as a part with a field.
        && Grammar::parse(Rule::call, text).is_err()
}

/// How many brackets are open at a time, at most.
fn nesting(text: &str) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open = open.saturating_add(1),
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Whether a word can be a key in the DSL without quotes.
pub fn is_key(text: &str) -> bool {
    Grammar::parse(Rule::dashed, text).is_ok_and(|p| p.as_str().len() == text.len())
}

/// Whether a text is a word of letters, digits and `_`, such as the name of a part.
pub fn is_word(text: &str) -> bool {
    Grammar::parse(Rule::word, text).is_ok_and(|p| p.as_str().len() == text.len())
}

/// Whether a word can be called as a part: `word(...)`.
pub fn is_part_word(text: &str) -> bool {
    // `sqrt(2)` is an expression, so a part of that name could not be written as a call.
    is_word(text) && super::expr::Function::of_numbers(text).is_none()
}

/// Whether a text is a range of layers: `0`, `0..3`, `..=2`.
pub fn is_interval(text: &str) -> bool {
    // With 20 digits and more, a number may be larger than any that can be counted with.
    let digits = !text.is_empty() && text.len() < 20 && text.chars().all(|c| c.is_ascii_digit());
    digits || Grammar::parse(Rule::interval, text).is_ok_and(|p| p.as_str().len() == text.len())
}
