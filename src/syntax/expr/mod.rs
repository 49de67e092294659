//! Numbers as an author writes them: `8/3 * d_model`, `1/sqrt(head_dim)`, `2^40`, `multiple_of(x, 256)`.
//!
//! A scalar's text → a spanned tree ([`Expr`]) → a [`Number`], exact as long as it can be. Every node
//! knows its place, so a fault names the operands where they stand. Trees are at most [`MAX_WORDS`]
//! words large and nest at most as deep as documents do.

mod eval;
mod number;
mod parse;

use std::fmt;

use crate::source::Span;

pub use eval::{NoNames, Scope, eval};
pub use number::Number;
pub use parse::{parse, parse_tokens};

/// An expression may have this many words.
pub const MAX_WORDS: usize = 1_000;

/// An expression with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
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

/// What stands between two operands.
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
    /// `a ^ b`, binds tightest and to the right
    Power,
}

impl Operator {
    /// The mark.
    pub fn mark(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Power => "^",
        }
    }

    /// How tightly it binds: sums 1, products 2, powers 4; a sign stands between, 3.
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

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }

            /// How many arguments it takes, least and most.
            pub fn arity(self) -> (usize, usize) {
                match self { $(Function::$variant => ($least, $most)),* }
            }

            /// What it does, for `trafoc explain`.
            pub fn explanation(self) -> &'static str {
                match self { $(Function::$variant => concat!($($doc),*)),* }
            }
        }
    };
}

functions! {
    /// the square root, exact for squares
    Sqrt = "sqrt", 1..=1;
    /// the greatest whole number that is not above
    Floor = "floor", 1..=1;
    /// the least whole number that is not below
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
    /// e to that power
    Exp = "exp", 1..=1;
    /// the first argument rounded up to a multiple of the second
    MultipleOf = "multiple_of", 2..=2;
}

impl Function {
    /// The function of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }
}

impl Expr {
    /// Every name in it with its place, in order of writing.
    pub fn names(&self) -> Vec<(&str, Span)> {
        match &self.kind {
            ExprKind::Number(_) => Vec::new(),
            ExprKind::Name(name) => vec![(name.as_str(), self.span)],
            ExprKind::Negate(inner) => inner.names(),
            ExprKind::Binary(_, left, right) => [left.names(), right.names()].concat(),
            ExprKind::Call(_, args) => args.iter().flat_map(Expr::names).collect(),
        }
    }

    /// How tightly its outermost mark binds.
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
    /// The expression again, with no more parentheses than it needs.
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
