//! A model with a source and a target as two functions: what depends on the source alone is computed once,
//! however many tokens of the target are decoded.

use std::collections::BTreeSet;

use crate::ir::op::Sequence;
use crate::ir::{DType, Module, Node, Sym, ValueId};

/// A model cut in two: what depends on the source alone, and the rest.
pub struct Split {
    /// The nodes that depend on the source alone.
    pub encoding: Vec<usize>,
    /// All other nodes, and those without inputs that both halves use.
    pub decoding: Vec<usize>,
    /// The inputs of the model that the first half takes.
    pub source: Vec<ValueId>,
    /// The values of the first half that the second one uses.
    pub memory: Vec<ValueId>,
    /// What the second half takes: inputs of the target, then the memory, then other inputs.
    pub target: Vec<ValueId>,
}

/// Cuts a model in two; `None` if it has no source or no target.
pub fn split(root: &Module) -> Option<Split> {
    // An image is a source, too; its patches are as many as its size says.
    let of_source = |id: &ValueId| {
        let ty = &root.value(*id).ty;
        ty.dtype == DType::Float || ty.shape.iter().any(|dim| dim.symbol() == Some(Sym::Source))
    };
    let of_target = |id: &ValueId| root.value(*id).ty.shape.iter().any(|dim| dim.symbol() == Some(Sym::Time));
    let arguments: Vec<ValueId> = (0..root.args).map(ValueId).collect();
    if !arguments.iter().any(of_source) || !arguments.iter().any(of_target) {
        return None;
    }
    // What can be computed without the target, at first all inputs except the target's.
    let mut known: BTreeSet<ValueId> = arguments.iter().copied().filter(|id| !of_target(id)).collect();
    let mut encoding = Vec::new();
    for (i, node) in root.nodes.iter().enumerate() {
        if !node.inputs.is_empty() && node.inputs.iter().all(|id| known.contains(id)) && !is_timed(node) {
            encoding.push(i);
            known.extend(node.outputs.iter().copied());
        }
    }
    // Nodes without inputs go where they are used, in both halves if need be: a shared table costs nothing.
    let free: Vec<usize> = (0..root.nodes.len()).filter(|i| root.nodes[*i].inputs.is_empty()).collect();
    let inputs_of = |nodes: &[usize]| -> BTreeSet<ValueId> {
        nodes.iter().filter_map(|i| root.nodes.get(*i)).flat_map(|n| n.inputs.iter().copied()).collect()
    };
    let used_in_encoding = inputs_of(&encoding);
    let outputs = |i: &usize| root.nodes.get(*i).map(|n| n.outputs.clone()).unwrap_or_default();
    encoding.extend(free.iter().filter(|i| outputs(i).iter().any(|o| used_in_encoding.contains(o))));
    // The graph's order, in which every value is defined before it is used.
    encoding.sort_unstable();
    let mut decoding: Vec<usize> = (0..root.nodes.len()).filter(|i| !encoding.contains(i)).collect();
    let used_in_decoding: BTreeSet<ValueId> =
        inputs_of(&decoding).into_iter().chain(root.results.iter().copied()).collect();
    let shared = free
        .iter()
        .filter(|i| encoding.contains(i) && outputs(i).iter().any(|o| used_in_decoding.contains(o)));
    decoding.extend(shared);
    decoding.sort_unstable();
    let made: BTreeSet<ValueId> = encoding.iter().flat_map(outputs).collect();
    let remade: BTreeSet<ValueId> = decoding.iter().flat_map(outputs).collect();
    let used_in_encoding = inputs_of(&encoding);
    let source = arguments.iter().copied().filter(|id| used_in_encoding.contains(id)).collect();
    // What both halves compute by themselves is not passed on.
    let memory: Vec<ValueId> =
        made.iter().copied().filter(|id| used_in_decoding.contains(id) && !remade.contains(id)).collect();
    let inputs = arguments.iter().copied().filter(|id| used_in_decoding.contains(id));
    let mut target: Vec<ValueId> = inputs.clone().filter(of_target).collect();
    target.extend(&memory);
    target.extend(inputs.filter(|id| !of_target(id)));
    Some(Split { encoding, decoding, source, memory, target })
}

/// Whether an op runs along the target although no input of it does, as positions and causal masks do.
fn is_timed(node: &Node) -> bool {
    let is_timed = |along: &Sequence| matches!(along, Sequence::Cached | Sequence::Whole);
    node.op.meaning().along().iter().any(is_timed)
}
