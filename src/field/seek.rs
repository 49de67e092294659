//! Where a key that a map does not have belongs, in the maps and parts below it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::context::Context;
use super::value::{DefaultDoc, Field, Shape, SlotDoc};
use crate::syntax::tree::{Entry, Kind, Node};

/// The names of all fields and parts in some fields and below them.
pub fn names_below(fields: &[Field]) -> BTreeSet<&'static str> {
    // Each record and each slot is visited once, however many fields have it.
    fn visit(shape: Shape, seen: &mut BTreeSet<(bool, &'static str)>, names: &mut BTreeSet<&'static str>) {
        match shape {
            Shape::Record(title, fields) => {
                // A record and a slot may have the same name.
                if seen.insert((true, title)) {
                    all(&fields(), seen, names);
                }
            }
            Shape::Slot(doc) => {
                let doc = doc();
                if seen.insert((false, doc.name)) {
                    for part in &doc.parts {
                        names.insert(part.name);
                        all(&(part.fields)(), seen, names);
                    }
                }
            }
            Shape::Bool
            | Shape::Integer(_)
            | Shape::Number(_)
            | Shape::Text
            | Shape::Texts
            | Shape::Choice(_)
            | Shape::List(..)
            | Shape::Map(_)
            | Shape::Equation
            | Shape::Part
            | Shape::Any => {}
        }
    }
    fn all(fields: &[Field], seen: &mut BTreeSet<(bool, &'static str)>, names: &mut BTreeSet<&'static str>) {
        for field in fields {
            names.insert(field.name);
            visit((field.shape)(), seen, names);
        }
    }
    let mut names = BTreeSet::new();
    all(fields, &mut BTreeSet::new(), &mut names);
    names
}

/// How many levels below a map a key is looked for in the parts that the map has: enough to reach the experts
/// of a mixture in a stack.
pub(super) const DEEPEST: usize = 6;

/// How many levels below a map a key is looked for in all parts.
const DEEPEST_OF_OTHERS: usize = 5;

/// The most places that are tried before one is suggested; each try decodes the whole document.
const TRIALS: usize = 6;

/// Where below a map a key belongs: the first place that the checker accepts, in this order. Places that can
/// take the value come before others; then those in parts that the map has, those in parts that it has by
/// default, and those in other parts; then those at fewer levels. A record that is not written and needs other keys
/// comes last: in a spec with a decoder no key means an encoder, unless only that has it.
pub(super) fn destination(
    wanted: &str,
    entry: &Entry,
    map: &Node,
    (given, other): (&[Field], &[Field]),
    cx: &Context<'_>,
) -> Option<Found> {
    let needs_keys = |field: &Field| {
        matches!((field.shape)(), Shape::Record(_, fields)
            if fields().iter().any(|f| matches!(f.default, DefaultDoc::Required)))
    };
    let (lacking, other): (Vec<Field>, Vec<Field>) = other.iter().partition(|field| needs_keys(field));
    let near = destination_among(wanted, entry, map, (given, &other), cx);
    if near.as_ref().is_some_and(|near| near.is_accepted) {
        return near;
    }
    // A stack that the spec needs is likelier than a part that would replace another one.
    let needed: Vec<Field> =
        lacking.iter().filter(|field| cx.stacks().contains(&field.name)).cloned().collect();
    destination_among(wanted, entry, map, (&[], &needed), cx)
        .or(near)
        .or_else(|| destination_among(wanted, entry, map, (&[], &lacking), cx))
}

fn destination_among(
    wanted: &str,
    entry: &Entry,
    map: &Node,
    (given, other): (&[Field], &[Field]),
    cx: &Context<'_>,
) -> Option<Found> {
    // A dotted word is the path that another library's word has here: for `batch.size`, `size` is looked for
    // below `batch`. It means no other place: a `size` of something else is another number.
    let around = if wanted.contains('.') { cx.above(entry) } else { Vec::new() };
    let (key, above) = split(wanted, &around);
    let above = above.as_slice();
    let tiers = [(Parts::Present, DEEPEST), (Parts::Any, DEEPEST_OF_OTHERS)];
    // An iterator, so that nothing is searched after the first place that is accepted.
    let searches = [Some(&entry.value), None].into_iter().flat_map(move |value| {
        tiers.into_iter().flat_map(move |(part, deepest)| {
            (1..=deepest).map(move |depth| (Search { key, value, above }, part, depth))
        })
    });
    let mut tried: Vec<Destination> = Vec::new();
    for (search, part, depth) in searches {
        for place in search.below(given, map, depth, part).chain(search.below(other, map, depth, part)) {
            // The later searches find the places of the earlier ones again.
            if tried.contains(&place) {
                continue;
            }
            if cx.would_accept(entry, &place.path, &place.value(entry)) {
                let merged = cx.with_entry(map, entry, &place.path, &place.value(entry));
                let is_accepted = merged.is_none_or(|merged| keeps(map, &merged));
                return Some(Found { place, is_accepted, fits: true });
            }
            tried.push(place);
            if tried.len() >= TRIALS {
                return Found::refused(tried);
            }
        }
    }
    Found::refused(tried)
}

/// Whether a key can be in one place alone of the maps and parts that a map has, given or by default.
pub(super) fn has_one_place(
    wanted: &str,
    entry: &Entry,
    map: &Node,
    (given, other): (&[Field], &[Field]),
    cx: &Context<'_>,
) -> bool {
    let around = cx.above(entry);
    let (key, above) = split(wanted, &around);
    let search = Search { key, value: None, above: &above };
    let places = (1..=DEEPEST).flat_map(|depth| {
        search.below(given, map, depth, Parts::Present).chain(search.below(other, map, depth, Parts::Present))
    });
    let mut found: Vec<Destination> = Vec::new();
    for place in places {
        if !found.contains(&place) {
            found.push(place);
        }
    }
    found.len() <= 1
}

/// A dotted word as its key and the maps above it, without those that are around already.
fn split<'w>(wanted: &'w str, around: &[String]) -> (&'w str, Vec<&'w str>) {
    let (key, above) = wanted.rsplit_once('.').map_or((wanted, ""), |(above, key)| (key, above));
    let mut above: Vec<&str> = above.split('.').filter(|part| !part.is_empty()).collect();
    // The first of them may be maps in which the key is.
    for key in around {
        if above.first() == Some(&key.as_str()) {
            above.remove(0);
        }
    }
    (key, above)
}

/// Whether everything that is in a map is still there after something was merged into it: a place that would replace
/// another part or another value is only a suggestion.
fn keeps(old: &Node, new: &Node) -> bool {
    match (old.entries(), old.text()) {
        (Some(entries), _) => entries.iter().all(|e| new.get(&e.key).is_some_and(|n| keeps(&e.value, n))),
        // The name of a part becomes the key of its fields.
        (None, Some(word)) => word == "none" || new.text() == Some(word) || new.get(word).is_some(),
        (None, None) => true,
    }
}

/// The keys of the two stacks of a spec.
pub const STACKS: [&str; 2] = ["encoder", "decoder"];

/// Where a key was found to belong.
pub(super) struct Found {
    pub(super) place: Destination,
    /// Whether the checker would accept it there, as far as that could be tried, and nothing would be replaced.
    pub(super) is_accepted: bool,
    /// Whether the checker would accept it there, although another value may be replaced.
    pub(super) fits: bool,
}

impl Found {
    /// The same place in the other stack of a spec, if that is written and takes the value as well: `heads` may be
    /// those of the encoder and those of the decoder.
    pub(super) fn twin(&self, entry: &Entry, map: &Node, cx: &Context<'_>) -> Option<Destination> {
        let (first, rest) = self.place.path.split_first()?;
        let [one, other] = STACKS;
        let twin = if first == one { other } else { one };
        if !STACKS.contains(&first.as_str()) || map.get(twin).is_none() || !self.fits {
            return None;
        }
        let path: Vec<String> = std::iter::once(twin.to_owned()).chain(rest.iter().cloned()).collect();
        let is_accepted = cx.would_accept(entry, &path, &self.place.value(entry));
        is_accepted.then_some(Destination { path, part: self.place.part })
    }

    /// The first of the places of which the checker accepts none.
    fn refused(tried: Vec<Destination>) -> Option<Self> {
        tried.into_iter().next().map(|place| Self { place, is_accepted: false, fits: false })
    }
}

/// Where a name belongs, below the map that has it now.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Destination {
    /// The path of the key.
    pub(super) path: Vec<String>,
    /// The part without fields that is the key's value.
    pub(super) part: Option<&'static str>,
}

impl Destination {
    /// What the entry becomes there.
    pub(super) fn value<'n>(&self, entry: &'n Entry) -> Cow<'n, Node> {
        match self.part {
            Some(part) => Cow::Owned(Node::plain(part, entry.value.span)),
            None => Cow::Borrowed(&entry.value),
        }
    }
}

/// The parts of a slot in which a name is looked for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Parts {
    /// The one that is written, or else the default.
    Present,
    /// Every part that the slot could have.
    Any,
}

/// What is looked for below a map.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    /// The name of a field or of a part.
    pub(super) key: &'a str,
    /// The value that the field must be able to have; `None` for any.
    pub(super) value: Option<&'a Node>,
    /// The names of maps and parts around it, from the outermost; there may be others between them.
    pub(super) above: &'a [&'a str],
}

impl<'a> Search<'a> {
    /// The places of the name that are exactly this many levels below some fields of a map.
    pub(super) fn below<'s>(
        &'s self,
        fields: &'s [Field],
        map: &'s Node,
        depth: usize,
        part: Parts,
    ) -> impl Iterator<Item = Destination> + 's {
        fields.iter().filter_map(move |field| self.inside(field, map, depth, part))
    }

    /// What is left to be looked for in a map or a part of this name.
    fn within(&self, name: &str) -> Self {
        match self.above.split_first() {
            Some((first, above)) if *first == name => Self { above, ..*self },
            Some(_) | None => *self,
        }
    }

    fn inside(&self, field: &Field, map: &Node, depth: usize, part: Parts) -> Option<Destination> {
        let written = map.get(field.name).cloned();
        let default = match field.default {
            DefaultDoc::Value(value) => Some(value()),
            DefaultDoc::Required | DefaultDoc::Absent | DefaultDoc::Formula(_) => None,
        };
        let nothing = || Node { kind: Kind::Null, span: map.span };
        let node = match written.or(default) {
            Some(node) => node,
            // A field that is neither written nor has a default might be what is meant; its parts only if all
            // are looked at.
            None if depth == 1 || part == Parts::Any => nothing(),
            None => return None,
        };
        let within = |name: &str, mut place: Destination| {
            place.path.insert(0, name.to_owned());
            place
        };
        let search = self.within(field.name);
        let found = match (field.shape)() {
            Shape::Record(_, fields) => search.in_record(&fields(), &node, depth, part),
            Shape::Slot(doc) => {
                let doc = doc();
                let there = written_part(&doc, &node).filter(|_| part == Parts::Present);
                // Several slots have a part `none`, so that name does not tell which one is meant.
                let is_named =
                    |name: &str| search.above.is_empty() && depth == 1 && name == self.key && name != "none";
                let named = doc.parts.iter().find(|p| is_named(p.name));
                let named = named.map(|p| {
                    if (p.fields)().is_empty() {
                        Destination { path: Vec::new(), part: Some(p.name) }
                    } else {
                        Destination { path: vec![p.name.to_owned()], part: None }
                    }
                });
                let considered = doc.parts.iter().filter(|p| there.is_none_or(|(name, _)| name == p.name));
                named.or_else(|| {
                    considered.into_iter().find_map(|part_doc| {
                        // Fields of the implied part are written without its name, and so on the level of the
                        // slot.
                        let is_implied =
                            doc.implied == Some(part_doc.name) && there.is_none_or(|(_, is_named)| !is_named);
                        let depth = if is_implied { depth } else { depth.checked_sub(1)? };
                        // The fields of another part are none of this one.
                        let is_other =
                            || written_part(&doc, &node).is_some_and(|(name, _)| name != part_doc.name);
                        let empty = nothing();
                        let inner = match node.get(part_doc.name) {
                            Some(inner) => inner,
                            None if is_other() => &empty,
                            None => &node,
                        };
                        let search = search.within(part_doc.name);
                        let place = search.in_record(&(part_doc.fields)(), inner, depth, part)?;
                        Some(if is_implied { place } else { within(part_doc.name, place) })
                    })
                })
            }
            Shape::Bool
            | Shape::Integer(_)
            | Shape::Number(_)
            | Shape::Text
            | Shape::Texts
            | Shape::Choice(_)
            | Shape::List(..)
            | Shape::Map(_)
            | Shape::Equation
            | Shape::Part
            | Shape::Any => None,
        };
        found.map(|place| within(field.name, place))
    }

    fn in_record(&self, fields: &[Field], map: &Node, depth: usize, part: Parts) -> Option<Destination> {
        let fits = |f: &&Field| {
            self.above.is_empty()
                && f.name == self.key
                && self.value.is_none_or(|value| fits((f.shape)(), value))
        };
        // A record may be written as one part of one of its fields: `init: {normal: {}}`.
        if let Some((name, doc)) = short_form(fields, map) {
            let part_doc = doc.parts.iter().find(|p| p.name == name)?;
            let inner = map.get(name).unwrap_or(map);
            let search = self.within(name);
            let mut place = search.in_record(&(part_doc.fields)(), inner, depth.checked_sub(1)?, part)?;
            place.path.insert(0, name.to_owned());
            return Some(place);
        }
        match depth {
            0 => None,
            1 => fields.iter().find(fits).map(|f| Destination { path: vec![f.name.to_owned()], part: None }),
            _ => self.below(fields, map, depth.saturating_sub(1), part).next(),
        }
    }
}

/// The part that is written in place of a record, with the slot that has it: `init: {normal: {}}` is short
/// for `init: {weights: {normal: {}}}`. `None` if the record is written with its fields.
fn short_form(fields: &[Field], node: &Node) -> Option<(&'static str, SlotDoc)> {
    let name = match (&node.kind, node.text()) {
        (Kind::Map(entries), _) => match entries.as_slice() {
            [only] if fields.iter().all(|f| f.name != only.key) => only.key.as_str(),
            _ => return None,
        },
        (_, text) => text?,
    };
    fields.iter().filter_map(|f| (f.shape)().slot()).find_map(|doc| {
        let part = doc.parts.iter().find(|p| p.name == name).map(|p| p.name)?;
        Some((part, doc))
    })
}

/// The part that a slot's node has, and whether the node names it; `None` if that is unknown.
fn written_part(slot: &SlotDoc, node: &Node) -> Option<(&'static str, bool)> {
    let known = |name: &str| slot.parts.iter().find(|p| p.name == name).map(|p| (p.name, true));
    match (&node.kind, node.text()) {
        (Kind::Map(entries), _) => match entries.as_slice() {
            [only] if known(&only.key).is_some() => known(&only.key),
            _ => slot.implied.map(|part| (part, false)),
        },
        (_, Some(text)) => known(text),
        (_, None) => slot.implied.map(|part| (part, false)),
    }
}

/// Whether a value may be meant for a field of this shape. Words and parts must be ones that the field
/// accepts; ranges of numbers are not checked.
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
        (
            Shape::Bool | Shape::Integer(_) | Shape::Number(_) | Shape::Text | Shape::Choice(_),
            None,
            Kind::Map(_) | Kind::List(_),
        ) => false,
        (Shape::Integer(_) | Shape::Number(_), Some("true" | "false"), _) => false,
        // Anything else may be a text or an expression of the right kind.
        (_, _, _) => true,
    }
}
