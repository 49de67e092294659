//! Diagnostics: plain data made where a fault is found, printed in one place ([`render`]).
//!
//! A stage pushes into a [`Sink`] and goes on; the caller stops before the next stage when the sink
//! holds errors. Adding one: a variant in [`code::Code`] with its explanation, raised where it is
//! found, and a file `tests/bad/<code>.yaml`.

pub mod code;
pub mod render;
pub mod suggest;

pub use code::Code;

use std::collections::BTreeSet;

use crate::source::Span;

/// How grave a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The spec cannot be built.
    Error,
    /// The spec can be built and probably should not be.
    Warning,
}

/// A place and what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is at that place, in a few words; may be empty for the primary one.
    pub text: String,
}

/// One finding: a code, a sentence, places (the primary one first) and what would mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable name of the kind of fault.
    pub code: Code,
    /// How grave it is.
    pub severity: Severity,
    /// Lower case, one sentence, no full stop, in the author's words and numbers.
    pub message: String,
    /// Places, the primary one first.
    pub labels: Vec<Label>,
    /// What to do about it.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error of `code` at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: vec![Label { span, text: String::new() }],
            help: Vec::new(),
        }
    }

    /// A warning of `code` at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Says what stands at the primary place.
    pub fn here(mut self, text: impl Into<String>) -> Self {
        if let Some(first) = self.labels.first_mut() {
            first.text = text.into();
        }
        self
    }

    /// Adds a second place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a line that would mend it.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// The primary place.
    pub fn span(&self) -> Span {
        self.labels.first().map(|l| l.span).unwrap_or_default()
    }
}

/// Collects diagnostics. The same code at the same place with the same sentence is kept once, and after
/// [`Sink::LIMIT`] of them nothing more: nobody reads on, and a hostile text should not fill the memory.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    found: Vec<Diagnostic>,
    known: BTreeSet<(Code, Span, String)>,
}

impl Sink {
    /// How many diagnostics are kept.
    pub const LIMIT: usize = 200;

    /// An empty sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a finding unless the same one is already there.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let key = (diagnostic.code, diagnostic.span(), diagnostic.message.clone());
        if self.found.len() < Self::LIMIT && self.known.insert(key) {
            self.found.push(diagnostic);
        }
    }

    /// Whether nothing more is kept.
    pub fn is_full(&self) -> bool {
        self.found.len() >= Self::LIMIT
    }

    /// Whether an error has been found.
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether an error (not a warning) with a label inside `span` has been found.
    pub fn has_error_in(&self, span: Span) -> bool {
        self.found.iter().any(|d| {
            let at = d.span();
            d.severity == Severity::Error
                && at.source == span.source
                && at.start >= span.start
                && at.end <= span.end
        })
    }

    /// Everything found, errors and warnings, by place in the sources.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|d| (d.severity, d.span()));
        self.found
    }

    /// Everything found so far, in the order it was found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }
}
