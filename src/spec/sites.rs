//! The call sites of a block's equation: where it calls parts, and what these calls are named.

use std::collections::BTreeMap;

use super::kind::PartKind;
use crate::source::{SourceMap, Span};
use crate::syntax::equation::{self, Equation, Term, TermKind};
use crate::syntax::tree::{Kind, Node, Style};

/// A call site of an equation, which is a part with parameters of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The kind of the part that is called.
    pub kind: PartKind,
    /// The label if there is one, otherwise the word of the part, with a number if several have no label.
    pub name: String,
    /// The place of the call.
    pub span: Span,
}

/// The call sites of an equation in the order in which they are written, with their names ([`Site::name`]).
pub(super) fn sites(equation: &Equation) -> Vec<Site> {
    let mut calls: Vec<(PartKind, Option<String>, Span)> = Vec::new();
    for statement in &equation.body {
        collect_calls(&statement.value, &mut calls);
    }
    // For each kind, the number of sites without a label, and how many of them have a name already.
    let mut unnamed: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (kind, ..) in calls.iter().filter(|(_, label, _)| label.is_none()) {
        let (all, _) = unnamed.entry(kind.word()).or_default();
        *all = all.saturating_add(1);
    }
    let mut name = |kind: PartKind| {
        let (all, met) = unnamed.entry(kind.word()).or_default();
        *met = met.saturating_add(1);
        if *all == 1 { kind.word().to_owned() } else { format!("{}{met}", kind.word()) }
    };
    let named = |(kind, label, span): (PartKind, Option<String>, Span)| Site {
        kind,
        name: label.unwrap_or_else(|| name(kind)),
        span,
    };
    calls.into_iter().map(named).collect()
}

/// The call sites of a `block` key's equation.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Their names, each with the kind of part that is called.
    pub names: Vec<(String, PartKind)>,
    /// Whether these are all: an equation that cannot be parsed may have others.
    pub is_complete: bool,
}

/// The call sites of a `block` key's equation. Errors in it are not reported here.
pub fn calls(node: &Node, wirings: &[Equation], has_memory: bool, sources: &SourceMap) -> Calls {
    let all = |equation: &Equation| Calls {
        names: sites(equation).into_iter().map(|s| (s.name, s.kind)).collect(),
        is_complete: true,
    };
    match wiring_name(node) {
        None => Calls::default(),
        Some(Ok(name)) => {
            // A wiring may exist twice under one name, with a memory and without.
            let fits = |w: &&Equation| (w.params.len() == 2) == has_memory && w.name.as_deref() == Some(name);
            wirings.iter().find(fits).map(all).unwrap_or_default()
        }
        Some(Err(text)) => match equation::parse(sources, node) {
            Ok(equation) => all(&equation),
            Err(_) => Calls { names: calls_in(text), is_complete: false },
        },
    }
}

/// What looks like a call in a text that is no equation, `norm(` or `attention[local](`, under every name
/// that the call may have.
fn calls_in(text: &str) -> Vec<(String, PartKind)> {
    let mut names = Vec::new();
    let mut met: BTreeMap<&str, usize> = BTreeMap::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (i, _) in text.match_indices('(') {
        let before = text.get(..i).unwrap_or("").trim_end();
        let (head, label) = match before.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
            Some((head, label)) if label.trim().chars().all(is_word) => (head.trim_end(), Some(label.trim())),
            Some(_) | None => (before, None),
        };
        let part = head.rsplit(|c: char| !is_word(c)).next().unwrap_or("");
        let Some(kind) = kind_of(part) else { continue };
        match label {
            Some(label) if !label.is_empty() => names.push((label.to_owned(), kind)),
            Some(_) | None => {
                let count = met.entry(kind.word()).or_default();
                *count = count.saturating_add(1);
                names.extend([part.to_owned(), format!("{}{count}", kind.word())].map(|name| (name, kind)));
            }
        }
    }
    names
}

/// The text of a `block` key: `Ok` is the name of a wiring, `Err` an equation. `None` if it is not a text.
pub(super) fn wiring_name(node: &Node) -> Option<Result<&str, &str>> {
    let Kind::Scalar(scalar) = &node.kind else { return None };
    let text = scalar.text.trim();
    // A text in block style is an equation, even if it is a single word.
    let is_name = !text.is_empty()
        && scalar.style != Style::Block
        && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    Some(if is_name { Ok(text) } else { Err(text) })
}

/// The kind of part that a call names: `ffn`, or `ffn2` with a number.
pub(super) fn kind_of(part: &str) -> Option<PartKind> {
    PartKind::from_word(part)
        .or_else(|| PartKind::from_word(part.trim_end_matches(|c: char| c.is_ascii_digit())))
}

fn collect_calls(term: &Term, calls: &mut Vec<(PartKind, Option<String>, Span)>) {
    match &term.kind {
        TermKind::Name(_) | TermKind::Number(_) => {}
        TermKind::Call { part, label, args } => {
            if let Some(kind) = kind_of(part) {
                // The number in `ffn2(x)` makes the whole word a name, as if it were a label.
                let given = (kind.word() != part).then(|| part.clone());
                calls.push((kind, label.clone().or(given), term.span));
            }
            args.iter().for_each(|a| collect_calls(a, calls));
        }
        TermKind::Sum(terms) => terms.iter().for_each(|(_, t)| collect_calls(t, calls)),
        TermKind::Product(factors) => factors.iter().for_each(|t| collect_calls(t, calls)),
        TermKind::Quotient(a, b) => {
            collect_calls(a, calls);
            collect_calls(b, calls);
        }
    }
}
