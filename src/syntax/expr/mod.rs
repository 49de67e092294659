//! Expressions as an author writes them: `8/3 * d_model`, `1/sqrt(head_dim)`, `2^40`, `multiple_of(x, 256)`.
//!
//! A scalar's text is parsed to a tree with source places ([`Expr`]). One of numbers ([`parse`]) is evaluated
//! to a [`Number`] that is exact as long as possible. One of any values ([`parse_formula`]), which begins
//! with `=`, also has texts, lists, conditions and tables; [`crate::names::formula`] gives it a value. Every
//! node has its place, so a diagnostic can show the operands. An expression has at most [`MAX_WORDS`] words
//! and can be nested as deep as documents can.

mod eval;
mod number;
mod parse;

use std::fmt;

use crate::source::Span;

pub use eval::{Domain, NoNames, Scope, apply, eval};
pub use number::Number;
pub use parse::{parse, parse_amount, parse_formula, parse_tokens, unknown_function};

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
    /// A literal: `12`, `1e-5`, `40_000`
    Number(Number),
    /// `d_model`, or a name under `let`
    Name(String),
    /// `-a`, the negative of a number
    Negate(Box<Expr>),
    /// `a + b`, or any other [`Operator`] with its two operands
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `sqrt(a)`, a function with its arguments
    Call(Function, Vec<Expr>),
    /// `'text'`, in formulas only, as the forms below
    Text(String),
    /// `true` or `false`, in formulas only
    Truth(bool),
    /// `null`, in formulas only: the absence of a value
    Null,
    /// `[a, b]`, in formulas only
    List(Vec<Expr>),
    /// `not a`, of a truth value
    Not(Box<Expr>),
    /// `table(a)`: the entry of a table
    Entry(String, Box<Expr>),
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `a + b`, exact if both are ratios
    Add,
    /// `a - b`, exact if both are ratios
    Subtract,
    /// `a * b`, exact if both are ratios
    Multiply,
    /// `a / b`, exact if both are ratios
    Divide,
    /// `a ^ b`, which binds tightest and to the right.
    Power,
    /// `a or b`, in formulas only, as the operators below
    Or,
    /// `a and b`, of truth values
    And,
    /// `a == b`, of any values
    Equal,
    /// `a != b`, of any values
    Differ,
    /// `a < b`, of numbers
    Less,
    /// `a > b`, of numbers
    Greater,
    /// `a in list`, whether the list contains the value
    In,
    /// `a ?? b`: `b` where `a` is null
    Else,
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
            Operator::Or => "or",
            Operator::And => "and",
            Operator::Equal => "==",
            Operator::Differ => "!=",
            Operator::Less => "<",
            Operator::Greater => ">",
            Operator::In => "in",
            Operator::Else => "??",
        }
    }

    /// The precedence. `not` has 3, so that `not a == b` denies the comparison; a sign has 8, so that `-a^2`
    /// is `-(a^2)`; what has no operator has [`OPERAND`].
    pub fn strength(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Equal | Operator::Differ | Operator::Less | Operator::Greater | Operator::In => 4,
            Operator::Else => 5,
            Operator::Add | Operator::Subtract => 6,
            Operator::Multiply | Operator::Divide => 7,
            Operator::Power => 9,
        }
    }
}

// One table, so that no function can lack its name, its number of arguments or its explanation.
macro_rules! functions {
    (numbers { $($number:ident($name:literal, $least:literal..=$most:literal): $text:literal;)* }
     values { $($value:ident($vname:literal, $vleast:literal..=$vmost:literal): $vtext:literal;)* }) => {
        /// The functions of expressions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function { $(#[doc = $text] $number,)* $(#[doc = $vtext] $value),* }

        impl Function {
            /// The functions of numbers, which any expression may call.
            pub const NUMBERS: &'static [Function] = &[$(Function::$number),*];
            /// The functions of other values, which only formulas call.
            pub const VALUES: &'static [Function] = &[$(Function::$value),*];

            /// The name in expressions.
            pub fn name(self) -> &'static str {
                match self { $(Function::$number => $name,)* $(Function::$value => $vname),* }
            }

            /// The smallest and the largest number of arguments.
            pub fn arity(self) -> (usize, usize) {
                match self {
                    $(Function::$number => ($least, $most),)*
                    $(Function::$value => ($vleast, $vmost)),*
                }
            }

            /// The description for `trafoc explain`.
            pub fn explanation(self) -> &'static str {
                match self { $(Function::$number => $text,)* $(Function::$value => $vtext),* }
            }
        }
    };
}

// The numbers are the least and the greatest count of arguments.
functions! {
    numbers {
        Sqrt("sqrt", 1..=1): "the square root, exact for squares";
        Floor("floor", 1..=1): "the greatest whole number that is not larger";
        Ceil("ceil", 1..=1): "the least whole number that is not smaller";
        Round("round", 1..=1): "the nearest whole number, halves away from zero";
        Min("min", 1..=16): "the least of its arguments";
        Max("max", 1..=16): "the greatest of its arguments";
        Log("log", 1..=1): "the natural logarithm";
        Log2("log2", 1..=1): "the logarithm to base 2, exact for powers of two";
        Exp("exp", 1..=1): "e to the power of its argument";
        MultipleOf("multiple_of", 2..=2): "the first argument rounded up to a multiple of the second";
    }
    values {
        If("if", 3..=3): "the second argument if the first is true, else the third";
        Len("len", 1..=1): "the number of items or keys";
        Repeat("repeat", 2..=2): "`repeat(n, item)`: a list of `n` times the same item";
        Every("every", 4..=4): "`every(n, period, special, usual)`: \
            of `n` layers each `period`-th is `special`";
        Each("each", 4..=5): "`each(n, period, special, usual, first)`: \
            of `n` layers number `first` (0 if not given) and each `period`-th after it is `special`";
        First("first", 4..=4): "`first(n, k, special, usual)`: of `n` layers the first `k` are `special`";
        Item("item", 2..=2): "`item(list, n)`: item number `n` of a list, counted from 0";
        Letters("letters", 1..=1): "`letters(text)`: the letters of a text as a list";
        Words("words", 2..=2): "`words(list, table)`: each item of a list as the table has it";
        Flags("flags", 3..=3): "`flags(list, yes, no)`: each truth value as one of two words";
        Listed("listed", 4..=4): "`listed(n, list, special, usual)`: \
            of `n` layers those in the list are `special`";
        But("but", 3..=3): "`but(list, places, word)`: the list, with that word at those places";
        Labels("labels", 1..=1): "the names of `n` classes as Hugging Face gives them";
        Cycles("cycles", 1..=1): "`cycles([[names, count], ...])`: \
            each list of names that many times, one after the other";
        Both("both", 2..=2): "`both(a, b)`: two lists item by item, joined by `_`";
    }
}

impl Function {
    /// The function of numbers with this name; `ln` is another name of `log`.
    pub fn of_numbers(name: &str) -> Option<Self> {
        let name = if name == "ln" { Function::Log.name() } else { name };
        Self::NUMBERS.iter().copied().find(|f| f.name() == name)
    }

    /// The function with this name, of numbers or of other values.
    pub fn of_any(name: &str) -> Option<Self> {
        Self::of_numbers(name).or_else(|| Self::VALUES.iter().copied().find(|f| f.name() == name))
    }
}

impl Expr {
    /// Every name in it with its place, in order.
    pub fn names(&self) -> Vec<(&str, Span)> {
        match &self.kind {
            ExprKind::Number(_) | ExprKind::Text(_) | ExprKind::Truth(_) | ExprKind::Null => Vec::new(),
            ExprKind::Name(name) => vec![(name.as_str(), self.span)],
            ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Entry(_, inner) => inner.names(),
            ExprKind::Binary(_, left, right) => [left.names(), right.names()].concat(),
            ExprKind::Call(_, args) | ExprKind::List(args) => args.iter().flat_map(Expr::names).collect(),
        }
    }

    /// The places of the calls of functions around a place in it, the innermost first.
    pub fn calls_around(&self, place: Span) -> Vec<Span> {
        match &self.kind {
            ExprKind::Number(_)
            | ExprKind::Text(_)
            | ExprKind::Truth(_)
            | ExprKind::Null
            | ExprKind::Name(_) => Vec::new(),
            ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Entry(_, inner) => {
                inner.calls_around(place)
            }
            ExprKind::Binary(_, left, right) => {
                [left.calls_around(place), right.calls_around(place)].concat()
            }
            ExprKind::List(items) => items.iter().flat_map(|item| item.calls_around(place)).collect(),
            ExprKind::Call(_, args) => {
                let own = self.span.contains(place).then_some(self.span);
                args.iter().flat_map(|arg| arg.calls_around(place)).chain(own).collect()
            }
        }
    }

    /// The precedence of its outermost operator, as it is printed.
    pub fn strength(&self) -> u8 {
        match &self.kind {
            // A ratio that is no decimal is printed as `8/3`, and so binds like a quotient.
            ExprKind::Number(number) if number.to_string().contains('/') => Operator::Divide.strength(),
            ExprKind::Number(number) if number.is_negative() => SIGN,
            ExprKind::Number(_)
            | ExprKind::Name(_)
            | ExprKind::Call(..)
            | ExprKind::Text(_)
            | ExprKind::Truth(_)
            | ExprKind::Null
            | ExprKind::List(_)
            | ExprKind::Entry(..) => OPERAND,
            ExprKind::Negate(_) => SIGN,
            ExprKind::Not(_) => 3,
            ExprKind::Binary(operator, ..) => operator.strength(),
        }
    }
}

/// The precedence of a sign: above a product, below a power.
const SIGN: u8 = 8;

/// The precedence of what has no operator.
pub const OPERAND: u8 = 10;

fn listed(all: &[Expr]) -> String {
    all.iter().map(Expr::to_string).collect::<Vec<String>>().join(", ")
}

impl fmt::Display for Expr {
    /// Prints the expression with as few parentheses as possible.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrapped = |f: &mut fmt::Formatter<'_>, e: &Expr, least: u8| {
            if e.strength() < least { write!(f, "({e})") } else { write!(f, "{e}") }
        };
        match &self.kind {
            ExprKind::Number(number) => write!(f, "{number}"),
            ExprKind::Name(name) => f.write_str(name),
            ExprKind::Negate(inner) => {
                f.write_str("-")?;
                wrapped(f, inner, SIGN + 1)
            }
            ExprKind::Binary(operator, left, right) => {
                let own = operator.strength();
                let power = *operator == Operator::Power;
                // Comparisons are not chained.
                let is_alone = power || own == Operator::Equal.strength();
                wrapped(f, left, if is_alone { own.saturating_add(1) } else { own })?;
                let space = if power || *operator == Operator::Divide { "" } else { " " };
                write!(f, "{space}{}{space}", operator.mark())?;
                // `a - (b - c)` needs its parentheses, `a^(b^c)` does not: a power binds to the right.
                wrapped(f, right, if power { own } else { own.saturating_add(1) })
            }
            ExprKind::Call(function, args) => write!(f, "{}({})", function.name(), listed(args)),
            ExprKind::Text(text) => write!(f, "'{text}'"),
            ExprKind::Truth(truth) => write!(f, "{truth}"),
            ExprKind::Null => f.write_str("null"),
            ExprKind::List(items) => write!(f, "[{}]", listed(items)),
            ExprKind::Not(inner) => {
                f.write_str("not ")?;
                wrapped(f, inner, 3)
            }
            ExprKind::Entry(table, inner) => write!(f, "{table}({inner})"),
        }
    }
}
