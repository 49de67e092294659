//! What decoding carries along: the texts, the findings, and the names expressions may use.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceMap, Span};
use crate::syntax::expr::{self, Expr, Number, Scope};
use crate::syntax::tree::Node;

/// State of decoding one spec.
pub struct Context<'a> {
    sources: &'a SourceMap,
    sink: &'a mut Sink,
    names: Vec<Binding>,
    /// Places of the values expressions have used.
    used: RefCell<BTreeSet<Span>>,
    /// What the author calls the next record, where that is not the record's own name.
    title: Option<&'static str>,
    /// Whether an author can give names of their own, by `let`.
    has_lets: bool,
}

/// A name an expression may use.
#[derive(Clone, Debug)]
struct Binding {
    name: String,
    value: Bound,
    span: Option<Span>,
}

/// What is known of a name.
#[derive(Clone, Debug)]
enum Bound {
    Number(Number),
    /// Nothing, and a diagnostic says so: what depends on it is silent.
    Broken,
    /// Nothing yet, for this reason.
    Waiting(String),
}

/// Why an expression has no value.
pub enum Fault {
    /// This is wrong with it.
    Own(Box<Diagnostic>),
    /// It uses a name whose value had an error of its own.
    Follows,
}

/// How many names were known at some point; going back forgets the later ones.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'a> Context<'a> {
    /// A context without names.
    pub fn new(sources: &'a SourceMap, sink: &'a mut Sink) -> Self {
        Self { sources, sink, names: Vec::new(), used: RefCell::default(), title: None, has_lets: true }
    }

    /// Of a document without `let`, where no name is worth to be offered.
    pub fn without_lets(self) -> Self {
        Self { has_lets: false, ..self }
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

    /// Whether an error has been found.
    pub fn has_failed(&self) -> bool {
        self.sink.has_errors()
    }

    /// Whether so much has been reported that nothing more is kept.
    pub fn is_full(&self) -> bool {
        self.sink.is_full()
    }

    /// Makes a number known under a name, hiding an earlier one.
    pub fn bind(&mut self, name: &str, number: Number, span: Option<Span>) {
        self.names.push(Binding { name: name.to_owned(), value: Bound::Number(number), span });
    }

    /// Makes a name known whose value had an error, so that what uses it says nothing more.
    pub fn bind_broken(&mut self, name: &str) {
        self.names.push(Binding { name: name.to_owned(), value: Bound::Broken, span: None });
    }

    /// Makes a name known that has no value yet, and why.
    pub fn bind_waiting(&mut self, name: &str, why: String) {
        self.names.push(Binding { name: name.to_owned(), value: Bound::Waiting(why), span: None });
    }

    /// Whether a name stands for a value that had an error.
    pub fn is_broken(&self, name: &str) -> bool {
        self.names.iter().rev().find(|b| b.name == name).is_some_and(|b| matches!(b.value, Bound::Broken))
    }

    /// Whether a name has a value.
    pub fn knows(&self, name: &str) -> bool {
        let binding = self.names.iter().rev().find(|b| b.name == name);
        binding.is_some_and(|b| matches!(b.value, Bound::Number(_)))
    }

    /// Whether an expression has used the value at that place.
    pub fn has_used(&self, span: Span) -> bool {
        self.used.borrow().contains(&span)
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// Why it has none.
    pub fn value(&self, expression: &Expr) -> Result<Number, Fault> {
        if expression.names().iter().any(|(name, _)| self.is_broken(name)) {
            return Err(Fault::Follows);
        }
        expr::eval(expression, self).map_err(|d| Fault::Own(Box::new(d)))
    }

    /// The value of a scalar, its fault reported.
    pub fn number(&mut self, node: &Node) -> Option<Number> {
        let value = expr::parse(self.sources, node)
            .map_err(|d| Fault::Own(Box::new(d)))
            .and_then(|expression| self.value(&expression));
        match value {
            Ok(number) => Some(number),
            Err(Fault::Own(diagnostic)) => {
                self.report(*diagnostic);
                None
            }
            Err(Fault::Follows) => None,
        }
    }

    /// Says what the author calls the record that is decoded next.
    pub fn title_next(&mut self, title: Option<&'static str>) {
        self.title = title;
    }

    /// What the author calls the record that is decoded now.
    pub fn take_title(&mut self) -> Option<&'static str> {
        self.title.take()
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
            if let Some(Binding { name, value: Bound::Number(number), span: Some(span) }) = binding {
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
        let binding = self.names.iter().rev().find(|b| b.name == name)?;
        let Bound::Number(number) = binding.value else { return None };
        self.used.borrow_mut().extend(binding.span);
        Some((number, binding.span))
    }

    fn why_unknown(&self, name: &str) -> Option<String> {
        match self.names.iter().rev().find(|b| b.name == name).map(|b| &b.value) {
            Some(Bound::Waiting(why)) => Some(why.clone()),
            Some(Bound::Number(_) | Bound::Broken) | None => None,
        }
    }

    fn names(&self) -> Vec<String> {
        let known = |b: &&Binding| self.has_lets && matches!(b.value, Bound::Number(_));
        let mut names: Vec<String> = self.names.iter().filter(known).map(|b| b.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}
