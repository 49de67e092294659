//! Sums of several operands, which a graph adds two at a time.

use super::outline::{Flow, Form, From};

/// Makes one circle of each sum and the sum that is its first operand: `x + a + b` is one sum to a reader, and two
/// circles on top of each other would look like two steps. A sum that something else reads as well keeps its
/// circle, and so does one with an operand that is drawn aside, next to it.
pub(super) fn merge(flow: &mut Flow) {
    let mut uses = vec![0usize; flow.items.len()];
    let read = flow.items.iter().flat_map(|item| &item.inputs).copied();
    for from in read.chain(flow.end.map(From::Item)) {
        if let From::Item(i) = from
            && let Some(uses) = uses.get_mut(i)
        {
            *uses = uses.saturating_add(1);
        }
    }
    let mut is_kept = vec![true; flow.items.len()];
    for outer in 0..flow.items.len() {
        let Some(From::Item(inner)) = flow.items.get(outer).and_then(|item| item.inputs.first()) else {
            continue;
        };
        let inner = *inner;
        if uses.get(inner) != Some(&1) || !is_plain_sum(flow, outer) || !is_plain_sum(flow, inner) {
            continue;
        }
        let operands = flow.items.get(inner).map(|item| item.inputs.clone()).unwrap_or_default();
        if let Some(item) = flow.items.get_mut(outer) {
            item.inputs.splice(..1, operands);
        }
        is_kept.get_mut(inner).into_iter().for_each(|kept| *kept = false);
    }
    keep(flow, &is_kept);
}

/// Whether an item is a sum without operands that are drawn aside.
fn is_plain_sum(flow: &Flow, index: usize) -> bool {
    let is_aside = |from: &From| match from {
        From::Item(i) => flow.items.get(*i).is_some_and(|item| item.is_aside),
        From::Start | From::Memory => false,
    };
    flow.items.get(index).is_some_and(|item| item.form == Form::Sum && !item.inputs.iter().any(is_aside))
}

/// Leaves out the items that are not kept; nothing that is kept reads them.
fn keep(flow: &mut Flow, is_kept: &[bool]) {
    let mut moved: Vec<usize> = Vec::new();
    let mut next = 0usize;
    for kept in is_kept {
        moved.push(next);
        next = next.saturating_add(usize::from(*kept));
    }
    let place = |i: usize| moved.get(i).copied().unwrap_or(i);
    flow.end = flow.end.map(place);
    let mut kept = is_kept.iter();
    flow.items.retain(|_| kept.next().copied().unwrap_or(true));
    for from in flow.items.iter_mut().flat_map(|item| &mut item.inputs) {
        if let From::Item(i) = from {
            *i = place(*i);
        }
    }
}
