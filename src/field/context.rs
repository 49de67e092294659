//! What decoding carries along: the texts, the findings, and the names expressions may use.

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceMap, Span};
use crate::syntax::expr::{Number, Scope};
use crate::syntax::tree::Node;

/// State of decoding one spec.
pub struct Context<'a> {
    sources: &'a SourceMap,
    sink: &'a mut Sink,
    names: Vec<Binding>,
}

/// A name an expression may use.
#[derive(Clone, Debug)]
struct Binding {
    name: String,
    number: Number,
    span: Option<Span>,
}

/// How many names were known at some point; going back forgets the later ones.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'a> Context<'a> {
    /// A context without names.
    pub fn new(sources: &'a SourceMap, sink: &'a mut Sink) -> Self {
        Self { sources, sink, names: Vec::new() }
    }

    /// The texts.
    pub fn sources(&self) -> &'a SourceMap {
        self.sources
    }

    /// Where findings go.
    pub fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    /// Records a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.sink.push(diagnostic);
    }

    /// Whether an error has been found inside that place.
    pub fn failed_in(&self, span: Span) -> bool {
        self.sink.has_error_in(span)
    }

    /// Makes a number known under a name, hiding an earlier one.
    pub fn bind(&mut self, name: &str, number: Number, span: Option<Span>) {
        self.names.push(Binding { name: name.to_owned(), number, span });
    }

    /// Remembers which names are known.
    pub fn mark(&self) -> Mark {
        Mark(self.names.len())
    }

    /// Forgets the names bound since.
    pub fn forget_since(&mut self, mark: Mark) {
        self.names.truncate(mark.0);
    }

    /// How a value is named in a message: as written, with its value if that is an expression.
    pub fn said(&self, node: &Node, number: Number) -> String {
        let text = node.text().unwrap_or("").trim();
        if text.parse::<f64>().is_ok() || text.is_empty() {
            if text.is_empty() { number.to_string() } else { text.to_owned() }
        } else {
            format!("`{text}` = {number}")
        }
    }

    /// For an expression that should be whole: a diagnostic that shows the place of every name in it.
    pub fn explain_fraction(&self, node: &Node, number: Number) -> Option<Diagnostic> {
        let text = node.text()?.trim();
        let labels = self.places_of(text);
        if labels.is_empty() {
            return None;
        }
        let message = format!("`{text}` = {number} is not a whole number");
        let diagnostic = Diagnostic::error(Code::NotWhole, node.span, message);
        Some(labels.into_iter().fold(diagnostic, |d, (span, text)| d.label(span, text)))
    }

    /// Where each name of an expression got its value, with that value.
    pub fn places_of(&self, expression: &str) -> Vec<(Span, String)> {
        let mut found: Vec<(Span, String)> = Vec::new();
        for word in expression.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            let binding = self.names.iter().rev().find(|b| b.name == word);
            if let Some(Binding { name, number, span: Some(span) }) = binding {
                let label = (*span, format!("{name} is {number} here"));
                if !found.contains(&label) {
                    found.push(label);
                }
            }
        }
        found
    }
}

impl Scope for Context<'_> {
    fn lookup(&self, name: &str) -> Option<(Number, Option<Span>)> {
        self.names.iter().rev().find(|b| b.name == name).map(|b| (b.number, b.span))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.names.iter().map(|b| b.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}
