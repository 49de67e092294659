//! Whether two runs are the same: what they recorded, and the tensors of their checkpoints, bit by bit.

use std::path::Path;

use super::record::{Entry, Evaluation, Record, Step};
use crate::tensor_file::{FileError, TensorFile};

/// The first number that two runs have recorded differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The number of the step, counted from 1.
    pub step: u64,
    /// The part of the data, if it is of an evaluation.
    pub split: Option<String>,
    /// What was recorded: a metric, `loss`, `rate`, `norm`, `targets` or `tokens`.
    pub name: String,
    /// The number of the one run; `None` if it has recorded none.
    pub one: Option<f64>,
    /// The number of the other.
    pub other: Option<f64>,
}

/// The first difference between two records up to a step. Times are not compared.
pub fn first_difference(one: &Record, other: &Record, last: u64) -> Option<Difference> {
    let lines = |record: &Record| -> Vec<Entry> {
        let steps = record.steps.iter().filter(|line| line.step <= last).cloned().map(Entry::Step);
        let evaluations = record.evaluations.iter().filter(|line| line.step <= last).cloned();
        let mut lines: Vec<Entry> = steps.chain(evaluations.map(Entry::Evaluation)).collect();
        // The sort is stable, so that the step itself comes before what was measured after it.
        lines.sort_by_key(step_of);
        lines
    };
    let (one, other) = (lines(one), lines(other));
    let most = one.len().max(other.len());
    (0..most).find_map(|i| between(one.get(i), other.get(i)))
}

fn step_of(line: &Entry) -> u64 {
    match line {
        Entry::Step(Step { step, .. }) | Entry::Evaluation(Evaluation { step, .. }) => *step,
    }
}

fn split_of(line: &Entry) -> Option<&str> {
    match line {
        Entry::Step(_) => None,
        Entry::Evaluation(evaluation) => Some(&evaluation.split),
    }
}

/// The numbers of a line by name, without times.
fn numbers(line: &Entry) -> Vec<(&str, Option<f64>)> {
    match line {
        Entry::Step(Step { step: _, loss, losses, rate, norm, targets, tokens, seconds: _ }) => {
            let own = [("loss", Some(*loss)), ("rate", Some(*rate)), ("norm", *norm)];
            let counts = [("targets", Some(*targets as f64)), ("tokens", Some(*tokens as f64))];
            let parts = losses.iter().map(|(name, value)| (name.as_str(), Some(*value)));
            own.into_iter().chain(parts).chain(counts).collect()
        }
        Entry::Evaluation(Evaluation { step: _, split: _, figures }) => {
            figures.iter().map(|(name, value)| (name.as_str(), *value)).collect()
        }
    }
}

/// The first difference between two lines that should be the same. `None` is a missing line.
fn between(one: Option<&Entry>, other: Option<&Entry>) -> Option<Difference> {
    // Where a line is missing in one of them, the earlier line is the one that the other lacks.
    let (one, other) = match (one, other) {
        (Some(a), Some(b)) if (step_of(a), split_of(a)) != (step_of(b), split_of(b)) => {
            match (step_of(a), split_of(a)) < (step_of(b), split_of(b)) {
                true => (Some(a), None),
                false => (None, Some(b)),
            }
        }
        both => both,
    };
    let line = one.or(other)?;
    let (first, second) = (one.map(numbers).unwrap_or_default(), other.map(numbers).unwrap_or_default());
    let find = |numbers: &[(&str, Option<f64>)], name: &str| {
        numbers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    };
    let mut names = first.iter().chain(&second).map(|(name, _)| *name);
    let name = names.find(|name| {
        let bits = |value: Option<Option<f64>>| value.map(|value| value.map(f64::to_bits));
        bits(find(&first, name)) != bits(find(&second, name))
    })?;
    Some(Difference {
        step: step_of(line),
        split: split_of(line).map(str::to_owned),
        name: name.to_owned(),
        one: find(&first, name).flatten(),
        other: find(&second, name).flatten(),
    })
}

/// How the tensors of two files differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    /// The number of tensors that differ in a bit, in their shape, or are in one of the files only; and of the counts
    /// in the metadata for which that is true.
    pub different: usize,
    /// The largest difference between two numbers, with the name of its tensor; `None` if none was computed, because
    /// the shapes differ or a number is not finite.
    pub largest: Option<(String, f64)>,
    /// The first of those that differ.
    pub first: Option<String>,
}

/// Compares the tensors of two files of single-precision numbers, one tensor of each in memory at a time.
///
/// # Errors
/// One of the files cannot be read.
pub fn tensors(one: &Path, other: &Path) -> Result<Tensors, FileError> {
    let (mut one, mut other) = (TensorFile::open(one)?, TensorFile::open(other)?);
    let mut found = Tensors::default();
    let mut names: Vec<String> = one.entries().keys().cloned().collect();
    names.extend(other.entries().keys().filter(|name| !one.entries().contains_key(*name)).cloned());
    for name in names {
        let shape = |file: &TensorFile| {
            file.entries().get(&name).map(|entry| (entry.dtype.clone(), entry.shape.clone()))
        };
        let is_alike = shape(&one) == shape(&other);
        if is_alike {
            let (a, b) = (one.floats(&name)?, other.floats(&name)?);
            let apart = a.iter().zip(&b).filter(|(a, b)| a.to_bits() != b.to_bits());
            let Some(largest) = apart.map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs()).reduce(f64::max)
            else {
                continue;
            };
            let before = found.largest.as_ref().map_or(f64::NEG_INFINITY, |(_, value)| *value);
            if largest.is_finite() && largest > before {
                found.largest = Some((name.clone(), largest));
            }
        }
        found.different += 1;
        found.first.get_or_insert(name);
    }
    // The optimizer keeps its numbers of steps there.
    let (a, b) = (one.metadata(), other.metadata());
    let counts = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    for name in counts.filter(|key| a.get(*key) != b.get(*key)) {
        found.different += 1;
        found.first.get_or_insert(name.clone());
    }
    Ok(found)
}
