//! The state of decoding: the sources, the diagnostics, and the names that expressions may use.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use super::definition::Definitions;
use super::elsewhere::{Elsewhere, Other};
use super::moved::{above, below, moved};
use super::unread::Unread;
use super::words::is_no_number;
use crate::diag::{Code, Diagnostic, Fix, Sink};
use crate::source::{SourceMap, Span};
use crate::syntax::expr::{self, Expr, Number, Scope};
use crate::syntax::merge::{Parts, merge};
use crate::syntax::tree::{Entry, Node};

/// The state while one spec is decoded.
pub struct Context<'a> {
    sources: &'a SourceMap,
    sink: &'a mut Sink,
    names: Vec<Binding>,
    /// The places of the values that expressions have used.
    // A cell, because looking a name up needs only a shared reference.
    used: RefCell<BTreeSet<Span>>,
    /// The name for the next record in messages, if it is not the record's own.
    title: Option<&'static str>,
    /// Whether authors can define names with `let`, so that misspelled names may mean one of them.
    has_lets: bool,
    /// The stacks of the spec.
    stacks: Vec<&'static str>,
    /// The parts that the spec defines.
    definitions: Arc<Definitions>,
    /// The names of those that something uses.
    used_parts: BTreeSet<String>,
    /// How a suggestion is tried.
    trial: Option<Trial<'a>>,
    /// How many suggestions have been tried. Contexts of the same document share the number.
    trials: Rc<Cell<usize>>,
    /// Whether the document is decoded only to try a suggestion.
    is_trial: bool,
    /// The document with which this one is easily mixed up.
    other: Option<Other>,
    /// What a word of the document is in its place.
    elsewhere: fn(&str) -> Option<Elsewhere>,
    /// The values of misspelled keys. A value of the wrong kind means that another key was meant.
    doubtful: BTreeSet<Span>,
    /// The values that could not be read.
    unread: Vec<Unread>,
    /// Whether the document is a variant of one that has been decoded; see [`Context::again`].
    is_again: bool,
}

/// How a suggestion is tried before it is made: on the whole document, which is decoded again.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    /// The whole document, merged with what it extends.
    pub tree: &'a Node,
    /// What merging must know about its parts.
    pub parts: &'a dyn Parts,
    /// Decodes a changed document, only for the diagnostics that this reports.
    pub decode: &'a dyn Fn(&Node, &mut Context<'_>),
}

/// Whether a diagnostic is about a misspelled word in the value of an entry, which is one anywhere.
fn is_slip_within(entry: &Entry, d: &Diagnostic) -> bool {
    matches!(d.fix.as_deref(), Some(Fix::Rename { .. })) && entry.value.span.contains(d.span())
}

/// The largest document, in values, on which suggestions are tried; each trial decodes all of it again.
const LARGEST_TRIAL: usize = 500;

/// The most suggestions that are tried for one document. Decoding one with many faults takes longer, because each is looked
/// up among the names of the language, and counts as more.
const MOST_TRIALS: usize = 32;

/// With this many more faults in a changed document, decoding it counts as one more trial.
const FAULTS_OF_A_TRIAL: usize = 16;

/// A name that an expression may use.
#[derive(Clone, Debug)]
struct Binding {
    name: String,
    value: Bound,
    span: Option<Span>,
}

/// What is known about a name.
#[derive(Clone, Debug)]
enum Bound {
    Number(Number),
    /// Its value had an error, which has been reported. Expressions that use it report nothing more.
    Broken,
    /// It has no value yet, for this reason.
    Waiting(String),
}

/// Why an expression has no value.
pub enum Fault {
    /// The expression itself is wrong.
    Own(Box<Diagnostic>),
    /// The expression uses a name whose value had an error.
    Follows,
}

/// How many names were defined when [`Context::mark`] was called; [`Context::forget_since`] forgets the later
/// ones.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'a> Context<'a> {
    /// A context without names, for a language with `let`.
    pub fn new(sources: &'a SourceMap, sink: &'a mut Sink) -> Self {
        Self {
            sources,
            sink,
            names: Vec::new(),
            used: RefCell::default(),
            title: None,
            has_lets: true,
            stacks: Vec::new(),
            definitions: Arc::default(),
            used_parts: BTreeSet::new(),
            trial: None,
            trials: Rc::default(),
            is_trial: false,
            other: None,
            elsewhere: |_| None,
            doubtful: BTreeSet::new(),
            unread: Vec::new(),
            is_again: false,
        }
    }

    /// The same context for a variant of a document that has been decoded, of which only counts whether it means the same
    /// and where it has a fault: faults are reported without suggestions, and shapes are not checked.
    pub fn again(self) -> Self {
        Self { is_again: true, ..self }
    }

    /// Whether this is a context for such a variant.
    pub fn is_again(&self) -> bool {
        self.is_again
    }

    /// The same context for a language without `let`: messages suggest no names.
    pub fn without_lets(self) -> Self {
        Self { has_lets: false, ..self }
    }

    /// The same context, which tries suggestions on the document before it makes them, unless that is large.
    pub fn with_trial(self, trial: Trial<'a>) -> Self {
        Self { trial: Some(trial).filter(|t| t.tree.has_at_most(LARGEST_TRIAL)), ..self }
    }

    /// The same context for a variant of the document of another one: the suggestions that are tried for both count together.
    pub fn with_trials_of(self, other: &Context<'_>) -> Self {
        Self { trials: Rc::clone(&other.trials), ..self }
    }

    /// Whether the document is decoded only to try a suggestion, so that nothing but its own messages matters.
    pub fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// The same context for a document that is easily mixed up with another one.
    pub fn with_other(self, other: Other) -> Self {
        Self { other: Some(other), ..self }
    }

    /// The same context for a document with these words.
    pub fn with_words(self, elsewhere: fn(&str) -> Option<Elsewhere>) -> Self {
        Self { elsewhere, ..self }
    }

    /// What a word of the document is in its place.
    pub fn elsewhere(&self, word: &str) -> Option<Elsewhere> {
        (self.elsewhere)(word)
    }

    /// The help for a key, or for a path of keys, of the other document.
    pub fn help_for_other(&self, key: &str) -> Option<&'static str> {
        let first = key.split('.').next().unwrap_or(key);
        self.other
            .filter(|other| other.keys.contains(&first) || (other.has_below)(first))
            .map(|other| other.help)
    }

    /// Whether moving an entry of the document to another place would cause no new diagnostic: to `path`
    /// below the map that has it now, with `value`. A number that does not fit others is in its place all the same: three
    /// heads of a model that is 8 wide are heads of its attention. Also true if this cannot be tried.
    pub fn would_accept(&self, entry: &Entry, path: &[String], value: &Node) -> bool {
        // A suggestion that cannot be tried is made all the same.
        let Some(trial) = self.trial.filter(|_| self.trials.get() < MOST_TRIALS) else { return true };
        self.trials.set(self.trials.get().saturating_add(1));
        // Compared with the document without the entry, so that faults elsewhere do not count. Messages are
        // compared and not places, which the move changes.
        let is_slip = |d: &Diagnostic| is_slip_within(entry, d);
        let messages = |value: Option<&Node>| {
            let mut sink = Sink::new();
            let tree = moved(trial.tree, entry, path, value, trial.parts, &mut sink)?;
            Some(self.messages(&tree, trial, sink, &is_slip))
        };
        let (Some(without), Some(with)) = (messages(None), messages(Some(value))) else { return true };
        with.is_subset(&without)
    }

    /// Whether the value of an entry is valid by itself at `path` below its map. Errors elsewhere that it would cause do not
    /// count, such as a pattern that is longer than the new number of layers. Also true if this cannot be tried.
    pub fn may_hold(&self, entry: &Entry, path: &[String]) -> bool {
        let Some(trial) = self.trial.filter(|_| self.trials.get() < MOST_TRIALS) else { return true };
        self.trials.set(self.trials.get().saturating_add(1));
        let mut sink = Sink::new();
        let Some(tree) = moved(trial.tree, entry, path, Some(&entry.value), trial.parts, &mut sink) else {
            return true;
        };
        self.decoded(&tree, trial, &mut sink);
        !sink.iter().any(|d| !d.code.is_misfit() && entry.value.span.contains(d.span()))
    }

    /// The messages about the document after a change; `None` if that cannot be tried.
    pub(super) fn tried(&self, change: impl FnOnce(&Node) -> Node) -> Option<BTreeSet<String>> {
        let trial = self.trial.filter(|_| self.can_try())?;
        self.trials.set(self.trials.get().saturating_add(1));
        let mut sink = Sink::new();
        self.decoded(&change(trial.tree), trial, &mut sink);
        Some(sink.iter().map(|d| d.message.clone()).collect())
    }

    /// Whether a suggestion can be tried.
    pub fn can_try(&self) -> bool {
        self.trial.is_some() && self.trials.get() < MOST_TRIALS
    }

    /// The keys that lead to an entry of the document, which is found by its place, from the outermost; empty for one that
    /// is in no other map, and where the document is not known.
    pub fn above(&self, entry: &Entry) -> Vec<String> {
        self.trial.and_then(|trial| above(trial.tree, entry)).unwrap_or_default()
    }

    /// How many levels an entry, renamed to `key`, must be moved up so that the checker accepts it, and the messages that
    /// vanish with that; see [`Context::would_accept`]. `None` if it is accepted nowhere, or if that cannot be tried. A map
    /// that has this key under its right name is not what another name means.
    pub fn levels_up(&self, entry: &Entry, key: &str) -> Option<(usize, BTreeSet<String>)> {
        let trial = self.trial?;
        let above = self.above(entry);
        let messages = |path: Option<&[String]>| {
            let mut sink = Sink::new();
            let mut tree = moved(trial.tree, entry, &[], None, trial.parts, &mut sink)?;
            if let Some(path) = path {
                tree = merge(&tree, &below(path, entry, &entry.value), trial.parts, &mut sink);
            }
            Some(self.messages(&tree, trial, sink, &|d| is_slip_within(entry, d)))
        };
        let without = messages(None)?;
        (1..=above.len()).find_map(|up| {
            if !self.can_try() {
                return None;
            }
            self.trials.set(self.trials.get().saturating_add(1));
            let kept = above.len().saturating_sub(up);
            let map = above.iter().take(kept).try_fold(trial.tree, |map, key| map.get(key));
            if entry.key != key && map.is_some_and(|map| map.get(key).is_some()) {
                return None;
            }
            let path: Vec<String> = above.iter().take(kept).cloned().chain([key.to_owned()]).collect();
            let with = messages(Some(&path)).filter(|with| with.is_subset(&without))?;
            Some((up, without.difference(&with).cloned().collect()))
        })
    }

    /// What one of the maps above that of an entry has at a key, and the key next to it that leads to the entry.
    pub fn given_above(&self, entry: &Entry, key: &str) -> Option<(String, &Node)> {
        let mut map = self.trial?.tree;
        for step in self.above(entry) {
            if let Some(given) = map.get(key) {
                return Some((step, given));
            }
            map = map.get(&step)?;
        }
        None
    }

    /// The messages about a changed document, without those about numbers that do not fit others, and without some.
    fn messages(
        &self,
        tree: &Node,
        trial: Trial<'_>,
        mut sink: Sink,
        without: &dyn Fn(&Diagnostic) -> bool,
    ) -> BTreeSet<String> {
        self.decoded(tree, trial, &mut sink);
        sink.iter().filter(|d| !d.code.is_misfit() && !without(d)).map(|d| d.message.clone()).collect()
    }

    fn decoded(&self, tree: &Node, trial: Trial<'_>, sink: &mut Sink) {
        // In a context without a trial, or suggestions would be tried within suggestions.
        let mut cx = Context::new(self.sources, sink);
        cx.is_trial = true;
        (trial.decode)(tree, &mut cx);
        let more = sink.iter().count() / FAULTS_OF_A_TRIAL;
        self.trials.set(self.trials.get().saturating_add(more));
    }

    /// Chooses among the names that an author may have meant by a key: the first with which the checker accepts the
    /// value, or else the first of all. `ecoder` may be an encoder or a decoder, and the rest of the document tells
    /// which.
    pub fn accepted(&self, entry: &Entry, names: Vec<String>) -> Option<String> {
        let is_accepted = |name: &String| self.would_accept(entry, std::slice::from_ref(name), &entry.value);
        // A single name need not be tried.
        let at = if names.len() > 1 { names.iter().position(is_accepted) } else { None };
        names.into_iter().nth(at.unwrap_or(0))
    }

    /// A map with an entry at `path` below it, if suggestions are tried for this document.
    pub fn with_entry(&self, map: &Node, entry: &Entry, path: &[String], value: &Node) -> Option<Node> {
        let parts = self.trial?.parts;
        Some(merge(map, &below(path, entry, value), parts, &mut Sink::new()))
    }

    /// The texts that diagnostics refer to.
    pub fn sources(&self) -> &'a SourceMap {
        self.sources
    }

    /// The collection of diagnostics, for functions that add to one.
    pub fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    /// Adds a diagnostic to the sink, which drops duplicates. That the value of a misspelled key is of the wrong
    /// kind is left out, because it only follows from the guess which key was meant, and so is that there is no part of a
    /// name, if a file of parts could not be read and the name is near to no other.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        let may_be_part = matches!(diagnostic.code, Code::UnknownPart | Code::UnknownCall)
            && self.definitions.may_be_more
            && diagnostic.fix.is_none();
        let follows = diagnostic.code == Code::WrongKind && self.doubts(diagnostic.span()) || may_be_part;
        if !follows {
            self.sink.push(diagnostic);
        }
    }

    /// Adds help to what has been reported of a number at a place that is out of range, unless it has some.
    pub fn help_out_of_range(&mut self, place: Span, help: impl Fn() -> String) {
        self.sink.revise(|d| {
            if d.code == Code::OutOfRange && d.span() == place && d.help.is_empty() {
                d.help.push(help());
            }
        });
    }

    /// Notes the value of a misspelled key, which has been reported.
    pub fn doubt(&mut self, value: Span) {
        self.doubtful.insert(value);
    }

    /// Whether a value is that of a misspelled key.
    pub fn doubts(&self, value: Span) -> bool {
        self.doubtful.contains(&value)
    }

    /// Notes a value that could not be read, which has been reported.
    pub fn cannot_read(&mut self, one: Unread) {
        if !self.unread.iter().any(|other| other.is_same(&one)) {
            self.unread.push(one);
        }
    }

    /// The values that could not be read.
    pub fn into_unread(self) -> Vec<Unread> {
        self.unread
    }

    /// Whether an error has been found.
    pub fn has_failed(&self) -> bool {
        self.sink.has_errors()
    }

    /// How many errors have been found.
    pub fn errors(&self) -> usize {
        self.sink.errors()
    }

    /// Whether the limit of reported diagnostics is reached, so that no more are kept.
    pub fn is_full(&self) -> bool {
        self.sink.is_full()
    }

    /// Defines a name as a number. It hides an earlier definition.
    pub fn bind(&mut self, name: &str, number: Number, span: Option<Span>) {
        self.names.push(Binding { name: name.to_owned(), value: Bound::Number(number), span });
    }

    /// Defines a name whose value had an error, so that expressions that use it report nothing more.
    pub fn bind_broken(&mut self, name: &str) {
        self.names.push(Binding { name: name.to_owned(), value: Bound::Broken, span: None });
    }

    /// Defines a name that has no value yet, with the reason.
    pub fn bind_waiting(&mut self, name: &str, why: String) {
        self.names.push(Binding { name: name.to_owned(), value: Bound::Waiting(why), span: None });
    }

    /// Whether the value of a name had an error.
    pub fn is_broken(&self, name: &str) -> bool {
        // The latest definition of a name is the one that counts.
        self.names.iter().rev().find(|b| b.name == name).is_some_and(|b| matches!(b.value, Bound::Broken))
    }

    /// Whether a name has a value.
    pub fn knows(&self, name: &str) -> bool {
        let binding = self.names.iter().rev().find(|b| b.name == name);
        binding.is_some_and(|b| matches!(b.value, Bound::Number(_)))
    }

    /// Whether a name is defined as a number, even as one with an error.
    pub fn has_name(&self, name: &str) -> bool {
        self.knows(name) || self.is_broken(name)
    }

    /// The diagnostic for a word with hyphens, each of which is a minus sign, if the word with `_` instead is known. It
    /// is the same for every piece of the word, of which one is at `piece`, so that it is reported once.
    pub fn hyphenated(&self, piece: Span, is_known: &dyn Fn(&str) -> bool) -> Option<Diagnostic> {
        let (written, place) = self.sources.hyphenated(piece)?;
        let meant = written.replace('-', "_");
        let message = format!("nothing is named `{written}`: `-` subtracts");
        is_known(&meant).then(|| Diagnostic::error(Code::UnknownName, place, message).meant(written, &meant))
    }

    /// Whether an expression has used the value at this place.
    pub fn has_used(&self, span: Span) -> bool {
        self.used.borrow().contains(&span)
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// The reason why it has no value.
    pub fn value(&self, expression: &Expr) -> Result<Number, Fault> {
        // Checked before the evaluation, which would report a broken name as unknown.
        if expression.names().iter().any(|(name, _)| self.is_broken(name)) {
            return Err(Fault::Follows);
        }
        expr::eval(expression, self).map_err(|d| {
            let is_name = d.code == Code::UnknownName;
            let hyphenated = is_name.then(|| self.hyphenated(d.span(), &|word| self.has_name(word)));
            Fault::Own(Box::new(hyphenated.flatten().unwrap_or(d)))
        })
    }

    /// The value of a scalar, which may be an expression. An error is reported, unless it only follows from
    /// one that has been reported.
    pub fn number(&mut self, node: &Node) -> Option<Number> {
        if node.text().is_some_and(|word| is_no_number(word) && !self.has_name(word)) {
            let message = format!("expected a number, found {}", node.describe());
            self.report(Diagnostic::error(Code::WrongKind, node.span, message));
            return None;
        }
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

    /// Sets how messages name the record that is decoded next.
    pub fn title_next(&mut self, title: Option<&'static str>) {
        self.title = title;
    }

    /// Takes the name that [`Context::title_next`] has set.
    pub fn take_title(&mut self) -> Option<&'static str> {
        // Taken and not only read: the records inside this one have their own names.
        self.title.take()
    }

    /// Notes which stacks the spec has, for examples in messages.
    pub fn note_stacks(&mut self, stacks: Vec<&'static str>) {
        self.stacks = stacks;
    }

    /// The stacks of the spec, as far as they are known.
    pub fn stacks(&self) -> &[&'static str] {
        &self.stacks
    }

    /// Defines the parts of the spec.
    pub fn define(&mut self, definitions: Definitions) {
        self.definitions = Arc::new(definitions);
    }

    /// The parts that the spec defines.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// Notes that something uses a defined part.
    pub fn note_part(&mut self, name: &str) {
        if !self.used_parts.contains(name) {
            self.used_parts.insert(name.to_owned());
        }
    }

    /// Whether something uses a defined part.
    pub fn uses_part(&self, name: &str) -> bool {
        self.used_parts.contains(name)
    }

    /// Remembers which names are defined.
    pub fn mark(&self) -> Mark {
        Mark(self.names.len())
    }

    /// Forgets the names defined since the mark.
    pub fn forget_since(&mut self, mark: Mark) {
        self.names.truncate(mark.0);
    }

    /// A number as messages show it: as written, followed by its value if it is an expression.
    pub fn as_written(&self, node: &Node, number: Number) -> String {
        let text = node.text().unwrap_or("").trim();
        // A number shows its value itself.
        if text.parse::<f64>().is_ok() || text.is_empty() {
            if text.is_empty() { number.to_string() } else { text.to_owned() }
        } else {
            format!("`{text}` = {number}")
        }
    }

    /// For an expression that should be a whole number: a diagnostic that shows the place of every name in
    /// it.
    pub fn explain_fraction(&self, node: &Node, number: Number) -> Option<Diagnostic> {
        let text = node.text()?.trim();
        let labels = self.places_of(text);
        // Without names there is nothing to show but the number itself, which other code reports better.
        if labels.is_empty() {
            return None;
        }
        let message = format!("`{text}` = {number} is not a whole number");
        let diagnostic = Diagnostic::error(Code::NotWhole, node.span, message);
        Some(labels.into_iter().fold(diagnostic, |d, (span, text)| d.label(span, text)))
    }

    /// The places where the names of an expression were given their values, with these values.
    pub fn places_of(&self, expression: &str) -> Vec<(Span, String)> {
        let mut found: Vec<(Span, String)> = Vec::new();
        // Split into words and not parsed: formulas of the field tables come here, too, and other words match
        // no name.
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
        // Noted, so that a value under `let` that nothing uses is found.
        self.used.borrow_mut().extend(binding.span);
        Some((number, binding.span))
    }

    fn why_unknown(&self, name: &str) -> Option<String> {
        match self.names.iter().rev().find(|b| b.name == name).map(|b| &b.value) {
            Some(Bound::Waiting(why)) => Some(why.clone()),
            Some(Bound::Number(_) | Bound::Broken) | None => None,
        }
    }

    fn own_names(&self) -> Option<&'static str> {
        Some("give it a value under `let`")
    }

    fn names(&self) -> Vec<String> {
        let known = |b: &&Binding| self.has_lets && matches!(b.value, Bound::Number(_));
        let mut names: Vec<String> = self.names.iter().filter(known).map(|b| b.name.clone()).collect();
        // Several records may define the same name.
        names.sort();
        names.dedup();
        names
    }
}
