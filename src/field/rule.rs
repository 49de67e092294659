//! Conditions between the fields of a record, each stated once, in the record's table.
//!
//! A [`Rule`] is data: decoding reports what breaks it ([`check`]), the schema says it in its own language,
//! and `explain` and the reference print its [sentence](Rule::sentence). What needs more than two fields, or
//! code, is a function named by `check` in a `record!`.

use super::context::Context;
use super::replaced::that_hold;
use crate::diag::count::counted;
use crate::diag::fix::REMOVE_IT;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::tree::{Kind, Node};

/// A condition on a field of a record. Fields are named by paths below the record, in which `*` is any part
/// of a slot: `norm.*.affine`.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The field that is reported.
    pub field: &'static str,
    /// The condition between `field`, the first operand, and `other`, the second.
    pub kind: RuleKind,
    /// The path of the other field; empty if the condition has only one.
    pub other: &'static str,
    code: Code,
    message: &'static str,
    label: &'static str,
    help: &'static str,
}

/// What a rule says about its two fields.
#[derive(Clone, Copy, Debug)]
pub enum RuleKind {
    /// The field must not have the first property while the other has the second.
    Excludes(Is, Is),
    /// The field must not have this property; there is no other field.
    Never(Is),
    /// The number divides the other without a remainder.
    Divides,
    /// The number is not larger than the other.
    AtMost,
    /// The number is smaller than the other.
    Below,
    /// The list is as long as the other.
    AsLong,
}

/// A property of a value that a rule asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// Any value except `none`, whether the author wrote it or it is the default.
    Given,
    /// `none`, which is also the value of an optional field that the author left out.
    Absent,
    /// A boolean that is `true`.
    True,
    /// A boolean that is `false`.
    False,
    /// This word or part.
    Word(&'static str),
    /// A word or part other than this one.
    Not(&'static str),
    /// The number 0, however it is written: `0`, `0.0`.
    Zero,
    /// A number other than 0.
    NotZero,
    /// A list without items.
    Empty,
    /// A list with items.
    NotEmpty,
}

impl Rule {
    /// Two fields that cannot be as described at the same time. `message` names both.
    pub const fn excludes(
        (field, is): (&'static str, Is),
        (other, so): (&'static str, Is),
        message: &'static str,
    ) -> Self {
        let kind = RuleKind::Excludes(is, so);
        Self {
            field,
            kind,
            other,
            code: Code::KeysExclude,
            message,
            label: "the other one",
            help: "keep one of them",
        }
    }

    /// A value that a field does not have in this record.
    pub const fn never((field, is): (&'static str, Is), message: &'static str) -> Self {
        let kind = RuleKind::Never(is);
        Self { field, kind, other: "", code: Code::KeysExclude, message, label: "", help: "" }
    }

    const fn of_numbers(field: &'static str, kind: RuleKind, other: &'static str, code: Code) -> Self {
        Self { field, kind, other, code, message: "", label: "", help: "" }
    }

    /// A number that divides another one.
    pub const fn divides(field: &'static str, other: &'static str) -> Self {
        Self::of_numbers(field, RuleKind::Divides, other, Code::NotDivisible)
    }

    /// A number that is not larger than another one.
    pub const fn at_most(field: &'static str, other: &'static str) -> Self {
        Self::of_numbers(field, RuleKind::AtMost, other, Code::OutOfRange)
    }

    /// A number that is smaller than another one.
    pub const fn below(field: &'static str, other: &'static str) -> Self {
        Self::of_numbers(field, RuleKind::Below, other, Code::OutOfRange)
    }

    /// A list that is as long as another one.
    pub const fn as_long(field: &'static str, other: &'static str) -> Self {
        Self::of_numbers(field, RuleKind::AsLong, other, Code::LengthMismatch)
    }

    /// The rule with another code than is usual for its kind.
    pub const fn code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// The rule with this text at the place of the other field.
    pub const fn label(self, label: &'static str) -> Self {
        Self { label, ..self }
    }

    /// The rule with this suggestion instead of the usual one of its kind.
    pub const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// The rule as a sentence of the field's documentation.
    pub fn sentence(&self) -> String {
        // For readers `norm.*.affine` is `norm.affine`, whichever part is meant.
        let other = self.other.replace(".*", "");
        let inner = self.field.split_once('.').map(|(_, inner)| inner);
        let subject = |is: Is| match (inner, is) {
            (None, Is::Given | Is::NotZero | Is::NotEmpty) => "It".to_owned(),
            (None, is) => is.value(),
            (Some(inner), is) => format!("`{inner}: {}`", is.value().trim_matches('`')),
        };
        let number = |verb: &str| match inner {
            Some(inner) => format!("`{inner}` {verb} `{other}`."),
            None => format!("It {verb} `{other}`."),
        };
        match self.kind {
            RuleKind::Never(is) => format!("{} cannot be given.", subject(is)),
            RuleKind::Excludes(is, so) => {
                let subject = subject(is);
                let other = match so {
                    Is::Given | Is::NotEmpty => format!("with `{other}`"),
                    Is::Absent => format!("without `{other}`"),
                    Is::Empty => format!("without `{other}`, or with an empty one"),
                    Is::Not(word) => format!("with another `{other}` than `{word}`"),
                    Is::True | Is::False | Is::Word(_) | Is::Zero => {
                        format!("with `{other}: {}`", so.value().trim_matches('`'))
                    }
                    Is::NotZero => format!("with `{other}` other than 0"),
                };
                format!("{subject} cannot be given {other}.")
            }
            RuleKind::Divides => number("must divide"),
            RuleKind::AtMost => number("must be at most"),
            RuleKind::Below => number("must be less than"),
            RuleKind::AsLong => number("must be as long as"),
        }
    }

    /// The diagnostic, if the values break the rule. `values` are those of the fields without errors, with
    /// defaults filled in; `given` is what the author wrote, which has the places.
    fn broken(&self, given: &Node, values: &Node, cx: &Context<'_>) -> Option<Diagnostic> {
        // A field with an error has no value here, so rules about it are not checked.
        let beside = at(given, self.other).map(|node| node.span);
        // The other number has a part in other conditions as well: heads divide the width, too.
        let near = |number: u64, of: u64| multiples_near(number, of, beside, cx);
        let fault = self.fault(at(values, self.field)?, at(values, self.other), &near)?;
        // The key is underlined if the fault is that the field is given at all, otherwise its value.
        let (is_key, is_other_key) = match self.kind {
            RuleKind::Excludes(is, so) => (is == Is::Given, so == Is::Given),
            RuleKind::Never(_)
            | RuleKind::Divides
            | RuleKind::AtMost
            | RuleKind::Below
            | RuleKind::AsLong => (false, false),
        };
        let place = key_place(given, self.field).filter(|_| is_key).unwrap_or(place(given, self.field));
        // A default is nowhere in the text, so there is no place to show.
        let there = if is_other_key { key_place(given, self.other) } else { beside };
        let diagnostic = Diagnostic::error(self.code, place, fault.message);
        let diagnostic = there.into_iter().fold(diagnostic, |d, at| d.label(at, fault.label.clone()));
        Some(match self.help {
            "" => diagnostic.help(fault.help),
            REMOVE_IT => diagnostic.removable(),
            help => diagnostic.help(help),
        })
    }

    /// The texts that say what is wrong with the values of both fields, if anything is. `near` names multiples of a number that
    /// the other one may be.
    fn fault(
        &self,
        value: &Node,
        other: Option<&Node>,
        near: &dyn Fn(u64, u64) -> Option<String>,
    ) -> Option<Fault> {
        let (field, over) = (self.field, self.other);
        let text = |node: &Node| node.text().map(str::to_owned);
        let stated = || Fault {
            message: self.message.replace("{field}", field),
            label: self.label.to_owned(),
            help: self.help.to_owned(),
        };
        match self.kind {
            RuleKind::Never(is) => is.holds(value).then(stated),
            RuleKind::Excludes(is, so) => (is.holds(value) && so.holds(other?)).then(stated),
            RuleKind::Divides => {
                // What is not a number, such as `none`, breaks no rule about numbers.
                let (mine, its) = (text(value)?.parse::<u64>().ok()?, text(other?)?.parse::<u64>().ok()?);
                // A size of 0 is refused where it is decoded.
                if mine == 0 || its.is_multiple_of(mine) {
                    return None;
                }
                let or_near = near(its, mine).map_or(String::new(), |near| format!(", or {over} of {near}"));
                let divisors = (1..=its.min(LARGEST_DIVISOR)).filter(|n| its.is_multiple_of(*n));
                let divisors: Vec<String> = divisors.take(12).map(|n| n.to_string()).collect();
                Some(Fault {
                    message: format!("{field} ({mine}) does not divide {over} ({its})"),
                    label: format!("{over} is {its} here"),
                    help: format!("{field} of {} would work{or_near}", divisors.join(", ")),
                })
            }
            RuleKind::AtMost | RuleKind::Below => {
                let (mine, its) = (text(value)?, text(other?)?);
                // Sizes are at most 2^40, so floats compare them exactly.
                let (small, large) = (mine.parse::<f64>().ok()?, its.parse::<f64>().ok()?);
                let is_strict = matches!(self.kind, RuleKind::Below);
                if small < large || (small == large && !is_strict) {
                    return None;
                }
                let (than, at_most) =
                    if is_strict { ("not below", "less than") } else { ("more than", "at most") };
                Some(Fault {
                    message: format!("{field} ({mine}) is {than} {over} ({its})"),
                    label: format!("{over} is {its} here"),
                    help: format!("{at_most} {its}"),
                })
            }
            RuleKind::AsLong => {
                let (mine, its) = (length(value)?, length(other?)?);
                (mine != its).then(|| Fault {
                    message: format!("{field} has {}, but {over} has {its}", counted(mine, "item")),
                    label: format!("{} here", counted(its, "item")),
                    help: "both have the same number of items".to_owned(),
                })
            }
        }
    }
}

/// The texts of the diagnostic for a broken rule.
struct Fault {
    message: String,
    label: String,
    help: String,
}

impl Is {
    /// Whether a value has the property. The value is one that a field encodes, with defaults filled in.
    pub fn holds(self, value: &Node) -> bool {
        let is =
            |word: &str| value.text() == Some(word) || matches!(part(value), Some((name, _)) if name == word);
        let number = || value.text().and_then(|text| text.parse::<f64>().ok());
        match self {
            Is::Given => !is("none"),
            Is::Absent => is("none"),
            Is::True => is("true"),
            Is::False => is("false"),
            Is::Word(word) => is(word),
            Is::Not(word) => !is(word),
            Is::Zero => number() == Some(0.0),
            Is::NotZero => number().is_some_and(|n| n != 0.0),
            Is::Empty => length(value) == Some(0),
            Is::NotEmpty => length(value).is_some_and(|n| n > 0),
        }
    }

    fn value(self) -> String {
        match self {
            Is::Given | Is::NotZero => "a value".to_owned(),
            Is::Absent => "`none`".to_owned(),
            Is::True => "`true`".to_owned(),
            Is::False => "`false`".to_owned(),
            Is::Word(word) => format!("`{word}`"),
            Is::Not(word) => format!("A value other than `{word}`"),
            Is::Zero => "`0`".to_owned(),
            Is::Empty => "an empty list".to_owned(),
            Is::NotEmpty => "a list that is not empty".to_owned(),
        }
    }
}

/// The largest divisor that is looked for: a size may be as large as 2^40, and finding all of its divisors would take long.
const LARGEST_DIVISOR: u64 = 4096;

/// Reports every rule that is broken by `values`, the fields of a record that have no error, with defaults
/// filled in. `given` is the author's tree, which has the places.
pub fn check(rules: &[Rule], given: &Node, values: &Node, cx: &mut Context<'_>) -> Option<()> {
    // All rules, and not only the first that is broken, as everywhere.
    let mut ok = Some(());
    for broken in rules.iter().filter_map(|rule| rule.broken(given, values, cx)).collect::<Vec<_>>() {
        cx.report(broken);
        ok = None;
    }
    ok
}

/// The nearest multiples of a number below and above another one with which the document holds, in the place of the other one,
/// in words: `28 or 32`.
pub(super) fn multiples_near(number: u64, of: u64, place: Option<Span>, cx: &Context<'_>) -> Option<String> {
    let down = number.saturating_sub(number.checked_rem(of)?);
    // No size is 0.
    let below = (0..).map_while(move |n| down.checked_sub(of.checked_mul(n)?)).take_while(|n| *n > 0);
    let above = (1..).map_while(move |n| down.checked_add(of.checked_mul(n)?));
    in_words(&that_hold(place, [Box::new(below) as _, Box::new(above) as _], cx))
}

/// What says which numbers near two of a document, of which the second does not divide the first, would work in the place of one of
/// them.
pub(super) fn fitting((over, n): (&str, u64), (under, d): (&str, u64), cx: &Context<'_>) -> Option<String> {
    let place = |name: &str| cx.places_of(name).first().map(|(place, _)| *place);
    let multiples = multiples_near(n, d, place(over), cx).map(|near| format!("{over} {near}"));
    let divisors = divisors_near(n, d, place(under), cx).map(|near| format!("{under} {near}"));
    match (multiples, divisors) {
        (Some(multiples), Some(divisors)) => Some(format!("{multiples} would work, or {divisors}")),
        (one, other) => Some(format!("{} would work", one.or(other)?)),
    }
}

/// The nearest divisors of a number below and above another one with which the document holds, in the place of the other one, in
/// words. None of a number as large as no model has.
pub(super) fn divisors_near(number: u64, to: u64, place: Option<Span>, cx: &Context<'_>) -> Option<String> {
    let of = |n: &u64| number.is_multiple_of(*n);
    let below = (1..to.min(LARGEST_DIVISOR)).rev().filter(of);
    let above = (to.saturating_add(1)..=number.min(LARGEST_DIVISOR)).filter(of);
    in_words(&that_hold(Some(place?), [Box::new(below) as _, Box::new(above) as _], cx))
}

/// One or two numbers in words.
fn in_words(numbers: &[u64]) -> Option<String> {
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    (!words.is_empty()).then(|| words.join(" or "))
}

/// The value at a path.
fn at<'n>(node: &'n Node, path: &str) -> Option<&'n Node> {
    path.split('.').try_fold(node, |node, segment| match segment {
        // A slot's value is `{part: {fields}}`, whichever part it is.
        "*" => part(node).map(|(_, fields)| fields),
        name => node.get(name),
    })
}

/// The place of the value at a path, or of the nearest one around it.
fn place(node: &Node, path: &str) -> Span {
    let mut found = node;
    for segment in path.split('.') {
        match at(found, segment) {
            Some(inner) => found = inner,
            None => break,
        }
    }
    found.span
}

/// The place of the last key of a path, if it is given.
fn key_place(node: &Node, path: &str) -> Option<Span> {
    let (around, key) = match path.rsplit_once('.') {
        Some((around, key)) => (at(node, around)?, key),
        None => (node, path),
    };
    around.entry(key).map(|entry| entry.key_span)
}

/// The part that a slot's value gives, if it is written with fields.
fn part(node: &Node) -> Option<(&str, &Node)> {
    match node.entries()? {
        [only] => Some((only.key.as_str(), &only.value)),
        _ => None,
    }
}

fn length(node: &Node) -> Option<u64> {
    match &node.kind {
        Kind::List(items) => Some(items.len() as u64),
        Kind::Null | Kind::Scalar(_) | Kind::Map(_) | Kind::Delete => None,
    }
}
