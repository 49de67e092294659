//! Merges one tree over another, for `extends:` and `--set`.
//!
//! Maps are merged key by key; a key replaces its alternative (`hidden` an `expansion`); every other value
//! replaces the old one. `!delete` removes a key. A part replaces another part: `norm: {rms_norm: {}}` over
//! `norm: {layer_norm: {eps: 1e-5}}` leaves no `layer_norm`, and `ffn: {glu: {}}` over `ffn: {expansion: 4}`
//! no `expansion`. Fields without the name of a part are those of the part that is there, named by a word or with fields:
//! `ffn: {hidden: 64}` over `ffn: swiglu` is `ffn: {swiglu: {hidden: 64}}`. A short form is the map that it stands for:
//! `bias: {query: true}` over `bias: false` leaves the other biases off. Every node keeps the place where it was written.

use std::collections::BTreeMap;

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::Span;

use super::tree::{Entry, Kind, Node};

/// Keys of one map that say the same thing in two ways: when maps are merged, the new one replaces the other.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("expansion", "hidden"),
    ("steps", "epochs"),
    ("pattern", "runs"),
    ("ranges", "runs"),
    ("attention_factor", "mscale"),
    ("attention_factor", "mscale_all_dim"),
];

/// A key that says the same as several others at once, and these: when one of them is laid over it, the others keep
/// what it says.
const OF_ALL: (&str, [&str; 3]) = ("qkv", ["query", "key", "value"]);

/// A map whose keys stand for those of the same names next to it: files, or shares of other files.
const SHARES: (&str, [&str; 2]) = ("split", ["validation", "test"]);

/// Whether two keys of one map say the same thing in two ways.
pub fn are_alternatives(key: &str, other: &str) -> bool {
    ALTERNATIVES.iter().any(|pair| *pair == (key, other) || *pair == (other, key))
}

/// The keys with definitions of parts: the spec's own, and those of the files that it uses.
pub const DEFINITIONS: [&str; 2] = ["parts", "uses"];

/// The key of a document whose maps are changes to the rest of it. A `!delete` in them has its place in the document with
/// such a change, and is kept until then.
const CHANGES: &str = "sweep";

/// Whether a word is the name of a part, such as `layer_norm`.
pub type IsPart<'a> = &'a dyn Fn(&str) -> bool;

/// What merging needs to know about parts.
pub trait Parts {
    /// Whether a word is the name of a part, such as `layer_norm`.
    fn has(&self, word: &str) -> bool;

    /// The part that a map with these keys means without naming it, such as `mlp` for `expansion` and
    /// `dropout`, if `part` is a part of the same slot.
    fn implied(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> Option<&'static str>;

    /// Whether a map with these keys and without the name of a part is meant for this part, which a word names.
    fn takes(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> bool;

    /// Whether the part, in a slot of its own, has all of these fields.
    fn has_fields(&self, part: &str, keys: &mut dyn Iterator<Item = &str>) -> bool;

    /// The fields of a key's map that have the value `short` where that is given in the place of the map, and a map with the
    /// keys `others` is merged with it; empty if it is no short form.
    fn stands_for(
        &self,
        key: &str,
        short: Alone<'_>,
        others: &mut dyn Iterator<Item = &str>,
    ) -> Vec<&'static str>;
}

/// A value that may stand for a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone<'v> {
    /// A word or a number.
    Word(&'v str),
    /// A map with one key, such as `{normal: {std: 0.02}}`.
    Key(&'v str),
}

/// A test of names alone, without implied parts.
impl<F: Fn(&str) -> bool> Parts for F {
    fn has(&self, word: &str) -> bool {
        self(word)
    }

    fn implied(&self, _: &str, _: &mut dyn Iterator<Item = &str>) -> Option<&'static str> {
        None
    }

    fn takes(&self, _: &str, _: &mut dyn Iterator<Item = &str>) -> bool {
        false
    }

    fn has_fields(&self, _: &str, _: &mut dyn Iterator<Item = &str>) -> bool {
        false
    }

    fn stands_for(&self, _: &str, _: Alone<'_>, _: &mut dyn Iterator<Item = &str>) -> Vec<&'static str> {
        Vec::new()
    }
}

/// Merges `over` over `base`. Reports every `!delete` without a key to remove.
pub fn merge(base: &Node, over: &Node, parts: &dyn Parts, sink: &mut Sink) -> Node {
    let mut layers = Layers::new(base.clone());
    layers.lay(over, parts, sink);
    layers.into_node()
}

/// Whether a key at a place is given along with what is merged, by another of several changes that are made at once.
pub type IsAlong<'a> = &'a dyn Fn(Span) -> bool;

/// Merges one of several changes that are made at once over a tree that has some of the others. It replaces alternatives of
/// what they all change, but none that they give themselves, so that two of them are found as in one map.
pub fn lay_along(
    base: &Node,
    over: &Node,
    is_along: IsAlong<'_>,
    parts: &dyn Parts,
    sink: &mut Sink,
) -> Node {
    let mut layers = Layers::new(base.clone());
    layers.lay_with(over, Place { moves: true, is_along, ..Place::ROOT }, parts, sink);
    layers.into_node()
}

/// A tree into which others are merged, one after the other: each takes time for its own size, however large
/// the tree is.
#[derive(Debug)]
pub struct Layers {
    span: Span,
    kind: Layered,
}

#[derive(Debug)]
enum Layered {
    /// A tree into which nothing has been merged yet.
    Untouched(Kind),
    List(Vec<Layers>),
    Map(Fields),
}

/// The entries of a map, in order, found by key.
#[derive(Debug, Default)]
struct Fields {
    /// Absent where a key has been removed, so that the places of the others stay.
    all: Vec<Option<Field>>,
    /// Places by key, once there are many.
    places: BTreeMap<String, usize>,
    /// The number of entries that have not been removed.
    count: usize,
}

#[derive(Debug)]
struct Field {
    key: String,
    key_span: Span,
    value: Layers,
}

/// The largest number of entries that are searched one by one; more are found through an index. Most maps of
/// a spec are so small that an index would cost more than it saves.
const FEW: usize = 8;

impl Fields {
    fn place(&self, key: &str) -> Option<usize> {
        if self.all.len() <= FEW {
            self.all.iter().position(|field| field.as_ref().is_some_and(|field| field.key == key))
        } else {
            self.places.get(key).copied()
        }
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Field> {
        let place = self.place(key)?;
        self.all.get_mut(place)?.as_mut()
    }

    fn push(&mut self, field: Field) {
        if self.all.len() == FEW {
            self.index();
        }
        if self.all.len() >= FEW {
            self.places.insert(field.key.clone(), self.all.len());
        }
        self.all.push(Some(field));
        self.count = self.count.saturating_add(1);
    }

    /// Removes a key, if it is there.
    fn remove(&mut self, key: &str) {
        let Some(place) = self.place(key) else { return };
        self.places.remove(key);
        if let Some(field) = self.all.get_mut(place) {
            *field = None;
            self.count = self.count.saturating_sub(1);
        }
        // Without this, keys that replace each other again and again would leave ever more empty places to pass.
        if self.all.len() > FEW && self.count < self.all.len() / 2 {
            self.all.retain(Option::is_some);
            self.index();
        }
    }

    /// Makes the places by key anew.
    fn index(&mut self) {
        let there = self.all.iter().enumerate();
        self.places = there.filter_map(|(i, field)| Some((field.as_ref()?.key.clone(), i))).collect();
    }

    /// Makes room for keys that are given for one or all of several: those that are not given keep their value.
    fn spread(&mut self, gives: &dyn Fn(&'static str) -> bool) {
        let (whole, each) = OF_ALL;
        if gives(whole) {
            each.iter().for_each(|key| self.remove(key));
        } else if each.iter().any(|key| gives(key))
            && let Some(Field { value: Layers { span, kind: Layered::Untouched(kind) }, key_span, .. }) =
                self.get_mut(whole)
        {
            let (span, kind, key_span) = (*span, kind.clone(), *key_span);
            self.remove(whole);
            for key in each {
                if self.get_mut(key).is_none() {
                    let value = Layers::new(Node { kind: kind.clone(), span });
                    self.push(Field { key: key.to_owned(), key_span, value });
                }
            }
        }
    }

    /// Removes a key in whose place another is given, unless that is given along with it.
    fn replace(&mut self, key: &str, place: Place<'_>) {
        if !self.get_mut(key).is_some_and(|field| (place.is_along)(field.key_span)) {
            self.remove(key);
        }
    }

    /// Removes the shares in whose place files are given, and the files in whose place shares are.
    fn replace_shares(&mut self, over: &Node, gives: &dyn Fn(&'static str) -> bool, place: Place<'_>) {
        let (shares, keys) = SHARES;
        for key in keys {
            if over.get(shares).is_some_and(|over| over.get(key).is_some()) {
                self.replace(key, place);
            } else if gives(key)
                && let Some(there) = self.get_mut(shares).and_then(|field| field.value.fields())
            {
                there.replace(key, place);
                if there.count == 0 {
                    self.remove(shares);
                }
            }
        }
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.all.iter().flatten().map(|field| field.key.as_str())
    }

    /// The key of a map that has no other.
    fn only(&self) -> Option<&str> {
        let mut there = self.all.iter().flatten().map(|field| field.key.as_str());
        there.next().filter(|_| self.count == 1)
    }
}

impl Layers {
    /// A tree before anything is merged into it.
    pub fn new(node: Node) -> Self {
        Self { span: node.span, kind: Layered::Untouched(node.kind) }
    }

    /// The tree with everything that has been merged into it.
    pub fn into_node(self) -> Node {
        let kind = match self.kind {
            Layered::Untouched(kind) => kind,
            Layered::List(items) => Kind::List(items.into_iter().map(Self::into_node).collect()),
            Layered::Map(fields) => {
                let entry =
                    |Field { key, key_span, value }| Entry { key, key_span, value: value.into_node() };
                Kind::Map(fields.all.into_iter().flatten().map(entry).collect())
            }
        };
        Node { kind, span: self.span }
    }

    /// Where the tree was written.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The items, if this is a list.
    pub fn items(&mut self) -> Option<&mut Vec<Layers>> {
        if let Layered::Untouched(Kind::List(items)) = &mut self.kind {
            let items = std::mem::take(items);
            self.kind = Layered::List(items.into_iter().map(Self::new).collect());
        }
        match &mut self.kind {
            Layered::List(items) => Some(items),
            Layered::Untouched(_) | Layered::Map(_) => None,
        }
    }

    /// The value of a key, if this is a map that has it.
    pub fn value(&mut self, key: &str) -> Option<&mut Layers> {
        self.fields()?.get_mut(key).map(|field| &mut field.value)
    }

    fn is_deletion(&self) -> bool {
        matches!(self.kind, Layered::Untouched(Kind::Delete))
    }

    fn fields(&mut self) -> Option<&mut Fields> {
        if let Layered::Untouched(Kind::Map(entries)) = &mut self.kind {
            let mut fields = Fields::default();
            for Entry { key, key_span, value } in std::mem::take(entries) {
                fields.push(Field { key, key_span, value: Self::new(value) });
            }
            self.kind = Layered::Map(fields);
        }
        match &mut self.kind {
            Layered::Map(fields) => Some(fields),
            Layered::Untouched(_) | Layered::List(_) => None,
        }
    }

    /// Merges `over` over the tree. Reports every `!delete` without a key to remove.
    pub fn lay(&mut self, over: &Node, parts: &dyn Parts, sink: &mut Sink) {
        self.lay_with(over, Place { moves: true, ..Place::ROOT }, parts, sink);
    }

    /// Merges a setting over the tree, one of several that are made at once; see [`lay_along`]. Maps that both have keep their
    /// places in the text: what a map lacks is missing there, and not in the setting.
    pub fn set(&mut self, over: &Node, is_along: IsAlong<'_>, parts: &dyn Parts, sink: &mut Sink) {
        self.lay_with(over, Place { is_along, ..Place::ROOT }, parts, sink);
    }

    /// Merges `over` over the tree, at this place of the document.
    fn lay_with(&mut self, over: &Node, place: Place<'_>, parts: &dyn Parts, sink: &mut Sink) {
        if let (Layered::Untouched(Kind::Scalar(word)), Kind::Map(above)) = (&self.kind, &over.kind)
            && parts.has(&word.text)
            && parts.takes(&word.text, &mut above.iter().map(|entry| entry.key.as_str()))
        {
            let mut value = Self { span: self.span, kind: Layered::Map(Fields::default()) };
            value.lay_with(over, place.inside(), parts, sink);
            let mut fields = Fields::default();
            fields.push(Field { key: word.text.clone(), key_span: self.span, value });
            self.kind = Layered::Map(fields);
            return;
        }
        let (Some(below), Kind::Map(above)) = (self.fields(), &over.kind) else {
            *self = Self::new(settled_at(over, place, sink));
            return;
        };
        // The fields of one part mean nothing in another, so naming another part replaces them.
        if let (Some(old), [new]) = (below.only(), above.as_slice())
            && old != new.key
            && parts.has(old)
            && parts.has(&new.key)
        {
            *self = Self::new(settled_at(over, place, sink));
            return;
        }
        // Fields without a name belong to the implied part, so naming another part replaces them, and naming
        // this one sets its fields.
        let implied = match above.as_slice() {
            [new] => parts.implied(&new.key, &mut below.keys()).map(|implied| (new, implied)),
            _ => None,
        };
        if let Some((new, implied)) = implied {
            match &new.value.kind {
                Kind::Map(_) if new.key == implied => self.lay_with(&new.value, place.inside(), parts, sink),
                Kind::Delete if place.is_change() => *self = Self::new(over.clone()),
                Kind::Delete => nothing_to_delete(&format!("`{}`", new.key), &new.value, sink),
                Kind::Map(_) | Kind::Null | Kind::Scalar(_) | Kind::List(_) => {
                    *self = Self::new(settled_at(over, place, sink));
                }
            }
            return;
        }
        // The same the other way around: fields without a name, over a part by its name. Keys that are none of its fields
        // are merged next to it, since authors may have chosen both, as the names of blocks.
        if let Some(old) = below.only().map(str::to_owned)
            && parts.has_fields(&old, &mut above.iter().map(|entry| entry.key.as_str()))
            && let Some(named) = below.get_mut(&old)
            && named.value.fields().is_some()
        {
            named.value.lay_with(over, place.inside(), parts, sink);
            if place.moves {
                self.span = over.span;
            }
            return;
        }
        // A key that is switched off says nothing in place of the other.
        let gives = |key: &'static str| {
            over.get(key)
                .is_some_and(|value| value.text() != Some("none") && !matches!(value.kind, Kind::Delete))
        };
        for (one, other) in ALTERNATIVES {
            match (gives(one), gives(other)) {
                (true, false) => below.replace(other, place),
                (false, true) => below.replace(one, place),
                (true, true) | (false, false) => {}
            }
        }
        below.spread(&gives);
        below.replace_shares(over, &gives, place);
        // There a spec defines parts, and a definition replaces no other.
        let none = |_: &str| false;
        for Entry { key, key_span, value } in above {
            let below_it = place.below(key);
            let parts: &dyn Parts = if DEFINITIONS.contains(&key.as_str()) { &none } else { parts };
            let is_deleted = matches!(value.kind, Kind::Delete);
            match below.get_mut(key) {
                // A change that deletes what the change below it deletes still does.
                Some(field) if is_deleted && field.value.is_deletion() => {}
                Some(_) if is_deleted => below.remove(key),
                Some(field) => {
                    field.key_span = *key_span;
                    field.value.spell_out(key, value, parts);
                    field.value.lay_with(value, below_it, parts, sink);
                }
                None if is_deleted && !place.is_change() => {
                    nothing_to_delete(&format!("`{key}`"), value, sink)
                }
                None => {
                    let value = Self::new(settled_at(value, below_it, sink));
                    below.push(Field { key: key.clone(), key_span: *key_span, value });
                }
            }
        }
        if place.moves {
            self.span = over.span;
        }
    }
}

impl Layers {
    /// Writes a short form as the map that it stands for, if fields of that map are merged over it: `bias: false` is false for
    /// those that `bias: {query: true}` does not name. A short form that is merged over its map replaces it.
    fn spell_out(&mut self, key: &str, over: &Node, parts: &dyn Parts) {
        let Kind::Map(above) = &over.kind else { return };
        let others = || above.iter().map(|entry| entry.key.as_str());
        let word = match &self.kind {
            Layered::Untouched(Kind::Scalar(word)) => Some(word.text.clone()),
            Layered::Untouched(_) | Layered::List(_) | Layered::Map(_) => None,
        };
        let fields = if let Some(word) = &word {
            parts.stands_for(key, Alone::Word(word), &mut others())
        } else if let Some(below) = self.fields() {
            if let [new] = above.as_slice()
                && !parts.stands_for(key, Alone::Key(&new.key), &mut below.keys()).is_empty()
            {
                *below = Fields::default();
            }
            // What names that key itself, such as `normal: !delete`, knows that the short form is there.
            let only = below.only().filter(|only| over.get(only).is_none());
            only.map_or(Vec::new(), |only| parts.stands_for(key, Alone::Key(only), &mut others()))
        } else {
            Vec::new()
        };
        if fields.is_empty() {
            return;
        }
        let span = self.span;
        let short = std::mem::replace(self, Self::new(Node::map(Vec::new(), span))).into_node();
        let entry = |name: &str| Entry { key: name.to_owned(), key_span: span, value: short.clone() };
        *self = Self::new(Node::map(fields.into_iter().map(entry).collect(), span));
    }
}

/// Where in a document a map is laid over another one.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Whether maps that both have get the place of the upper one in the text.
    moves: bool,
    /// Which keys of the lower map are given along with those of the upper one.
    is_along: IsAlong<'a>,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// The whole document.
    Root,
    /// The map of all changes, by their names.
    Changes,
    /// A change or a part of one, in which a `!delete` is kept.
    Change,
    /// Anything else within the document.
    Within,
}

impl Place<'_> {
    const ROOT: Self = Self { moves: false, is_along: &|_| false, at: At::Root };

    /// A map within the one here.
    fn inside(self) -> Self {
        Self { at: if self.is_change() { At::Change } else { At::Within }, ..self }
    }

    /// The value of a key here.
    fn below(self, key: &str) -> Self {
        match self.at {
            At::Root if key == CHANGES => Self { at: At::Changes, ..self },
            At::Changes => Self { at: At::Change, ..self },
            At::Root | At::Change | At::Within => self.inside(),
        }
    }

    fn is_change(self) -> bool {
        self.at == At::Change
    }
}

/// A document that is merged over nothing: every `!delete` in it is reported and left out, except in the changes of a sweep.
pub fn settle(node: &Node, sink: &mut Sink) -> Node {
    settled_at(node, Place::ROOT, sink)
}

/// What is merged over nothing at a place of a document.
fn settled_at(node: &Node, place: Place<'_>, sink: &mut Sink) -> Node {
    if place.is_change() {
        return node.clone();
    }
    let kind = match &node.kind {
        Kind::Map(entries) => Kind::Map(settled(entries, place, sink)),
        Kind::List(items) => Kind::List(items.iter().map(|i| settled_at(i, place.inside(), sink)).collect()),
        Kind::Delete => {
            nothing_to_delete("this", node, sink);
            Kind::Null
        }
        Kind::Null | Kind::Scalar(_) => node.kind.clone(),
    };
    Node { kind, span: node.span }
}

fn settled(entries: &[Entry], place: Place<'_>, sink: &mut Sink) -> Vec<Entry> {
    let mut kept = Vec::new();
    for entry in entries {
        if matches!(entry.value.kind, Kind::Delete) {
            nothing_to_delete(&format!("`{}`", entry.key), &entry.value, sink);
        } else {
            let value = settled_at(&entry.value, place.below(&entry.key), sink);
            kept.push(Entry { value, ..entry.clone() });
        }
    }
    kept
}

fn nothing_to_delete(what: &str, at: &Node, sink: &mut Sink) {
    let message = format!("`!delete` is used for {what}, which does not exist");
    let help = "`!delete` removes a key that the spec under `extends` gives, and in a variant one of the spec itself; without such \
                a key, leave it out";
    sink.push(Diagnostic::error(Code::NothingToDelete, at.span, message).help(help));
}
