//! The calls in the equations of parts: their names, circles, and how many there are.

use std::collections::{BTreeMap, BTreeSet};

use super::vocabulary::word;
use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::definition::Definition;
use crate::field::words::listed;
use crate::source::Span;
use crate::syntax::equation::{Statement, Term, TermKind};

/// The most parts of a circle that a message names.
const SHOWN: usize = 6;

/// The most calls in a part, those in the parts that it calls included. If each part calls the
/// next one twice, the number doubles with every part, so a short text could stand for a graph of any size.
const MAX_CALLS: usize = 1_000;

/// The names of the calls with parameters of their own, in the order in which they are written: the label if
/// there is one, otherwise the word, with a number if several have no label. `is_own` says which words are
/// parts of the spec.
pub fn members(body: &[Statement], result: &Term, is_own: &dyn Fn(&str) -> bool) -> Vec<(String, Span)> {
    fn visit<'t>(term: &'t Term, found: &mut Vec<(&'t str, Option<&'t str>, Span)>) {
        match &term.kind {
            // What has a name is a field, in which nothing is called.
            TermKind::Call { part, label, args, .. } => {
                found.push((part, label.as_deref(), term.span));
                args.iter().for_each(|arg| visit(arg, found));
            }
            TermKind::Name(_)
            | TermKind::Number(_)
            | TermKind::Text(_)
            | TermKind::Sum(_)
            | TermKind::Product(_)
            | TermKind::Quotient(..) => term.operands().for_each(|operand| visit(operand, found)),
        }
    }
    let mut calls = Vec::new();
    body.iter().for_each(|s| visit(&s.value, &mut calls));
    visit(result, &mut calls);
    calls.retain(|(part, ..)| is_own(part) || word(part).is_some_and(|word| word.has_parameters));
    // For each word, the number of calls without a label, and how many of them have a name already.
    let mut unnamed: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (part, ..) in calls.iter().filter(|(_, label, _)| label.is_none()) {
        let (all, _) = unnamed.entry(part).or_default();
        *all = all.saturating_add(1);
    }
    let mut numbered = |part: &str| match unnamed.get_mut(part) {
        Some((all, met)) if *all > 1 => {
            *met = met.saturating_add(1);
            format!("{part}{met}")
        }
        Some(_) | None => part.to_owned(),
    };
    let named = |(part, label, span): (&str, Option<&str>, Span)| {
        (label.map_or_else(|| numbered(part), str::to_owned), span)
    };
    calls.into_iter().map(named).collect()
}

/// The calls of other parts in a definition, each with its place.
fn called<'d>(definition: &'d Definition, names: &BTreeMap<&str, &'d Definition>) -> Vec<(&'d str, Span)> {
    fn visit<'d>(term: &'d Term, found: &mut Vec<(&'d str, Span)>) {
        match &term.kind {
            // What has a name is a field, whose words are no parts: `init: constant(value: 1)`.
            TermKind::Call { part, args, .. } => {
                found.push((part.as_str(), term.span));
                args.iter().for_each(|arg| visit(arg, found));
            }
            TermKind::Name(_)
            | TermKind::Number(_)
            | TermKind::Text(_)
            | TermKind::Sum(_)
            | TermKind::Product(_)
            | TermKind::Quotient(..) => term.operands().for_each(|operand| visit(operand, found)),
        }
    }
    let mut found = Vec::new();
    definition.body.iter().for_each(|s| visit(&s.value, &mut found));
    visit(&definition.result, &mut found);
    found.retain(|(name, _)| names.contains_key(name));
    found
}

/// The names of the definitions that neither need themselves nor become too large. Reports the others.
pub fn fitting(all: &[Definition], cx: &mut Context<'_>) -> BTreeSet<String> {
    let by_name: BTreeMap<&str, &Definition> = all.iter().map(|d| (d.name.as_str(), d)).collect();
    let calls: BTreeMap<&str, Vec<(&str, Span)>> =
        all.iter().map(|d| (d.name.as_str(), called(d, &by_name))).collect();
    // The number of calls of each part whose callees are all counted; those in a circle never are.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    // Every turn counts one part, so it ends.
    loop {
        let ready = calls.iter().find_map(|(name, calls)| {
            if counts.contains_key(name) {
                return None;
            }
            let inner: Option<Vec<usize>> = calls.iter().map(|(name, _)| counts.get(name).copied()).collect();
            Some((*name, inner?.into_iter().fold(1usize, usize::saturating_add)))
        });
        let Some((name, count)) = ready else { break };
        counts.insert(name, count);
    }
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for definition in all.iter().filter(|d| !counts.contains_key(d.name.as_str())) {
        if reported.contains(definition.name.as_str()) {
            continue;
        }
        let circle = circle(&definition.name, &calls);
        reported.extend(circle.iter().map(|(name, _)| *name));
        if let Some(((_, first), rest)) = circle.split_first() {
            let names: Vec<&str> = circle.iter().map(|(name, _)| *name).take(SHOWN).collect();
            let message = match names.as_slice() {
                [one] => format!("the part `{one}` calls itself"),
                several if several.len() < circle.len() => {
                    let more = circle.len().saturating_sub(several.len());
                    format!("the parts `{}` and {more} more call each other in a cycle", several.join("`, `"))
                }
                several => format!("the parts {} call each other in a cycle", listed(several)),
            };
            // As few labels as names, for a circle through hundreds of parts.
            let rest = rest.get(..SHOWN.min(rest.len())).unwrap_or(rest);
            let diagnostic = Diagnostic::error(Code::PartCycle, *first, message);
            let diagnostic = rest.iter().fold(diagnostic, |d, (_, span)| d.label(*span, "which calls this"));
            cx.report(diagnostic.help("a part can call parts that do not need it"));
        }
    }
    for definition in all {
        if counts.get(definition.name.as_str()).is_some_and(|count| *count > MAX_CALLS) {
            let message = format!(
                "`{}` and the parts that it calls make more than {MAX_CALLS} calls together",
                definition.name
            );
            cx.report(
                Diagnostic::error(Code::TooLarge, definition.span, message).help("call fewer parts in parts"),
            );
        }
    }
    let fits = |(name, count): (&str, usize)| (count <= MAX_CALLS).then(|| name.to_owned());
    counts.into_iter().filter_map(fits).collect()
}

/// The parts on a circle that can be reached from `start`, each with the place where it calls the next.
fn circle<'d>(start: &'d str, calls: &BTreeMap<&'d str, Vec<(&'d str, Span)>>) -> Vec<(&'d str, Span)> {
    // Depth first: the path from `start`, and how many calls of its last part have been tried.
    let mut path: Vec<(&str, usize)> = vec![(start, 0)];
    let mut done: BTreeSet<&str> = BTreeSet::new();
    while let Some((name, tried)) = path.last_mut() {
        let name = *name;
        let next = calls.get(name).and_then(|calls| calls.get(*tried)).copied();
        *tried = tried.saturating_add(1);
        match next {
            None => {
                done.insert(name);
                path.pop();
            }
            Some((callee, _)) => {
                if let Some(from) = path.iter().position(|(name, _)| *name == callee) {
                    let place = |(name, tried): &(&'d str, usize)| {
                        let (_, span) = calls.get(name)?.get(tried.checked_sub(1)?)?;
                        Some((*name, *span))
                    };
                    return path.iter().skip(from).filter_map(place).collect();
                }
                if !done.contains(callee) {
                    path.push((callee, 0));
                }
            }
        }
    }
    Vec::new()
}
