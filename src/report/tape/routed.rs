//! How the rows of a mixture of experts are divided among the experts.

use crate::ir::{Run, stack_len};

/// The rows that a router divides. What it will choose is not known; this is the one assumption about it: one
/// expert gets twice the average, or every row if that is fewer, and the others share what remains.
#[derive(Clone, Copy, Debug)]
pub struct Routed {
    /// The rows before routing, `B * T`.
    pub rows: u128,
    /// The number of experts that each row is sent to.
    pub active: u64,
}

impl Routed {
    /// The rows of the expert that gets the most.
    pub fn most(self, experts: u64) -> u64 {
        let twice = self.sent().saturating_mul(2).div_ceil(u128::from(experts).max(1));
        u64::try_from(twice.min(self.rows)).unwrap_or(u64::MAX)
    }

    /// The runs of a stack of experts with the rows of each expert in them. The first expert gets the most.
    pub fn runs(self, stack: &[Run]) -> Vec<(Run, u64)> {
        let experts = stack_len(stack);
        let most = self.most(experts);
        let others = u128::from(experts.saturating_sub(1)).max(1);
        let rest = self.sent().saturating_sub(u128::from(most)).div_ceil(others);
        let rest = u64::try_from(rest).unwrap_or(u64::MAX);
        let mut runs = Vec::with_capacity(stack.len().saturating_add(1));
        let mut stack = stack.iter().filter(|run| run.count > 0 && !run.cycle.is_empty());
        // The first expert is taken out of its run; the cycle of the others then begins with the second.
        if let Some(run) = stack.next() {
            let mut cycle = run.cycle.clone();
            runs.push((Run { count: 1, cycle: cycle.clone() }, most));
            cycle.rotate_left(1);
            runs.push((Run { count: run.count.saturating_sub(1), cycle }, rest));
        }
        runs.extend(stack.map(|run| (run.clone(), rest)));
        runs
    }

    fn sent(self) -> u128 {
        self.rows.saturating_mul(u128::from(self.active))
    }
}
