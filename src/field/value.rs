//! The types of values that fields can have: from a tree node to a typed value and back, with a
//! description.
//!
//! [`Value`] is implemented by numbers, words, lists, records and slots. Decoding goes on after an error,
//! so that one run reports all of them.

use std::ops::Deref;

use super::context::Context;
use super::quoted::unquoted;
use super::real_text::real_text;
use super::replaced::would_hold;
use super::rule::{Is, Rule};
use super::single::{alone, only_number};
use super::words::boolean;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::expr::{self, Number};
use crate::syntax::tree::{Kind, Node, Style};

/// A value that a spec can contain.
pub trait Value: Sized {
    /// Decodes a node. Returns `None` after reporting the errors.
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self>;
    /// The node that decodes to this value, with every field written.
    fn encode(&self) -> Node;
    /// The number that expressions see under the field's name, if the value is one.
    fn number(&self) -> Option<Number> {
        None
    }
    /// Which values are allowed, for `explain`, the schema and error messages.
    fn describe() -> Shape;
}

/// The values that are allowed at a place of a spec.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// `true` or `false`; other words for them, such as `yes`, are errors.
    Bool,
    /// A whole number of at least this, or an expression whose value is one.
    Integer(u64),
    /// A number in this range, or an expression.
    Number(Range),
    /// A text that is not empty and has no control characters.
    Text,
    /// A text, or a list of texts.
    Texts,
    /// One word out of a fixed set.
    Choice(&'static [Word]),
    /// A map with these fields; the first member is its name.
    Record(&'static str, fn() -> Vec<Field>),
    /// One of several parts.
    Slot(fn() -> SlotDoc),
    /// A list of values of this shape, of which there are at most this many.
    List(fn() -> Shape, Option<usize>),
    /// A map with keys of the author's choice and values of this shape.
    Map(fn() -> Shape),
    /// An equation, or the name of a wiring.
    Equation,
    /// The equation of a part.
    Part,
    /// Any map; other code checks it.
    Any,
}

/// The numbers that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The smallest number that is allowed.
    pub least: f64,
    /// The largest number that is allowed.
    pub most: f64,
    /// The range in words, after "is not".
    pub words: &'static str,
}

impl Range {
    /// Every number except infinities and NaN.
    pub const FINITE: Self = Self { least: f64::MIN, most: f64::MAX, words: "a finite number" };
    /// A fraction that is not zero: a number above 0 and at most 1.
    // The schema recognises `MIN_POSITIVE` and `BELOW_1` as ends that are excluded.
    pub const FRACTION: Self =
        Self { least: f64::MIN_POSITIVE, most: 1.0, words: "a number above 0 and at most 1" };
    /// A number above 0.
    pub const POSITIVE: Self = Self { least: f64::MIN_POSITIVE, most: f64::MAX, words: "a number above 0" };
    /// The end of ranges that exclude 1, which differs from 1 by the rounding of an `f64`.
    pub const BELOW_1: f64 = 1.0 - f64::EPSILON;
    /// A number of at least 0.
    pub const NOT_NEGATIVE: Self = Self { least: 0.0, most: f64::MAX, words: "a number of at least 0" };
    /// A fraction: a number of at least 0 and below 1.
    pub const SHARE: Self =
        Self { least: 0.0, most: Self::BELOW_1, words: "a number of at least 0 and below 1" };
    /// A probability: a number from 0 to below 1.
    pub const PROBABILITY: Self =
        Self { least: 0.0, most: Self::BELOW_1, words: "a probability, at least 0 and below 1" };
}

/// A word and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The word as it is written in a spec.
    pub name: &'static str,
    /// The meaning, in one sentence.
    pub doc: &'static str,
}

/// One field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name as it is written in a spec.
    pub name: &'static str,
    /// What the field does.
    pub doc: &'static str,
    /// Which values are allowed.
    pub shape: fn() -> Shape,
    /// The value if the field is absent.
    pub default: DefaultDoc,
    /// The rules of the record; those that name this field first are its own.
    pub rules: &'static [Rule],
}

impl Field {
    /// A field without rules.
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        shape: fn() -> Shape,
        default: DefaultDoc,
    ) -> Self {
        Self { name, doc, shape, default, rules: &[] }
    }

    /// Whether the field has this property if it is not given.
    pub fn is_by_default(&self, is: Is) -> bool {
        match self.default {
            // A default has a value, but the author has not given it.
            DefaultDoc::Value(value) => is != Is::Given && is.holds(&value()),
            DefaultDoc::Absent => is == Is::Absent,
            DefaultDoc::Required | DefaultDoc::Formula(_) => false,
        }
    }

    /// The rules that are about this field before another one.
    pub fn own_rules(&self) -> impl Iterator<Item = &'static Rule> {
        let name = self.name;
        self.rules.iter().filter(move |rule| rule.field.split('.').next() == Some(name))
    }
}

/// The value of an absent field.
#[derive(Clone, Copy, Debug)]
pub enum DefaultDoc {
    /// The field must be given.
    Required,
    /// There is no value, as if `none` had been written.
    Absent,
    /// A constant, as the node that is printed for it.
    Value(fn() -> Node),
    /// A formula over other fields.
    Formula(&'static str),
}

/// The parts that a slot accepts.
#[derive(Clone, Debug)]
pub struct SlotDoc {
    /// The name of the slot.
    pub name: &'static str,
    /// What the slot decides.
    pub doc: &'static str,
    /// The parts with their fields.
    pub parts: Vec<PartDoc>,
    /// The part whose fields may be given without its name.
    pub implied: Option<&'static str>,
    /// Whether the slot takes parts that a spec defines.
    pub takes_own: bool,
}

/// The documentation of one part.
#[derive(Clone, Copy, Debug)]
pub struct PartDoc {
    /// The name as it is written in a spec.
    pub name: &'static str,
    /// What the part is, with its source.
    pub doc: &'static str,
    /// The fields of the part.
    pub fields: fn() -> Vec<Field>,
}

impl Shape {
    /// The words that a value of it may be, and whether each has fields of its own.
    pub fn words(self) -> Vec<(&'static str, bool)> {
        if let Shape::Choice(words) = self {
            return words.iter().map(|word| (word.name, false)).collect();
        }
        let parts = self.slot().map(|doc| doc.parts).unwrap_or_default();
        parts.iter().map(|part| (part.name, !(part.fields)().is_empty())).collect()
    }

    /// The slot, if the shape is one.
    pub fn slot(self) -> Option<SlotDoc> {
        if let Shape::Slot(doc) = self { Some(doc()) } else { None }
    }

    /// The description of the shape that follows "expected" in messages.
    pub fn wanted(self) -> String {
        match self {
            Shape::Bool => "`true` or `false`".into(),
            Shape::Integer(_) => "a whole number".into(),
            Shape::Number(_) => "a number".into(),
            Shape::Text => "a text".into(),
            Shape::Texts => "a text or a list of texts".into(),
            Shape::Choice(words) => {
                let names: Vec<String> = words.iter().map(|w| format!("`{}`", w.name)).collect();
                format!("one of {}", names.join(", "))
            }
            Shape::Record(..) | Shape::Map(_) | Shape::Any => "a map".into(),
            Shape::Slot(doc) => {
                let names: Vec<String> = doc().parts.iter().map(|p| format!("`{}`", p.name)).collect();
                format!("one of {}", names.join(", "))
            }
            Shape::List(..) => "a list".into(),
            Shape::Equation => "an equation or the name of a wiring".into(),
            Shape::Part => "the equation of a part".into(),
        }
    }
}

/// A node without a place, for values that are written.
pub fn plain(text: impl Into<String>) -> Node {
    Node::plain(text, Span::default())
}

/// Reports a value of the wrong kind.
pub fn wrong_kind(node: &Node, wanted: &str, cx: &mut Context<'_>) {
    cx.report(not_of_kind(node, wanted));
}

/// The diagnostic for a value of the wrong kind.
pub fn not_of_kind(node: &Node, wanted: &str) -> Diagnostic {
    let found = match &node.kind {
        // With its quotes, or `"12"` would be shown as the number that it is not.
        Kind::Scalar(s) if s.style == Style::Quoted => format!("the text {:?}", s.text),
        Kind::Scalar(_) | Kind::Null | Kind::List(_) | Kind::Map(_) | Kind::Delete => node.describe(),
    };
    Diagnostic::error(Code::WrongKind, node.span, format!("expected {wanted}, found {found}"))
}

/// The largest size that a spec may give: far above any model, and small enough that products do not
/// overflow.
pub const MAX_SIZE: u64 = 1 << 40;

/// The most elements that all tensors of a model may have together: far beyond any machine, and small enough
/// that operations over the longest sequence are counted in 128 bits without overflow.
pub const MAX_ELEMENTS: u128 = 1 << 80;

/// A number from a literal or an expression.
fn evaluate(node: &Node, cx: &mut Context<'_>, wanted: &str) -> Option<Number> {
    let Kind::Scalar(scalar) = &node.kind else {
        // In the DSL `sqrtt(2)` is a part with a field, which in the place of a number means a function.
        match node.called(cx.sources()) {
            Some(e) => cx.report(expr::unknown_function(&e.key, None, e.key_span, &[])),
            None => {
                let diagnostic = not_of_kind(node, wanted);
                cx.report(match only_number(node) {
                    Some(number) => diagnostic.replaced(number),
                    None => diagnostic,
                });
            }
        }
        return None;
    };
    if scalar.style == Style::Quoted {
        let diagnostic = not_of_kind(node, wanted);
        let help = unquoted(node, &scalar.text, cx);
        cx.report(help.into_iter().fold(diagnostic, Diagnostic::help));
        return None;
    }
    cx.number(node)
}

fn integer(node: &Node, cx: &mut Context<'_>, least: u64) -> Option<u64> {
    let number = evaluate(node, cx, "a whole number")?;
    match number.to_u64() {
        Some(n) if (least..=MAX_SIZE).contains(&n) => Some(n),
        Some(_) => {
            let message = format!("{} is not between {least} and 2^40", cx.as_written(node, number));
            cx.report(Diagnostic::error(Code::OutOfRange, node.span, message));
            None
        }
        None => {
            let value = number.to_f64();
            let written = cx.as_written(node, number);
            // Rounding would not help a fraction that is out of range as well.
            let diagnostic = if value < 0.0 || value > MAX_SIZE as f64 {
                let message = format!("{written} is not between {least} and 2^40");
                Diagnostic::error(Code::OutOfRange, node.span, message)
            } else {
                // Not rounded silently: how a size is rounded differs between published models.
                let (down, up) = (value.floor(), value.ceil());
                let near = if down < least as f64 { format!("{up}") } else { format!("{down} or {up}") };
                cx.explain_fraction(node, number)
                    .unwrap_or_else(|| {
                        let message = format!("{written} is not a whole number");
                        Diagnostic::error(Code::NotWhole, node.span, message)
                    })
                    .help(format!(
                        "{near} would work; `floor(..)`, `round(..)` and `multiple_of(x, n)` round"
                    ))
            };
            cx.report(diagnostic);
            None
        }
    }
}

fn real(node: &Node, cx: &mut Context<'_>, range: Range) -> Option<f64> {
    let number = evaluate(node, cx, "a number")?;
    let value = number.to_f64();
    let Range { least, most, words } = range;
    if value.is_finite() && value >= least && value <= most {
        return Some(value);
    }
    let message = format!("{} is not {words}", cx.as_written(node, number));
    let diagnostic = Diagnostic::error(Code::OutOfRange, node.span, message);
    // Hardly anybody means a percentage below 2.
    let is_share = [Range::PROBABILITY, Range::SHARE].contains(&range) && (2.0..100.0).contains(&value);
    let percent = is_share.then(|| {
        let share = real_text(value / 100.0);
        format!("if {} is in percent, write `{share}`", real_text(value))
    });
    cx.report(percent.into_iter().fold(diagnostic, Diagnostic::help));
    None
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $shape:expr, $decode:expr, $encode:expr, $number:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $name(pub $inner);

        impl Deref for $name {
            type Target = $inner;
            fn deref(&self) -> &$inner {
                &self.0
            }
        }

        impl Value for $name {
            fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
                // As a function pointer: the lifetimes of a closure's arguments would not be inferred from a
                // call.
                let decode: fn(&Node, &mut Context<'_>) -> Option<$inner> = $decode;
                decode(node, cx).map($name)
            }
            fn encode(&self) -> Node {
                let encode: fn($inner) -> String = $encode;
                plain(encode(self.0))
            }
            fn number(&self) -> Option<Number> {
                let number: fn($inner) -> Number = $number;
                Some(number(self.0))
            }
            fn describe() -> Shape {
                $shape
            }
        }
    };
}

number!(
    /// A size or a number of things, at least 1.
    Size(u64),
    Shape::Integer(1),
    |node, cx| integer(node, cx, 1),
    |n| n.to_string(),
    |n| Number::Ratio(i128::from(n), 1)
);
number!(
    /// A whole number that may be 0.
    Count(u64),
    Shape::Integer(0),
    |node, cx| integer(node, cx, 0),
    |n| n.to_string(),
    |n| Number::Ratio(i128::from(n), 1)
);
macro_rules! reals {
    ($($(#[$doc:meta])* $name:ident = $range:ident;)*) => {
        $(number!(
            $(#[$doc])*
            $name(f64),
            Shape::Number(Range::$range),
            |node, cx| real(node, cx, Range::$range),
            real_text,
            Number::Float
        );)*
    };
}

reals! {
    /// A number of either sign, neither infinite nor NaN.
    Real = FINITE;
    /// A number above 0.
    Positive = POSITIVE;
    /// A number of at least 0.
    NotNegative = NOT_NEGATIVE;
    /// A fraction that is not zero: a number above 0 and at most 1.
    Fraction = FRACTION;
    /// A fraction: a number of at least 0 and below 1.
    Share = SHARE;
    /// A probability: a number from 0 to below 1.
    Probability = PROBABILITY;
}

impl Value for bool {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        match (&node.kind, node.text()) {
            // In quotes it is a text.
            (Kind::Scalar(s), Some("true")) if s.style == Style::Plain => Some(true),
            (Kind::Scalar(s), Some("false")) if s.style == Style::Plain => Some(false),
            (_, text) => {
                // Words that other languages take for a boolean: the message says which one is meant.
                let near = |text| suggest(text, &["true", "false"]);
                let boolean = text.and_then(|t| boolean(t).map(str::to_owned).or_else(|| near(t)));
                // What the author does not want is `false`. It may be a word of another key.
                let none = text.filter(|text| text.eq_ignore_ascii_case("none"));
                let mut diagnostic = Diagnostic::error(
                    Code::WrongKind,
                    node.span,
                    format!("expected `true` or `false`, found {}", node.describe()),
                );
                if let Some(word) = &boolean {
                    diagnostic = diagnostic.written(text.unwrap_or(""), word);
                } else if let Some(none) = none {
                    diagnostic = diagnostic.written(none, "false");
                }
                // Such a word is wrong for any key, also for one of which the name is misspelled.
                if boolean.is_some() && text.is_some_and(|text| text.parse::<f64>().is_err()) {
                    cx.sink().push(diagnostic);
                } else {
                    cx.report(diagnostic);
                }
                None
            }
        }
    }
    fn encode(&self) -> Node {
        plain(self.to_string())
    }
    fn describe() -> Shape {
        Shape::Bool
    }
}

impl Value for String {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        match node.text() {
            // Texts become names of files and types, and are shown on terminals.
            Some(text) if !text.is_empty() && text.chars().all(|c| !c.is_control()) => Some(text.to_owned()),
            found => {
                let wanted = match found {
                    Some("") => "a text that is not empty",
                    Some(_) => "a text without control characters",
                    None => "a text",
                };
                wrong_kind(node, wanted, cx);
                None
            }
        }
    }
    fn encode(&self) -> Node {
        plain(self.clone())
    }
    fn describe() -> Shape {
        Shape::Text
    }
}

impl<T: Value> Value for Option<T> {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        match (&node.kind, node.text()) {
            // An empty value may be one that was forgotten, so to have none must be written.
            (Kind::Null, _) => {
                let help = "write `none`, or remove the key";
                cx.report(not_of_kind(node, &T::describe().wanted()).help(help));
                None
            }
            // A word and not null, which would also be the value of a key that was forgotten.
            (_, Some("none")) => Some(None),
            _ => {
                let value = T::decode(node, cx);
                // Whether a key may be left out is for the record to say: of `steps` and `epochs`, a recipe needs one.
                let is_bare =
                    |d: &Diagnostic| d.code == Code::OutOfRange && d.span() == node.span && d.help.is_empty();
                if value.is_none() && cx.sink().iter().any(is_bare) && would_hold(node.span, "none", cx) {
                    // A number that is out of range, such as 0, often means that there is none.
                    cx.help_out_of_range(node.span, || {
                        "if there is to be none, write `none` or leave the key out".to_owned()
                    });
                }
                value.map(Some)
            }
        }
    }
    fn encode(&self) -> Node {
        self.as_ref().map_or_else(|| plain("none"), T::encode)
    }
    fn number(&self) -> Option<Number> {
        self.as_ref().and_then(T::number)
    }
    fn describe() -> Shape {
        T::describe()
    }
}

impl<T: Value> Value for Box<T> {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        T::decode(node, cx).map(Box::new)
    }
    fn encode(&self) -> Node {
        T::encode(self)
    }
    fn describe() -> Shape {
        T::describe()
    }
}

impl<T: Value> Value for Vec<T> {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        match &node.kind {
            Kind::List(items) => {
                // Every item is decoded before one without a value ends the list, so that the errors of all
                // are reported.
                let all: Vec<Option<T>> = items.iter().map(|item| T::decode(item, cx)).collect();
                all.into_iter().collect()
            }
            Kind::Null | Kind::Scalar(_) | Kind::Map(_) | Kind::Delete => {
                let diagnostic = not_of_kind(node, "a list");
                // Not accepted, because a list has one form only.
                cx.report(alone(node).into_iter().fold(diagnostic, Diagnostic::help));
                None
            }
        }
    }
    fn encode(&self) -> Node {
        Node { kind: Kind::List(self.iter().map(T::encode).collect()), span: Span::default() }
    }
    fn describe() -> Shape {
        Shape::List(T::describe, None)
    }
}
