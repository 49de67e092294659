//! Stacks of different blocks: which value goes with which block, as short conditions on the block's index.

use crate::ir::Run;

/// One case for each place in a stack: for each run, for each position of its cycle; `None` where it does not
/// matter.
pub type PerBlock<T> = Vec<Vec<Option<T>>>;

/// A value that depends on the index of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice<T> {
    /// The same value for every block.
    One(T),
    /// The case of the first range that contains the index. The last case is also for all other indices.
    Ranges(Vec<(std::ops::Range<u64>, Cycle<T>)>),
    /// The same rule for the whole stack.
    Cycle(Cycle<T>),
}

/// A value that repeats with the index of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Cycle<T> {
    /// The same value for all blocks of the range.
    One(T),
    /// It depends on `(index + shift) % length`.
    Repeating {
        /// What is added to the index, so that the first block of the range has the remainder 0.
        shift: u64,
        /// The length of the cycle: after how many blocks it repeats.
        length: u64,
        /// Each value and the remainders it belongs to. The last one, which has the most, is also for all
        /// others.
        cases: Vec<(Vec<u64>, T)>,
    },
}

impl<T: Clone + PartialEq> Choice<T> {
    /// The choice for all places of a stack; `None` if no place has a value.
    pub fn of(runs: &[Run], places: &PerBlock<T>) -> Option<Self> {
        let mut ranges: Vec<(std::ops::Range<u64>, Vec<Option<T>>)> = Vec::new();
        let mut start = 0u64;
        for (run, cycle) in runs.iter().zip(places) {
            let end = start.saturating_add(run.count);
            // A run that is shorter than its cycle does not reach all of its places.
            let reached = usize::try_from(run.count).unwrap_or(usize::MAX).min(cycle.len());
            let cycle = cycle.get(..reached).unwrap_or(cycle).to_vec();
            match ranges.last_mut() {
                // Neighbouring runs of one value become one range, so that the emitted condition is short.
                // Two runs that are not uniform both give `None`, which does not make them equal.
                Some((range, before)) if uniform(before).is_some() && uniform(before) == uniform(&cycle) => {
                    range.end = end;
                }
                _ => ranges.push((start..end, cycle)),
            }
            start = end;
        }
        // A run in which no block takes a value needs no condition: what is chosen there is not read.
        ranges.retain(|(_, cycle)| cycle.iter().any(Option::is_some));
        let all: Vec<Option<T>> = ranges.iter().flat_map(|(_, cycle)| cycle.iter().cloned()).collect();
        if let Some(only) = uniform(&all) {
            return Some(Choice::One(only));
        }
        let mut cases: Vec<(std::ops::Range<u64>, Cycle<T>)> = ranges
            .into_iter()
            .map(|(range, cycle)| (range.clone(), Cycle::of(range.start, &cycle)))
            .collect();
        match cases.len() {
            0 => None,
            // One range is left, so only its blocks read the value, and the index needs no comparison with
            // the range's ends.
            1 => cases.pop().map(|(_, cycle)| Choice::Cycle(cycle)),
            _ => Some(Choice::Ranges(cases)),
        }
    }

    /// Whether the value depends on the index.
    pub fn is_indexed(&self) -> bool {
        match self {
            Choice::One(_) => false,
            Choice::Ranges(_) | Choice::Cycle(_) => true,
        }
    }

    /// The value of every case; equal ones occur more than once.
    pub fn values(&self) -> Vec<&T> {
        match self {
            Choice::One(value) => vec![value],
            Choice::Ranges(cases) => cases.iter().flat_map(|(_, cycle)| cycle.values()).collect(),
            Choice::Cycle(cycle) => cycle.values(),
        }
    }
}

impl<T: Clone + PartialEq> Cycle<T> {
    /// The rule within one run, which begins at a block's index.
    fn of(start: u64, cycle: &[Option<T>]) -> Self {
        if let Some(only) = uniform(cycle) {
            return Cycle::One(only);
        }
        let length = cycle.len() as u64;
        // The sum cannot underflow, even for a block before the run, for which the value does not matter.
        let shift = match start.checked_rem(length) {
            None | Some(0) => 0,
            Some(past) => length - past,
        };
        let mut cases: Vec<(Vec<u64>, T)> = Vec::new();
        for (i, value) in (0u64..).zip(cycle) {
            // Where the value does not matter, any case will do.
            let Some(value) = value else { continue };
            match cases.iter_mut().find(|(_, known)| known == value) {
                Some((at, _)) => at.push(i),
                None => cases.push((vec![i], value.clone())),
            }
        }
        // The last value needs no condition in emitted code, so the one with the longest condition comes
        // last.
        cases.sort_by_key(|(at, _)| at.len());
        Cycle::Repeating { shift, length, cases }
    }

    fn values(&self) -> Vec<&T> {
        match self {
            Cycle::One(value) => vec![value],
            Cycle::Repeating { cases, .. } => cases.iter().map(|(_, value)| value).collect(),
        }
    }
}

/// The only value of some places, if all that matter agree.
fn uniform<T: Clone + PartialEq>(places: &[Option<T>]) -> Option<T> {
    let mut values = places.iter().flatten();
    let first = values.next()?;
    values.all(|value| value == first).then(|| first.clone())
}
