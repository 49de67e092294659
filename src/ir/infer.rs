//! The types of ops' results: the entry point, and rules that several ops share.
//!
//! Lowering builds nodes with these rules, and `verify` applies them again to the finished graph.

use super::op::meaning::{Given, Types};
use super::{DType, Dim, Module, Op, Type};

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

/// The types of an op's results. `module` owns the members that the op refers to; `modules` are all modules
/// so far, which include its children.
///
/// # Errors
/// The op does not fit its inputs.
pub fn infer(op: &Op, inputs: &[&Type], module: &Module, modules: &[Module]) -> Types {
    op.meaning().infer(&Given { inputs, module, modules })
}

/// The type of the result of an op that is computed feature by feature, which is that of its one input.
pub(super) fn one_float(given: &Given<'_>) -> Types {
    match given.inputs {
        [x] if x.dtype == DType::Float && !x.optional => Ok(vec![(*x).clone()]),
        _ => fail("one float tensor expected"),
    }
}

/// The index of an axis that is counted from the last one.
pub(super) fn axis_of(ty: &Type, from_last: usize) -> Result<usize, Mismatch> {
    match ty.shape.len().checked_sub(1 + from_last) {
        Some(axis) => Ok(axis),
        None => fail(format!("no axis {from_last} from the last in {ty}")),
    }
}

/// The shape of two tensors broadcast together: trailing axes are aligned, and an axis of size 1 is repeated.
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
