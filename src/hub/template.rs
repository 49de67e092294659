//! The spec of a family as a template for exports: finds its formulas, the keys that choose between its
//! alternatives, and the values that another spec has at the same places.

use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::names::formula::{Formula, Function, Operator};
use crate::names::formula_of;
use crate::syntax::tree::{Entry, Kind, Node};

/// Collects the formulas of a spec with their paths, and the keys that choose between its alternatives.
pub(super) fn walk(
    node: &Node,
    path: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, Formula)>,
    switches: &mut IndexMap<String, Vec<Json>>,
) {
    match (formula_of(node), &node.kind) {
        (Some(formula), _) => {
            literals(&formula, switches);
            leaves.push((path.clone(), formula));
        }
        (None, Kind::Map(entries)) => {
            // All alternatives are visited, because it is not known yet which of them the spec has.
            let chooses = condition(node).or_else(|| node.get("match").and_then(formula_of));
            if let Some(formula) = chooses {
                literals(&formula, switches);
                if let (Formula::Key(key), Some(_)) = (&formula, node.get("match")) {
                    let cases = entries.iter().filter(|e| !matches!(e.key.as_str(), "match" | "_"));
                    let known = switches.entry(key.clone()).or_default();
                    cases.for_each(|e| known.push(Json::from(e.key.as_str())));
                }
                let cases = entries.iter().filter(|e| !matches!(e.key.as_str(), "match" | "when"));
                cases.for_each(|e| walk(&e.value, path, leaves, switches));
                return;
            }
            for e in entries {
                path.push(e.key.clone());
                walk(&e.value, path, leaves, switches);
                path.pop();
            }
        }
        (None, Kind::List(items)) => items.iter().for_each(|item| walk(item, path, leaves, switches)),
        (_, _) => {}
    }
}

/// The condition of a choice between two alternatives. A `when` that is no formula is a field of a part.
pub(super) fn condition(node: &Node) -> Option<Formula> {
    node.get("when").and_then(formula_of)
}

/// The values with which conditions compare keys.
fn literals(formula: &Formula, switches: &mut IndexMap<String, Vec<Json>>) {
    // A key alone may be the condition of a `when`.
    if let Formula::Key(key) = formula {
        let known = switches.entry(key.clone()).or_default();
        known.extend([Json::Bool(true), Json::Bool(false)]);
    }
    formula.visit(&mut |f| match f {
        Formula::Binary(Operator::Equal | Operator::Differ, a, b) => {
            if let (Formula::Key(key), Formula::Literal(value)) = (&**a, &**b) {
                switches.entry(key.clone()).or_default().push(value.clone());
            }
        }
        // A number that meets the condition, and one that does not.
        Formula::Binary(order @ (Operator::Less | Operator::Greater), a, b) => {
            if let (Formula::Key(key), Formula::Literal(value)) = (&**a, &**b)
                && let Some(limit) = value.as_i64()
            {
                let step = if *order == Operator::Greater { 1 } else { -1 };
                let both = [value.clone(), Json::from(limit.saturating_add(step))];
                switches.entry(key.clone()).or_default().extend(both);
            }
        }
        Formula::Binary(Operator::In, a, b) => {
            if let (Formula::Key(key), Formula::List(all)) = (&**a, &**b) {
                let values = all.iter().filter_map(|f| match f {
                    Formula::Literal(value) => Some(value.clone()),
                    _ => None,
                });
                switches.entry(key.clone()).or_default().extend(values);
            }
        }
        Formula::Binary(Operator::And | Operator::Or, a, b) => {
            for side in [a, b] {
                if let Formula::Key(key) = &**side {
                    switches.entry(key.clone()).or_default().extend([Json::Bool(true), Json::Bool(false)]);
                }
            }
        }
        Formula::Call(Function::If, args) => {
            if let Some(Formula::Key(key)) = args.first() {
                switches.entry(key.clone()).or_default().extend([Json::Bool(true), Json::Bool(false)]);
            }
        }
        Formula::Not(inner) => {
            if let Formula::Key(key) = &**inner {
                switches.entry(key.clone()).or_default().extend([Json::Bool(true), Json::Bool(false)]);
            }
        }
        // Other formulas compare nothing.
        _ => {}
    });
}

/// A setting of a block.
pub(super) enum Leaf {
    /// A text that is the same in every config.
    Constant(String),
    /// A formula over the keys of a config.
    Formula(Formula),
}

/// The leaves of a block's own settings.
pub(super) fn constants(node: &Node, path: &mut Vec<String>, out: &mut Vec<(Vec<String>, Leaf)>) {
    match (formula_of(node), &node.kind) {
        (Some(formula), _) => out.push((path.clone(), Leaf::Formula(formula))),
        (None, Kind::Scalar(scalar)) => out.push((path.clone(), Leaf::Constant(scalar.text.clone()))),
        // A value that only some configs give does not characterise a block.
        (None, Kind::Map(_)) if condition(node).is_some() || node.get("match").is_some() => {}
        (None, Kind::Map(entries)) => {
            for e in entries {
                path.push(e.key.clone());
                constants(&e.value, path, out);
                path.pop();
            }
        }
        (None, Kind::List(items)) => items.iter().for_each(|item| constants(item, path, out)),
        (None, Kind::Null | Kind::Delete) => {}
    }
}

/// Whether an encoded part is the one with this name.
pub(super) fn is_named(node: &Node, word: &str) -> bool {
    matches!(node.entries(), Some([only]) if only.key == word)
}

/// Finds a path of an author's shorter spec in an encoded one, where parts may be named or implied, norms
/// are numbered, and masks are a list.
pub(super) fn find<'n>(node: &'n Node, path: &[String]) -> Option<&'n Node> {
    let Some((first, rest)) = path.split_first() else { return settled(node) };
    match &node.kind {
        Kind::List(items) => items.iter().find_map(|item| find(item, path)),
        Kind::Map(entries) => {
            let other = match first.as_str() {
                // An encoded spec writes the three projections one by one; they agree where the short form is
                // used.
                "qkv" => Some("query"),
                "norm" => Some("norm1"),
                // `init: {normal: ...}` is short for `init: {weights: {normal: ...}}`.
                "normal" | "truncated_normal" => Some("weights"),
                _ => None,
            };
            let of = |e: &'n Entry| find(&e.value, rest);
            // The exact key comes first; the short forms below apply only where an author could have left
            // it out.
            if let Some(e) = entries.iter().find(|e| e.key == *first) {
                return of(e);
            }
            if let Some(e) = other.and_then(|other| entries.iter().find(|e| e.key == other)) {
                return if first == "normal" || first == "truncated_normal" {
                    find(&e.value, path)
                } else {
                    of(e)
                };
            }
            match entries.as_slice() {
                // A part has its name as its only key, which the short form leaves out: `norm.eps` for
                // `norm.rms_norm.eps`.
                [only] => find(&only.value, path),
                _ => None,
            }
        }
        Kind::Null | Kind::Scalar(_) | Kind::Delete => None,
    }
}

/// A scalar, or the first value of a short form: `dropout: 0.1`, `bias: false`, `window: 4096`.
fn settled(node: &Node) -> Option<&Node> {
    match &node.kind {
        Kind::Scalar(_) | Kind::List(_) => Some(node),
        Kind::Map(entries) => {
            let first = entries.first()?;
            matches!(first.value.kind, Kind::Scalar(_)).then_some(&first.value)
        }
        Kind::Null | Kind::Delete => None,
    }
}
