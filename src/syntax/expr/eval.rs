//! [`Expr`] → [`Number`], or a diagnostic that shows both operands.

use crate::diag::{Code, Diagnostic, suggest};
use crate::source::Span;

use super::{Expr, ExprKind, Function, Number, Operator};

/// The names an expression may use.
pub trait Scope {
    /// The value of a name, and the place where an author gave it, if any.
    fn lookup(&self, name: &str) -> Option<(Number, Option<Span>)>;

    /// All names that have a value, for suggestions.
    fn names(&self) -> Vec<String>;

    /// The reason why a name has no value yet.
    fn why_unknown(&self, _name: &str) -> Option<String> {
        None
    }

    /// How an author gives a name of their own a value, where there is a way.
    fn own_names(&self) -> Option<&'static str> {
        None
    }
}

/// A scope without names, for expressions of numbers alone.
pub struct NoNames;

impl Scope for NoNames {
    fn lookup(&self, _name: &str) -> Option<(Number, Option<Span>)> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The value of an expression, or the diagnostic for the first operation that has none.
pub fn eval(expr: &Expr, scope: &dyn Scope) -> Result<Number, Diagnostic> {
    value(expr, scope).map_err(|d| *d)
}

fn value(expr: &Expr, scope: &dyn Scope) -> Result<Number, Box<Diagnostic>> {
    match &expr.kind {
        ExprKind::Number(number) => Ok(*number),
        ExprKind::Name(name) => match scope.lookup(name) {
            Some((number, _)) => Ok(number),
            None => Err(Box::new(unknown(name, expr.span, scope))),
        },
        ExprKind::Negate(inner) => {
            let inner_value = value(inner, scope)?;
            inner_value.negate().ok_or_else(|| Box::new(overflow(expr, &[(inner, inner_value)], scope)))
        }
        ExprKind::Binary(operator, left, right) => {
            let (a, b) = (value(left, scope)?, value(right, scope)?);
            let result = match operator {
                Operator::Or
                | Operator::And
                | Operator::Equal
                | Operator::Differ
                | Operator::Less
                | Operator::Greater
                | Operator::In
                | Operator::Else => return Err(no_number(expr)),
                Operator::Add => a.plus(b),
                Operator::Subtract => a.minus(b),
                Operator::Multiply => a.times(b),
                Operator::Divide if b.is_zero() => return Err(Box::new(zero(right, scope))),
                Operator::Divide => a.over(b),
                // `0^-1` divides by zero.
                Operator::Power if a.is_zero() && b.is_negative() => return Err(Box::new(zero(left, scope))),
                Operator::Power if a.is_negative() && !b.is_integer() => {
                    let message = format!("{a} to the power {b} is not a number");
                    return Err(Box::new(outside(expr, message, &[(left, a), (right, b)], scope)));
                }
                Operator::Power => a.power(b),
            };
            result.ok_or_else(|| Box::new(overflow(expr, &[(left, a), (right, b)], scope)))
        }
        ExprKind::Call(function, args) => call(expr, *function, args, scope),
        ExprKind::Text(_)
        | ExprKind::Truth(_)
        | ExprKind::Null
        | ExprKind::List(_)
        | ExprKind::Not(_)
        | ExprKind::Entry(..) => Err(no_number(expr)),
    }
}

/// The diagnostic for an operator or a value that only formulas can contain.
fn no_number(expr: &Expr) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(Code::Expression, expr.span, format!("`{expr}` is not a number")))
}

fn call(
    expr: &Expr,
    function: Function,
    args: &[Expr],
    scope: &dyn Scope,
) -> Result<Number, Box<Diagnostic>> {
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        values.push((arg, value(arg, scope)?));
    }
    let numbers: Vec<Number> = values.iter().map(|(_, number)| *number).collect();
    apply(function, &numbers).map_err(|fault| {
        let first = values.first().copied();
        Box::new(match (fault, first, values.get(1)) {
            (Domain::Zero, _, Some((second, _))) => zero(second, scope),
            (Domain::Outside(needs), Some((first, x)), _) => {
                let message = format!("`{}` of {x} is not a number", function.name());
                outside(expr, message, &[(first, x)], scope).help(format!("its argument is {needs}"))
            }
            // A division by zero has a second argument, and so is always reported above.
            (Domain::Overflow | Domain::Zero, ..) => overflow(expr, &values, scope),
            (Domain::Outside(_) | Domain::NoNumbers, ..) => *no_number(expr),
        })
    })
}

/// Why a function has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Its first argument is outside of its domain, which the text describes: `zero or more`.
    Outside(&'static str),
    /// It divides by its second argument, which is 0.
    Zero,
    /// The result is too large.
    Overflow,
    /// It is not a function of numbers, or has too few of them.
    NoNumbers,
}

/// The value of a function of numbers.
///
/// # Errors
/// The reason why it has none.
pub fn apply(function: Function, args: &[Number]) -> Result<Number, Domain> {
    let x = args.first().copied().ok_or(Domain::NoNumbers)?;
    let pick = |wanted: std::cmp::Ordering| {
        Some(args.iter().fold(x, |best, n| if n.compare(best) == wanted { *n } else { best }))
    };
    let result = match function {
        Function::Sqrt if x.is_negative() => return Err(Domain::Outside("zero or more")),
        Function::Log | Function::Log2 if x.is_negative() || x.is_zero() => {
            return Err(Domain::Outside("more than zero"));
        }
        Function::Sqrt => x.sqrt(),
        Function::Floor => Some(x.floor()),
        Function::Ceil => x.ceil(),
        Function::Round => x.round(),
        Function::Min => pick(std::cmp::Ordering::Less),
        Function::Max => pick(std::cmp::Ordering::Greater),
        Function::Log => Some(Number::Float(x.to_f64().ln())),
        Function::Log2 => Some(log2(x)),
        Function::Exp => Some(Number::Float(x.to_f64().exp())).filter(|n| n.to_f64().is_finite()),
        Function::MultipleOf => {
            let n = args.get(1).copied().ok_or(Domain::NoNumbers)?;
            if n.is_zero() {
                return Err(Domain::Zero);
            }
            x.over(n).and_then(Number::ceil).and_then(|count| count.times(n))
        }
        Function::If
        | Function::Len
        | Function::Repeat
        | Function::Every
        | Function::Each
        | Function::First
        | Function::Item
        | Function::Letters
        | Function::Words
        | Function::Flags
        | Function::Listed
        | Function::But
        | Function::Labels
        | Function::Cycles
        | Function::Both => return Err(Domain::NoNumbers),
    };
    result.ok_or(Domain::Overflow)
}

/// The logarithm, exact for powers of two and their inverses.
fn log2(x: Number) -> Number {
    match x {
        Number::Ratio(num, 1) if num.count_ones() == 1 => Number::integer(i128::from(num.trailing_zeros())),
        Number::Ratio(1, den) if den.count_ones() == 1 => {
            Number::integer(i128::from(den.trailing_zeros()).saturating_neg())
        }
        Number::Ratio(..) | Number::Float(_) => Number::Float(x.to_f64().log2()),
    }
}

fn unknown(name: &str, span: Span, scope: &dyn Scope) -> Diagnostic {
    let names = scope.names();
    // A known name without a value must not be answered with a similar one.
    if let Some(why) = scope.why_unknown(name) {
        let message = format!("`{name}` has no value here");
        return Diagnostic::error(Code::UnknownName, span, message).help(why);
    }
    let diagnostic = Diagnostic::error(Code::UnknownName, span, format!("nothing is named `{name}` here"));
    match suggest::suggest(name, &names) {
        Some(near) => diagnostic.meant(name, &near),
        None if names.is_empty() => diagnostic.help("only numbers are allowed here"),
        None => {
            let own = scope.own_names().map(|how| format!("{how}, or ")).unwrap_or_default();
            diagnostic.help(format!("{own}use one of {}", names.join(", ")))
        }
    }
}

fn zero(divisor: &Expr, scope: &dyn Scope) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::DivisionByZero, divisor.span, "this is a division by zero");
    // Its value is in the text at its place already.
    with_operands(diagnostic.here("this is 0"), &[(divisor, Number::integer(0))], scope, false)
}

fn overflow(expr: &Expr, operands: &[(&Expr, Number)], scope: &dyn Scope) -> Diagnostic {
    let message = "the result is too large to be exact, beyond 2^127";
    let diagnostic = Diagnostic::error(Code::ExpressionOverflow, expr.span, message);
    with_operands(diagnostic, operands, scope, true)
}

fn outside(expr: &Expr, message: String, operands: &[(&Expr, Number)], scope: &dyn Scope) -> Diagnostic {
    with_operands(Diagnostic::error(Code::NotANumber, expr.span, message), operands, scope, true)
}

/// Labels each operand with its value, and each name with the place where it was given its value.
fn with_operands(
    mut diagnostic: Diagnostic,
    operands: &[(&Expr, Number)],
    scope: &dyn Scope,
    values: bool,
) -> Diagnostic {
    for (operand, number) in operands {
        // A literal shows its value itself.
        if values && !matches!(operand.kind, ExprKind::Number(_)) {
            diagnostic = diagnostic.label(operand.span, format!("this is {number}"));
        }
        if let ExprKind::Name(name) = &operand.kind
            && let Some((_, Some(given))) = scope.lookup(name)
            // A name that is used twice is given in one place.
            && diagnostic.labels.iter().all(|l| l.span != given)
        {
            diagnostic = diagnostic.label(given, format!("`{name}` is given here"));
        }
    }
    diagnostic
}
