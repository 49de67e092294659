//! What a recurrence takes for a moment in a forward pass: figures of the kernel `recurrence`, as its tensors follow each
//! other.

use super::Tracked;
use crate::ir::{Lengths, Module, Node, Op};

/// The positions of a chunk where a decay is one number for a head; `CHUNK` of the kernel.
const CHUNK: u128 = 32;
/// The positions of a chunk where every feature of a key has a decay; `SHORT_CHUNK` of the kernel.
const SHORT_CHUNK: u128 = 16;

/// The bytes of a recurrence, with its result; `None` for other ops. Without gradients, no position keeps a state of its
/// own. `dies` tells for each input whether its memory is free afterwards.
pub fn briefly(
    module: &Module,
    node: &Node,
    lengths: &Lengths,
    (inputs, dies): (&[Tracked], &[bool]),
    (out, element): (u128, u128),
) -> Option<u128> {
    let Op::Recurrence { .. } = &node.op else { return None };
    let input = |i: usize| node.inputs.get(i).map(|id| &module.value(*id).ty);
    let last = |i: usize| input(i).and_then(|ty| ty.last()).map_or(1, |dim| dim.eval(lengths)).max(1);
    let (features, width, is_of_heads) = (last(1), last(2), last(3) == 1);
    let replaces = node.inputs.len() > 4;
    let positions = input(2).and_then(|ty| ty.shape.iter().rev().nth(1)).map_or(1, |dim| dim.eval(lengths));
    let heads = out.checked_div(positions.saturating_mul(width).saturating_mul(element)).unwrap_or(1);
    let of =
        |sizes: &[u128]| sizes.iter().fold(element.saturating_mul(heads), |n, size| n.saturating_mul(*size));
    let sum = |parts: &[u128]| parts.iter().copied().fold(0, u128::saturating_add);

    let state = of(&[features, width]);
    // All results are there before they are joined.
    let results = out.saturating_mul(2);
    if positions == 1 {
        // What is added to the state, or read of it. The state of earlier positions is in the cache.
        let first = if lengths.past == 0 { state } else { 0 };
        return Some(sum(&[first, state, results]));
    }
    if replaces && !is_of_heads {
        // The state, what fades of it, what is added, and what is read.
        return Some(sum(&[state.saturating_mul(4), results]));
    }
    let size = positions.min(if is_of_heads { CHUNK } else { SHORT_CHUNK });
    let chunks = positions.div_ceil(size);
    let padded = chunks.saturating_mul(size);
    let (keys, values, states) =
        (of(&[padded, features]), of(&[padded, width]), state.saturating_mul(chunks));
    // Chunks are copies of what is not in order or does not fill the last of them, with one decay for a head also of what heads
    // share. They take the place of what nothing else needs.
    let freed = |i: usize| match (inputs.get(i), dies.get(i)) {
        (Some(x), Some(true)) => x.bytes,
        _ => 0,
    };
    let copied = |(i, whole): (usize, u128)| {
        let x = inputs.get(i).copied().unwrap_or_default();
        let whole = if is_of_heads { whole } else { x.bytes };
        let is_copied = x.is_strided || padded > positions || x.bytes < whole;
        if is_copied { whole.saturating_sub(freed(i)) } else { 0 }
    };
    let rows = [(0, keys), (1, keys), (2, values)].into_iter().map(copied).fold(0, u128::saturating_add);
    if !is_of_heads {
        // The states of chunks, those before each of them, and their product with what is read.
        let computed = sum(&[states.saturating_mul(3), values.saturating_mul(2), keys]);
        return Some(sum(&[rows, computed]));
    }
    // The decays between all positions of a chunk, as rows and joined; the scores of the same pairs, twice while they are
    // computed; the states before each chunk, one by one and joined; and the results of pairs and of states.
    let pairs = of(&[padded, size]);
    let times = |n: u128, bytes: u128| bytes.saturating_mul(n);
    let moments = [
        times(2, pairs),
        sum(&[pairs, keys, times(2, states), values]),
        sum(&[pairs, keys, states, times(2, state)]),
        sum(&[times(3, pairs), keys, states, values]),
        sum(&[pairs, keys, states, times(3, values)]),
        sum(&[times(2, keys), states, times(3, values)]),
    ];
    // Next to them there is the present state.
    let most = moments.into_iter().fold(0, u128::max).saturating_add(state);
    // What the delta rule has solved takes the place of the values.
    let both = if replaces { sum(&[values, keys]) } else { 0 };
    let solving = if replaces { sum(&[times(2, pairs), times(3, both)]) } else { 0 };
    let later = sum(&[most, both]).max(solving).saturating_sub(if replaces { freed(2) } else { 0 });
    Some(sum(&[rows, later]))
}
