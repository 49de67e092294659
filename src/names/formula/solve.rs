//! Finds values of keys for which a formula has a given value.
//!
//! A formula with one unknown key is inverted step by step: `a / key = v` becomes `key = a / v`. Nothing is
//! found if a step cannot be inverted, and a value that is found need not be right: an export is checked by
//! importing it again.

use serde_json::{Map, Value as Json};

use super::{Formula, Function, Operator, Scope, eval, number, same};

/// Finds values for the keys that have none in `scope`, so that the formula has the value `wanted`. Passes
/// each key with its value to `found`.
pub fn solve(formula: &Formula, wanted: &Json, scope: &dyn Scope, found: &mut dyn FnMut(&str, Json)) {
    let is_known = |f: &Formula| f.keys().iter().all(|key| scope.key(key).is_some());
    match formula {
        // A constant depends on no key.
        Formula::Literal(_) => {}
        Formula::Key(name) => {
            // A key that is known keeps its value, even if it is another one: the import will show the
            // difference.
            if scope.key(name).is_none() {
                found(name, wanted.clone());
            }
        }
        Formula::List(all) => {
            for (inner, item) in all.iter().zip(wanted.as_array().into_iter().flatten()) {
                solve(inner, item, scope, found);
            }
        }
        Formula::Entry(table, inner) => {
            // If several words have the same meaning, the first of the table is written.
            let entries = scope.table(table).into_iter().flatten();
            // An author's `none` is `null` here (`value_at` of exports), and a word of ours in a table.
            let is_wanted = |ours: &Json| same(ours, wanted) || wanted.is_null() && ours == "none";
            if let Some((word, _)) = entries.into_iter().find(|(_, ours)| is_wanted(ours)) {
                solve(inner, &Json::from(word.as_str()), scope, found);
            }
        }
        Formula::Not(inner) => {
            if let Json::Bool(b) = wanted {
                solve(inner, &Json::Bool(!b), scope, found);
            }
        }
        Formula::Negate(inner) => {
            if let Some(value) = wanted.as_f64() {
                solve(inner, &number(-value), scope, found);
            }
        }
        // The first operand can have any value; what follows `??` is only for a config without it.
        Formula::Binary(Operator::Else, first, _) => solve(first, wanted, scope, found),
        // That two values differ does not tell what they are, so only equality is solved.
        Formula::Binary(Operator::Equal, a, b) if *wanted == Json::Bool(true) => {
            // Either side may be the one whose key is unknown.
            for (inner, other) in [(a, b), (b, a)] {
                if let Some(value) = eval(other, scope).ok().filter(|_| is_known(other)) {
                    solve(inner, &value, scope, found);
                }
            }
        }
        // A false conjunction does not tell which of its operands is false.
        Formula::Binary(Operator::And, a, b) if *wanted == Json::Bool(true) => {
            solve(a, wanted, scope, found);
            solve(b, wanted, scope, found);
        }
        Formula::Binary(operator, a, b) => {
            let Some(value) = wanted.as_f64() else { return };
            if is_known(b) {
                if let Some(right) = eval(b, scope).ok().and_then(|b| b.as_f64())
                    && let Some(left) = left_operand(*operator, value, right)
                {
                    solve(a, &whole(left), scope, found);
                }
            } else if is_known(a)
                && let Some(left) = eval(a, scope).ok().and_then(|a| a.as_f64())
                && let Some(right) = right_operand(*operator, value, left)
            {
                solve(b, &whole(right), scope, found);
            }
        }
        Formula::Call(function, args) => call(*function, args, wanted, scope, found),
    }
}

fn left_operand(operator: Operator, value: f64, right: f64) -> Option<f64> {
    match operator {
        Operator::Add => Some(value - right),
        Operator::Subtract => Some(value + right),
        Operator::Multiply => Some(value / right),
        Operator::Divide => Some(value * right),
        Operator::Power => Some(value.powf(1.0 / right)),
        _ => None,
    }
}

fn right_operand(operator: Operator, value: f64, left: f64) -> Option<f64> {
    match operator {
        Operator::Add => Some(value - left),
        Operator::Subtract => Some(left - value),
        Operator::Multiply => Some(value / left),
        Operator::Divide => Some(left / value),
        _ => None,
    }
}

/// The result of an inversion without its rounding error: a whole number if it is one up to rounding,
/// otherwise a number of 15 significant digits.
fn whole(value: f64) -> Json {
    let rounded = value.round();
    // Some thousand times the rounding error of one operation, and far below any difference between sizes.
    if rounded != 0.0 && (value - rounded).abs() <= rounded.abs() * 1e-12 {
        return number(rounded);
    }
    // An `f64` tells all decimal numbers of 15 digits apart, so a number that a config has is found exactly.
    let short = format!("{value:.14e}").parse::<f64>().unwrap_or(value);
    number(short)
}

fn call(
    function: Function,
    args: &[Formula],
    wanted: &Json,
    scope: &dyn Scope,
    found: &mut dyn FnMut(&str, Json),
) {
    let value = |i: usize| args.get(i).and_then(|a| eval(a, scope).ok());
    let items = || wanted.as_array().map(Vec::as_slice).unwrap_or_default();
    match (function, args) {
        (Function::Sqrt, [inner]) => {
            if let Some(root) = wanted.as_f64() {
                solve(inner, &whole(root * root), scope, found);
            }
        }
        // Many numbers are rounded to the wanted one; that number itself is one of them.
        (Function::Floor | Function::Ceil, [inner]) => solve(inner, wanted, scope, found),
        (Function::If, [condition, yes, no]) => {
            let decided = condition.keys().iter().all(|key| scope.key(key).is_some());
            match eval(condition, scope).ok().filter(|_| decided) {
                Some(Json::Bool(b)) => solve(if b { yes } else { no }, wanted, scope, found),
                // This branch is the wanted value itself, so the condition must select it.
                _ if matches!(yes, Formula::Literal(v) if same(v, wanted)) => {
                    solve(condition, &Json::Bool(true), scope, found);
                }
                // The condition is not known, so both branches are tried. The import of the export will
                // show whether the values are right.
                Some(_) | None => [yes, no].into_iter().for_each(|f| solve(f, wanted, scope, found)),
            }
        }
        (Function::Words, [list, Formula::Key(table)]) => {
            let word = |ours: &Json| {
                let entries = scope.table(table)?;
                entries.iter().find(|(_, o)| same(o, ours)).map(|(word, _)| Json::from(word.as_str()))
            };
            if let Some(words) = items().iter().map(word).collect::<Option<Vec<Json>>>() {
                solve(list, &Json::Array(words), scope, found);
            }
        }
        (Function::Flags, [list, ..]) => {
            let (yes, no) = (value(1), value(2));
            // As numbers, which is how the library writes such lists (`no_rope_layers` of SmolLM3).
            let flag = |item: &Json| match Some(item) {
                item if item == yes.as_ref() => Some(Json::from(1)),
                item if item == no.as_ref() => Some(Json::from(0)),
                _ => None,
            };
            if let Some(flags) = items().iter().map(flag).collect::<Option<Vec<Json>>>() {
                solve(list, &Json::Array(flags), scope, found);
            }
        }
        (Function::Every | Function::Each | Function::First | Function::Listed, [n, k, ..]) => {
            solve(n, &Json::from(items().len()), scope, found);
            let Some(special) = value(2) else { return };
            let is_special: Vec<bool> = items().iter().map(|item| *item == special).collect();
            if let (Function::Each, Some(offset)) = (function, args.get(4)) {
                // Without a special layer, the first one would be the one after the last.
                let first = is_special.iter().position(|s| *s).unwrap_or(is_special.len());
                let after = is_special.iter().skip(first.saturating_add(1)).position(|s| *s);
                let period = after.map_or(is_special.len().saturating_add(1), |i| i.saturating_add(1));
                solve(offset, &Json::from(first), scope, found);
                return solve(k, &Json::from(period), scope, found);
            }
            if let Some(k_value) = layers(function, &is_special) {
                solve(k, &k_value, scope, found);
            }
        }
        (Function::But, [list, places, _]) => {
            let Some(word) = value(2) else { return };
            // The list alone if it can have the wanted value, otherwise a list without the word, and the
            // places of the word.
            let mut keys: Vec<(String, Json)> = Vec::new();
            solve(list, wanted, scope, &mut |key, v| keys.push((key.to_owned(), v)));
            let with = With { scope, keys };
            let alone = eval(list, &with).is_ok_and(|found| same(&found, wanted));
            if alone {
                with.keys.into_iter().for_each(|(key, v)| found(&key, v));
                return;
            }
            let other = items().iter().find(|item| **item != word);
            let rest: Vec<Json> = items().iter().map(|_| other.unwrap_or(&word).clone()).collect();
            solve(list, &Json::Array(rest), scope, found);
            let at = items().iter().enumerate().filter(|(_, item)| **item == word);
            solve(places, &at.map(|(i, _)| Json::from(i)).collect(), scope, found);
        }
        (Function::Both, [a, b]) => {
            let parts = items().iter().map(|item| item.as_str().and_then(|s| s.split_once('_')));
            if let Some(parts) = parts.collect::<Option<Vec<_>>>() {
                let (first, second): (Vec<Json>, Vec<Json>) =
                    parts.into_iter().map(|(a, b)| (Json::from(a), Json::from(b))).unzip();
                solve(a, &Json::Array(first), scope, found);
                solve(b, &Json::Array(second), scope, found);
            }
        }
        (Function::Len, [inner]) => {
            // Only the number of classes is known: they get the default names of Hugging Face's library.
            if let Some(n) = wanted.as_u64().filter(|n| *n <= 10_000) {
                let labels = (0..n).map(|i| (i.to_string(), Json::from(format!("LABEL_{i}"))));
                solve(inner, &Json::Object(labels.collect()), scope, found);
            }
        }
        _ => {}
    }
}

/// A scope with additional keys, which come before its own.
struct With<'a> {
    scope: &'a dyn Scope,
    keys: Vec<(String, Json)>,
}

impl Scope for With<'_> {
    fn key(&self, name: &str) -> Option<&Json> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, v)| v).or_else(|| self.scope.key(name))
    }
    fn table(&self, name: &str) -> Option<&Map<String, Json>> {
        self.scope.table(name)
    }
}

/// The argument with which the function selects the layers for which `is_special` is true, if it can.
fn layers(function: Function, is_special: &[bool]) -> Option<Json> {
    let first = is_special.iter().position(|s| *s);
    match function {
        // Without a special layer the period is longer than the list.
        Function::Every => Some(Json::from(first.unwrap_or(is_special.len()).saturating_add(1))),
        Function::Each => {
            // The first layer is always special, so a list without special layers has no period.
            let second = is_special.iter().skip(1).position(|s| *s);
            first.map(|_| Json::from(second.map_or(is_special.len().max(1), |i| i.saturating_add(1))))
        }
        Function::First => Some(Json::from(is_special.iter().take_while(|s| **s).count())),
        Function::Listed => {
            let at = is_special.iter().enumerate().filter(|(_, s)| **s).map(|(i, _)| Json::from(i));
            Some(at.collect())
        }
        _ => None,
    }
}
