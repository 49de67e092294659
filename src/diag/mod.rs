//! Diagnostics: plain data that is created where an error is found, and printed in one place ([`render`]).
//!
//! A stage pushes diagnostics into a [`Sink`] and goes on; the caller stops before the next stage if the
//! sink has errors. To add a kind, add a variant with its explanation in [`code::Code`], raise it where
//! the error is found, and add a file `tests/bad/<code>.yaml`.

pub mod code;
pub mod count;
pub mod fix;
pub mod foreign;
pub mod ideas;
pub mod notes;
pub mod paths;
pub mod render;
pub mod report;
pub mod suggest;
pub mod terms;

pub use code::Code;
pub use fix::{Certainty, Fix};

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::source::Span;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The spec cannot be built.
    Error,
    /// The spec can be built but probably should not be.
    Warning,
}

/// A place with an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The part of the source that is underlined.
    pub span: Span,
    /// What is wrong or relevant there, in a few words; may be empty for the primary place.
    pub text: String,
}

/// A diagnostic: a code, a sentence, places (the primary one first) and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of error, which `trafoc explain` describes.
    pub code: Code,
    /// An error or a warning.
    pub severity: Severity,
    /// One sentence in lower case without a full stop, with the author's words and numbers.
    pub message: String,
    /// Places, the primary one first.
    pub labels: Vec<Label>,
    /// How to fix it, one suggestion each; empty if nothing is known.
    pub help: Vec<String>,
    /// The first suggestion as a change to the text, if a program can make it.
    pub fix: Option<Box<Fix>>,
    /// The messages that would not be there if this were fixed as its help says.
    pub followed_by: BTreeSet<String>,
}

impl Diagnostic {
    /// An error of `code` at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: brief(message.into()),
            labels: vec![Label { span, text: String::new() }],
            help: Vec::new(),
            fix: None,
            followed_by: BTreeSet::new(),
        }
    }

    /// A warning of `code` at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Adds an explanation at the primary place.
    pub fn here(mut self, text: impl Into<String>) -> Self {
        if let Some(first) = self.labels.first_mut() {
            first.text = brief(text.into());
        }
        self
    }

    /// Adds a further place that explains the error, such as that of the other of two values that disagree.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: brief(text.into()) });
        self
    }

    /// Adds a suggestion that would fix it.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(brief(text.into()));
        self
    }

    /// Adds the question whether a word at the primary place is meant to be another one.
    pub fn meant(self, from: &str, to: &str) -> Self {
        let fix = Fix::Rename { from: from.to_owned(), to: to.to_owned() };
        self.help(format!("did you mean `{to}`?")).fix(fix)
    }

    /// Adds the word of trafoc for what a word at the primary place is called elsewhere.
    pub fn called(self, from: &str, to: &str) -> Self {
        let fix = Fix::Rename { from: from.to_owned(), to: to.to_owned() };
        self.help(format!("trafoc calls this `{to}`")).fix(fix)
    }

    /// Adds what to write in place of a word at the primary place.
    pub fn written(self, from: &str, to: &str) -> Self {
        let fix = Fix::Rename { from: from.to_owned(), to: to.to_owned() };
        self.help(format!("write `{to}`")).fix(fix)
    }

    /// Adds what to write in place of the value at the primary place, which is no word.
    pub fn replaced(self, value: &str) -> Self {
        self.help(format!("write `{value}`")).fix(Fix::Replace(value.to_owned()))
    }

    /// Adds that the entry at the primary place can be removed.
    pub fn removable(self) -> Self {
        self.help(fix::REMOVE_IT).fix(Fix::Remove)
    }

    /// Adds what its help says as a change to the text.
    pub fn fix(self, fix: Fix) -> Self {
        Self { fix: Some(Box::new(fix)), ..self }
    }

    /// Notes the messages that would vanish with this one; see [`Sink::into_sorted`].
    pub fn followed_by(mut self, messages: BTreeSet<String>) -> Self {
        self.followed_by = messages;
        self
    }

    /// The primary place, by which diagnostics are sorted; the default if there is none.
    pub fn span(&self) -> Span {
        self.labels.first().map(|l| l.span).unwrap_or_default()
    }
}

/// The longest word of a message in bytes; real names and paths are shorter.
const LONGEST_WORD: usize = 300;

/// Shortens words of a text that are too long for a message, such as a whole file quoted in a message:
/// their beginning and end remain.
fn brief(text: String) -> String {
    if text.split_whitespace().all(|word| word.len() <= LONGEST_WORD) {
        return text;
    }
    let shortened = |word: &str| {
        // Of a path, both ends matter, the beginning more than the end. Bytes are counted, so the cuts must
        // not be within a character.
        let begin = word.floor_char_boundary(LONGEST_WORD / 2);
        let end = word.ceil_char_boundary(word.len().saturating_sub(LONGEST_WORD / 4));
        format!("{}…{}", word.get(..begin).unwrap_or(word), word.get(end..).unwrap_or(""))
    };
    // With the blanks after them, so that the rest of the text stays as it is.
    let pieces = text.split_inclusive(char::is_whitespace);
    pieces.map(|piece| if piece.len() > LONGEST_WORD { shortened(piece) } else { piece.to_owned() }).collect()
}

/// Collects diagnostics. A diagnostic with the same code, place and sentence as an earlier one is dropped.
/// After [`Sink::LIMIT`] diagnostics no more are kept, because they would not be read and a hostile text
/// must not fill the memory.
#[derive(Clone, Debug)]
pub struct Sink {
    /// The most diagnostics that are kept.
    limit: usize,
    found: Vec<Diagnostic>,
    known: BTreeSet<(Code, Span, String)>,
}

impl Default for Sink {
    fn default() -> Self {
        Self::new()
    }
}

impl Sink {
    /// The most diagnostics that are kept, unless a sink is asked for more.
    pub const LIMIT: usize = 200;

    /// A sink that has collected nothing yet.
    pub fn new() -> Self {
        Self::with_limit(Self::LIMIT)
    }

    /// A sink that keeps at most this number of diagnostics.
    pub fn with_limit(limit: usize) -> Self {
        Self { limit, found: Vec::new(), known: BTreeSet::new() }
    }

    /// Adds a diagnostic, unless it is a duplicate.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        // Several blocks may share the part that has the error, and each of them reports it. A key is unknown once,
        // whether the part that has it is called by its name or by its slot's.
        let is_key = diagnostic.code == Code::UnknownKey;
        let message = if is_key { String::new() } else { diagnostic.message.clone() };
        let key = (diagnostic.code, diagnostic.span(), message);
        if self.found.len() < self.limit && self.known.insert(key) {
            self.found.push(diagnostic);
        }
    }

    /// Whether no more diagnostics are kept.
    pub fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// How many errors are among the diagnostics.
    pub fn errors(&self) -> usize {
        self.found.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// Whether there is an error among the diagnostics.
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether there is an error (not a warning) whose primary place is inside `span`.
    pub fn has_error_in(&self, span: Span) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error && span.contains(d.span()))
    }

    /// All diagnostics: errors before warnings, each ordered by place in the sources. That a key is missing is left out where
    /// another error has it in the wrong place.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        let follow: BTreeSet<String> = self.found.iter().flat_map(|d| d.followed_by.clone()).collect();
        self.found.retain(|d| d.code != Code::MissingKey || !follow.contains(&d.message));
        // The sort is stable: diagnostics of one place stay in the order in which they were found.
        self.found.sort_by_key(|d| (d.severity, d.span()));
        self.found
    }

    /// Changes what the diagnostics so far say to help.
    pub fn revise(&mut self, revise: impl FnMut(&mut Diagnostic)) {
        self.found.iter_mut().for_each(revise);
    }

    /// The diagnostics so far, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }
}
