//! Result types of ops: who asks for them, and what their rules share.
//!
//! Lowering builds nodes through these rules and `verify` runs them again over the finished graph.

use super::op::meaning::{Given, Types};
use super::{DType, Dim, Module, Op, Type};

/// Why an op does not fit its inputs, in shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(pub String);

/// Says that an op does not fit.
///
/// # Errors
/// Always.
pub(super) fn fail<T>(text: impl Into<String>) -> Result<T, Mismatch> {
    Err(Mismatch(text.into()))
}

/// The types an op defines. `module` owns the members the op names, `modules` its children.
///
/// # Errors
/// The op does not fit its inputs.
pub fn infer(op: &Op, inputs: &[&Type], module: &Module, modules: &[Module]) -> Types {
    op.meaning().infer(&Given { inputs, module, modules })
}

/// The type of what is computed feature by feature.
pub(super) fn one_float(given: &Given<'_>) -> Types {
    match given.inputs {
        [x] if x.dtype == DType::Float && !x.optional => Ok(vec![(*x).clone()]),
        _ => fail("one float tensor expected"),
    }
}

/// An axis counted from the last, counted from the first.
pub(super) fn axis_of(ty: &Type, from_last: usize) -> Result<usize, Mismatch> {
    match ty.shape.len().checked_sub(1 + from_last) {
        Some(axis) => Ok(axis),
        None => fail(format!("no axis {from_last} from the last in {ty}")),
    }
}

/// Trailing axes line up; a size of 1 stretches.
pub(super) fn broadcast(a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, Mismatch> {
    let one = Dim::of(1u64);
    let rank = a.len().max(b.len());
    let at = |shape: &[Dim], i: usize| {
        (i + shape.len()).checked_sub(rank).and_then(|i| shape.get(i)).cloned().unwrap_or(one.clone())
    };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Ok(x),
            (x, y) if y == one => Ok(x),
            (x, y) if x == one => Ok(y),
            (x, y) => fail(format!("{x} and {y} do not line up")),
        })
        .collect()
}
