//! Converts trees to JSON values, and back.

use serde_json::{Number, Value as Json};

use crate::field::real_text::{decimal_text, quotient_of};
use crate::field::value::plain;
use crate::source::Span;
use crate::syntax::tree::{Entry, Kind, Node, Style};

/// A tree as JSON: plain scalars become numbers, booleans or null if they look like one.
pub fn of(node: &Node) -> Json {
    match &node.kind {
        Kind::Null | Kind::Delete => Json::Null,
        Kind::List(items) => items.iter().map(of).collect(),
        Kind::Map(entries) => Json::Object(entries.iter().map(|e| (e.key.clone(), of(&e.value))).collect()),
        // In quotes even `true` and `12` are texts.
        Kind::Scalar(scalar) if scalar.style != Style::Plain => Json::from(scalar.text.as_str()),
        Kind::Scalar(scalar) => match scalar.text.as_str() {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            "null" | "~" => Json::Null,
            text => number(text).map_or_else(|| Json::from(text), Json::Number),
        },
    }
}

fn number(text: &str) -> Option<Number> {
    // Rust would also read `inf` and `nan` as numbers; here they are words.
    let first = text.trim_start_matches(['-', '+']).chars().next()?;
    if !first.is_ascii_digit() && first != '.' {
        return None;
    }
    // Before it is read as a float, which is exact only up to 2^53.
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    // A spec writes a number without a short decimal form as a quotient, which no other format reads as a number.
    Number::from_f64(text.parse().ok().or_else(|| quotient_of(text))?)
}

/// The tree of a JSON value; every node of it has the place `span`.
pub fn node(value: &Json, span: Span) -> Node {
    let kind = match value {
        Json::Null => Kind::Null,
        Json::Bool(b) => plain(b.to_string()).kind,
        Json::Number(n) => plain(text(n)).kind,
        Json::String(s) => plain(s.as_str()).kind,
        Json::Array(items) => Kind::List(items.iter().map(|i| node(i, span)).collect()),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| Entry {
                key: key.clone(),
                key_span: span,
                value: node(value, span),
            };
            Kind::Map(entries.iter().map(entry).collect())
        }
    };
    Node { kind, span }
}

/// A number in the notation of specs.
pub fn text(number: &Number) -> String {
    number.as_i64().map_or_else(|| decimal_text(number.as_f64().unwrap_or(0.0)), |whole| whole.to_string())
}
