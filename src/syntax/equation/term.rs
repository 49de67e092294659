//! Equations as data: statements and terms with their places, and how they are written.

use std::fmt;

use crate::diag::Diagnostic;
use crate::source::Span;
use crate::syntax::expr::{Expr, ExprKind, Function, OPERAND, Operator};

/// The inputs of a part without a header.
pub const PART_PARAMS: &[&str] = &["x"];

/// The computation of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// The name of the equation in a prelude.
    pub name: Option<String>,
    /// The parameters, the residual stream first: `x`, or `x` and `memory`.
    pub params: Vec<(String, Span)>,
    /// The statements in order. The last value of the first parameter is the result.
    pub body: Vec<Statement>,
    /// The place of the whole equation.
    pub span: Span,
    /// The text without the header.
    pub text: String,
    /// What is wrong with the end of it, after which its statements can be checked nevertheless.
    pub fault: Option<Box<Diagnostic>>,
}

/// One statement, `target = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The name to which the value is assigned.
    pub target: String,
    /// The place of the name; for a last statement without a name, the place of the value.
    pub target_span: Span,
    /// The value that is assigned.
    pub value: Term,
    /// The place of the whole statement.
    pub span: Span,
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The form and the operands.
    pub kind: TermKind,
    /// The place in the source.
    pub span: Span,
}

/// Whether a summand is added or subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `a + b`, or a first summand without a sign
    Plus,
    /// `a - b`, or a first summand with a minus
    Minus,
}

/// The forms of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum TermKind {
    /// `x`, or a name under `let`
    Name(String),
    /// `0.5`, `sqrt(2)`: an expression of numbers alone
    Number(Expr),
    /// `"bhtd,hde->bhte"`: a text in quotes, which a few words take as their first argument
    Text(String),
    /// `attention(norm(x))`, `ffn[first](x)`: a part applied to tensors
    Call {
        /// The part that is called.
        part: String,
        /// The name of this instance, if one is given.
        label: Option<String>,
        /// The arguments: one tensor, and for `cross` also the memory; in a part of the author's own also sizes.
        args: Vec<Term>,
        /// The arguments with a name, `eps: 1e-5`, which follow the others.
        named: Vec<Named>,
    },
    /// `a + b - c`
    Sum(Vec<(Sign, Term)>),
    /// `a * b * c`, in the order of writing
    Product(Vec<Term>),
    /// `a / b`; in a block only `a` may be a tensor
    Quotient(Box<Term>, Box<Term>),
}

/// An argument with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The name: a field of what is called.
    pub name: String,
    /// The place of the name.
    pub span: Span,
    /// The value of the field.
    pub value: Term,
}

/// The text of a part of the author's own.
#[derive(Clone, Debug, PartialEq)]
pub struct PartText {
    /// The inputs with their places.
    pub params: Vec<(String, Span)>,
    /// The statements before the result, in order.
    pub body: Vec<Statement>,
    /// The result.
    pub result: Term,
}

impl Term {
    /// The terms directly in it, those of named arguments last.
    pub fn operands(&self) -> impl Iterator<Item = &Term> {
        let all: Vec<&Term> = match &self.kind {
            TermKind::Name(_) | TermKind::Number(_) | TermKind::Text(_) => Vec::new(),
            TermKind::Call { args, named, .. } => args.iter().chain(named.iter().map(|n| &n.value)).collect(),
            TermKind::Sum(terms) => terms.iter().map(|(_, term)| term).collect(),
            TermKind::Product(factors) => factors.iter().collect(),
            TermKind::Quotient(over, under) => vec![over, under],
        };
        all.into_iter()
    }

    /// The term as an expression of numbers; `None` if it calls anything but functions of numbers.
    pub fn as_expression(&self) -> Option<Expr> {
        let joined = |operator: Operator, left: Expr, right: Expr| {
            let span = left.span.to(right.span);
            Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span }
        };
        match &self.kind {
            TermKind::Name(name) => Some(Expr { kind: ExprKind::Name(name.clone()), span: self.span }),
            TermKind::Number(number) => Some(number.clone()),
            TermKind::Call { part, label: None, args, named } if named.is_empty() => {
                let function = Function::of_numbers(part)?;
                let args: Vec<Expr> = args.iter().map(Term::as_expression).collect::<Option<_>>()?;
                Some(Expr { kind: ExprKind::Call(function, args), span: self.span })
            }
            TermKind::Call { .. } | TermKind::Text(_) => None,
            TermKind::Sum(terms) => terms.iter().try_fold(None, |sum: Option<Expr>, (sign, term)| {
                let term = term.as_expression()?;
                Some(Some(match (sum, sign) {
                    (None, Sign::Plus) => term,
                    (None, Sign::Minus) => negated(term, self.span),
                    (Some(sum), Sign::Plus) => joined(Operator::Add, sum, term),
                    (Some(sum), Sign::Minus) => joined(Operator::Subtract, sum, term),
                }))
            })?,
            TermKind::Product(factors) => {
                let factors: Vec<Expr> = factors.iter().map(Term::as_expression).collect::<Option<_>>()?;
                factors.into_iter().reduce(|left, right| joined(Operator::Multiply, left, right))
            }
            TermKind::Quotient(over, under) => {
                Some(joined(Operator::Divide, over.as_expression()?, under.as_expression()?))
            }
        }
    }
}

/// The negative of an expression. The sign is that of a first factor, as where expressions are read, so that what is
/// printed reads as the same one.
fn negated(expr: Expr, span: Span) -> Expr {
    let kind = match expr.kind {
        ExprKind::Binary(operator @ (Operator::Multiply | Operator::Divide), left, right) => {
            let left = negated(*left, span);
            ExprKind::Binary(operator, Box::new(left), right)
        }
        kind => ExprKind::Negate(Box::new(Expr { kind, span: expr.span })),
    };
    Expr { kind, span }
}

impl Term {
    /// The precedence of its outermost operator, as it is printed.
    fn strength(&self) -> u8 {
        match &self.kind {
            TermKind::Name(_) | TermKind::Text(_) | TermKind::Call { .. } => OPERAND,
            TermKind::Number(number) => number.strength(),
            TermKind::Sum(_) => Operator::Add.strength(),
            TermKind::Product(_) => Operator::Multiply.strength(),
            TermKind::Quotient(..) => Operator::Divide.strength(),
        }
    }
}

/// An operand of another term, written in parentheses if it would be read differently without them: if its operator binds less
/// tightly than the operator `beside` it, or equally tightly and it is not the `first` operand.
struct Operand<'a> {
    term: &'a Term,
    beside: Operator,
    first: bool,
}

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, beside) = (self.term.strength(), self.beside.strength());
        if own < beside || own == beside && !self.first {
            write!(f, "({})", self.term)
        } else {
            write!(f, "{}", self.term)
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = |term, beside, first| Operand { term, beside, first };
        match &self.kind {
            TermKind::Name(name) => f.write_str(name),
            TermKind::Number(number) => write!(f, "{number}"),
            TermKind::Text(text) => write!(f, "\"{text}\""),
            TermKind::Call { part, label, args, named } => {
                f.write_str(part)?;
                if let Some(label) = label {
                    write!(f, "[{label}]")?;
                }
                let named = named.iter().map(|n| format!("{}: {}", n.name, n.value));
                let args: Vec<String> = args.iter().map(Term::to_string).chain(named).collect();
                write!(f, "({})", args.join(", "))
            }
            TermKind::Sum(terms) => {
                for (i, (sign, term)) in terms.iter().enumerate() {
                    match (i, sign) {
                        (0, Sign::Plus) => {}
                        (0, Sign::Minus) => f.write_str("-")?,
                        (_, Sign::Plus) => f.write_str(" + ")?,
                        (_, Sign::Minus) => f.write_str(" - ")?,
                    }
                    // A sum within a sum is written as it was, since floats are added in that order.
                    write!(f, "{}", operand(term, Operator::Add, false))?;
                }
                Ok(())
            }
            TermKind::Product(factors) => {
                for (i, factor) in factors.iter().enumerate() {
                    let mark = if i == 0 { "" } else { " * " };
                    write!(f, "{mark}{}", operand(factor, Operator::Multiply, i == 0))?;
                }
                Ok(())
            }
            TermKind::Quotient(over, under) => {
                let (over, under) =
                    (operand(over, Operator::Divide, true), operand(under, Operator::Divide, false));
                write!(f, "{over} / {under}")
            }
        }
    }
}
