//! Reports misspelled keys and parts with what was probably meant, and corrects them in the tree, so that
//! nothing else is reported that only follows from the misspelling.

use std::borrow::Cow;

use super::context::Context;
use super::value::{Field, Shape, SlotDoc};
use super::words::{listed, titled};
use crate::diag::suggest::{foreign, foreign_among, suggest};
use crate::diag::{Code, Diagnostic, ideas};
use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node};

/// The map without the keys that are neither a field nor one of `more`, which are reported. A key that is probably
/// misspelled gets the name of the field that was meant, so that nothing else is reported about it.
pub fn mended<'n>(
    node: &'n Node,
    title: &str,
    fields: &[Field],
    more: &[String],
    cx: &mut Context<'_>,
) -> Cow<'n, Node> {
    let Kind::Map(entries) = &node.kind else { return Cow::Borrowed(node) };
    let mut names: Vec<&str> = fields.iter().map(|f| f.name).collect();
    names.extend(more.iter().map(String::as_str).filter(|name| fields.iter().all(|f| f.name != *name)));
    let known = |key: &str| names.contains(&key);
    if entries.iter().all(|e| known(&e.key)) {
        return Cow::Borrowed(node);
    }
    let mut kept: Vec<Entry> = entries.iter().filter(|e| known(&e.key)).cloned().collect();
    let (given, other): (Vec<Field>, Vec<Field>) = fields.iter().partition(|f| node.get(f.name).is_some());
    for e in entries.iter().filter(|e| !known(&e.key)) {
        if cx.is_full() {
            break;
        }
        // A name that exists deeper down is not misspelled.
        let deeper = (1..=3).any(|depth| below(&e.key, &given, depth, None).is_some());
        let meant = meant(&e.key, &names).filter(|_| !deeper);
        cx.report(unknown_key(e, title, (&given, &other), &names, meant.as_deref()));
        if let Some(key) = meant.filter(|m| kept.iter().all(|k| k.key != *m)) {
            kept.push(Entry { key, ..e.clone() });
        }
    }
    Cow::Owned(Node::map(kept, node.span))
}

/// The name that was probably meant by a key.
fn meant(key: &str, names: &[&str]) -> Option<String> {
    let ours = foreign_among(key, names).map(str::to_owned);
    ours.or_else(|| suggest(key, names).filter(|_| foreign(key).is_none()))
}

fn unknown_key(
    entry: &Entry,
    title: &str,
    // The fields that the author gave, and the others. The given ones are searched first.
    (given, other): (&[Field], &[Field]),
    names: &[&str],
    meant: Option<&str>,
) -> Diagnostic {
    let key = entry.key.as_str();
    let message = format!("{} has no key `{key}`", titled(title));
    let diagnostic = Diagnostic::error(Code::UnknownKey, entry.key_span, message);
    let ours = foreign(key).map(|ours| ours.rsplit('.').next().unwrap_or(ours));
    // A field that accepts the value is preferred to one that only has the name.
    let deeper = |key: &str| {
        let at = |value| {
            (1..=4).find_map(|depth| below(key, given, depth, value).or(below(key, other, depth, value)))
        };
        at(Some(&entry.value)).or_else(|| at(None))
    };
    if let Some(idea) = ideas::outside(key).filter(|_| meant.is_none()) {
        return diagnostic.help(idea);
    }
    match (meant, ours, deeper(ours.unwrap_or(key))) {
        (Some(name), Some(_), _) => diagnostic.help(format!("trafoc calls this `{name}`")),
        (Some(name), None, _) => diagnostic.help(format!("did you mean `{name}`?")),
        (None, _, Some(Destination { path, part: Some(part) })) => {
            diagnostic.help(format!("write `{part}` as the value of `{path}`"))
        }
        (None, Some(_), Some(Destination { path, part: None })) => {
            diagnostic.help(format!("trafoc calls this `{path}`"))
        }
        (None, None, Some(Destination { path, part: None })) => {
            diagnostic.help(format!("it belongs at `{path}`"))
        }
        (None, Some(name), None) => diagnostic.help(format!("trafoc calls this `{name}`, elsewhere")),
        (None, None, None) if names.is_empty() => diagnostic.help("it has no fields".to_owned()),
        (None, None, None) => diagnostic.help(format!("it has {}", listed(names))),
    }
}

/// Where a key belongs.
struct Destination {
    /// The path of the field.
    path: String,
    /// The part without fields that is the key's value.
    part: Option<&'static str>,
}

/// Where a field or part of this name is, exactly `depth` levels below some fields. If a value is given, the field or
/// part must accept it.
fn below(key: &str, fields: &[Field], depth: usize, value: Option<&Node>) -> Option<Destination> {
    let at = |path: &str| Destination { path: path.to_owned(), part: None };
    let inside = |field: &Field| -> Option<Destination> {
        let in_record = |fields: Vec<Field>, depth: usize| match depth {
            0 => None,
            1 => fields
                .iter()
                .find(|f| f.name == key && value.is_none_or(|value| fits((f.shape)(), value)))
                .map(|f| at(f.name)),
            _ => below(key, &fields, depth.saturating_sub(1), value),
        };
        let within = |name: &str, place: Destination| match place.path.as_str() {
            "" => Destination { path: name.to_owned(), ..place },
            path => Destination { path: format!("{name}.{path}"), ..place },
        };
        let found = match (field.shape)() {
            Shape::Record(_, fields) => in_record(fields(), depth),
            Shape::Slot(doc) => {
                let doc = doc();
                let named = doc.parts.iter().find(|p| depth == 1 && p.name == key && key != "none");
                let named = named.map(|p| {
                    let has_fields = !(p.fields)().is_empty();
                    if has_fields {
                        at(p.name)
                    } else {
                        Destination { path: String::new(), part: Some(p.name) }
                    }
                });
                named.or_else(|| {
                    doc.parts.iter().find_map(|part| {
                        let is_implied = doc.implied == Some(part.name);
                        let depth = if is_implied { depth } else { depth.checked_sub(1)? };
                        let place = in_record((part.fields)(), depth)?;
                        Some(if is_implied { place } else { within(part.name, place) })
                    })
                })
            }
            Shape::Bool
            | Shape::Integer(_)
            | Shape::Number(_)
            | Shape::Text
            | Shape::Texts
            | Shape::Choice(_)
            | Shape::List(_)
            | Shape::Map(_)
            | Shape::Equation
            | Shape::Any => None,
        };
        found.map(|place| within(field.name, place))
    };
    fields.iter().find_map(inside)
}

/// Whether a value may be meant for a field of that shape: a word is one that the field takes, and a part too.
fn fits(shape: Shape, value: &Node) -> bool {
    match (shape, value.text(), &value.kind) {
        (Shape::Slot(doc), Some(word), _) => doc().parts.iter().any(|p| p.name == word),
        (Shape::Slot(doc), None, Kind::Map(entries)) => match entries.as_slice() {
            [only] => {
                let doc = doc();
                let implied = doc.parts.iter().filter(|p| Some(p.name) == doc.implied);
                doc.parts.iter().any(|p| p.name == only.key)
                    || implied.flat_map(|p| (p.fields)()).any(|f| f.name == only.key)
            }
            _ => true,
        },
        (Shape::Choice(words), Some(word), _) => words.iter().any(|w| w.name == word),
        (Shape::Bool, Some(word), _) => matches!(word, "true" | "false"),
        (_, _, _) => true,
    }
}

/// Reports a name that none of the slot's parts has.
pub(super) fn report_part(name: &str, span: Span, slot: &SlotDoc, meant: Option<&str>, cx: &mut Context<'_>) {
    let names: Vec<&str> = slot.parts.iter().map(|p| p.name).collect();
    let message = format!("`{name}` is not a valid {}", slot.name);
    let diagnostic = Diagnostic::error(Code::UnknownPart, span, message);
    let list = format!("valid parts are {}", listed(&names));
    cx.report(match (meant, ideas::outside(name)) {
        (Some(near), _) => diagnostic.help(format!("did you mean `{near}`?")),
        (None, Some(idea)) => diagnostic.help(idea).help(list),
        (None, None) => diagnostic.help(list),
    });
}

/// The part that a name was probably meant for. Where fields may be given without their part's name, a name
/// more like one of them is none.
pub(super) fn meant_part(name: &str, slot: &SlotDoc) -> Option<&'static str> {
    let parts: Vec<&'static str> = slot.parts.iter().map(|p| p.name).collect();
    let fields = slot.parts.iter().filter(|p| Some(p.name) == slot.implied).flat_map(|p| (p.fields)());
    let all: Vec<&'static str> = parts.iter().copied().chain(fields.map(|f| f.name)).collect();
    let near = suggest(name, &all)?;
    parts.into_iter().find(|part| *part == near)
}

/// A slot's node in which a misspelled name of a part, which is reported, is put right: so that nothing is
/// said that only follows from it, and what is wrong inside the part is said as well.
pub fn mended_part<'n>(node: &'n Node, slot: &SlotDoc, cx: &mut Context<'_>) -> Cow<'n, Node> {
    let is_known = |name: &str| {
        let implied = slot.parts.iter().filter(|p| Some(p.name) == slot.implied);
        slot.parts.iter().any(|p| p.name == name)
            || implied.flat_map(|p| (p.fields)()).any(|f| f.name == name)
    };
    match &node.kind {
        Kind::Map(entries) => match entries.as_slice() {
            [only] if !is_known(&only.key) => {
                let Some(part) = meant_part(&only.key, slot) else { return Cow::Borrowed(node) };
                report_part(&only.key, only.key_span, slot, Some(part), cx);
                Cow::Owned(Node::map(vec![Entry { key: part.to_owned(), ..only.clone() }], node.span))
            }
            _ => Cow::Borrowed(node),
        },
        Kind::Scalar(_) | Kind::Null | Kind::List(_) | Kind::Delete => Cow::Borrowed(node),
    }
}

/// A tree of that shape with misspelled keys and parts, which are reported, put right: for what is read before
/// it is decoded.
pub fn mended_deep(node: &Node, shape: Shape, cx: &mut Context<'_>) -> Node {
    let below = |node: &Node, title: &str, fields: &[Field], cx: &mut Context<'_>| {
        let mut node = mended(node, title, fields, &[], cx).into_owned();
        let Kind::Map(entries) = &mut node.kind else { return node };
        for e in entries {
            if let Some(field) = fields.iter().find(|f| f.name == e.key) {
                e.value = mended_deep(&e.value, (field.shape)(), cx);
            }
        }
        node
    };
    match shape {
        Shape::Record(title, fields) => below(node, title, &fields(), cx),
        Shape::Slot(doc) => {
            let slot = doc();
            let mut node = mended_part(node, &slot, cx).into_owned();
            if let Kind::Map(entries) = &mut node.kind
                && let [only] = entries.as_mut_slice()
                && let Some(part) = slot.parts.iter().find(|p| p.name == only.key)
            {
                only.value = below(&only.value, part.name, &(part.fields)(), cx);
            }
            node
        }
        Shape::Bool
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Text
        | Shape::Texts
        | Shape::Choice(_)
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::Equation
        | Shape::Any => node.clone(),
    }
}
