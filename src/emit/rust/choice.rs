//! Choices by the index of a block, as `if` and `match` over the variable `i`.

use super::code::Code;
use crate::emit::program::choice::{Choice, Cycle};

/// The expression of a choice, given the expression of each value.
pub fn written<T>(choice: &Choice<T>, text: &dyn Fn(&T) -> Code) -> Code {
    match choice {
        Choice::One(value) => text(value),
        Choice::Cycle(cycle) => within(cycle, text),
        Choice::Ranges(cases) => {
            let last = cases.len().saturating_sub(1);
            let arms = cases.iter().enumerate().map(|(n, (range, cycle))| {
                let pattern = match (n == last, range.end.saturating_sub(range.start)) {
                    // A `match` on a number has to cover all of them, also those that no block has.
                    (true, _) => "_".to_owned(),
                    (false, 1) => range.start.to_string(),
                    (false, _) => format!("{}..{}", range.start, range.end),
                };
                (pattern, within(cycle, text))
            });
            by_pattern("i", arms)
        }
    }
}

fn within<T>(cycle: &Cycle<T>, text: &dyn Fn(&T) -> Code) -> Code {
    let (shift, length, cases) = match cycle {
        Cycle::One(value) => return text(value),
        Cycle::Repeating { shift, length, cases } => (*shift, *length, cases),
    };
    let index = if shift == 0 { format!("i % {length}") } else { format!("(i + {shift}) % {length}") };
    // Two cases read better as an `if` than as a `match`.
    if let [(at, one), (_, other)] = cases.as_slice()
        && let [at] = at.as_slice()
    {
        return Code::text(format!("if {index} == {at} {{ "))
            .join(text(one))
            .then(" } else { ")
            .join(text(other))
            .then(" }");
    }
    let last = cases.len().saturating_sub(1);
    let arms = cases.iter().enumerate().map(|(n, (at, value))| {
        let places: Vec<String> = at.iter().map(u64::to_string).collect();
        (if n == last { "_".to_owned() } else { places.join(" | ") }, text(value))
    });
    by_pattern(&index, arms)
}

fn by_pattern(index: &str, arms: impl Iterator<Item = (String, Code)>) -> Code {
    let start = Code::text(format!("match {index} {{ "));
    arms.fold(start, |all, (pattern, value)| all.then(format!("{pattern} => ")).join(value).then(", "))
        .then("}")
}
