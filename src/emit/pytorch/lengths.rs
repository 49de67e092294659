//! Lengths and places of positions as expressions.

use super::function::Function;
use super::syntax::Expr;
use crate::emit::program::needs::Need;
use crate::ir::op::Sequence;

/// A length that a module is given or finds.
pub fn need(need: Need) -> Expr {
    need.variable().into()
}

/// `a + b`, or `b` where `a` is 0: a model that does not decode has no `0 + time` in its text.
pub fn sum(a: Expr, b: Expr) -> Expr {
    if a == Expr::Int(0) { b } else { a.plus(b) }
}

/// The first position and the number of positions along a sequence.
pub fn span(f: &Function<'_>, along: Sequence) -> (Expr, Expr) {
    let decodes = f.file.program.graph.decodes;
    // Without a cache, nothing comes before the first position.
    let start = if along == Sequence::Cached && decodes { need(Need::Past) } else { Expr::Int(0) };
    let length = match along {
        Sequence::Whole | Sequence::Cached => need(Need::Time),
        Sequence::Source => need(Need::Source),
        Sequence::Fixed(n) => f.file.extent(n),
    };
    (start, length)
}

/// The number of keys of a sequence.
pub fn key_count(f: &Function<'_>, along: Sequence) -> Expr {
    let (start, length) = span(f, along);
    sum(start, length)
}
