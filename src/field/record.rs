//! Maps with known fields: the `record!`, `slot!` and `choice!` macros and what they expand to.
//!
//! ```text
//! record! {
//!     /// Documentation: formula, paper.
//!     pub struct Rotary {
//!         /// Base of the wavelengths.
//!         theta: Positive = value(Positive(10_000.0));
//!         /// Which features form a pair.
//!         pairing: Pairing = value(Pairing::Half);
//!         /// Width of a head.
//!         head_dim: Size = formula("d_model / heads");
//!         /// Longest sequence.
//!         context: Size = required;
//!         /// A bound on the scores.
//!         softcap: Option<Positive> = absent;
//!     }
//! }
//! ```
//! Conditions between fields may follow. `rules [...]` lists those of two fields as data, from which the
//! schema and `explain` follow too (see [`super::rule`]). `pairs path` is `(&Reader, &mut Context) ->
//! Option<()>`: it compares numbers that are both known, so that a fault in one field hides none between two
//! others. `check path` is `(&Self, &mut Context) -> Option<()>` and needs every field to be sound. `then
//! path`, `(Self, &Context) -> Self`, combines fields which determine each other. The macro expands to the
//! struct with these fields and [`Places`], and to an implementation of [`Value`] that decodes the fields in
//! this order (so a formula or an expression may use the ones above), reports unknown keys with a suggestion,
//! and encodes every field. A default is written only here.

use super::context::Context;
use super::instead::{no_number, wrong_map};
use super::name_in_slot::word_elsewhere;
pub use super::part_of::{check_each, part_of};
pub use super::places::Places;
use super::rule::{self, Rule};
use super::unread::Unread;
use super::value::{Field, Shape, Value, wrong_kind};
use super::words::{listed, titled};
use crate::diag::foreign::is_same;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, notes};
use crate::source::Span;
use crate::syntax::expr;
use crate::syntax::set::argument_at;
use crate::syntax::tree::{Entry, Kind, Node};

/// Decodes the fields of one record, with one call per field.
pub struct Reader<'n> {
    node: &'n Node,
    title: &'static str,
    places: Places,
    mark: super::context::Mark,
}

impl<'n> Reader<'n> {
    /// Checks that the node, in which [`super::mend::mended`] has corrected the keys, is a map. An empty
    /// value counts as a map without keys.
    pub fn open(node: &'n Node, title: &'static str, fields: &[Field], cx: &mut Context<'_>) -> Option<Self> {
        match &node.kind {
            Kind::Map(_) | Kind::Null => {}
            Kind::Scalar(_) | Kind::List(_) | Kind::Delete => {
                // Four fields are enough to show what is meant.
                let names: Vec<String> = fields.iter().map(|f| format!("`{}`", f.name)).take(4).collect();
                let more = if fields.len() > names.len() { ", ..." } else { "" };
                let wanted = match names.as_slice() {
                    [] => format!("nothing, because {} has no fields", titled(title)),
                    names => format!("a map with {}{more}", names.join(", ")),
                };
                wrong_map(node, (title, &wanted), fields, cx);
                return None;
            }
        }
        let places = Places::new(node.span);
        Some(Self { node, title, places, mark: cx.mark() })
    }

    fn given(&mut self, name: &'static str) -> Option<&'n Node> {
        let value = self.node.get(name)?;
        // Also for a value with an error, to which messages about the field then point.
        self.places.note(name, value);
        Some(value)
    }

    /// Defines the field's name for later expressions. A number that is written is kept exact, so that
    /// `expansion: 8/3` times 768 is 2048.
    fn bound<T: Value>(&self, name: &'static str, value: Option<T>, cx: &mut Context<'_>) -> Option<T> {
        let Some(decoded) = &value else {
            cx.bind_broken(name);
            return None;
        };
        if let Some(number) = decoded.number() {
            let given = self.node.get(name).filter(|_| self.places.has(name));
            let exact =
                given.and_then(|n| expr::parse(cx.sources(), n).and_then(|e| expr::eval(&e, cx)).ok());
            cx.bind(name, exact.unwrap_or(number), given.map(|n| n.span));
        }
        value
    }

    /// A field that must be given.
    pub fn required<T: Value>(&mut self, name: &'static str, cx: &mut Context<'_>) -> Option<T> {
        let Some(node) = self.given(name) else {
            let wanted = T::describe().wanted();
            let message = format!("{} needs `{name}`", titled(self.title));
            // A part may be written as its name alone.
            let is_name = cx.sources().text(self.node.span) == self.title;
            let help = if is_name && matches!(self.node.kind, Kind::Null) {
                format!("write `{{{}: {{{name}: ...}}}}`, {wanted}", self.title)
            } else {
                format!("add `{name}: ...`, {wanted}")
            };
            cx.report(Diagnostic::error(Code::MissingKey, self.node.span, message).help(help));
            cx.bind_broken(name);
            return None;
        };
        let value = decoded((name, false), node, cx);
        self.bound(name, value, cx)
    }

    /// A field with a default value.
    pub fn or_value<T: Value>(&mut self, name: &'static str, default: T, cx: &mut Context<'_>) -> Option<T> {
        let value = match self.given(name) {
            Some(node) => decoded((name, true), node, cx).or_else(|| {
                let usual = default.encode();
                // Without a setting, the number of the spec would count. Whether there may be none has been tried.
                if argument_at(cx.sources(), node.span).is_none() && usual.text() != Some("none") {
                    let says =
                        || format!("without the key, `{name}` is {}", usual.text().unwrap_or("its default"));
                    cx.help_out_of_range(node.span, says);
                }
                None
            }),
            None => Some(default),
        };
        self.bound(name, value, cx)
    }

    /// A field whose default is a formula over earlier ones.
    pub fn or_formula<T: Value>(
        &mut self,
        name: &'static str,
        formula: &'static str,
        cx: &mut Context<'_>,
    ) -> Option<T> {
        let value = match self.given(name) {
            Some(node) => decoded((name, true), node, cx).or_else(|| {
                cx.help_out_of_range(node.span, || format!("without the key, `{name}` is `{formula}`"));
                None
            }),
            None => self.formula(name, formula, cx),
        };
        self.bound(name, value, cx)
    }

    fn formula<T: Value>(
        &self,
        name: &'static str,
        formula: &'static str,
        cx: &mut Context<'_>,
    ) -> Option<T> {
        let parsed = expr::parse(cx.sources(), &Node::plain(formula, self.node.span)).ok()?;
        let number = match expr::eval(&parsed, cx) {
            Ok(number) => number,
            Err(diagnostic) => {
                // Why the name has no value has been reported.
                if diagnostic.code != Code::UnknownName {
                    cx.report(diagnostic.help(format!("`{name}` is {formula} unless it is given")));
                }
                return None;
            }
        };
        // Only sizes must be whole; factors and probabilities may be fractions.
        if T::describe().wanted() == "a whole number" && number.to_u64().is_none() {
            let wrong = self.indivisible(name, formula, number, cx);
            if let Some(number) = formula.split_once(" / ").and_then(|(over, _)| whole(over, cx)) {
                cx.cannot_read(Unread::divisor_of(number, wrong.span()));
            }
            cx.report(wrong);
            return None;
        }
        // From the text and not from its value: a factor remembers the root that it is written as.
        T::decode(&Node::plain(formula, self.node.span), cx)
    }

    /// The diagnostic for a computed size that is not a whole number. It names the numbers in the formula
    /// with their places.
    fn indivisible(&self, name: &str, formula: &str, number: expr::Number, cx: &Context<'_>) -> Diagnostic {
        let mut labels = cx.places_of(formula).into_iter();
        let message = format!("`{name}` would be {formula} = {number}, which is not a whole number");
        // The primary place is that of the last name: in `d_model / heads`, the divisor.
        let (span, text) = labels.next_back().unwrap_or((self.node.span, String::new()));
        let first = Diagnostic::error(Code::NotDivisible, span, message).here(text);
        let mut diagnostic = labels.fold(first, |d, (span, text)| d.label(span, text));
        if let Some((over, under)) = formula.split_once(" / ")
            && let (Some(n), Some(d @ 1..)) = (whole(over, cx), whole(under, cx))
        {
            let near = rule::fitting((over, n), (under, d), cx);
            diagnostic = near.into_iter().fold(diagnostic, Diagnostic::help);
        }
        let or = if diagnostic.help.is_empty() { "" } else { "or " };
        diagnostic.help(format!("{or}give `{name}` itself: it does not have to be {formula}"))
    }

    /// The value and the place of a field that has been read, if it is a whole number without an error.
    pub fn number(&self, name: &str, cx: &Context<'_>) -> Option<(u64, Span)> {
        whole(name, cx).map(|n| (n, self.place(name)))
    }

    /// The place of the whole record.
    pub fn whole(&self) -> Span {
        self.node.span
    }

    /// Whether the author gave a field, and not `none`.
    pub fn has(&self, name: &str) -> bool {
        self.node.get(name).is_some_and(|value| value.text() != Some("none"))
    }

    /// The place of a field's value, or of the whole record.
    pub fn place(&self, name: &str) -> Span {
        self.places.of(name)
    }

    /// Reports every rule that is broken by the values of the fields that have no error.
    pub fn obeys(&self, rules: &[Rule], values: Vec<Entry>, cx: &mut Context<'_>) -> Option<()> {
        rule::check(rules, self.node, &Node::map(values, self.node.span), cx)
    }

    /// The places of the fields; called after the last one.
    pub fn close(&mut self, cx: &mut Context<'_>) -> Places {
        cx.forget_since(self.mark);
        std::mem::take(&mut self.places)
    }
}

/// Decodes the value of a field, which `has_default` if it may be left out.
pub fn decoded<T: Value>((name, has_default): (&str, bool), node: &Node, cx: &mut Context<'_>) -> Option<T> {
    if let Some(diagnostic) = no_number((name, has_default), node, T::describe(), cx) {
        cx.report(diagnostic);
        unread(node, T::describe(), cx);
        return None;
    }
    let value = T::decode(node, cx);
    if value.is_none() {
        unread(node, T::describe(), cx);
        if let Some(says) = node.text().and_then(|text| notes::value(name, text)) {
            cx.help_out_of_range(node.span, || says.to_owned());
        }
    }
    value
}

/// Notes a value that cannot be read as one of this shape, with values that could be there instead.
fn unread(node: &Node, shape: Shape, cx: &mut Context<'_>) {
    let others: Vec<String> = match shape {
        Shape::Bool => ["true", "false"].map(str::to_owned).to_vec(),
        // All of them: an error with every word is one with the word that is meant.
        Shape::Choice(words) => words.iter().map(|word| word.name.to_owned()).collect(),
        // Messages name the numbers that do not fit each other, so an error that is due to one of these is not found with
        // the others.
        Shape::Integer(least) => {
            [0, 1, 63].map(|more| least.max(1).saturating_add(more).to_string()).to_vec()
        }
        Shape::Number(range) => {
            let usual = [range.least, 0.0, 0.125, 0.5, 1.0, 3.0, 10_000.0];
            let inside =
                usual.into_iter().filter(|n| (range.least..=range.most).contains(n) && n.abs() < 1e9);
            inside.map(|n| n.to_string()).collect()
        }
        Shape::Text
        | Shape::Texts
        | Shape::Record(..)
        | Shape::Slot(_)
        | Shape::List(..)
        | Shape::Map(_)
        | Shape::Equation
        | Shape::Part
        | Shape::Any => return,
    };
    if let Some(one) = Unread::of(node, others) {
        cx.cannot_read(one);
    }
}

fn whole(name: &str, cx: &Context<'_>) -> Option<u64> {
    expr::Scope::lookup(cx, name).and_then(|(number, _)| number.to_u64())
}

/// An entry of a map that is written.
pub fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.to_owned(), key_span: Span::default(), value }
}

macro_rules! record {
    // `defaults;` first: the function `usual`, with the default of each field.
    (defaults; $(#[doc = $doc:literal])* pub struct $name:ident as $title:literal {
        $($(#[doc = $fdoc:literal])* $field:ident : $ty:ty = $default:ident $(($value:expr))?;)*
    } $($conditions:tt)*) => {
        $crate::field::record::record! {
            $(#[doc = $doc])*
            pub struct $name as $title {
                $($(#[doc = $fdoc])* $field : $ty = $default $(($value))?;)*
            } $($conditions)*
        }
        impl $name {
            /// The default of each field.
            pub fn usual() -> Self {
                Self {
                    $($field: $crate::field::record::record!(@usual $default $(($value))?),)*
                    places: $crate::field::record::Places::default(),
                }
            }
        }
    };
    ($(#[doc = $doc:literal])* pub struct $name:ident as $title:literal {
        $($(#[doc = $fdoc:literal])* $field:ident : $ty:ty = $default:ident $(($value:expr))?;)*
    } $(rules [$($rule:expr),* $(,)?];)? $(pairs $pairs:path;)? $(check $check:path;)? $(then $then:path;)?) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $fdoc])* pub $field: $ty,)*
            /// The places of the record and its fields.
            pub places: $crate::field::record::Places,
        }

        impl $name {
            /// The conditions between fields, which decoding checks and the schema states.
            pub const RULES: &'static [$crate::field::rule::Rule] = &[$($($rule),*)?];

            /// The documentation of the fields.
            pub fn fields() -> Vec<$crate::field::value::Field> {
                vec![$($crate::field::value::Field {
                    name: stringify!($field),
                    doc: concat!($($fdoc, "\n"),*),
                    shape: <$ty as $crate::field::value::Value>::describe,
                    default: $crate::field::record::record!(@doc $ty, $default $(($value))?),
                    rules: Self::RULES,
                }),*]
            }
        }

        impl $crate::field::value::Value for $name {
            fn decode(
                node: &$crate::syntax::tree::Node,
                cx: &mut $crate::field::context::Context<'_>,
            ) -> Option<Self> {
                let fields = Self::fields();
                let title = cx.take_title().unwrap_or($title);
                let node = $crate::field::mend::mended(node, title, &fields, &[], cx);
                let reader = &mut $crate::field::record::Reader::open(&node, title, &fields, cx)?;
                $(let $field: Option<$ty> = $crate::field::record::record!(@read reader, cx, $field, $default $(($value))?);)*
                $($pairs(reader, cx);)?
                // Rules compare values as their texts, whatever their types are. A record whose fields do not agree is
                // returned all the same, so that what is checked outside of it is not hidden: the error is in the sink.
                if !Self::RULES.is_empty() {
                    let values: Vec<Option<$crate::syntax::tree::Entry>> = vec![$($field.as_ref().map(|value| $crate::field::record::entry(
                        stringify!($field),
                        $crate::field::value::Value::encode(value),
                    ))),*];
                    let values = values.into_iter().flatten().collect();
                    reader.obeys(Self::RULES, values, cx);
                }
                // Names of this record are known to its own fields alone.
                let places = reader.close(cx);
                // Every field has been decoded by now, so all of their errors are reported.
                let record = Self { $($field: $field?,)* places };
                #[allow(unused_mut, unused_assignments)]
                let mut sound = Some(());
                $(sound = $check(&record, cx);)?
                sound?;
                $(let record = $then(record, cx);)?
                Some(record)
            }
            fn encode(&self) -> $crate::syntax::tree::Node {
                let entries = vec![$($crate::field::record::entry(
                    stringify!($field),
                    $crate::field::value::Value::encode(&self.$field),
                )),*];
                $crate::syntax::tree::Node::map(entries, $crate::source::Span::default())
            }
            fn describe() -> $crate::field::value::Shape {
                $crate::field::value::Shape::Record($title, Self::fields)
            }
        }
    };
    (@usual value($value:expr)) => { $value };
    (@usual absent) => { None };
    (@doc $ty:ty, required) => { $crate::field::value::DefaultDoc::Required };
    (@doc $ty:ty, absent) => { $crate::field::value::DefaultDoc::Absent };
    (@doc $ty:ty, value($value:expr)) => {
        $crate::field::value::DefaultDoc::Value(|| <$ty as $crate::field::value::Value>::encode(&$value))
    };
    (@doc $ty:ty, formula($value:expr)) => { $crate::field::value::DefaultDoc::Formula($value) };
    (@read $reader:ident, $cx:ident, $field:ident, required) => {
        $reader.required(stringify!($field), $cx)
    };
    (@read $reader:ident, $cx:ident, $field:ident, absent) => {
        $reader.or_value(stringify!($field), None, $cx)
    };
    (@read $reader:ident, $cx:ident, $field:ident, value($value:expr)) => {
        $reader.or_value(stringify!($field), $value, $cx)
    };
    (@read $reader:ident, $cx:ident, $field:ident, formula($value:expr)) => {
        $reader.or_formula(stringify!($field), $value, $cx)
    };
}
pub(crate) use record;

/// The type of a part's name: a slot with parts that specs define does not know all of them beforehand.
macro_rules! part_name {
    () => { &'static str };
    ($own:ident) => { &str };
}
pub(crate) use part_name;

/// A slot: an enum with one record per part. `implied` names the part whose fields may be given without its
/// name, `own` the type of the parts that a spec defines, if the slot takes those.
macro_rules! slot {
    ($(#[doc = $doc:literal])* pub enum $slot:ident as $title:literal $(implied $implied:literal)? $(own $own:ident)? {
        $($(#[doc = $pdoc:literal])* $part:literal => $variant:ident($ty:ty)),* $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $slot {
            $($(#[doc = $pdoc])* $variant($ty),)*
            $(
                /// A part that the spec defines.
                Own($own),
            )?
        }

        impl $slot {
            /// The names of the parts.
            pub const PARTS: &'static [&'static str] = &[$($part),*];

            /// The name of the part.
            pub fn part(&self) -> $crate::field::record::part_name!($($own)?) {
                match self {
                    $(Self::$variant(_) => $part,)*
                    $(Self::Own(part) => <$own>::name(part),)?
                }
            }

            /// The places of the part and its fields.
            pub fn places(&self) -> &$crate::field::record::Places {
                match self {
                    $(Self::$variant(part) => &part.places,)*
                    $(Self::Own(part) => { let part: &$own = part; &part.places })?
                }
            }

            /// The documentation of the slot and its parts.
            pub fn documentation() -> $crate::field::value::SlotDoc {
                #[allow(unused_mut, unused_assignments)]
                let mut implied = None;
                $(implied = Some($implied);)?
                let own: &[&str] = &[$(stringify!($own))?];
                $crate::field::value::SlotDoc {
                    name: $title,
                    doc: concat!($($doc, "\n"),*),
                    parts: vec![$($crate::field::value::PartDoc {
                        name: $part,
                        doc: concat!($($pdoc, "\n"),*),
                        fields: <$ty>::fields,
                    }),*],
                    implied,
                    takes_own: !own.is_empty(),
                }
            }
        }

        impl $crate::field::value::Value for $slot {
            fn decode(
                node: &$crate::syntax::tree::Node,
                cx: &mut $crate::field::context::Context<'_>,
            ) -> Option<Self> {
                let slot = Self::documentation();
                let mended = $crate::field::mend_part::mended_part(node, &slot, cx);
                let node = &*mended;
                $(if let Some(part) = <$own>::in_slot(node, $title, cx) {
                    return part.map(Self::Own);
                })?
                type Cx<'c> = $crate::field::context::Context<'c>;
                let decoded = |part: &str, inner: &$crate::syntax::tree::Node, cx: &mut Cx<'_>| match part {
                    $($part => <$ty as $crate::field::value::Value>::decode(inner, cx).map(Self::$variant),)*
                    _ => None,
                };
                let Some((part, inner)) = $crate::field::record::part_of(node, &slot, cx) else {
                    let check = |part: &str, inner: &_, cx: &mut Cx<'_>| drop(decoded(part, inner, cx));
                    $crate::field::record::check_each(node, &slot, &check, cx);
                    return None;
                };
                // To the author, fields without a part's name belong to the slot, so messages name the
                // slot. A name that was inserted has the place of the fields. Otherwise they name the part, which may
                // have the same fields as another one: `translate` has those of `lm`.
                let is_named = node.entry(part).is_some_and(|e| e.key_span != e.value.span);
                cx.title_next(Some(if slot.implied == Some(part) && !is_named { slot.name } else { part }));
                decoded(part, &inner, cx)
            }
            fn encode(&self) -> $crate::syntax::tree::Node {
                match self {
                    $(Self::$variant(part) => $crate::field::record::encode_part(
                        $part, $crate::field::value::Value::encode(part)),)*
                    $(Self::Own(part) => <$own>::encode(part),)?
                }
            }
            fn describe() -> $crate::field::value::Shape {
                $crate::field::value::Shape::Slot(Self::documentation)
            }
        }
    };
}
pub(crate) use slot;

/// One word out of a fixed set.
macro_rules! choice {
    ($(#[doc = $doc:literal])* pub enum $name:ident { $($(#[doc = $wdoc:literal])* $word:literal => $variant:ident),* $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $wdoc])* $variant),* }

        impl $name {
            /// Every one, in the order of the words.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The words with their documentation.
            pub const WORDS: &'static [$crate::field::value::Word] = &[$($crate::field::value::Word {
                name: $word, doc: concat!($($wdoc, "\n"),*),
            }),*];
        }

        impl $crate::field::value::Value for $name {
            fn decode(
                node: &$crate::syntax::tree::Node,
                cx: &mut $crate::field::context::Context<'_>,
            ) -> Option<Self> {
                match node.text() {
                    $(Some($word) => Some(Self::$variant),)*
                    _ => {
                        $crate::field::record::report_word(node, stringify!($name), Self::WORDS, cx);
                        None
                    }
                }
            }
            fn encode(&self) -> $crate::syntax::tree::Node {
                match self { $(Self::$variant => $crate::field::value::plain($word)),* }
            }
            fn describe() -> $crate::field::value::Shape {
                $crate::field::value::Shape::Choice(Self::WORDS)
            }
        }
    };
}
pub(crate) use choice;

/// Reports a word that is not in the set with this name.
pub fn report_word(node: &Node, set: &str, words: &[super::value::Word], cx: &mut Context<'_>) {
    let names: Vec<&str> = words.iter().map(|w| w.name).collect();
    let Some(text) = node.text() else {
        wrong_kind(node, &format!("one of {}", listed(&names)), cx);
        return;
    };
    let message = format!("`{text}` is not one of {}", listed(&names));
    let diagnostic = Diagnostic::error(Code::UnknownWord, node.span, message);
    // `activation: swiglu`: not a kind of `silu`.
    if cx.definitions().has(text) {
        let help =
            format!("`{text}` is a part, which replaces the one that has this key: write `ffn: {text}`");
        cx.report(diagnostic.help(help));
        return;
    }
    // In another case a word is one of these, whatever else it may mean: `Loss`.
    let same = names.iter().any(|name| is_same(text, name));
    let note = || notes::note(&set.to_lowercase(), text).filter(|_| !same);
    cx.report(match note().map_or_else(|| Err(suggest(text, &names)), Ok) {
        Ok(note) => diagnostic.help(note),
        Err(Some(name)) => diagnostic.meant(text, &name),
        Err(None) => word_elsewhere(text, cx).into_iter().fold(diagnostic, Diagnostic::help),
    });
}

/// Encodes a part: its bare name, or its name with its fields.
pub fn encode_part(part: &str, fields: Node) -> Node {
    match fields.entries() {
        Some([]) => super::value::plain(part),
        _ => Node::map(vec![entry(part, fields)], Span::default()),
    }
}
