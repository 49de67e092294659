//! Memory: what there is for this process, and what a run of a plan would take of it.

use std::sync::{Mutex, PoisonError};

use crate::ir::{Dim, Lengths, Verified};
use crate::report::tape::{Pass, forward};

/// Bytes that this process could still have: of the machine, of its control group and of its own limits, the least;
/// `None` where the system does not say.
pub fn free_memory() -> Option<u128> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let in_kib = |text: &str, key: &str| -> Option<u128> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u128>().ok()?.checked_mul(1024)
    };
    let machine = read("/proc/meminfo").and_then(|text| in_kib(&text, "MemAvailable:"));
    let status = read("/proc/self/status").unwrap_or_default();
    let limits = read("/proc/self/limits").unwrap_or_default();
    let under = |limit: &str, used: &str| -> Option<u128> {
        let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        let most: u128 = line.split_whitespace().next()?.parse().ok()?;
        Some(most.saturating_sub(in_kib(&status, used)?))
    };
    let address = under("Max address space", "VmSize:");
    let data = under("Max data size", "VmData:");
    let group = read("/proc/self/cgroup").and_then(|text| {
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?.trim().to_owned();
        let number = |file: &str| {
            let text = read(&format!("/sys/fs/cgroup{path}/{file}"))?;
            text.trim().parse::<u128>().ok()
        };
        Some(number("memory.max")?.saturating_sub(number("memory.current")?))
    });
    [machine, address, data, group].into_iter().flatten().min()
}

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
            let fits =
                needed <= SMALL || free.get_or_insert_with(free_memory).is_none_or(|free| needed <= free);
            if fits {
                admitted.retain(|(cached, _)| *cached != is_cached);
                admitted.push((is_cached, lengths));
                return Ok(());
            }
        }
        Err(TooMuch { needed, free: free.flatten().unwrap_or(0) })
    }
}
