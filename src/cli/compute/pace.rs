//! How long a training step and an evaluation take, for `trafoc train --dry-run`.
//!
//! A forecast is asked for because the run may take long, so it must not: what would take long is measured
//! with a part of its examples, and the others are taken to be as slow.

use std::time::Instant;

use super::failures::step_failure;
use super::prepared::Prepared;
use crate::cli::outcome::Failure;
use crate::interp::{Plan, Weights};
use crate::learn::data::{Batch, Loader};
use crate::learn::evaluate::{Asked, evaluate};
use crate::learn::recipe::Split;
use crate::learn::session::measured;
use crate::learn::step::{Rules, plain, step};
use crate::learn::update::Updater;

/// The number of whole steps that are made; the first one is slower and not counted.
const TRIED: u64 = 4;
/// The number of examples with which the duration of an evaluation is measured.
const MEASURED: u64 = 128;
/// The number of examples with which is found out how many can be measured: a loss of pairs needs two.
const FEW: usize = 2;
/// The seconds that steps, and evaluations, may take.
const PATIENCE: f64 = 5.0;

/// The duration of something, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The duration of all of it.
    pub seconds: f64,
    /// How many of how many examples were measured, if not all of them.
    pub part: Option<(u64, u64)>,
}

impl Pace {
    /// What the measured part is, for a line of a report; empty if all was measured.
    pub fn said(&self) -> String {
        match self.part {
            Some((some, all)) => {
                let exact = |n| crate::report::number::exact(u128::from(n));
                format!(", as {} of {} examples take", exact(some), exact(all))
            }
            None => String::new(),
        }
    }
}

/// How many of `all` examples can be measured in the time there is, if `few` of them took some seconds.
fn measurable(few: usize, seconds: f64, all: usize) -> usize {
    let fitting = few as f64 * PATIENCE / seconds.max(1e-9);
    // The conversion saturates.
    (fitting as usize).clamp(few, all.max(few))
}

/// The duration of a training step, and the weights, which steps take and give back.
///
/// # Errors
/// A step cannot be made.
pub(super) fn of_a_step(
    prepared: &Prepared,
    plan: &Plan,
    weights: Weights,
    updater: &mut Updater,
    rules: &Rules,
) -> Result<(Pace, Weights), Failure> {
    let Prepared { dataset, .. } = prepared;
    let loader = Loader::new(dataset);
    let mut weights = Some(weights);
    let mut number = 0;
    let mut timed = |batches: &[Batch]| -> Result<f64, Failure> {
        let Some(own) = weights.take() else { return Err(Failure::bug("the parameters were lost")) };
        let begun = Instant::now();
        number += 1;
        // A factor of 0 for the rate: the work of a step is the same, and random weights cannot diverge.
        let (moved, _) = step(plan, own, updater, batches, number, 0.0, rules).map_err(step_failure)?;
        weights = Some(moved);
        Ok(begun.elapsed().as_secs_f64())
    };
    let whole = loader.step(0);
    // What a step costs grows with the positions that it reads, with those that are filled up.
    let cost =
        |batches: &[Batch]| batches.iter().map(|b| b.tokens.max(b.indices.len())).sum::<usize>() as f64;
    let all: usize = whole.iter().map(|batch| batch.indices.len()).sum();
    let some = |most: usize| -> Vec<Batch> {
        let first = whole.first().map_or(&[][..], |batch| &batch.indices);
        vec![dataset.collate(Split::Train, first.get(..most.min(first.len())).unwrap_or(first), 0)]
    };
    let few = some(FEW);
    let mut of_few = timed(&few)?;
    // The first step also prepares the device.
    if of_few < PATIENCE {
        of_few = of_few.min(timed(&few)?);
    }
    let expected = of_few * cost(&whole) / cost(&few).max(1.0);
    let pace = if expected * TRIED as f64 <= PATIENCE || all <= FEW {
        let mut spent = 0.0;
        for at in 0..TRIED {
            let seconds = timed(&loader.step(at))?;
            if at > 0 {
                spent += seconds;
            }
        }
        Pace { seconds: spent / (TRIED - 1) as f64, part: None }
    } else {
        let part = some(measurable(FEW, of_few, all));
        let examples = part.iter().map(|batch| batch.indices.len()).sum::<usize>();
        let seconds = if examples > FEW { timed(&part)? } else { of_few };
        let is_part = examples < all;
        let seconds = seconds * cost(&whole) / cost(&part).max(1.0);
        Pace { seconds, part: is_part.then_some((examples as u64, all as u64)) }
    };
    let weights = weights.ok_or_else(|| Failure::bug("the parameters were lost"))?;
    Ok((pace, weights))
}

/// The duration of one evaluation. A model at its start rarely ends a text before its limit, so texts that are
/// written take a little less later.
///
/// # Errors
/// The evaluation fails.
pub(super) fn of_an_evaluation(prepared: &Prepared, plan: &Plan, weights: &Weights) -> Result<Pace, Failure> {
    let Prepared { recipe, dataset, .. } = prepared;
    let split = measured(recipe, dataset);
    let limit = recipe.evaluate.limit.as_ref().map_or(u64::MAX, |limit| **limit);
    let count = dataset.part(split).map_or(0, |part| part.len() as u64).min(limit);
    if count == 0 {
        return Ok(Pace { seconds: 0.0, part: None });
    }
    let timed = |tried: u64| -> Result<f64, Failure> {
        let begun = Instant::now();
        let asked = Asked { split, limit: Some(tried), metrics: &recipe.evaluate.metrics, writes: false };
        evaluate(plan, &plain(weights), dataset, asked).map_err(step_failure)?;
        Ok(begun.elapsed().as_secs_f64())
    };
    let few = count.min(FEW as u64);
    let of_few = timed(few)?;
    let tried = measurable(few as usize, of_few, count.min(MEASURED) as usize) as u64;
    let seconds = if tried > few { timed(tried)? } else { of_few };
    let is_part = tried < count;
    Ok(Pace { seconds: seconds * count as f64 / tried as f64, part: is_part.then_some((tried, count)) })
}
