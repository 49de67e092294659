//! Stacks of different blocks: selects a value by a block's index, as a readable expression.

use super::code::Code;
use crate::ir::Run;

/// The case for every place in a stack: for each run, for each position of its cycle.
pub type Places<T> = Vec<Vec<T>>;

/// The value of block `i`, given the value for every place; `None` for places that do not matter.
pub fn by_index<T: Clone + PartialEq>(
    runs: &[Run],
    places: &Places<Option<T>>,
    text: &dyn Fn(&T) -> Code,
) -> Option<Code> {
    let mut ranges: Vec<(u64, u64, Vec<Option<T>>)> = Vec::new();
    let mut start = 0u64;
    for (run, cycle) in runs.iter().zip(places) {
        let end = start.saturating_add(run.count);
        let reached = usize::try_from(run.count).unwrap_or(usize::MAX).min(cycle.len());
        let cycle = cycle.get(..reached).unwrap_or(cycle).to_vec();
        match ranges.last_mut() {
            Some((_, last, before)) if uniform(before).is_some() && uniform(before) == uniform(&cycle) => {
                *last = end;
            }
            _ => ranges.push((start, end, cycle)),
        }
        start = end;
    }
    ranges.retain(|(_, _, cycle)| cycle.iter().any(Option::is_some));
    let last = ranges.len().checked_sub(1)?;
    if last == 0 {
        return ranges.first().map(|(start, _, cycle)| within(*start, cycle, text));
    }
    let mut code = Code::text("match i { ");
    for (n, (start, end, cycle)) in ranges.iter().enumerate() {
        let pattern = match (n == last, end - start) {
            (true, _) => "_".to_owned(),
            (false, 1) => start.to_string(),
            (false, _) => format!("{start}..{end}"),
        };
        code = code.then(format!("{pattern} => ")).join(within(*start, cycle, text)).then(", ");
    }
    Some(code.then("}"))
}

/// The only value of a cycle, if all places that matter agree.
fn uniform<T: Clone + PartialEq>(cycle: &[Option<T>]) -> Option<T> {
    let mut values = cycle.iter().flatten();
    let first = values.next()?;
    values.all(|value| value == first).then(|| first.clone())
}

/// The value within one run.
fn within<T: Clone + PartialEq>(start: u64, cycle: &[Option<T>], text: &dyn Fn(&T) -> Code) -> Code {
    if let Some(only) = uniform(cycle) {
        return text(&only);
    }
    let length = cycle.len() as u64;
    // The sum cannot underflow, even for a block before the run, for which the value does not matter.
    let index = match start.checked_rem(length) {
        None | Some(0) => format!("i % {length}"),
        Some(past) => format!("(i + {}) % {length}", length - past),
    };
    let mut values: Vec<(&T, Vec<String>)> = Vec::new();
    for (i, value) in cycle.iter().enumerate() {
        let Some(value) = value else { continue };
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, at)) => at.push(i.to_string()),
            None => values.push((value, vec![i.to_string()])),
        }
    }
    // The value with the most places comes last and covers the rest.
    values.sort_by_key(|(_, at)| at.len());
    if let [(one, at), (other, _)] = values.as_slice()
        && let [at] = at.as_slice()
    {
        return Code::text(format!("if {index} == {at} {{ "))
            .join(text(one))
            .then(" } else { ")
            .join(text(other))
            .then(" }");
    }
    let mut code = Code::text(format!("match {index} {{ "));
    let rest = values.len().saturating_sub(1);
    for (n, (value, at)) in values.iter().enumerate() {
        let pattern = if n == rest { "_".to_owned() } else { at.join(" | ") };
        code = code.then(format!("{pattern} => ")).join(text(value)).then(", ");
    }
    code.then("}")
}

/// Whether an expression from [`by_index`] uses the index.
pub fn is_indexed<T: Clone + PartialEq>(places: &Places<Option<T>>) -> bool {
    let mut values = places.iter().flatten().flatten();
    let first = values.next();
    values.any(|value| Some(value) != first)
}
