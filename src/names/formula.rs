//! The meaning of formulas over the keys of a `config.json`: `hidden_size / num_attention_heads`,
//! `activations(hidden_act)`, `rope_type == 'linear' and factor != null`. They are expressions of
//! [`crate::syntax::expr`], read once, evaluated when a model is imported, and solved for a key when one is
//! exported.
//!
//! Values are JSON. Arithmetic with an absent or `null` operand is `null`, and a field of a spec that would
//! be `null` is left out, so that a formula has an effect only if its keys are given.

use std::fmt;

use serde_json::{Map, Value as Json};

use crate::syntax::expr::{self, Domain, Expr, ExprKind, Number};

mod solve;

pub use crate::syntax::expr::{Function, Operator};
pub use solve::solve;

/// A parsed formula. It does not keep the places of its parts.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// `12`, `'text'`, `true`, `null`
    Literal(Json),
    /// A key; nested keys are joined by dots: `rope_parameters.rope_theta`
    Key(String),
    /// `[a, b]`, whose value is an array
    List(Vec<Formula>),
    /// `table(key)`: our word for a word of another library
    Entry(String, Box<Formula>),
    /// `not a`, which is true if `a` is `null`
    Not(Box<Formula>),
    /// `-a`, computed as `0 - a`
    Negate(Box<Formula>),
    /// `a + b`, `a == b`, `a and b`, `a ?? b`
    Binary(Operator, Box<Formula>, Box<Formula>),
    /// A function with its arguments: `sqrt(a)`, `if(condition, a, b)`
    Call(Function, Vec<Formula>),
}

/// The reason why a formula has no value, as one sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys and tables that a formula can use.
pub trait Scope {
    /// The value of a key, whose name may have dots; `None` if it is absent.
    fn key(&self, name: &str) -> Option<&Json>;
    /// The entries of a table, from words of another library to ours; `None` if there is no such table.
    fn table(&self, name: &str) -> Option<&Map<String, Json>>;
}

impl From<&Expr> for Formula {
    fn from(expr: &Expr) -> Self {
        let inner = |expr: &Expr| Box::new(Self::from(expr));
        let all = |args: &[Expr]| args.iter().map(Self::from).collect();
        match &expr.kind {
            ExprKind::Number(value) => Self::Literal(number(value.to_f64())),
            ExprKind::Text(text) => Self::Literal(Json::from(text.as_str())),
            ExprKind::Truth(truth) => Self::Literal(Json::Bool(*truth)),
            ExprKind::Null => Self::Literal(Json::Null),
            ExprKind::Name(name) => Self::Key(name.clone()),
            ExprKind::List(items) => Self::List(all(items)),
            ExprKind::Entry(table, key) => Self::Entry(table.clone(), inner(key)),
            ExprKind::Not(a) => Self::Not(inner(a)),
            ExprKind::Negate(a) => Self::Negate(inner(a)),
            ExprKind::Binary(operator, a, b) => Self::Binary(*operator, inner(a), inner(b)),
            ExprKind::Call(function, args) => Self::Call(*function, all(args)),
        }
    }
}

impl Formula {
    /// All keys that the formula uses, in order and as often as it uses them.
    pub fn keys(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.visit(&mut |formula| {
            if let Formula::Key(name) = formula {
                found.push(name.as_str());
            }
        });
        found
    }

    /// Calls `f` with this formula and everything inside it.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Formula)) {
        f(self);
        match self {
            Formula::Literal(_) | Formula::Key(_) => {}
            Formula::List(all) | Formula::Call(_, all) => all.iter().for_each(|a| a.visit(f)),
            Formula::Entry(_, a) | Formula::Not(a) | Formula::Negate(a) => a.visit(f),
            Formula::Binary(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
        }
    }
}

/// The value of a formula. It is `null` where the keys that it needs are absent.
///
/// # Errors
/// An operand of the wrong kind, or a word its table does not have.
pub fn eval(formula: &Formula, scope: &dyn Scope) -> Result<Json, Fault> {
    match formula {
        Formula::Literal(value) => Ok(value.clone()),
        // An absent key is no error: most configs leave most keys out.
        Formula::Key(name) => Ok(scope.key(name).cloned().unwrap_or(Json::Null)),
        Formula::List(all) => {
            all.iter().map(|a| eval(a, scope)).collect::<Result<Vec<_>, _>>().map(Json::Array)
        }
        Formula::Entry(table, inner) => entry(table, &eval(inner, scope)?, scope),
        Formula::Not(a) => Ok(Json::Bool(!truth(&eval(a, scope)?)?)),
        // As a difference, so that the negative of an absent key is absent.
        Formula::Negate(a) => arithmetic(Operator::Subtract, &Json::from(0), &eval(a, scope)?),
        Formula::Binary(operator, a, b) => binary(*operator, a, b, scope),
        Formula::Call(Function::If, args) => match args.as_slice() {
            // Only one branch is evaluated: the other may have no value for this config.
            [condition, yes, no] => eval(if truth(&eval(condition, scope)?)? { yes } else { no }, scope),
            _ => Err(Fault("`if` takes three arguments".into())),
        },
        Formula::Call(Function::Words, args) => match args.as_slice() {
            [list, Formula::Key(table)] => match eval(list, scope)? {
                Json::Null => Ok(Json::Null),
                list => items(&list)?.iter().map(|i| entry(table, i, scope)).collect::<Result<_, _>>(),
            },
            _ => Err(Fault("`words` takes a list and a table".into())),
        },
        Formula::Call(function, args) => {
            let args = args.iter().map(|a| eval(a, scope)).collect::<Result<Vec<_>, _>>()?;
            call(*function, &args)
        }
    }
}

fn entry(table: &str, key: &Json, scope: &dyn Scope) -> Result<Json, Fault> {
    let Some(entries) = scope.table(table) else { return Err(Fault(format!("there is no table `{table}`"))) };
    // A word that the config does not give needs no translation.
    if key.is_null() {
        return Ok(Json::Null);
    }
    // A table may also translate numbers and truth values, whose JSON text is then the word.
    let word = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
    entries.get(&word).cloned().ok_or_else(|| {
        let known: Vec<&str> = entries.keys().map(String::as_str).collect();
        Fault(format!("`{word}` is not one of {}", known.join(", ")))
    })
}

fn binary(operator: Operator, a: &Formula, b: &Formula, scope: &dyn Scope) -> Result<Json, Fault> {
    let left = eval(a, scope)?;
    match operator {
        // These do not need the value of the second operand if the first one decides.
        Operator::Or => return Ok(Json::Bool(truth(&left)? || truth(&eval(b, scope)?)?)),
        Operator::And => return Ok(Json::Bool(truth(&left)? && truth(&eval(b, scope)?)?)),
        Operator::Else if !left.is_null() => return Ok(left),
        Operator::Else => return eval(b, scope),
        _ => {}
    }
    let right = eval(b, scope)?;
    // A comparison with `null` is false, so a condition on an absent key is not met.
    let ordered = |wanted: std::cmp::Ordering| match (left.as_f64(), right.as_f64()) {
        (Some(a), Some(b)) => Ok(Json::Bool(a.partial_cmp(&b) == Some(wanted))),
        _ => Ok(Json::Bool(false)),
    };
    match operator {
        Operator::Equal => Ok(Json::Bool(same(&left, &right))),
        Operator::Differ => Ok(Json::Bool(!same(&left, &right))),
        Operator::Less => ordered(std::cmp::Ordering::Less),
        Operator::Greater => ordered(std::cmp::Ordering::Greater),
        Operator::In => Ok(Json::Bool(items(&right)?.iter().any(|item| same(item, &left)))),
        // They have returned above.
        Operator::Or | Operator::And | Operator::Else => Ok(Json::Null),
        Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Power => {
            arithmetic(operator, &left, &right)
        }
    }
}

/// Whether two values are equal, where 1 and 1.0 are the same number.
pub fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(_), Json::Number(_)) => a.as_f64() == b.as_f64(),
        (Json::Array(x), Json::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same(a, b)),
        (Json::Object(x), Json::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| same(v, w)))
        }
        _ => a == b,
    }
}

/// The truth of a condition; `null` is false.
fn truth(value: &Json) -> Result<bool, Fault> {
    match value {
        Json::Bool(b) => Ok(*b),
        Json::Null => Ok(false),
        Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            Err(Fault(format!("{value} is neither true nor false")))
        }
    }
}

fn items(value: &Json) -> Result<&[Json], Fault> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| Fault(format!("{value} is not a list")))
}

fn count(value: &Json) -> Result<usize, Fault> {
    // Far more layers than any model has. A config is not trusted, so it must not decide how much memory is
    // allocated.
    const MOST: u64 = 10_000;
    let n = value.as_u64().filter(|n| *n <= MOST);
    n.map(|n| n as usize).ok_or_else(|| Fault(format!("{value} is not a whole number up to {MOST}")))
}

/// A value that is repeated for each layer. Lists of lists, or long texts, would multiply the memory that a
/// config takes by the number of layers at every step of a formula.
fn repeated(value: &Json) -> Result<&Json, Fault> {
    const LONGEST: usize = 256;
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => Ok(value),
        Json::String(text) if text.len() <= LONGEST => Ok(value),
        Json::String(_) => {
            Err(Fault(format!("a text that is repeated for each layer has more than {LONGEST} bytes")))
        }
        Json::Array(_) => Err(Fault("a list is repeated for each layer; a single value is expected".into())),
        Json::Object(_) => Err(Fault("a map is repeated for each layer; a single value is expected".into())),
    }
}

/// A number as JSON. Whole numbers are written without a fraction.
pub fn number(value: f64) -> Json {
    // Up to 2^53, about 9.007e15, an `f64` represents every whole number.
    if value == value.trunc() && value.abs() < 9e15 {
        return Json::from(value as i64);
    }
    serde_json::Number::from_f64(value).map_or(Json::Null, Json::Number)
}

fn arithmetic(operator: Operator, a: &Json, b: &Json) -> Result<Json, Fault> {
    if a.is_null() || b.is_null() {
        return Ok(Json::Null);
    }
    let (Some(x), Some(y)) = (a.as_f64(), b.as_f64()) else {
        let wrong = if a.is_number() { b } else { a };
        return Err(Fault(format!("{wrong} is not a number")));
    };
    // Exact where that is possible: beyond 2^53 an `f64` would round.
    let exact = match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => match operator {
            Operator::Add => a.checked_add(b),
            Operator::Subtract => a.checked_sub(b),
            Operator::Multiply => a.checked_mul(b),
            Operator::Divide if b != 0 && a.checked_rem(b) == Some(0) => a.checked_div(b),
            _ => None,
        },
        _ => None,
    };
    if let Some(whole) = exact {
        return Ok(Json::from(whole));
    }
    let value = match operator {
        Operator::Add => x + y,
        Operator::Subtract => x - y,
        Operator::Multiply => x * y,
        Operator::Divide => x / y,
        // `Power`: the others of the five are listed, and `binary` calls this for no other operator.
        _ => x.powf(y),
    };
    if !value.is_finite() {
        return Err(Fault(format!("{a} and {b} do not give a number")));
    }
    Ok(number(value))
}

fn call(function: Function, args: &[Json]) -> Result<Json, Fault> {
    let of = |i: usize| args.get(i).unwrap_or(&Json::Null);
    // As in arithmetic: what is computed from an absent key is absent.
    if of(0).is_null() {
        return Ok(Json::Null);
    }
    // A list with one item per layer: the third argument for the special layers, the fourth for the others.
    let layers = |is_special: &dyn Fn(usize) -> bool| -> Result<Json, Fault> {
        let n = count(of(0))?;
        let (special, other) = (repeated(of(2))?, repeated(of(3))?);
        Ok((0..n).map(|i| if is_special(i) { special.clone() } else { other.clone() }).collect())
    };
    match function {
        Function::Sqrt
        | Function::Floor
        | Function::Ceil
        | Function::Round
        | Function::Min
        | Function::Max
        | Function::Log
        | Function::Log2
        | Function::Exp
        | Function::MultipleOf => of_numbers(function, args),
        Function::Len => match of(0) {
            Json::Array(items) => Ok(Json::from(items.len())),
            Json::Object(entries) => Ok(Json::from(entries.len())),
            other => Err(Fault(format!("{other} is neither a list nor a map"))),
        },
        Function::Repeat => {
            let one = repeated(of(1))?;
            Ok((0..count(of(0))?).map(|_| one.clone()).collect())
        }
        // Without the key that selects layers, no layer is special.
        Function::Every | Function::Each | Function::First if of(1).is_null() => layers(&|_| false),
        Function::Every => {
            let period = count(of(1))?.max(1);
            layers(&|i| i.saturating_add(1).is_multiple_of(period))
        }
        Function::Each => {
            let period = count(of(1))?.max(1);
            let first = if of(4).is_null() { 0 } else { count(of(4))? };
            layers(&|i| i.checked_sub(first).is_some_and(|after| after.is_multiple_of(period)))
        }
        Function::First => {
            let k = count(of(1))?;
            layers(&|i| i < k)
        }
        Function::Listed => {
            let list = items(of(1))?;
            layers(&|i| list.iter().any(|item| item.as_u64() == Some(i as u64)))
        }
        Function::But => {
            let places = if of(1).is_null() { &[] } else { items(of(1))? };
            let mut all = items(of(0))?.to_vec();
            let other = repeated(of(2))?;
            for place in places {
                let at = place.as_u64().and_then(|i| usize::try_from(i).ok());
                let item = at
                    .and_then(|i| all.get_mut(i))
                    .ok_or_else(|| Fault(format!("there is no layer {place}")))?;
                *item = other.clone();
            }
            Ok(Json::Array(all))
        }
        Function::Flags => {
            // Some configs write flags as 0 and 1.
            let word = |item: &Json| match item {
                Json::Bool(b) => Ok(*b),
                other => {
                    let number = other.as_f64().map(|n| n != 0.0);
                    number.ok_or_else(|| Fault(format!("{other} is neither true nor false")))
                }
            };
            let (yes, no) = (repeated(of(1))?, repeated(of(2))?);
            let of_item =
                |item: &Json| word(item).map(|is_set| if is_set { yes.clone() } else { no.clone() });
            items(of(0))?.iter().map(of_item).collect::<Result<_, _>>()
        }
        Function::Labels => {
            let labels = (0..count(of(0))?).map(|i| (i.to_string(), Json::from(format!("LABEL_{i}"))));
            Ok(Json::Object(labels.collect()))
        }
        Function::Item => {
            let (list, n) = (items(of(0))?, count(of(1))?);
            list.get(n).cloned().ok_or_else(|| Fault(format!("a list of {} has no item {n}", list.len())))
        }
        Function::Letters => {
            let text = of(0).as_str().ok_or_else(|| Fault(format!("{} is not a text", of(0))))?;
            count(&Json::from(text.chars().count()))?;
            Ok(text.chars().map(|c| Json::from(c.to_string())).collect())
        }
        Function::Cycles => {
            let mut all: Vec<Json> = Vec::new();
            for item in items(of(0))? {
                let [names, times] = items(item)? else {
                    return Err(Fault(format!("{item} is not a list of names and a number of times")));
                };
                for name in items(names)? {
                    repeated(name)?;
                }
                for _ in 0..count(times)? {
                    all.extend(items(names)?.iter().cloned());
                    // Each cycle is within the bound, and their sum must be too.
                    count(&Json::from(all.len()))?;
                }
            }
            Ok(Json::Array(all))
        }
        Function::Both => {
            let (a, b) = (items(of(0))?, items(of(1))?);
            let word = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Ok(a.iter().zip(b).map(|(a, b)| Json::from(format!("{}_{}", word(a), word(b)))).collect())
        }
        // `eval` handles these two, because it does not evaluate all of their arguments.
        Function::If | Function::Words => Ok(Json::Null),
    }
}

/// The value of a function of numbers, which expressions of specs also have. It is `null` if an argument is.
fn of_numbers(function: Function, args: &[Json]) -> Result<Json, Fault> {
    if args.iter().any(Json::is_null) {
        return Ok(Json::Null);
    }
    // Beyond 2^53 a float would round.
    let exact = |value: &Json| value.as_i64().map(|n| Number::integer(i128::from(n)));
    let read = |value: &Json| {
        let number = exact(value).or_else(|| value.as_f64().map(Number::Float));
        number.ok_or_else(|| Fault(format!("{value} is not a number")))
    };
    let numbers = args.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let given = || args.iter().map(Json::to_string).collect::<Vec<String>>().join(", ");
    expr::apply(function, &numbers).map(|value| number(value.to_f64())).map_err(|fault| {
        let name = function.name();
        Fault(match fault {
            Domain::Outside(needs) => {
                format!("`{name}` of {} is not a number: its argument is {needs}", given())
            }
            Domain::Zero => format!("`{name}` of {} divides by zero", given()),
            Domain::Overflow => format!("`{name}` of {} is too large", given()),
            Domain::NoNumbers => format!("`{name}` is not a function of numbers"),
        })
    })
}
