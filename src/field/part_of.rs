//! The part that the value of a slot gives.

use super::context::Context;
use super::instead::{for_number, required_number};
use super::mend::set_at;
use super::mend_part::{in_part, parts_with, report_part};
use super::name_in_slot::meant_part;
use super::seek::{DEEPEST, Parts, Search};
use super::value::{SlotDoc, not_of_kind, wrong_kind};
use super::words::listed;
use crate::diag::foreign::foreign_among;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, Fix};
use crate::source::Span;
use crate::syntax::set::argument_at;
use crate::syntax::tree::{Entry, Kind, Node};

/// The part that a slot's node gives, and the node with the fields of the part.
pub fn part_of(node: &Node, slot: &SlotDoc, cx: &mut Context<'_>) -> Option<(&'static str, Node)> {
    let names: Vec<&'static str> = slot.parts.iter().map(|p| p.name).collect();
    let known = |name: &str| names.iter().copied().find(|n| *n == name);
    match &node.kind {
        Kind::Scalar(s) => match known(&s.text) {
            Some(part) => Some((part, Node { kind: Kind::Null, span: node.span })),
            // A number is not a misspelled part; probably the name of a field is missing before it.
            None if s.text.parse::<f64>().is_ok() => {
                cx.report(number_for_part(node, &s.text, slot));
                None
            }
            None => {
                let meant = meant_part(&s.text, None, slot, cx);
                report_part((&s.text, node.span, None), slot, meant.as_deref(), cx);
                None
            }
        },
        Kind::Map(entries) => match entries.as_slice() {
            [only] if known(&only.key).is_some() => known(&only.key).map(|part| (part, only.value.clone())),
            entries => {
                if let Some(implied) = slot.implied {
                    // Keys next to the name of a part are probably fields of that part.
                    let extra =
                        entries.iter().find(|e| known(&e.key).is_some() && known(&e.key) != Some(implied));
                    let others = entries.iter().filter(|e| known(&e.key).is_some());
                    match extra {
                        Some(extra) if let Some(other) = others.clone().find(|e| e.key != extra.key) => {
                            let message = format!("`{}` holds one part, but several are given", slot.name);
                            let given: Vec<&str> = others.map(|e| e.key.as_str()).collect();
                            cx.report(
                                Diagnostic::error(Code::SeveralParts, other.key_span, message)
                                    .help(format!("keep one of {}", listed(&given))),
                            );
                            return None;
                        }
                        Some(extra) => {
                            let message = format!(
                                "`{}` holds one part, but `{}` has other keys next to it",
                                slot.name, extra.key
                            );
                            let inside = || format!("put the fields inside `{}: {{...}}`", extra.key);
                            let beside =
                                beside_part(entries, slot, cx).or_else(|| further(extra, entries, slot, cx));
                            // What a setting puts next to a part is best seen as the setting that puts it inside, and
                            // what a variant puts there where it is written.
                            let is_set = |place: &Span| argument_at(cx.sources(), *place).is_some();
                            let is_laid_over = |place: &Span| {
                                !node.span.contains(*place) || !node.span.contains(extra.key_span)
                            };
                            let (span, message, help) = match beside {
                                Some((place, _, help)) if is_set(&place) => (extra.key_span, message, help),
                                Some(beside) if is_laid_over(&beside.0) => beside,
                                Some(_) | None => (extra.key_span, message, inside()),
                            };
                            cx.report(Diagnostic::error(Code::SeveralParts, span, message).help(help));
                            return None;
                        }
                        None if node.get(implied).is_some() => {
                            let message =
                                format!("`{}` has fields inside and outside of `{implied}`", slot.name);
                            cx.report(
                                Diagnostic::error(Code::SeveralParts, node.span, message)
                                    .help(format!("put all of them inside `{implied}: {{...}}`")),
                            );
                            return None;
                        }
                        None => return Some((implied, node.clone())),
                    }
                }
                let lacks_name = entries.iter().all(|e| known(&e.key).is_none());
                let parts = if lacks_name { parts_with(entries, slot) } else { Vec::new() };
                match entries {
                    [first, ..] if let [part, ..] = parts.as_slice() => {
                        let message = format!("`{}` is not a valid {}", first.key, slot.name);
                        let (noun, verb) =
                            if entries.len() == 1 { ("a field", "it is") } else { ("fields", "these are") };
                        let advice = if parts.len() == 1 { "write" } else { "name the part, as in" };
                        let written = in_part(part, entries, slot);
                        let help = format!("{verb} {noun} of {}: {advice} `{written}`", listed(&parts));
                        cx.report(Diagnostic::error(Code::UnknownPart, first.key_span, message).help(help));
                    }
                    [] => wrong_kind(node, &format!("one of {}", listed(&names)), cx),
                    [only] => {
                        // What is below it fits no part, so the name alone tells what was meant.
                        let meant = meant_part(&only.key, None, slot, cx);
                        report_part(
                            (&only.key, only.key_span, Some(&only.value)),
                            slot,
                            meant.as_deref(),
                            cx,
                        );
                    }
                    [_, second, ..] => {
                        let (span, message, help) = beside_part(entries, slot, cx).unwrap_or_else(|| {
                            let message = format!("`{}` holds one part, but several are given", slot.name);
                            // A name of another library is none of those that are listed.
                            let meant = entries.iter().filter(|e| known(&e.key).is_none()).find_map(|e| {
                                let part = meant_part(&e.key, None, slot, cx)?;
                                Some(format!("; `{}` means `{part}`", e.key))
                            });
                            let help = format!("keep one of {}{}", listed(&names), meant.unwrap_or_default());
                            (second.key_span, message, help)
                        });
                        cx.report(Diagnostic::error(Code::SeveralParts, span, message).help(help));
                    }
                }
                None
            }
        },
        // An empty value, as after `ffn:`, is the implied part with its defaults.
        Kind::Null if slot.implied.is_some() => slot.implied.map(|part| (part, node.clone())),
        Kind::Null | Kind::List(_) | Kind::Delete => {
            wrong_kind(node, &format!("one of {}", listed(&names)), cx);
            None
        }
    }
}

/// Reports what is wrong within each of several parts that are given where one is expected, whichever is kept. `check`
/// decodes a part. What a part lacks or does not have is not wrong in it: the other part may be meant.
pub fn check_each(
    node: &Node,
    slot: &SlotDoc,
    check: &dyn Fn(&str, &Node, &mut Context<'_>),
    cx: &mut Context<'_>,
) {
    let entries = node.entries().unwrap_or(&[]);
    let parts = entries.iter().filter_map(|e| Some((slot.parts.iter().find(|p| p.name == e.key)?.name, e)));
    for (part, e) in parts {
        let before = std::mem::take(cx.sink());
        cx.title_next(Some(part));
        check(part, &e.value, cx);
        let found = std::mem::replace(cx.sink(), before).into_sorted();
        let is_own = |d: &Diagnostic| match d.code {
            Code::MissingKey => false,
            Code::UnknownKey => matches!(d.fix.as_deref(), Some(Fix::Rename { .. })),
            _ => true,
        };
        found.into_iter().filter(is_own).for_each(|d| cx.report(d));
    }
}

/// The diagnostic for a number in the place of a part.
fn number_for_part(node: &Node, text: &str, slot: &SlotDoc) -> Diagnostic {
    let names: Vec<&str> = slot.parts.iter().map(|p| p.name).collect();
    let implied = slot.parts.iter().find(|p| Some(p.name) == slot.implied).map(|p| (p.fields)());
    let first = implied.as_ref().and_then(|fields| fields.first());
    let map = first.map(|field| format!("a map such as `{{{}: ...}}`, or ", field.name));
    let diagnostic = not_of_kind(node, &format!("{}one of {}", map.unwrap_or_default(), listed(&names)));
    let help = match &implied {
        // What must be given is what a number alone is meant for.
        Some(fields) => required_number(text, fields),
        None => for_number(text, slot, &|part| format!("`{{{part}}}`")),
    };
    help.into_iter().fold(diagnostic, Diagnostic::help)
}

/// Finds a field of a part that was written next to the part instead of inside it, as in
/// `{layer_norm: {}, eps: 1e-5}`: its place, what is wrong, and where it belongs.
fn beside_part(entries: &[Entry], slot: &SlotDoc, cx: &Context<'_>) -> Option<(Span, String, String)> {
    let part_of = |e: &Entry| slot.parts.iter().find(|p| p.name == e.key);
    let mut parts = entries.iter().filter_map(part_of);
    // With several parts it is not clear which of them is meant.
    let (Some(part), None) = (parts.next(), parts.next()) else { return None };
    let fields = (part.fields)();
    let known: Vec<&str> = fields.iter().map(|f| f.name).collect();
    let (beside, field) = entries.iter().filter(|e| part_of(e).is_none()).find_map(|e| {
        let exact = known.contains(&e.key.as_str()).then(|| e.key.clone());
        let theirs = || foreign_among(&e.key, &known).map(str::to_owned);
        exact.or_else(theirs).or_else(|| suggest(&e.key, &known)).map(|field| (e, field))
    })?;
    Some(belongs_at(beside, &[part.name.to_owned(), field], slot, cx))
}

/// What is wrong with an entry next to the part of a slot that belongs at a path below the slot: its place, the message, and
/// what to write.
fn belongs_at(beside: &Entry, path: &[String], slot: &SlotDoc, cx: &Context<'_>) -> (Span, String, String) {
    let message = format!("`{}` belongs inside the part of `{}`, not next to it", beside.key, slot.name);
    let help = match set_at(beside, path, cx) {
        Some(set) => format!("write `{set}`"),
        // A variant may write the whole path as one key.
        None if cx.sources().text(beside.key_span).contains('.') => {
            format!("write `{}` as the key", [&cx.above(beside), path].concat().join("."))
        }
        None => format!("it belongs at `{}`", path.join(".")),
    };
    (beside.key_span, message, help)
}

/// Finds a field of a part of a part, as that of the experts of a mixture, which was written next to the outer part.
fn further(
    part: &Entry,
    entries: &[Entry],
    slot: &SlotDoc,
    cx: &Context<'_>,
) -> Option<(Span, String, String)> {
    let fields = (slot.parts.iter().find(|p| p.name == part.key)?.fields)();
    entries.iter().filter(|e| e.key != part.key).find_map(|e| {
        let search = Search { key: &e.key, value: Some(&e.value), above: &[] };
        let mut places = (1..=DEEPEST)
            .flat_map(|depth| search.below(&fields, &part.value, depth, Parts::Present).collect::<Vec<_>>());
        let place = places.find(|place| place.part.is_none())?;
        let path = [std::slice::from_ref(&part.key), &place.path].concat();
        Some(belongs_at(e, &path, slot, cx))
    })
}
