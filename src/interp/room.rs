//! The memory that a run of a plan would take, compared with the memory that is free.

use std::sync::{Mutex, PoisonError};

use super::plan::Reading;
use crate::ir::{Dim, Lengths, ValueId, Verified};
use crate::report::number;
use crate::report::tape::{Pass, forward};

/// Forecasts the memory that runs of a plan take, and remembers which of them are known to fit.
#[derive(Debug)]
pub(super) struct Room {
    graph: Verified,
    values: Values,
    reading: Reading,
    /// For each manner of running and choice of inputs, the lengths up to which such a run is known to fit.
    admitted: Mutex<Vec<((Manner, u64), Lengths)>>,
}

/// How a plan is run, as far as its memory depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// Whether keys and values are appended to a cache.
    pub is_cached: bool,
    /// Whether only the outputs at the last position are wanted.
    pub only_last: bool,
}

/// What a run returns, as far as its memory depends on it.
#[derive(Debug)]
pub(super) struct Values {
    /// The shapes of captured values.
    pub captured: Vec<Vec<Dim>>,
    /// The shapes of the outputs.
    pub returned: Vec<Vec<Dim>>,
    /// Their shapes where only the last position is wanted.
    pub returned_last: Vec<Vec<Dim>>,
    /// Whether attention weights are captured, which a run otherwise need not have in memory.
    pub shows_attention: bool,
}

/// More memory than is free.
#[derive(Clone, Copy, Debug)]
pub struct TooMuch {
    /// Bytes that would be taken.
    pub needed: u128,
    /// Bytes that are free, according to the system.
    pub free: u128,
}

impl TooMuch {
    /// That `what` takes too much, in a sentence.
    pub fn says(self, what: &str) -> String {
        let (needed, free) = (number::bytes(self.needed), number::bytes(self.free));
        format!("{what} needs {needed} of memory, but only {free} is free")
    }
}

/// A run that takes at most this number of bytes is always admitted, without asking how much memory is free:
/// that means reading files of the system, which would take longer than a small run.
const SMALL: u128 = 16 << 20;

impl Room {
    pub fn new(graph: &Verified, values: Values, reading: Reading) -> Self {
        Self { graph: graph.clone(), values, reading, admitted: Mutex::default() }
    }

    /// The bytes that a run of these lengths takes, or that reading its results takes if that is more.
    /// Parameters and what has been cached before the run are not included.
    pub fn forecast(&self, lengths: &Lengths, manner: Manner, is_given: &dyn Fn(&str) -> bool) -> u128 {
        // Bytes in single precision; in a shorter type, a run takes less.
        const ELEMENT: u128 = 4;
        let Manner { is_cached, only_last } = manner;
        let shows_attention = self.values.shows_attention;
        let threads = trafoc_kernels::threads() as u128;
        let has_kernels = trafoc_kernels::packs_weights();
        let pass = Pass { lengths, is_given, is_cached, only_last, shows_attention, threads, has_kernels };
        let elements =
            |shape: &Vec<Dim>| shape.iter().fold(1u128, |n, dim| n.saturating_mul(dim.eval(lengths)));
        let Values { captured, .. } = &self.values;
        let returned = if only_last { &self.values.returned_last } else { &self.values.returned };
        let sum = |shapes: &[Vec<Dim>]| shapes.iter().map(elements).fold(0, u128::saturating_add);
        let captures = sum(captured);
        let largest = captured.iter().chain(returned).map(elements).max().unwrap_or(0);
        let run = forward(&self.graph, &pass, ELEMENT).saturating_add(captures.saturating_mul(ELEMENT));
        let reading = captures
            .saturating_add(sum(returned))
            .saturating_mul(ELEMENT)
            .saturating_add(captures.saturating_mul(self.reading.each.into()))
            .saturating_add(largest.saturating_mul(self.reading.largest.into()));
        run.max(reading)
    }

    /// Refuses a run that takes more memory than is free. If past positions are cached, their number is first
    /// rounded up, so that decoding asks for the free memory only once for each doubling of its length.
    pub fn check(
        &self,
        lengths: &Lengths,
        manner: Manner,
        is_given: &dyn Fn(&str) -> bool,
    ) -> Result<(), TooMuch> {
        // The rows of experts follow from the other lengths.
        let within = |known: &Lengths| {
            lengths.batch <= known.batch
                && lengths.time <= known.time
                && lengths.source <= known.source
                && lengths.past <= known.past
        };
        // An optional input that is given takes memory, so that a run with it is a kind of its own.
        let root = self.graph.module(self.graph.root);
        let given = |i: usize| is_given(&root.value(ValueId(i)).name);
        let inputs = (0..root.args).filter(|i| given(*i)).fold(0, |all: u64, i| all | (1 << (i % 64)));
        let kind = (manner, inputs);
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if admitted.iter().any(|(how, known)| *how == kind && within(known)) {
            return Ok(());
        }
        let ahead = match lengths.past {
            0 => *lengths,
            past => {
                Lengths { past: past.saturating_add(1).next_power_of_two().saturating_sub(1), ..*lengths }
            }
        };
        let mut free = None;
        let mut needed = 0;
        // If the rounded length does not fit, the exact one still may.
        for lengths in [ahead, *lengths] {
            needed = self.forecast(&lengths, manner, is_given);
            // Where the system does not say how much memory is free, nothing is refused.
            let fits =
                needed <= SMALL || free.get_or_insert_with(free_memory).is_none_or(|free| needed <= free);
            if fits {
                // One entry for each kind of run, so that the list does not grow with every new length.
                admitted.retain(|(how, _)| *how != kind);
                admitted.push((kind, lengths));
                return Ok(());
            }
        }
        Err(TooMuch { needed, free: free.flatten().unwrap_or(0) })
    }
}

/// Refuses what takes more memory than is free, unless it is small.
///
/// # Errors
/// So many bytes are not free.
pub fn refuse_beyond_free(needed: u128) -> Result<(), TooMuch> {
    if needed <= SMALL {
        return Ok(());
    }
    match free_memory().filter(|free| needed > *free) {
        Some(free) => Err(TooMuch { needed, free }),
        None => Ok(()),
    }
}

/// Bytes that this process may still take. What the kernels keep for later results is given back before, since it is free, too.
pub fn free_memory() -> Option<u128> {
    trafoc_kernels::release_buffers();
    crate::memory::free()
}
