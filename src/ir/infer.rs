//! Why types do not fit, and rules of types that several ops share.

use std::sync::Arc;

use super::{Dim, Type};

/// Why an op does not fit its inputs, in terms of shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(pub String);

/// The error that an op does not fit.
///
/// # Errors
/// Always.
pub(super) fn fail<T>(text: impl Into<String>) -> Result<T, Mismatch> {
    Err(Mismatch(text.into()))
}

/// The index of an axis that is counted from the last one.
pub(super) fn axis_of(ty: &Type, from_last: usize) -> Result<usize, Mismatch> {
    // From the last, so that an op on features need not know how many axes come before them.
    match ty.shape.len().checked_sub(from_last.saturating_add(1)) {
        Some(axis) => Ok(axis),
        None => fail(format!("no axis {from_last} from the last in {ty}")),
    }
}

/// The shape of two tensors broadcast together: trailing axes are aligned, and an axis of size 1 is repeated.
pub(super) fn broadcast(a: &Arc<Vec<Dim>>, b: &Arc<Vec<Dim>>) -> Result<Arc<Vec<Dim>>, Mismatch> {
    // The usual case: nothing is broadcast, and the shape is shared.
    if a == b {
        return Ok(a.clone());
    }
    let one = Dim::of(1u64);
    let rank = a.len().max(b.len());
    let at = |shape: &[Dim], i: usize| {
        let missing = rank.saturating_sub(shape.len());
        // A missing leading axis counts as one of size 1, as in PyTorch.
        i.checked_sub(missing).and_then(|i| shape.get(i)).cloned().unwrap_or(one.clone())
    };
    let shape: Result<Vec<Dim>, Mismatch> = (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Ok(x),
            (x, y) if y == one => Ok(x),
            (x, y) if x == one => Ok(y),
            // A length such as `B` may be 1 in some run, but types must fit in every one.
            (x, y) => fail(format!("{x} and {y} do not line up")),
        })
        .collect();
    shape.map(Arc::new)
}
