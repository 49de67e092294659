//! Choices by the index of a block, as conditions on the variable `i`.

use super::syntax::{Expr, Sign};
use crate::emit::program::choice::{Choice, Cycle};

/// The expression of a choice, given the expression of each value.
pub fn written<T>(choice: &Choice<T>, value: &dyn Fn(&T) -> Expr) -> Expr {
    match choice {
        Choice::One(one) => value(one),
        Choice::Cycle(cycle) => within(cycle, value),
        Choice::Ranges(cases) => {
            // The ranges are in order and so are their tests, so the end of each is enough.
            let cases = cases.iter().map(|(range, cycle)| {
                let test = Expr::from("i").binary(Sign::Compare("<"), Expr::Int(range.end));
                (test, within(cycle, value))
            });
            first_of(cases.collect())
        }
    }
}

fn within<T>(cycle: &Cycle<T>, value: &dyn Fn(&T) -> Expr) -> Expr {
    let (shift, length, cases) = match cycle {
        Cycle::One(one) => return value(one),
        Cycle::Repeating { shift, length, cases } => (*shift, *length, cases),
    };
    let i = Expr::from("i");
    let index = if shift == 0 { i } else { i.plus(Expr::Int(shift)) };
    let index = index.binary(Sign::Remainder, Expr::Int(length));
    let cases = cases.iter().map(|(at, one)| {
        let test = match at.as_slice() {
            [at] => index.clone().binary(Sign::Compare("=="), Expr::Int(*at)),
            several => {
                let several = several.iter().map(|at| Expr::Int(*at)).collect();
                index.clone().binary(Sign::Compare("in"), Expr::Tuple(several))
            }
        };
        (test, value(one))
    });
    first_of(cases.collect())
}

/// The value of the first test that is true; the last case needs none.
fn first_of(mut cases: Vec<(Expr, Expr)>) -> Expr {
    let Some((_, last)) = cases.pop() else { return Expr::None };
    // From the last case outwards: each choice is the `else` of the one before it.
    cases.into_iter().rev().fold(last, |other, (test, then)| test.choose(then, other))
}
