//! Numbers as an author writes them: `8/3 * d_model`, `1/sqrt(head_dim)`, `2^40`, `multiple_of(x, 256)`.
//!
//! A scalar's text is parsed to a tree with source places ([`Expr`]), which is evaluated to a [`Number`]
//! that is exact as long as possible. Every node has its place, so a diagnostic can show the operands. An
//! expression has at most [`MAX_WORDS`] words and can be nested as deep as documents can.

mod eval;
mod number;
mod parse;

use std::fmt;

use crate::source::Span;

pub use eval::{NoNames, Scope, eval};
pub use number::Number;
pub use parse::{parse, parse_tokens};

/// The most words of an expression.
pub const MAX_WORDS: usize = 1_000;

/// An expression with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The form and the operands.
    pub kind: ExprKind,
    /// The place in the source.
    pub span: Span,
}

/// The forms an expression takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `12`, `1e-5`
    Number(Number),
    /// `d_model`, or a name under `let`
    Name(String),
    /// `-a`
    Negate(Box<Expr>),
    /// `a + b`
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `sqrt(a)`
    Call(Function, Vec<Expr>),
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`, exact
    Divide,
    /// `a ^ b`, which binds tightest and to the right.
    Power,
}

impl Operator {
    /// The operator as it is written.
    pub fn mark(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Power => "^",
        }
    }

    /// The precedence: sums 1, products 2, a sign 3, powers 4.
    fn strength(self) -> u8 {
        match self {
            Operator::Add | Operator::Subtract => 1,
            Operator::Multiply | Operator::Divide => 2,
            Operator::Power => 4,
        }
    }
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $least:literal..=$most:literal;)*) => {
        /// The functions of expressions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function { $($(#[doc = $doc])* $variant),* }

        impl Function {
            /// Every function.
            pub const ALL: &'static [Function] = &[$(Function::$variant),*];

            /// The name in expressions.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }

            /// The smallest and the largest number of arguments.
            pub fn arity(self) -> (usize, usize) {
                match self { $(Function::$variant => ($least, $most)),* }
            }

            /// The description for `trafoc explain`.
            pub fn explanation(self) -> &'static str {
                match self { $(Function::$variant => concat!($($doc),*)),* }
            }
        }
    };
}

functions! {
    /// the square root, exact for squares
    Sqrt = "sqrt", 1..=1;
    /// the greatest whole number that is not larger
    Floor = "floor", 1..=1;
    /// the least whole number that is not smaller
    Ceil = "ceil", 1..=1;
    /// the nearest whole number, halves away from zero
    Round = "round", 1..=1;
    /// the least of its arguments
    Min = "min", 1..=16;
    /// the greatest of its arguments
    Max = "max", 1..=16;
    /// the natural logarithm
    Log = "log", 1..=1;
    /// the logarithm to base 2, exact for powers of two
    Log2 = "log2", 1..=1;
    /// e to the power of its argument
    Exp = "exp", 1..=1;
    /// the first argument rounded up to a multiple of the second
    MultipleOf = "multiple_of", 2..=2;
}

impl Function {
    /// The function with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }
}

impl Expr {
    /// Every name in it with its place, in order.
    pub fn names(&self) -> Vec<(&str, Span)> {
        match &self.kind {
            ExprKind::Number(_) => Vec::new(),
            ExprKind::Name(name) => vec![(name.as_str(), self.span)],
            ExprKind::Negate(inner) => inner.names(),
            ExprKind::Binary(_, left, right) => [left.names(), right.names()].concat(),
            ExprKind::Call(_, args) => args.iter().flat_map(Expr::names).collect(),
        }
    }

    /// The precedence of its outermost operator.
    fn strength(&self) -> u8 {
        match &self.kind {
            ExprKind::Number(number) if number.to_string().contains('/') => 2,
            ExprKind::Number(number) if number.is_negative() => 3,
            ExprKind::Number(_) | ExprKind::Name(_) | ExprKind::Call(..) => 5,
            ExprKind::Negate(_) => 3,
            ExprKind::Binary(operator, ..) => operator.strength(),
        }
    }
}

impl fmt::Display for Expr {
    /// Prints the expression with as few parentheses as possible.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrapped = |f: &mut fmt::Formatter<'_>, e: &Expr, least: u8| match e.strength() < least {
            true => write!(f, "({e})"),
            false => write!(f, "{e}"),
        };
        match &self.kind {
            ExprKind::Number(number) => write!(f, "{number}"),
            ExprKind::Name(name) => f.write_str(name),
            ExprKind::Negate(inner) => {
                f.write_str("-")?;
                wrapped(f, inner, 4)
            }
            ExprKind::Binary(operator, left, right) => {
                let own = operator.strength();
                let power = *operator == Operator::Power;
                wrapped(f, left, if power { own + 1 } else { own })?;
                match power || *operator == Operator::Divide {
                    true => f.write_str(operator.mark())?,
                    false => write!(f, " {} ", operator.mark())?,
                }
                wrapped(f, right, if power { own } else { own + 1 })
            }
            ExprKind::Call(function, args) => {
                let args: Vec<String> = args.iter().map(Expr::to_string).collect();
                write!(f, "{}({})", function.name(), args.join(", "))
            }
        }
    }
}
