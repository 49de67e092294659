//! Formats a text, or converts it to the other notation. No comment is lost.

use crate::diag::{Diagnostic, Severity, Sink};
use crate::source::{SourceId, SourceMap, Span};

use super::merge::IsPart;
use super::outline::{Group, Outline, Value};
use super::{Notation, comments, parse, print};

/// Formats the text in its own notation. Returns `None` if it has errors, which are in the sink.
pub fn fmt(
    sources: &SourceMap,
    id: SourceId,
    notation: Notation,
    is_part: IsPart<'_>,
    sink: &mut Sink,
) -> Option<String> {
    let outline = outline(sources, id, notation, sink)?;
    let text = match notation {
        Notation::Yaml => print::yaml_outline(&outline),
        Notation::Dsl => print::dsl_outline(&outline, is_part),
    };
    readable(text, notation, id, sink)
}

/// The text, if it can be read. A layout with more spaces, or aliases that are written out, may be longer than a text may
/// be; its author would be left with a file that nothing takes.
fn readable(text: String, notation: Notation, id: SourceId, sink: &mut Sink) -> Option<String> {
    let mut sources = SourceMap::new();
    let written = sources.add("", &text);
    let mut found = Sink::new();
    parse(&sources, written, notation, &mut found);
    let Some(fault) = found.into_sorted().into_iter().find(|d| d.severity == Severity::Error) else {
        return Some(text);
    };
    let message = format!("what would be written could not be read: {}", fault.message);
    sink.push(Diagnostic::error(fault.code, Span::new(id, 0, 0), message));
    None
}

/// Converts the text to the other notation. Returns `None` if it has errors, which are in the sink.
pub fn convert(
    sources: &SourceMap,
    id: SourceId,
    from: Notation,
    to: Notation,
    is_part: IsPart<'_>,
    sink: &mut Sink,
) -> Option<String> {
    // What a notation can write does not have to be expanded for it: anchors stay.
    if from == to {
        return fmt(sources, id, from, is_part, sink);
    }
    let mut outline = outline(sources, id, from, sink)?;
    let text = match to {
        Notation::Yaml => {
            name_first(&mut outline);
            print::yaml_outline(&outline)
        }
        Notation::Dsl => {
            // The DSL has no anchors, so what they repeat is written out.
            let mut anchors = Vec::new();
            expand(&mut outline, &mut anchors);
            raise_lead(&mut outline);
            print::dsl_outline(&outline, is_part)
        }
    };
    readable(text, to, id, sink)
}

fn outline(sources: &SourceMap, id: SourceId, notation: Notation, sink: &mut Sink) -> Option<Outline> {
    let tree = parse(sources, id, notation, sink)?;
    // A tree with errors may lack what the author wrote, and formatting would delete it.
    if sink.has_errors() {
        return None;
    }
    Some(comments::read(&sources.get(id)?.text, notation, &tree))
}

/// In YAML the version comes first, followed by the name.
fn name_first(root: &mut Outline) {
    let Value::Group(group) = &mut root.value else { return };
    // Each is put first, so the version, which is last here, comes before the name.
    for key in ["name", "trafo"] {
        if let Some(at) = group.items.iter().position(|i| i.key.as_deref() == Some(key)) {
            let item = group.items.remove(at);
            group.items.insert(0, item);
        }
    }
}

/// In the DSL, comments above the first entry belong above the model.
fn raise_lead(root: &mut Outline) {
    if let Value::Group(Group { is_list: false, items, .. }) = &mut root.value
        && let Some(first) = items.first_mut()
    {
        root.lead.append(&mut first.lead);
    }
}

/// Replaces aliases by the values of their anchors, and merges maps.
fn expand(outline: &mut Outline, anchors: &mut Vec<(String, Value)>) {
    // An anchor's name may be given again; an alias means the last value before it.
    if let Value::Alias(name) = &outline.value
        && let Some((_, value)) = anchors.iter().rev().find(|(n, _)| n == name)
    {
        outline.value = value.clone();
    } else if let Value::Group(group) = &mut outline.value {
        for item in &mut group.items {
            expand(item, anchors);
        }
        merge(group);
    }
    if let Some(name) = outline.anchor.take() {
        anchors.push((name, bare(&outline.value)));
    }
}

/// Merges `<<: {a: 1}` to `a: 1`, unless the map has its own `a`.
fn merge(group: &mut Group) {
    let (merges, own): (Vec<Outline>, Vec<Outline>) =
        std::mem::take(&mut group.items).into_iter().partition(|i| i.is_merge);
    group.items = own;
    for mut merged in merges {
        // The line with `<<` disappears; its comments move to the first entry that takes its place.
        let comments: Vec<String> = merged.lead.drain(..).chain(merged.tail.take()).collect();
        let mut sources: Vec<Group> = Vec::new();
        match merged.value {
            Value::Group(map) if !map.is_list => sources.push(map),
            Value::Group(list) => sources.extend(list.items.into_iter().filter_map(|i| match i.value {
                Value::Group(map) => Some(map),
                _ => None,
            })),
            Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } => {}
        }
        let mut added: Vec<Outline> = Vec::new();
        for item in sources.into_iter().flat_map(|s| s.items) {
            let key = item.key.as_deref().unwrap_or("");
            // Of several merged maps the first one that has a key counts, as in YAML.
            if group.get(key).is_none() && !added.iter().any(|a| a.key == item.key) {
                added.push(item);
            }
        }
        match added.first_mut() {
            Some(first) => first.lead.splice(0..0, comments).for_each(drop),
            None => group.rest.extend(comments),
        }
        group.items.extend(added);
    }
}

/// A value without its comments, for its second use: a comment must not appear more often than it was
/// written.
fn bare(value: &Value) -> Value {
    let Value::Group(group) = value else { return value.clone() };
    let strip = |i: &Outline| Outline {
        lead: Vec::new(),
        tail: None,
        anchor: None,
        value: bare(&i.value),
        ..i.clone()
    };
    let items = group.items.iter().map(strip).collect();
    Value::Group(Group { items, head: None, rest: Vec::new(), ..group.clone() })
}
