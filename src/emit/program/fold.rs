//! Which expressions are written where their values are used, and which get a variable.
//!
//! [`Statement::folds`](super::function::Statement::folds) says for which statements either is possible. How
//! long a line becomes only a target knows, so it measures the expressions that wait for their only use.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::ir::ValueId;

/// The longest line that is easily read, without its indentation.
pub const READABLE: usize = 72;

/// The waiting operands of a statement that should get a variable so that its line stays readable. `waiting`
/// are these operands with the widths of their expressions in characters, `operands` is the number of all.
pub fn too_long(waiting: &[(ValueId, usize)], operands: usize) -> BTreeSet<ValueId> {
    // The name of what is called, and short names for the operands.
    let own = 12 + 6 * operands;
    // All waiting operands would be in one line together.
    let mut left: usize = waiting.iter().map(|(_, width)| width).sum();
    // The longest gets a variable first: that shortens the line with the fewest variables.
    let mut longest_first = waiting.to_vec();
    longest_first.sort_by_key(|(_, width)| Reverse(*width));
    let mut named = BTreeSet::new();
    for (id, width) in longest_first {
        if left + own > READABLE {
            left -= width;
            named.insert(id);
        }
    }
    named
}
