//! What to write in place of a value of the wrong kind.

use super::context::Context;
use super::value::{DefaultDoc, Field, PartDoc, Shape, SlotDoc, not_of_kind};
use super::words::{boolean, is_no_number};
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, notes};
use crate::syntax::merge::are_alternatives;
use crate::syntax::tree::Node;

/// Reports a value in the place of a map with these fields, with the map that was probably meant: that of the
/// field which takes such a word, or the smallest one for a word that is near to `true`.
pub fn wrong_map(node: &Node, (title, wanted): (&str, &str), fields: &[Field], cx: &mut Context<'_>) {
    let diagnostic = not_of_kind(node, wanted);
    let help = node.text().and_then(|text| {
        let takes = |field: &&Field| (field.shape)().words().iter().any(|(word, _)| *word == text);
        let required = || fields.iter().filter(|f| matches!(f.default, DefaultDoc::Required));
        if let Some(field) = fields.iter().find(takes) {
            let others = required().filter(|other| other.name != field.name);
            let others: String = others.map(|other| format!("{}: ..., ", other.name)).collect();
            return Some(format!("write `{{{others}{}: {text}}}`", field.name));
        }
        let is_true = matches!(text, "true" | "yes" | "on")
            || suggest(text, &["true", "false"]).is_some_and(|near| near == "true");
        // A number or a text was written in place of the fields.
        if let meant @ [_, ..] = alternatives(text, fields).as_slice()
            && !is_true
        {
            return Some(as_fields(text, meant));
        }
        if let ([only], false) = (required().collect::<Vec<_>>().as_slice(), is_true)
            && let Some(slot) = (only.shape)().slot()
        {
            return for_number(text, &slot, &|part| format!("`{{{}: {{{part}}}}}`", only.name));
        }
        let needed: Vec<String> = required().map(|f| format!("{}: {}", f.name, example(f))).collect();
        let map = || format!("write `{{{}}}`; what is left out has its default", needed.join(", "));
        is_true.then(|| if fields.is_empty() { format!("write `{title}` alone") } else { map() })
    });
    cx.report(help.into_iter().fold(diagnostic, Diagnostic::help));
}

/// How a text is written as the value of one of some fields.
fn as_fields(text: &str, fields: &[&Field]) -> String {
    let written = |field: &&Field| match out_of_range(text, field) {
        Some(wanted) => format!("`{{{}: ...}}`, with {wanted}", field.name),
        None => format!("`{{{}: {text}}}`", field.name),
    };
    format!("write {}", fields.iter().map(written).collect::<Vec<String>>().join(" or "))
}

/// A number is more likely meant for an alternative of a field if it is more than this many times the field's default: an inner
/// width of 96 and not of 96 times `d_model`.
const MOST_TIMES: f64 = 4.0;

/// The fields that a number or a text may be meant for where a map of these fields belongs, the likeliest first: that of
/// [`only_field`], and those that take such a value and say the same thing in another way.
fn alternatives<'f>(text: &str, fields: &'f [Field]) -> Vec<&'f Field> {
    let Some(field) = only_field(text, fields) else { return Vec::new() };
    let is_other = |other: &&Field| {
        are_alternatives(other.name, field.name) && takes(text, other) && out_of_range(text, other).is_none()
    };
    let mut all: Vec<&Field> = std::iter::once(field).chain(fields.iter().filter(is_other)).collect();
    let usual = usual(field).zip(text.parse().ok());
    if usual.is_some_and(|(usual, number): (f64, f64)| number > MOST_TIMES * usual) {
        all.rotate_left(1);
    }
    all
}

/// The default of a field, if it is a number.
fn usual(field: &Field) -> Option<f64> {
    match field.default {
        DefaultDoc::Value(value) => value().text()?.parse().ok(),
        DefaultDoc::Required | DefaultDoc::Absent | DefaultDoc::Formula(_) => None,
    }
}

/// What to write in place of a number where a map of these fields belongs, if it is the only one that must be given.
pub fn required_number(text: &str, fields: &[Field]) -> Option<String> {
    let field = only_field(text, fields).filter(|f| matches!(f.default, DefaultDoc::Required))?;
    Some(as_fields(text, &[field]))
}

/// A value of a field, for a sentence that shows how it is written: its first part, if that needs nothing.
fn example(field: &Field) -> &'static str {
    let needs_nothing =
        |part: &&PartDoc| (part.fields)().iter().all(|f| !matches!(f.default, DefaultDoc::Required));
    let slot = (field.shape)().slot();
    let first = slot.and_then(|doc| doc.parts.first().copied());
    first.as_ref().filter(needs_nothing).map_or("...", |part| part.name)
}

/// The most parts that are named to which a number may belong.
const MOST_PARTS: usize = 3;

/// Which fields of a slot's parts a number may be meant for that is in the place of a part, each written by `written`: first
/// those that have this number by default. `None` for a text that is no number, and if no part has such a field.
pub fn for_number(text: &str, slot: &SlotDoc, written: &dyn Fn(&str) -> String) -> Option<String> {
    let number: f64 = text.parse().ok()?;
    let takes = |part: &PartDoc| {
        let fields = (part.fields)();
        let field =
            *alternatives(text, &fields).first().filter(|field| out_of_range(text, field).is_none())?;
        let is_usual = usual(field) == Some(number);
        Some((!is_usual, format!("{}: {{{}: {text}}}", part.name, field.name)))
    };
    let mut parts: Vec<(bool, String)> = slot.parts.iter().filter_map(takes).collect();
    // A stable sort: the others stay in the order of the slot.
    parts.sort_by_key(|(is_other, _)| *is_other);
    let parts: Vec<String> = parts.iter().take(MOST_PARTS).map(|(_, part)| written(part)).collect();
    let all = match parts.split_last()? {
        (last, []) => last.clone(),
        (last, rest) => format!("{} or {last}", rest.join(", ")),
    };
    Some(format!("a number is a field of a part: write {all}"))
}

/// The field that a number or a text is probably meant for where a map of these fields belongs: the only one that must be
/// given, or else the first one, if it takes such a value.
fn only_field<'f>(text: &str, fields: &'f [Field]) -> Option<&'f Field> {
    let mut required = fields.iter().filter(|f| matches!(f.default, DefaultDoc::Required));
    let field = match (required.next(), required.next()) {
        (Some(only), None) => only,
        (None, None) => fields.first()?,
        (_, Some(_)) => return None,
    };
    takes(text, field).then_some(field)
}

/// Whether a field takes a number, or a text, as far as its kind goes.
fn takes(text: &str, field: &Field) -> bool {
    let is_number = text.parse::<f64>().is_ok();
    match (field.shape)() {
        Shape::Integer(_) | Shape::Number(_) => is_number,
        Shape::Text | Shape::Texts => !is_number && !matches!(text, "true" | "false" | "none"),
        Shape::Bool
        | Shape::Choice(_)
        | Shape::Slot(_)
        | Shape::Record(..)
        | Shape::List(..)
        | Shape::Map(_)
        | Shape::Equation
        | Shape::Part
        | Shape::Any => false,
    }
}

/// The numbers that a field takes, in words, if this one is none of them.
fn out_of_range(text: &str, field: &Field) -> Option<String> {
    let number: f64 = text.parse().ok()?;
    let shape = (field.shape)();
    if let Shape::Integer(least) = shape {
        let fits = number.fract() == 0.0 && number >= least as f64;
        return (!fits).then(|| format!("a whole number of at least {least}"));
    }
    let Shape::Number(range) = shape else { return None };
    (!(range.least..=range.most).contains(&number)).then(|| range.words.to_owned())
}

/// The diagnostic for a word in the place of a number that no author means as a name: `true`, `off`, `auto`; or as
/// one that says how many.
pub(super) fn no_number(
    (name, has_default): (&str, bool),
    node: &Node,
    shape: Shape,
    cx: &Context<'_>,
) -> Option<Diagnostic> {
    let takes_zero = match shape {
        Shape::Integer(least) => least == 0,
        Shape::Number(range) => (range.least..=range.most).contains(&0.0),
        Shape::Bool
        | Shape::Text
        | Shape::Texts
        | Shape::Choice(_)
        | Shape::Record(..)
        | Shape::Slot(_)
        | Shape::List(..)
        | Shape::Map(_)
        | Shape::Equation
        | Shape::Part
        | Shape::Any => return None,
    };
    let text = node.text().filter(|text| !cx.has_name(text))?;
    if let Some(says) = notes::value(name, text).filter(|_| text.parse::<f64>().is_err()) {
        return Some(not_of_kind(node, &shape.wanted()).help(says));
    }
    let word = Some(text).filter(|text| is_no_number(text))?;
    let help = match boolean(word) {
        Some("false") if takes_zero => Some("write `0`".to_owned()),
        None if has_default => Some(format!("remove `{name}`: it has a default")),
        Some(_) | None => None,
    };
    let message = format!("expected {}, found {}", shape.wanted(), node.describe());
    let diagnostic = Diagnostic::error(Code::WrongKind, node.span, message);
    Some(help.into_iter().fold(diagnostic, Diagnostic::help))
}
