//! The call sites of a block's equation: where it calls parts, and what these calls are named.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexSet;

use super::kind::PartKind;
use crate::diag::foreign::foreign_among;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, ideas, notes};
use crate::field::context::Fault;
use crate::field::definition::Definitions;
use crate::field::words::listed;
use crate::parts::own::vocabulary;
use crate::source::{SourceMap, Span};
use crate::syntax::equation::{self, Equation, Statement, Term, TermKind};
use crate::syntax::expr::{Expr, Function};
use crate::syntax::tree::{Kind, Node, Style};

/// A call site of an equation, which is a part with parameters of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The kind of the part that is called.
    pub kind: PartKind,
    /// The word that is called: that of the kind, or the name of a part that the spec defines. It is also the
    /// key for all calls of it.
    pub word: String,
    /// The label if there is one, otherwise the word of the part, with a number if several have no label.
    pub name: String,
    /// The place of the call.
    pub span: Span,
}

/// What a call names: a kind of part and its word, and whether a number follows the word.
#[derive(Clone, Debug, PartialEq)]
pub struct Callee {
    /// The kind of part.
    pub kind: PartKind,
    /// The word without a number.
    pub word: String,
    /// Whether the call gives the word with a number, `ffn2`, which then is its name.
    pub is_numbered: bool,
}

/// The call sites of an equation in the order in which they are written, with their names ([`Site::name`]).
pub(super) fn sites(equation: &Equation, own: &Definitions) -> Vec<Site> {
    let mut calls: Vec<(Callee, Option<String>, Span)> = Vec::new();
    for statement in &equation.body {
        collect_calls(&statement.value, own, &mut calls);
    }
    // For each word, the number of sites without a label, and how many of them have a name already.
    let mut unnamed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (callee, ..) in calls.iter().filter(|(_, label, _)| label.is_none()) {
        let (all, _) = unnamed.entry(callee.word.clone()).or_default();
        *all = all.saturating_add(1);
    }
    let mut name = |word: &str| {
        let (all, met) = unnamed.entry(word.to_owned()).or_default();
        *met = met.saturating_add(1);
        // A single call needs no number, and a second one makes the first `norm1`.
        if *all == 1 { word.to_owned() } else { format!("{word}{met}") }
    };
    let named = |(callee, label, span): (Callee, Option<String>, Span)| Site {
        kind: callee.kind,
        name: label.unwrap_or_else(|| name(&callee.word)),
        word: callee.word,
        span,
    };
    calls.into_iter().map(named).collect()
}

/// The call sites of a `block` key's equation.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The sites; those of an equation that cannot be parsed have no place, and one for each name that the
    /// call may have.
    pub sites: Vec<Site>,
    /// The names that calls of what does not exist may have: those that are written, and those of what was probably
    /// meant.
    pub missed: Vec<String>,
    /// Whether these are all: an equation that cannot be parsed, or calls what does not exist, may have others.
    pub is_complete: bool,
}

/// The call sites of a `block` key's equation. Errors in it are not reported here.
pub fn calls(
    node: &Node,
    wirings: &[Equation],
    has_memory: bool,
    sources: &SourceMap,
    own: &Definitions,
) -> Calls {
    let all = |equation: &Equation| {
        let mut missed = Vec::new();
        equation.body.iter().for_each(|statement| collect_missed(&statement.value, own, &mut missed));
        Calls { sites: sites(equation, own), is_complete: missed.is_empty(), missed }
    };
    match wiring_name(node, wirings) {
        None => Calls::default(),
        Some(Ok(name)) => {
            // A wiring may exist twice under one name, with a memory and without.
            let fits = |w: &&Equation| (w.params.len() == 2) == has_memory && w.name.as_deref() == Some(name);
            wirings.iter().find(fits).map(all).unwrap_or_default()
        }
        Some(Err(text)) => match equation::parse(sources, node) {
            Ok(equation) => all(&equation),
            Err(_) => Calls { sites: calls_in(text, own), ..Calls::default() },
        },
    }
}

/// What looks like a call in a text that is no equation, `norm(` or `attention[local](`, under every name
/// that the call may have.
fn calls_in(text: &str, own: &Definitions) -> Vec<Site> {
    let mut sites = Vec::new();
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (i, _) in text.match_indices('(') {
        let before = text.get(..i).unwrap_or("").trim_end();
        let (head, label) = match before.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
            Some((head, label)) if label.trim().chars().all(is_word) => (head.trim_end(), Some(label.trim())),
            Some(_) | None => (before, None),
        };
        let part = head.rsplit(|c: char| !is_word(c)).next().unwrap_or("");
        let Some(callee) = callee(part, own) else { continue };
        let names = match label {
            Some(label) if !label.is_empty() => vec![label.to_owned()],
            Some(_) | None => {
                let count = met.entry(callee.word.clone()).or_default();
                *count = count.saturating_add(1);
                vec![part.to_owned(), format!("{}{count}", callee.word)]
            }
        };
        let Callee { kind, word, .. } = callee;
        let site = |name| Site { kind, word: word.clone(), name, span: Span::default() };
        sites.extend(names.into_iter().map(site));
    }
    sites
}

/// The text of a `block` key: `Ok` is the name of a wiring, `Err` an equation. `None` if it is not a text.
pub(super) fn wiring_name<'n>(node: &'n Node, wirings: &[Equation]) -> Option<Result<&'n str, &'n str>> {
    let Kind::Scalar(scalar) = &node.kind else { return None };
    let text = scalar.text.trim();
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    // `pre-norm` could be a difference of two names, but nobody means one that is nearly the name of a wiring.
    let is_near = || suggest(text, &names_of(wirings)).is_some();
    // A text in block style is an equation, even if it is a single word.
    let is_name = scalar.style != Style::Block
        && (is_word(text) || text.contains('-') && text.split('-').all(is_word) && is_near());
    Some(if is_name { Ok(text) } else { Err(text) })
}

/// The names of wirings. One with a memory has the name of the one without, which it follows.
pub(super) fn names_of(wirings: &[Equation]) -> Vec<&str> {
    let mut names: Vec<&str> = wirings.iter().filter_map(|w| w.name.as_deref()).collect();
    names.dedup();
    names
}

/// What a call names: `ffn`, or `ffn2` with a number, or a part that the spec defines.
pub(super) fn callee(part: &str, own: &Definitions) -> Option<Callee> {
    let known = |word: &str| match PartKind::from_word(word) {
        Some(kind) => Some(kind),
        None => own.has(word).then_some(PartKind::Own),
    };
    let found = |word: &str| {
        let kind = known(word)?;
        Some(Callee { kind, word: word.to_owned(), is_numbered: word != part })
    };
    found(part).or_else(|| found(part.trim_end_matches(|c: char| c.is_ascii_digit())))
}

/// What was probably meant by a call of something that is no part.
fn meant(part: &str, own: &Definitions) -> Option<String> {
    // An equation also has functions of numbers, in its factors.
    let functions = Function::NUMBERS.iter().map(|function| function.name());
    let words: Vec<&str> = PartKind::ALL.iter().map(|kind| kind.word()).chain(own.names()).collect();
    // A call may have a number, of which only the word before it is misspelled: `fn2` for `ffn2`.
    let stem = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = part.strip_prefix(stem).filter(|number| !number.is_empty());
    let numbered = number.and_then(|number| Some(suggest(stem, &words)? + number));
    numbered.or_else(|| suggest(part, &words.into_iter().chain(functions).collect::<Vec<_>>()))
}

/// The diagnostic for a call of something that is no part.
pub(super) fn unknown(part: &str, own: &Definitions, span: Span) -> Diagnostic {
    let names: Vec<&str> = PartKind::ALL.iter().map(|k| k.word()).chain(own.own_names()).collect();
    let message = format!("an equation cannot call `{part}`");
    let diagnostic = Diagnostic::error(Code::UnknownCall, span, message);
    let words: Vec<&str> = PartKind::ALL.iter().map(|kind| kind.word()).collect();
    if foreign_among(part, &words).is_none()
        && let Some(help) = by_key(part)
    {
        return diagnostic.help(help);
    }
    if vocabulary::word(part).is_some() {
        // A key of the parts may do the same.
        let by_keys = notes::note("", part).map(|note| format!("{note}, as in `ffn: {{{part}: 0.1}}`"));
        return by_keys.into_iter().fold(diagnostic, Diagnostic::help).help(format!(
            "the equations of parts can call `{part}`: define one under `parts`, and call it by its name here"
        ));
    }
    match meant(part, own) {
        Some(near) => diagnostic.meant(part, &near),
        None => ideas::outside(part, ideas::Met::Call)
            .into_iter()
            .fold(diagnostic, Diagnostic::help)
            .help(format!("it can call {}, each with a name such as `attention[local](x)`", listed(&names)))
            .help("or a part of your own, which `parts` defines by an equation over layers and ops"),
    }
}

fn collect_calls(term: &Term, own: &Definitions, calls: &mut Vec<(Callee, Option<String>, Span)>) {
    if let TermKind::Call { part, label, .. } = &term.kind
        && let Some(callee) = callee(part, own)
    {
        // The number in `ffn2(x)` makes the whole word a name, as if it were a label.
        let given = callee.is_numbered.then(|| part.clone());
        calls.push((callee, label.clone().or(given), term.span));
    }
    term.operands().for_each(|operand| collect_calls(operand, own, calls));
}

/// Collects the names of calls of what does not exist; see [`Calls::missed`].
fn collect_missed(term: &Term, own: &Definitions, missed: &mut Vec<String>) {
    if let TermKind::Call { part, label, .. } = &term.kind
        && callee(part, own).is_none()
    {
        missed.push(label.as_ref().unwrap_or(part).clone());
        missed.extend(meant(part, own));
    }
    term.operands().for_each(|operand| collect_missed(operand, own, missed));
}

/// The statements whose values are never read, so that their parts would have no effect, in their order. The last value
/// of `stream` is the result.
pub(super) fn unused<'e>(equation: &'e Equation, stream: &str) -> Vec<&'e Statement> {
    // From the last statement to the first: the names that a later one reads before it assigns them, and
    // those that a later one assigns.
    let mut read: BTreeSet<&str> = BTreeSet::new();
    let mut assigned: BTreeSet<&str> = BTreeSet::new();
    let mut unused = Vec::new();
    for statement in equation.body.iter().rev() {
        let target = statement.target.as_str();
        let is_read = read.remove(target);
        let is_last = assigned.insert(target);
        let is_result = target == stream && is_last;
        if !is_read && !is_result {
            unused.push(statement);
        }
        mentions(&statement.value, &mut |name| {
            read.insert(name);
        });
    }
    unused.reverse();
    unused
}

/// Visits the names in a term.
fn mentions<'t>(term: &'t Term, visit: &mut dyn FnMut(&'t str)) {
    match &term.kind {
        TermKind::Name(name) => visit(name),
        TermKind::Number(number) => number.names().into_iter().for_each(|(name, _)| visit(name)),
        TermKind::Text(_)
        | TermKind::Call { .. }
        | TermKind::Sum(_)
        | TermKind::Product(_)
        | TermKind::Quotient(..) => {}
    }
    term.operands().for_each(|operand| mentions(operand, visit));
}

/// Refuses an expression of numbers that has one of these names, which are tensors.
pub(super) fn of_numbers(
    expression: &Expr,
    tensors: &IndexSet<String>,
    sources: &SourceMap,
) -> Result<(), Fault> {
    let Some((name, span)) = expression.names().into_iter().find(|(name, _)| tensors.contains(*name)) else {
        return Ok(());
    };
    // The word as it is written: `ln` is another name of `log`, and of a norm.
    let word = expression.calls_around(span).into_iter().find_map(|call| {
        let word = sources.text(call).split('(').next()?.trim();
        Some((word, by_key(word)?))
    });
    let (shown, help) = match word {
        Some((word, help)) => (format!("{word}(...)"), help),
        None => (
            expression.to_string(),
            format!(
                "define what is computed as a part, such as `parts: {{f: square(x)}}`, and write `f({name})`"
            ),
        ),
    };
    let message = format!("a block computes `{shown}` of numbers alone, and `{name}` is a tensor");
    Err(Fault::Own(Box::new(Diagnostic::error(Code::WrongArguments, span, message).help(help))))
}

/// How an equation calls what a word names as the value of a part's key: `norm(...)` for `rms_norm`.
fn by_key(word: &str) -> Option<String> {
    let (kind, value) = PartKind::with_value(word)?;
    let word = kind.word();
    Some(format!("call `{word}(...)`, and choose what it is by the key `{word}: {value}`"))
}
