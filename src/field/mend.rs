//! Reports misspelled keys and parts with what was probably meant, and corrects them in the tree, so that
//! nothing else is reported that only follows from the misspelling.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::context::Context;
use super::mend_part::{mended_part, nested};
use super::value::{DefaultDoc, Field, Shape, SlotDoc};
use super::words::{listed, titled};
use crate::diag::foreign::{foreign, foreign_among};
use crate::diag::suggest::{likely, suggest};
use crate::diag::{Code, Diagnostic, ideas};
use crate::syntax::tree::{Entry, Kind, Node};

/// Reports every key of a map that is neither a field nor one of `more`, and returns the map without them. A
/// key that was probably misspelled becomes the field it was meant for, and one that belongs further down is
/// moved there, so that nothing else is reported about it.
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
    // The usual case, in which nothing is copied.
    if entries.iter().all(|e| known(&e.key)) {
        return Cow::Borrowed(node);
    }
    let mut kept: Vec<Entry> = entries.iter().filter(|e| known(&e.key)).cloned().collect();
    // Searches take time: only for a key that some field or part has is its place looked for.
    let somewhere = names_below(fields);
    // A misplaced key belongs more probably to a map that the author has written than to one that is missing.
    let (given, other): (Vec<Field>, Vec<Field>) = fields.iter().partition(|f| node.get(f.name).is_some());
    let unknown = entries.iter().filter(|e| !known(&e.key));
    let has_slips = unknown.clone().count() <= MOST_SLIPS;
    let is_only = unknown.clone().count() == 1;
    let mut moves = Vec::new();
    let is_whole = matches!(title, "spec" | "recipe");
    let all =
        if names.is_empty() { "it has no fields".to_owned() } else { format!("it has {}", listed(&names)) };
    let mut names_of = Names { all: Some(&all), below: &somewhere, has_slips, is_whole };
    for e in unknown {
        // To look for what was meant takes time, and nothing more would be reported.
        if cx.is_full() {
            break;
        }
        // A name that exists deeper down is not misspelled.
        let search = Search { key: &e.key, value: None };
        let is_somewhere = somewhere.contains(e.key.as_str());
        let is_deeper = is_somewhere
            && (search.below(&other, node, 1, Parts::Any).next().is_some()
                || (1..=3).any(|depth| search.below(&given, node, depth, Parts::Any).next().is_some()));
        // Unless another library calls a key of this very map so: `iterations` of a recipe are its `steps`.
        let is_theirs = |near: &String| foreign_among(&e.key, &names).is_some() && node.get(near).is_none();
        let meant = meant(e, title, &names, cx).filter(|near| !is_deeper || is_theirs(near));
        let missing =
            if meant.is_none() && !is_deeper && is_only { the_missing(e, fields, node, cx) } else { None };
        let (mut diagnostic, place) =
            unknown_key(e, title, node, (&given, &other), names_of, meant.as_deref(), cx);
        // The list of all keys is the same for every key of this map.
        let is_listed = diagnostic.help.contains(&all);
        if is_listed {
            names_of.all = None;
        }
        // Few fields take a word or a map, but many a number, which may be meant for one elsewhere.
        let is_number = e.value.text().is_some_and(|text| text.parse::<f64>().is_ok());
        let missing = missing.filter(|_| place.is_none() && (is_listed || !is_number));
        if let Some(key) = missing {
            diagnostic.help = vec![format!("did you mean `{key}`, which is missing?")];
        }
        let meant = meant.or(missing.map(str::to_owned));
        cx.report(diagnostic);
        if let Some(key) = meant {
            cx.doubt(e.value.span);
            if kept.iter().all(|k| k.key != key) {
                kept.push(Entry { key, ..e.clone() });
            } else {
                // What a variant misspells replaces what the spec has there, as its right name would.
                moves.push((e, Destination { path: vec![key], part: None }));
            }
        }
        moves.extend(place.map(|place| (e, place)));
    }
    let map = Node::map(kept, node.span);
    // Merged, because the map may have other keys at that place.
    let moved = moves.into_iter().fold(map, |map, (entry, place)| {
        let value = place.value(entry);
        cx.with_entry(&map, entry, &place.path, &value).unwrap_or(map)
    });
    Cow::Owned(moved)
}

/// The name that was probably meant by a key.
fn meant(entry: &Entry, title: &str, names: &[&str], cx: &Context<'_>) -> Option<String> {
    // A dotted word is the path that another library's word has here: `ffn.hidden` is `hidden` in the map `ffn`, and in
    // the part that this holds.
    let here = || {
        let (map, last) = foreign(&entry.key)?.rsplit_once('.')?;
        let is_here = title == map || cx.above(entry).iter().rev().take(2).any(|key| key == map);
        (is_here && names.contains(&last)).then_some(last)
    };
    // A path is no misspelled word.
    if nested(entry, names).is_some() {
        return None;
    }
    let ours = foreign_among(&entry.key, names).or_else(here).map(str::to_owned);
    // A word that another library uses is not a misspelled one of ours.
    ours.or_else(|| cx.accepted(entry, likely(&entry.key, names)).filter(|_| foreign(&entry.key).is_none()))
}

/// The only one of the fields that a map lacks and needs with which the checker accepts the value of an unknown key.
fn the_missing(entry: &Entry, fields: &[Field], map: &Node, cx: &Context<'_>) -> Option<&'static str> {
    let is_known_elsewhere = foreign(&entry.key).is_some() || ideas::outside(&entry.key).is_some();
    if is_known_elsewhere || !cx.can_try() {
        return None;
    }
    let missing =
        fields.iter().filter(|f| matches!(f.default, DefaultDoc::Required) && map.get(f.name).is_none());
    let mut accepted =
        missing.map(|f| f.name).filter(|name| cx.would_accept(entry, &[(*name).to_owned()], &entry.value));
    match (accepted.next(), accepted.next()) {
        (Some(name), None) => Some(name),
        (_, _) => None,
    }
}

/// The most unknown keys of a map for which misspelled words are looked for in other places. A map with more
/// of them is something else than a spec, and each search takes time.
const MOST_SLIPS: usize = 20;

/// The names that are known where an unknown key is.
#[derive(Clone, Copy)]
struct Names<'a> {
    /// The list of the keys that the map itself may have, unless it has been reported.
    all: Option<&'a str>,
    /// The names of all fields and parts below them, at any depth.
    below: &'a BTreeSet<&'static str>,
    /// Whether a key may be both misspelled and in the wrong place; see [`MOST_SLIPS`].
    has_slips: bool,
    /// Whether the map is the whole document.
    is_whole: bool,
}

fn unknown_key(
    entry: &Entry,
    title: &str,
    map: &Node,
    // Fields that are written come before those that could be.
    (given, other): (&[Field], &[Field]),
    names: Names<'_>,
    meant: Option<&str>,
    cx: &Context<'_>,
) -> (Diagnostic, Option<Destination>) {
    let key = entry.key.as_str();
    let message = format!("{} has no key `{key}`", titled(title));
    let diagnostic = Diagnostic::error(Code::UnknownKey, entry.key_span, message);
    let fields: Vec<&str> = given.iter().chain(other).map(|f| f.name).collect();
    if let Some(maps) = nested(entry, &fields) {
        return (diagnostic.help(format!("write `{maps}`: paths are for `--set` and for variants")), None);
    }
    let ours = foreign(key);
    // What the language does not have belongs nowhere in it, so no place is looked for.
    let outside = ideas::note(title, key).or_else(|| ideas::outside(key));
    if let Some(idea) = outside.filter(|_| meant.is_none()) {
        return (diagnostic.help(idea), None);
    }
    if let Some(name) = meant {
        let help = if ours.is_some() { "trafoc calls this" } else { "did you mean" };
        let end = if ours.is_some() { "" } else { "?" };
        return (diagnostic.help(format!("{help} `{name}`{end}")), None);
    }
    let wanted = ours.unwrap_or(key);
    let is_somewhere = wanted.rsplit('.').next().is_some_and(|last| names.below.contains(last));
    let found = if is_somewhere { destination(wanted, entry, map, (given, other), cx) } else { None };
    let help = match &found {
        Some(Found { place: Destination { path, part: Some(part) }, .. }) => {
            format!("write `{part}` as the value of `{}`", path.join("."))
        }
        Some(Found { place, .. }) if ours.is_some() => {
            format!("trafoc calls this `{}`", place.path.join("."))
        }
        Some(Found { place, .. }) => format!("it belongs at `{}`", place.path.join(".")),
        None if let Some(beside) = higher(entry, wanted, names, cx) => match ours {
            Some(_) => format!("trafoc calls this `{wanted}`: put it next to `{beside}`"),
            None => format!("put `{wanted}` next to `{beside}`"),
        },
        None if ours.is_some() => format!("trafoc calls this `{wanted}`, elsewhere"),
        None if let Some(help) = cx.help_for_other(key).filter(|_| names.is_whole) => help.to_owned(),
        // The name of a part may be misspelled where it is defined.
        None if let Some(own) = suggest(key, &cx.definitions().own_names()) => {
            format!("did you mean `{own}`?")
        }
        None if let Some(help) = slip_elsewhere(entry, map, (given, other), names, cx) => help,
        None => match names.all {
            Some(all) => all.to_owned(),
            None => return (diagnostic, None),
        },
    };
    (diagnostic.help(help), found.filter(|found| found.is_accepted).map(|found| found.place))
}

/// For a key that is too deep in the document, and that the checker accepts further up: the path of the key next to which
/// it belongs.
fn higher(entry: &Entry, wanted: &str, names: Names<'_>, cx: &Context<'_>) -> Option<String> {
    if !names.has_slips {
        return None;
    }
    let above = cx.above(entry);
    let kept = above.len().checked_sub(cx.levels_up(entry, wanted)?)?;
    Some(above.get(..=kept)?.join("."))
}

/// A suggestion for a key that is misspelled and in the wrong place as well.
fn slip_elsewhere(
    entry: &Entry,
    map: &Node,
    (given, other): (&[Field], &[Field]),
    names: Names<'_>,
    cx: &Context<'_>,
) -> Option<String> {
    if !names.has_slips {
        return None;
    }
    let words: Vec<&str> = names.below.iter().copied().collect();
    // The entry keeps its misspelled key here; only the help gives the right one.
    let near = suggest(&entry.key, &words)?;
    let Destination { path, part } = destination(&near, entry, map, (given, other), cx)?.place;
    let path = path.join(".");
    Some(match part {
        Some(part) => format!("did you mean `{part}` as the value of `{path}`?"),
        None => format!("did you mean `{near}`, at `{path}`?"),
    })
}

/// The names of all fields and parts in some fields and below them.
fn names_below(fields: &[Field]) -> BTreeSet<&'static str> {
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
const DEEPEST: usize = 6;

/// How many levels below a map a key is looked for in all parts.
const DEEPEST_OF_OTHERS: usize = 4;

/// The most places that are tried before one is suggested; each try decodes the whole document.
const TRIALS: usize = 6;

/// Where below a map a key belongs: the first place that the checker accepts, in this order. Places that can
/// take the value come before others; then those in parts that the map has, those in parts that it has by
/// default, and those in other parts; then those at fewer levels.
fn destination(
    wanted: &str,
    entry: &Entry,
    map: &Node,
    (given, other): (&[Field], &[Field]),
    cx: &Context<'_>,
) -> Option<Found> {
    // A dotted word is the path that another library's word has here: for `batch.size`, `size` is looked for,
    // and first below `batch`.
    let (key, above) = wanted.rsplit_once('.').map_or((wanted, None), |(above, key)| (key, Some(above)));
    let tiers = [(Parts::Present, DEEPEST), (Parts::Any, DEEPEST_OF_OTHERS)];
    // An iterator, so that nothing is searched after the first place that is accepted.
    let searches = [true, false].into_iter().filter(|within| !within || above.is_some()).flat_map(|within| {
        [Some(&entry.value), None].into_iter().flat_map(move |value| {
            tiers.into_iter().flat_map(move |(part, deepest)| {
                (1..=deepest).map(move |depth| (within, Search { key, value }, part, depth))
            })
        })
    });
    let mut tried: Vec<Destination> = Vec::new();
    for (within, search, part, depth) in searches {
        // A word that names its place, such as `encoder.layers`, means no other place if that one exists.
        if !within && above.is_some() && !tried.is_empty() {
            break;
        }
        for place in search.below(given, map, depth, part).chain(search.below(other, map, depth, part)) {
            let is_within = above.is_some_and(|above| place.path.iter().any(|key| key == above));
            // The later searches find the places of the earlier ones again.
            if within && !is_within || tried.contains(&place) {
                continue;
            }
            if cx.would_accept(entry, &place.path, &place.value(entry)) {
                return Some(Found { place, is_accepted: true });
            }
            tried.push(place);
            if tried.len() >= TRIALS {
                return Found::refused(tried);
            }
        }
    }
    Found::refused(tried)
}

/// Where a key was found to belong.
struct Found {
    place: Destination,
    /// Whether the checker would accept it there, as far as that could be tried.
    is_accepted: bool,
}

impl Found {
    /// The first of the places of which the checker accepts none.
    fn refused(tried: Vec<Destination>) -> Option<Self> {
        tried.into_iter().next().map(|place| Self { place, is_accepted: false })
    }
}

/// Where a name belongs, below the map that has it now.
#[derive(Debug, PartialEq)]
struct Destination {
    /// The path of the key.
    path: Vec<String>,
    /// The part without fields that is the key's value.
    part: Option<&'static str>,
}

impl Destination {
    /// What the entry becomes there.
    fn value<'n>(&self, entry: &'n Entry) -> Cow<'n, Node> {
        match self.part {
            Some(part) => Cow::Owned(Node::plain(part, entry.value.span)),
            None => Cow::Borrowed(&entry.value),
        }
    }
}

/// The parts of a slot in which a name is looked for.
#[derive(Clone, Copy, PartialEq)]
enum Parts {
    /// The one that is written, or else the default.
    Present,
    /// Every part that the slot could have.
    Any,
}

/// What is looked for below a map.
#[derive(Clone, Copy)]
struct Search<'a> {
    /// The name of a field or of a part.
    key: &'a str,
    /// The value that the field must be able to have; `None` for any.
    value: Option<&'a Node>,
}

impl<'a> Search<'a> {
    /// The places of the name that are exactly this many levels below some fields of a map.
    fn below<'s>(
        &'s self,
        fields: &'s [Field],
        map: &'s Node,
        depth: usize,
        part: Parts,
    ) -> impl Iterator<Item = Destination> + 's {
        fields.iter().filter_map(move |field| self.inside(field, map, depth, part))
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
        let found = match (field.shape)() {
            Shape::Record(_, fields) => self.in_record(&fields(), &node, depth, part),
            Shape::Slot(doc) => {
                let doc = doc();
                let there = written_part(&doc, &node).filter(|_| part == Parts::Present);
                // Several slots have a part `none`, so that name does not tell which one is meant.
                let named = doc.parts.iter().find(|p| depth == 1 && p.name == self.key && self.key != "none");
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
                        let inner = node.get(part_doc.name).unwrap_or(&node);
                        let place = self.in_record(&(part_doc.fields)(), inner, depth, part)?;
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
        let fits = |f: &&Field| f.name == self.key && self.value.is_none_or(|value| fits((f.shape)(), value));
        // A record may be written as one part of one of its fields: `init: {normal: {}}`.
        if let Some((name, doc)) = short_form(fields, map) {
            let part_doc = doc.parts.iter().find(|p| p.name == name)?;
            let inner = map.get(name).unwrap_or(map);
            let mut place = self.in_record(&(part_doc.fields)(), inner, depth.checked_sub(1)?, part)?;
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
    let slots = fields.iter().filter_map(|f| match (f.shape)() {
        Shape::Slot(doc) => Some(doc()),
        Shape::Bool
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Text
        | Shape::Texts
        | Shape::Choice(_)
        | Shape::Record(..)
        | Shape::List(..)
        | Shape::Map(_)
        | Shape::Equation
        | Shape::Part
        | Shape::Any => None,
    });
    slots.into_iter().find_map(|doc| {
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

/// Reports and corrects the misspelled keys and parts of a whole tree of this shape, for code that reads the
/// tree before it is decoded.
pub fn mended_deep(node: &Node, shape: Shape, cx: &mut Context<'_>) -> Node {
    let below = |node: &Node, title: &str, fields: &[Field], cx: &mut Context<'_>| {
        let mut node = mended(node, title, fields, &[], cx).into_owned();
        let Kind::Map(entries) = &mut node.kind else { return node };
        for e in entries {
            // After `mended`, only keys of `more` are no fields, and there are none.
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
        | Shape::List(..)
        | Shape::Map(_)
        | Shape::Equation
        | Shape::Part
        | Shape::Any => node.clone(),
    }
}
