//! The wiring of a block as the equation of its paper: `x = x + attention(norm(x))`.
//!
//! Parses a scalar's text, or a `block name(x) { ... }` of a prelude file, to an [`Equation`]. Statements
//! are separated by line breaks, `;` or nothing at all, since one can begin only where the other is
//! complete. A last statement without a name is the new value of the first parameter.
//!
//! ```text
//! equation  = ("(" name ("," name)* ")" ":")? statement+
//! statement = (name "=")? sum ";"?
//! sum       = product (("+" | "-") product)*
//! product   = factor (("*" | "/") factor)*
//! factor    = "-" factor | atom ("^" factor)?
//! atom      = number | name | call | "(" sum ")"
//! call      = name ("[" name "]")? "(" argument ("," argument)* ")"
//! argument  = (name ":")? sum
//! ```
//! A power is one of numbers: neither its base nor its exponent calls a part.
//!
//! The text of a part of the author's own ([`parse_part`]) has the same statements; its last one has no name and
//! is the result. There the first argument of a call can be a text in quotes, too.

mod parse;
mod recover;
mod term;

use std::collections::BTreeSet;

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceId, SourceMap, Span};

use super::token::{Cursor, Text, TokenKind};
use super::tree::Node;
use parse::Parser;

pub use term::{Equation, Named, PART_PARAMS, PartText, Sign, Statement, Term, TermKind};

/// The most words of an equation.
const MAX_WORDS: usize = 4_000;

/// The most mistakes of one equation that are reported.
const MAX_FAULTS: usize = 8;

/// The mistakes in the text of an equation, of which there is at least one.
pub type Faults = Vec<Diagnostic>;

/// Parses a scalar as an equation. Without a header `(x, memory):`, the parameters are `x` and, if the text
/// uses it, `memory`.
pub fn parse(sources: &SourceMap, node: &Node) -> Result<Equation, Faults> {
    if node.text().is_none() {
        let message = format!("expected an equation, found {}", node.describe());
        let diagnostic = Diagnostic::error(Code::Equation, node.span, message);
        return Err(vec![diagnostic.help("write it as text: `block: x + ffn(norm(x))`")]);
    }
    let text = Text::of(sources, node);
    read(&text, MAX_WORDS, false, |parser| parser.equation(None, None, node.span))
}

/// Parses the text of a part. Without a header `(q, k):`, its one input is `x`.
pub fn parse_part(sources: &SourceMap, node: &Node) -> Result<PartText, Faults> {
    if node.text().is_none() {
        let message = format!("expected the equation of a part, found {}", node.describe());
        let diagnostic = Diagnostic::error(Code::Equation, node.span, message);
        return Err(vec![diagnostic.help("write it as text: `double: linear(silu(x), d_model)`")]);
    }
    let text = Text::of_part(sources, node);
    read(&text, MAX_WORDS, true, |parser| parser.part(node.span))
}

/// What is read from a text, or every mistake in it in the order of the text.
fn read<T>(
    text: &Text<'_>,
    limit: usize,
    of_tensors: bool,
    read: impl FnOnce(&mut Parser<'_, '_>) -> parse::Parsed<T>,
) -> Result<T, Faults> {
    let mut faults = Vec::new();
    let tokens = match text.words(Code::Equation, limit, MAX_FAULTS, &mut faults) {
        Ok(tokens) => tokens,
        Err(last) => {
            faults.push(*last);
            return Err(faults);
        }
    };
    let mut parser = Parser::new(Cursor::new(text, &tokens, FLATTER), of_tensors, faults);
    let found = read(&mut parser);
    let mut faults = parser.faults;
    let found = found.map_err(|last| faults.push(*last));
    faults.sort_by_key(|fault| fault.span().start);
    // A word that can neither end one statement nor begin the next is a mistake of both.
    let mut seen = BTreeSet::new();
    faults.retain(|fault| seen.insert((fault.span().start, fault.span().end, fault.message.clone())));
    match found {
        Ok(found) if faults.is_empty() => Ok(found),
        Ok(_) | Err(()) => Err(faults),
    }
}

/// Parses a file of `block name(x) { ... }` definitions.
pub fn parse_prelude(sources: &SourceMap, id: SourceId, sink: &mut Sink) -> Vec<Equation> {
    if !super::text::check(sources, id, sink) {
        return Vec::new();
    }
    let whole = sources.get(id).map_or("", |s| s.text.as_str());
    let node = Node::plain(whole, Span::new(id, 0, whole.len()));
    let text = Text::of(sources, &node).of_lines();
    let mut found: Vec<Equation> = Vec::new();
    // A prelude may have any number of blocks; the length of its text bounds its words.
    let tokens = match text.tokens(Code::Equation, usize::MAX) {
        Ok(tokens) => tokens,
        Err(diagnostic) => {
            sink.push(*diagnostic);
            return found;
        }
    };
    let mut parser = Parser::new(Cursor::new(&text, &tokens, FLATTER), false, Vec::new());
    while parser.words.peek().kind != TokenKind::End {
        match parser.definition() {
            Ok((Equation { fault: Some(fault), .. }, _)) => sink.push(*fault),
            Ok((equation, name)) => {
                // A wiring of the same name for layers with a memory is another one: `pre_norm(x)`,
                // `pre_norm(x, memory)`.
                if let Some(first) =
                    found.iter().find(|e| e.name == equation.name && e.params.len() == equation.params.len())
                {
                    let shown = equation.name.as_deref().unwrap_or("");
                    let diagnostic =
                        Diagnostic::error(Code::DuplicateKey, name, format!("`{shown}` is defined twice"));
                    sink.push(diagnostic.label(first.span, "first defined here"));
                } else {
                    found.push(equation);
                }
            }
            Err(diagnostic) => {
                sink.push(*diagnostic);
                parser.skip_definition();
            }
        }
        parser.faults.drain(..).for_each(|fault| sink.push(fault));
    }
    found
}

/// The parameters of an equation without a header: `x`, and `memory` if the text uses it.
pub fn usual_params(text: &str) -> &'static [&'static str] {
    // The text is not parsed yet where this is asked, so its comments are left out here.
    let code = |line: &'_ str| line.find('#').into_iter().chain(line.find("//")).min().unwrap_or(line.len());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let names_memory =
        |line: &str| line.get(..code(line)).unwrap_or("").split(|c| !is_name(c)).any(|word| word == "memory");
    if text.lines().any(names_memory) { &["x", "memory"] } else { &["x"] }
}

/// An equation's text without a header `(h, memory):` on its own line, and the parameters. A header that
/// lists just the default parameters stays in the text.
pub fn split_header(text: &str) -> (Vec<&str>, &str) {
    split(text, usual_params)
}

/// As [`split_header`], of a part, whose only input is `x` unless a header says otherwise.
pub fn split_part_header(text: &str) -> (Vec<&str>, &str) {
    split(text, |_| PART_PARAMS)
}

fn split(text: &str, usual_params: fn(&str) -> &'static [&'static str]) -> (Vec<&str>, &str) {
    let usual = |text| (usual_params(text).to_vec(), text);
    let Some((header, body)) = text.trim_start().split_once('\n') else { return usual(text) };
    let names = header.trim_end().strip_prefix('(').and_then(|h| h.strip_suffix("):"));
    let Some(names) = names else { return usual(text) };
    let params: Vec<&str> = names.split(',').map(str::trim).collect();
    let word = |p: &&str| {
        p.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && p.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    // A header in any other form would not read back as the same text.
    let written = format!("({}):", params.join(", "));
    let follows = !body.starts_with(char::is_whitespace);
    if params.iter().all(word) && written == header && follows && params != usual_params(body) {
        return (params, body);
    }
    usual(text)
}

/// The advice for an equation that is nested too deep.
const FLATTER: &str = "give parts of it names: `h = norm(x)`";
