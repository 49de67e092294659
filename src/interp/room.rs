//! The memory that a run of a plan would take, compared with what there is.

use std::sync::{Mutex, PoisonError};

use crate::ir::{Dim, Lengths, Verified};
use crate::report::tape::{Pass, forward};

/// What runs of a plan take, and which of them are known to fit.
#[derive(Debug)]
pub(super) struct Room {
    graph: Verified,
    /// Shapes of what is captured, and whether weights of attention are among it.
    captured: Vec<Vec<Dim>>,
    shows_attention: bool,
    /// Whether a cache is used, and lengths up to which a run is known to fit.
    admitted: Mutex<Vec<(bool, Lengths)>>,
}

/// A run that would take more memory than there is.
pub(super) struct TooMuch {
    /// Bytes that it would take.
    pub needed: u128,
    /// Bytes that there are.
    pub free: u128,
}

/// Bytes that are always taken to be there: what asks for less is not compared with what there is.
const SMALL: u128 = 64 << 20;

impl Room {
    pub fn new(graph: &Verified, captured: Vec<Vec<Dim>>, shows_attention: bool) -> Self {
        Self { graph: graph.clone(), captured, shows_attention, admitted: Mutex::default() }
    }

    /// Bytes of a run of these lengths, without parameters and without what is cached before it.
    pub fn forecast(&self, lengths: &Lengths, is_cached: bool, is_given: &dyn Fn(&str) -> bool) -> u128 {
        const ELEMENT: u128 = 4;
        let pass = Pass { lengths, is_given, is_cached, shows_attention: self.shows_attention };
        let captured = self
            .captured
            .iter()
            .map(|shape| shape.iter().fold(ELEMENT, |bytes, dim| bytes.saturating_mul(dim.eval(lengths))));
        captured.fold(forward(&self.graph, &pass, ELEMENT), u128::saturating_add)
    }

    /// Refuses a run that takes more than there is. Decoding asks once for each doubling of its length.
    pub fn check(
        &self,
        lengths: &Lengths,
        is_cached: bool,
        is_given: &dyn Fn(&str) -> bool,
    ) -> Result<(), TooMuch> {
        let within = |known: &Lengths| {
            lengths.batch <= known.batch
                && lengths.time <= known.time
                && lengths.source <= known.source
                && lengths.past <= known.past
        };
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if admitted.iter().any(|(cached, known)| *cached == is_cached && within(known)) {
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
        for lengths in [ahead, *lengths] {
            needed = self.forecast(&lengths, is_cached, is_given);
            let fits = needed <= SMALL
                || free.get_or_insert_with(crate::memory::free).is_none_or(|free| needed <= free);
            if fits {
                admitted.retain(|(cached, _)| *cached != is_cached);
                admitted.push((is_cached, lengths));
                return Ok(());
            }
        }
        Err(TooMuch { needed, free: free.flatten().unwrap_or(0) })
    }
}
