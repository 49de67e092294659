//! Finds the faults that a value hides because it cannot be read.
//!
//! A record with such a value has none, so whatever compares that record with another one is not checked. What is wrong
//! whatever the value is, is no consequence of the fault: the document is decoded once more with each of several values
//! that the field takes, and an error that is found with all of them is one of the author's.

use crate::diag::{Code, Diagnostic, Label, Severity, Sink};
use crate::source::Span;
use crate::syntax::tree::{Kind, Node};

/// A value of a document that cannot be read, or without which another one cannot be computed.
#[derive(Clone, Debug)]
pub struct Unread {
    place: Span,
    /// Values that could be there instead.
    others: Vec<String>,
}

/// In a document with more values that cannot be read than this, the faults that they hide are not looked for.
const MOST: usize = 16;

/// In a document with more values than this, hidden faults are not looked for: all of it is decoded again each time.
const LARGEST: usize = 500;

/// How many divisors of a number are tried, and how far they are looked for.
const MOST_DIVISORS: usize = 4;
const LARGEST_DIVISOR: u64 = 64;

impl Unread {
    /// A value that cannot be read, where these could be instead; `None` if it is no single word, or if too little is known
    /// about what else it could be.
    pub fn of(node: &Node, others: Vec<String>) -> Option<Self> {
        let is_word = matches!(node.kind, Kind::Scalar(_));
        (is_word && others.len() > 1).then_some(Self { place: node.span, others })
    }

    /// A number at a place that does not divide another one, where the divisors of that could be instead.
    pub fn divisor_of(number: u64, place: Span) -> Self {
        let few = (1..=LARGEST_DIVISOR.min(number)).filter(|n| number.is_multiple_of(*n)).take(MOST_DIVISORS);
        Self { place, others: few.chain([number]).map(|n| n.to_string()).collect() }
    }

    /// Whether two are the same value, which several blocks may share.
    pub fn is_same(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

/// Adds the errors of a document that some of its values hide, and that do not depend on what these are. `decode` reports
/// the errors of a document.
pub fn behind(tree: &Node, unread: &[Unread], sink: &mut Sink, decode: &dyn Fn(&Node, &mut Sink)) {
    if unread.is_empty() || unread.len() > MOST || sink.is_full() || !tree.has_at_most(LARGEST) {
        return;
    }
    let key = |d: &Diagnostic| (d.code, d.message.clone(), d.labels.clone());
    let mut common: Option<Vec<Diagnostic>> = None;
    for turn in 0..unread.iter().map(|one| one.others.len()).max().unwrap_or(0) {
        let mut tree = tree.clone();
        put(&mut tree, unread, turn);
        let mut found = Sink::new();
        decode(&tree, &mut found);
        let keys: Vec<(Code, String, Vec<Label>)> = found.iter().map(key).collect();
        match &mut common {
            None => {
                // What an expression that cannot be read uses is not known.
                let lets = tree.get("let").and_then(Node::entries).unwrap_or(&[]);
                let may_be_used =
                    |d: &Diagnostic| d.code == Code::UnusedKey && lets.iter().any(|e| e.key_span == d.span());
                let is_one = |d: &&Diagnostic| d.severity == Severity::Error && !may_be_used(d);
                let errors = found.iter().filter(is_one);
                common = Some(errors.cloned().collect());
            }
            Some(common) => common.retain(|d| keys.contains(&key(d))),
        }
    }
    // A fault that is known may be told in other words now that more is known around it.
    let known: Vec<Span> = sink.iter().map(Diagnostic::span).collect();
    // A number that does not fit one that a known fault is about may be right once that is mended.
    let about: Vec<Span> = sink.iter().flat_map(|d| d.labels.iter().map(|label| label.span)).collect();
    let may_follow =
        |d: &Diagnostic| d.code.is_misfit() && d.labels.iter().any(|label| about.contains(&label.span));
    let is_new = |d: &Diagnostic| !known.iter().any(|span| span.contains(d.span())) && !may_follow(d);
    for diagnostic in common.into_iter().flatten().filter(is_new) {
        sink.push(diagnostic);
    }
}

/// Puts other values in the places of those that cannot be read.
fn put(node: &mut Node, unread: &[Unread], turn: usize) {
    match &mut node.kind {
        Kind::Map(entries) => entries.iter_mut().for_each(|e| put(&mut e.value, unread, turn)),
        Kind::List(items) => items.iter_mut().for_each(|item| put(item, unread, turn)),
        Kind::Scalar(_) => {
            let here = unread.iter().find(|one| one.place == node.span);
            if let Some(other) = here.and_then(|one| one.others.iter().cycle().nth(turn)) {
                *node = Node::plain(other.clone(), node.span);
            }
        }
        Kind::Null | Kind::Delete => {}
    }
}
