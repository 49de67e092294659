//! Which of a module's ops can be computed for the last position alone.
//!
//! The next token follows from the last position, so a head that is applied to each position by itself need not
//! be applied to the positions before. For a prompt of `T` tokens this saves `T - 1` of `T` products with the
//! table of the vocabulary, and as much of the memory of the logits.

use super::op::meaning::Site;
use super::{Graph, MemberKind, Module, Sym, Type};

/// For each node of a module, whether it can be computed for the last position alone where only the results at
/// that position are wanted. The values that such a node reads then begin with the axes `[B, 1]` instead of
/// `[B, T]`, or do not depend on the length.
pub fn for_last_position(graph: &Graph, module: &Module) -> Vec<bool> {
    // A value may be cut if everything that reads it can do with its last position, as the caller can with a
    // result.
    let mut can_be_cut: Vec<bool> = module.values.iter().map(|value| is_along_time(&value.ty)).collect();
    let mut yes = vec![false; module.nodes.len()];
    for (i, node) in module.nodes.iter().enumerate().rev() {
        let types = |ids: &[super::ValueId], is_right: fn(&Type) -> bool| {
            ids.iter().all(|id| is_right(&module.value(*id).ty))
        };
        let site = Site { node, module, measured: &[] };
        let called = match &node.op.meaning().member().map(|id| &module.member(id).kind) {
            Some(MemberKind::Module(id)) => Some(graph.module(*id)),
            Some(MemberKind::Layer(_) | MemberKind::Stack(_)) | None => None,
        };
        let by_position = match called {
            Some(called) => is_by_position(graph, called),
            None => node.op.meaning().is_by_position(&site),
        };
        let cuttable = node.outputs.iter().all(|id| can_be_cut.get(id.0).is_some_and(|yes| *yes));
        if by_position && cuttable && types(&node.inputs, |ty| is_along_time(ty) || is_free_of_time(ty)) {
            if let Some(yes) = yes.get_mut(i) {
                *yes = true;
            }
        } else {
            node.inputs.iter().for_each(|id| {
                if let Some(input) = can_be_cut.get_mut(id.0) {
                    *input = false;
                }
            });
        }
    }
    yes
}

/// Whether a module computes each position of its results from the same position of its inputs.
fn is_by_position(graph: &Graph, module: &Module) -> bool {
    let free = |node: &super::Node| {
        node.op.meaning().along().is_empty()
            && node.inputs.iter().chain(&node.outputs).all(|id| is_free_of_time(&module.value(*id).ty))
    };
    let results = module.results.iter().all(|id| is_along_time(&module.value(*id).ty));
    results
        && for_last_position(graph, module).iter().zip(&module.nodes).all(|(yes, node)| *yes || free(node))
}

/// Whether a type is `[B, T, ..]`, with the length in no other axis.
pub fn is_along_time(ty: &Type) -> bool {
    match ty.shape.as_slice() {
        [batch, time, rest @ ..] => {
            !ty.optional
                && batch.symbol() == Some(Sym::Batch)
                && time.symbol() == Some(Sym::Time)
                && !rest.iter().any(|dim| dim.uses(Sym::Time) || dim.uses(Sym::Past))
        }
        _ => false,
    }
}

fn is_free_of_time(ty: &Type) -> bool {
    !ty.optional && !ty.shape.iter().any(|dim| dim.uses(Sym::Time) || dim.uses(Sym::Past))
}
