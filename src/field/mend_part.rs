//! Reports the misspelled names of parts in slots with what was probably meant, and corrects them.

use std::borrow::Cow;

use super::context::Context;
use super::definition::Definitions;
use super::name_in_slot::{Known, known_elsewhere, meant_part};
use super::value::{Field, SlotDoc};
use super::words::{listed, titled};
use crate::diag::foreign::foreign_among;
use crate::diag::suggest::{is_near, likely, suggest};
use crate::diag::{Code, Diagnostic, ideas};
use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node};

/// Reports a name that none of the slot's parts has, which is at this place and may be given with fields.
pub fn report_part(
    (name, span, value): (&str, Span, Option<&Node>),
    slot: &SlotDoc,
    meant: Option<&str>,
    cx: &mut Context<'_>,
) {
    let names: Vec<&str> = slot.parts.iter().map(|p| p.name).collect();
    let message = format!("`{name}` is not a valid {}", slot.name);
    let diagnostic = Diagnostic::error(Code::UnknownPart, span, message);
    let list = format!("valid parts are {}{}", listed(&names), of_library(slot, cx));
    let own = cx.definitions().names();
    if own.contains(&name) {
        let help = format!(
            "a part of your own goes into the `attention`, `ffn` and `norm` of blocks and into `final_norm`, or is called by its \
                 name: `x + {name}(norm(x))`"
        );
        let message = format!("`{name}` is a part of this spec, but this `{}` cannot hold one", slot.name);
        cx.report(Diagnostic::error(Code::UnknownPart, span, message).help(help));
        return;
    }
    if let Some(help) = map_for_call(name, slot, cx).or_else(|| map_for_settings(name, slot)) {
        cx.report(diagnostic.help(help));
        return;
    }
    // What is called like a layer is known by its name.
    let called = name.split_once('(').map_or(name, |(called, _)| called.trim());
    cx.report(match (meant, known_elsewhere(called, value, slot, cx)) {
        (Some(near), _) => diagnostic.meant(name, near),
        (None, Some(Known::Said(help))) => diagnostic.help(help),
        (None, Some(Known::None(help) | Known::Word(help))) => diagnostic.help(help).help(list),
        (None, None) => diagnostic.help(list),
    });
}

/// The parts of the library that are made for a slot, as the end of a list of its parts.
fn of_library(slot: &SlotDoc, cx: &Context<'_>) -> String {
    let definitions = cx.definitions();
    let is_made = |name: &&str| {
        definitions.shared.contains(*name)
            && definitions.get(name).is_some_and(|part| part.slot == Some(slot.name))
    };
    let names: Vec<&str> = if slot.takes_own { definitions.names() } else { Vec::new() };
    let names: Vec<&str> = names.into_iter().filter(is_made).collect();
    if names.is_empty() { String::new() } else { format!(", and of the library {}", listed(&names)) }
}

/// How fields of the part that needs no name are written as a map where YAML takes them for one text: lines such as
/// `heads=4` below `attention:`.
fn map_for_settings(text: &str, slot: &SlotDoc) -> Option<String> {
    let implied = slot.parts.iter().find(|p| Some(p.name) == slot.implied)?;
    let fields = (implied.fields)();
    let joined = text.replace(" = ", "=");
    let entry = |setting: &str| {
        let (key, value) =
            setting.trim_end_matches(',').split_once('=').filter(|(_, value)| !value.is_empty())?;
        fields.iter().any(|f| f.name == key).then(|| format!("{key}: {value}"))
    };
    let entries: Vec<String> = joined.split_whitespace().map(entry).collect::<Option<_>>()?;
    (!entries.is_empty()).then(|| format!("write `{{{}}}`", entries.join(", ")))
}

/// How a part that is written like a call, `rms_norm(eps=1e-5)`, is written as a map.
fn map_for_call(text: &str, slot: &SlotDoc, cx: &Context<'_>) -> Option<String> {
    let own = cx.definitions();
    let (name, given) = text.split_once('(')?;
    let given = given.trim_end().strip_suffix(')')?;
    let name = name.trim();
    let is_known = slot.parts.iter().any(|p| p.name == name) || slot.takes_own && own.has(name);
    let part = if is_known { name.to_owned() } else { meant_part(name, None, slot, cx)? };
    let documented = slot.parts.iter().find(|p| p.name == part);
    let of_own = own.get(&part).into_iter().flat_map(|part| &part.fields).map(|f| f.name.clone());
    let fields: Vec<String> = match documented {
        Some(doc) => (doc.fields)().iter().map(|f| f.name.to_owned()).collect(),
        None => of_own.collect(),
    };
    let names: Vec<&str> = fields.iter().map(String::as_str).collect();
    let is_known = |key: &str| names.contains(&key);
    // `swiglu(x)` is how an equation calls the part.
    let given = if matches!(given.trim(), "x" | "x, memory") { "" } else { given };
    // Where there is one key alone, a value without a key is meant for it.
    let only = if let [only] = names.as_slice() { *only } else { "KEY" };
    let mut written = Vec::new();
    let mut has_key = true;
    for one in given.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let (key, value) = one.split_once(['=', ':']).unwrap_or((only, one));
        let key = key.trim();
        let meant = if is_known(key) { None } else { suggest(key, &names) };
        let key = meant.as_deref().unwrap_or(key);
        has_key &= is_known(key);
        written.push(format!("{key}: {}", value.trim()));
    }
    Some(match (written.is_empty(), has_key) {
        (true, _) => format!("write `{part}`"),
        (false, true) => format!("in YAML, write `{{{part}: {{{}}}}}`", written.join(", ")),
        (false, false) if names.is_empty() => format!("write `{part}`, which takes nothing"),
        (false, false) => format!(
            "in YAML, write `{{{part}: {{{}}}}}`; the keys of `{part}` are {}",
            written.join(", "),
            listed(&names)
        ),
    })
}

/// The part that was probably meant by the key of a slot's only entry, which its fields may tell.
fn meant_by(only: &Entry, slot: &SlotDoc, cx: &Context<'_>) -> Option<String> {
    let near = meant_part(&only.key, Some(&only.value), slot, cx)?;
    let parts: Vec<&str> = slot.parts.iter().map(|p| p.name).collect();
    let all = likely(&only.key, &parts);
    // The part is not among them if it is one of the spec's own.
    if all.contains(&near) { cx.accepted(only, all) } else { Some(near) }
}

/// Reports and corrects the misspelled name of a part in a slot's node, so that faults inside the part are
/// reported as well, and none that only follow from the name.
pub fn mended_part<'n>(node: &'n Node, slot: &SlotDoc, cx: &mut Context<'_>) -> Cow<'n, Node> {
    let own = cx.definitions().clone();
    let is_known = |name: &str| {
        let implied = slot.parts.iter().filter(|p| Some(p.name) == slot.implied);
        slot.parts.iter().any(|p| p.name == name)
            || implied.flat_map(|p| (p.fields)()).any(|f| f.name == name)
            || own.has(name)
    };
    match &node.kind {
        Kind::Map(entries) if let Some(named) = named_by_value(node, entries, slot, &is_known, cx) => {
            Cow::Owned(named)
        }
        Kind::Map(entries) => match entries.as_slice() {
            [only] if !is_known(&only.key) => {
                let Some(part) = meant_by(only, slot, cx) else {
                    return unnamed(only, slot, cx).map_or(Cow::Borrowed(node), Cow::Owned);
                };
                report_part((&only.key, only.key_span, Some(&only.value)), slot, Some(&part), cx);
                Cow::Owned(Node::map(vec![Entry { key: part, ..only.clone() }], node.span))
            }
            several if let Some((only, part)) = laid_over(node, several, slot, &is_known, cx) => {
                report_part((&only.key, only.key_span, Some(&only.value)), slot, Some(&part), cx);
                Cow::Owned(Node::map(vec![Entry { key: part, ..only.clone() }], node.span))
            }
            several => beside(node, several, slot, &own, cx).map_or(Cow::Borrowed(node), Cow::Owned),
        },
        Kind::Scalar(_) | Kind::Null | Kind::List(_) | Kind::Delete => Cow::Borrowed(node),
    }
}

/// The entry that a setting or a variant lays over what the slot has, if it misspells a part, and that part: its right name
/// would have replaced all the others, as `--set ffn.glu.hidden=64` does.
fn laid_over<'e>(
    node: &Node,
    entries: &'e [Entry],
    slot: &SlotDoc,
    is_known: &dyn Fn(&str) -> bool,
    cx: &Context<'_>,
) -> Option<(&'e Entry, String)> {
    let mut unknown = entries.iter().filter(|e| !is_known(&e.key));
    let (Some(only), None) = (unknown.next(), unknown.next()) else { return None };
    let is_beside = |e: &Entry| node.span.contains(e.key_span) && node.span.contains(only.key_span);
    let is_laid =
        only.value.entries().is_some() && !entries.iter().any(|e| e.key != only.key && is_beside(e));
    let parts: Vec<&str> = slot.parts.iter().map(|p| p.name).collect();
    let part = suggest(&only.key, &parts).filter(|_| is_laid)?;
    (meant_by(only, slot, cx)? == part).then_some((only, part))
}

/// Reports the only key of a slot's node if it names no part and no field, but has fields of the part that needs no name
/// below it: `{grouped: {heads: 4}}`. Returns these fields; the others are those of the part that was meant, so nothing
/// more is said about them.
fn unnamed(only: &Entry, slot: &SlotDoc, cx: &mut Context<'_>) -> Option<Node> {
    let implied = slot.parts.iter().find(|p| Some(p.name) == slot.implied)?;
    let fields: Vec<&str> = (implied.fields)().iter().map(|f| f.name).collect();
    let is_one = |key: &str| fields.contains(&key) || suggest(key, &fields).is_some();
    let given = only.value.entries()?;
    let is_part = given.iter().any(|e| fields.contains(&e.key.as_str()));
    if !is_part || is_near_one(&only.key, &fields) {
        return None;
    }
    let kept: Vec<Entry> = given.iter().filter(|e| is_one(&e.key)).cloned().collect();
    report_part((&only.key, only.key_span, Some(&only.value)), slot, None, cx);
    Some(Node::map(kept, only.value.span))
}

/// Whether a word is spelt like one of these; what another library means by it does not count.
fn is_near_one(word: &str, names: &[&str]) -> bool {
    names.iter().any(|name| is_near(word, name))
}

/// The keys under which other libraries name the part that a map has the fields of.
const KINDS: [&str; 5] = ["type", "kind", "name", "class", "rope_type"];

/// Reports a map that names its part by the value of a key, `{type: yarn, factor: 4}`, and writes it as trafoc does:
/// `{yarn: {factor: 4}}`. `None` if the map does not.
fn named_by_value(
    node: &Node,
    entries: &[Entry],
    slot: &SlotDoc,
    is_known: &dyn Fn(&str) -> bool,
    cx: &mut Context<'_>,
) -> Option<Node> {
    let kind = entries.iter().find(|e| KINDS.contains(&e.key.as_str()) && !is_known(&e.key))?;
    let own = cx.definitions();
    let written = kind.value.text()?;
    let is_part = slot.parts.iter().any(|p| p.name == written) || slot.takes_own && own.has(written);
    let meant = if is_part { Some(written.to_owned()) } else { meant_part(written, None, slot, cx) };
    // A part next to it is the one over which a variant or a setting lays the map.
    let is_base = |e: &Entry| slot.parts.iter().any(|p| p.name == e.key) || slot.takes_own && own.has(&e.key);
    let base = entries.iter().find(|e| is_base(e));
    let rest: Vec<Entry> = entries.iter().filter(|e| e.key != kind.key && !is_base(e)).cloned().collect();
    let Some(part) = meant else {
        // The other keys may be those of the part that needs no name.
        if slot.implied.is_none()
            || known_elsewhere(written, None, slot, cx).is_none_or(|known| matches!(known, Known::Word(_)))
        {
            return None;
        }
        let rest = Node::map(rest, node.span);
        report_part((written, kind.value.span, Some(&rest)), slot, None, cx);
        return Some(rest);
    };
    let message = format!("{} has no key `{}`", titled(slot.name), kind.key);
    let help = format!("write `{}`", in_part(&part, &rest, slot));
    cx.report(Diagnostic::error(Code::UnknownKey, kind.key_span, message).help(help));
    let value = Node::map(rest, node.span);
    // The same part keeps its other fields.
    let base = base.filter(|base| base.key == part).map(|base| Node::map(vec![base.clone()], node.span));
    let merged = base.and_then(|base| cx.with_entry(&base, kind, std::slice::from_ref(&part), &value));
    Some(merged.unwrap_or_else(|| Node::map(vec![Entry { key: part, value, ..kind.clone() }], node.span)))
}

/// How a part is written with these fields: `{yarn: {factor: 4}}`.
pub(super) fn in_part(part: &str, fields: &[Entry], slot: &SlotDoc) -> String {
    let doc = slot.parts.iter().filter(|p| p.name == part).flat_map(|p| (p.fields)());
    let names: Vec<&str> = doc.map(|f| f.name).collect();
    let field = |e: &Entry| {
        let key = foreign_among(&e.key, &names).unwrap_or(&e.key);
        format!("{key}: {}", e.value.text().unwrap_or("..."))
    };
    let fields: Vec<String> = fields.iter().map(field).collect();
    match fields.as_slice() {
        [] => part.to_owned(),
        fields => format!("{{{part}: {{{}}}}}", fields.join(", ")),
    }
}

/// The parts of which all of these keys are fields.
pub(super) fn parts_with(entries: &[Entry], slot: &SlotDoc) -> Vec<&'static str> {
    let has = |fields: Vec<Field>| {
        let names: Vec<&str> = fields.iter().map(|f| f.name).collect();
        let is_one = |key: &str| names.contains(&key) || foreign_among(key, &names).is_some();
        entries.iter().all(|e| is_one(&e.key))
    };
    slot.parts.iter().filter(|p| has((p.fields)())).map(|p| p.name).collect()
}

/// Reports the misspelled names of parts next to the one part that a slot's node has, as where a variant changes a part
/// of what it extends. They are taken for what was meant: a part replaces another one, and its fields those of the
/// same part. `None` if there are none. Without a part it is not clear which of several keys is meant as one.
fn beside(
    node: &Node,
    entries: &[Entry],
    slot: &SlotDoc,
    own: &Definitions,
    cx: &mut Context<'_>,
) -> Option<Node> {
    let doc = |name: &str| slot.parts.iter().find(|p| p.name == name);
    let is_part = |name: &str| doc(name).is_some() || slot.takes_own && own.has(name);
    let mut named = entries.iter().filter(|e| is_part(&e.key));
    let (Some(part), None) = (named.next(), named.next()) else { return None };
    // A field next to its part is another mistake.
    let implied = slot.implied.and_then(doc);
    let fields: Vec<&str> =
        doc(&part.key).into_iter().chain(implied).flat_map(|p| (p.fields)()).map(|f| f.name).collect();
    let meant = |e: &Entry| {
        let near = meant_part(&e.key, Some(&e.value), slot, cx)?;
        let all: Vec<&str> = fields.iter().copied().chain([near.as_str()]).collect();
        (suggest(&e.key, &all).as_ref() == Some(&near)).then_some(near)
    };
    let is_other = |e: &&Entry| !is_part(&e.key) && !fields.contains(&e.key.as_str());
    let slips: Vec<(&Entry, Option<String>)> = entries
        .iter()
        .filter(is_other)
        .map(|e| (e, meant(e)))
        .filter(|(e, near)| near.is_some() || ideas::within(&e.key, slot.name, ideas::Met::Value).is_some())
        .collect();
    let is_slip = |e: &Entry| slips.iter().any(|(slip, _)| slip.key == e.key);
    let kept = entries.iter().filter(|e| !is_slip(e)).cloned().collect();
    let mut found = Node::map(kept, node.span);
    for (e, near) in &slips {
        report_part((&e.key, e.key_span, Some(&e.value)), slot, near.as_deref(), cx);
        let Some(near) = near else { continue };
        let meant = Entry { key: near.clone(), ..(*e).clone() };
        found = match cx.with_entry(&found, e, std::slice::from_ref(near), &e.value) {
            Some(merged) => merged,
            None => Node::map(vec![meant], node.span),
        };
    }
    (!slips.is_empty()).then_some(found)
}

/// An entry whose key is a path that begins with one of the names, as the maps that the path means: `decoder: {layers: 4}`
/// for `decoder.layers: 4`.
pub(super) fn nested(entry: &Entry, names: &[&str]) -> Option<String> {
    let keys: Vec<&str> = entry.key.split('.').collect();
    let ([first, _, ..], false) = (keys.as_slice(), keys.iter().any(|key| key.is_empty())) else {
        return None;
    };
    let value = entry.value.text().unwrap_or("...");
    let closed = "}".repeat(keys.len().saturating_sub(1));
    names.contains(first).then(|| format!("{}: {value}{closed}", keys.join(": {")))
}
