//! The graph that is run and emitted as Rust: where two ops have one kernel together, they are one op.
//!
//! The graph that is checked, counted and drawn keeps the ops of the author's equation. A fused op has the same bits as
//! the two ops in whose place it is, forward and backward, so it may be left out where a value in between is wanted.

use std::collections::BTreeMap;

use super::op::Activation;
use super::{Graph, Module, Node, Op, ValueId};

/// The graph with fused ops. Values that are not computed any more stay in the lists of their modules.
pub fn fused(graph: &Graph) -> Graph {
    Graph { modules: graph.modules.iter().map(in_module).collect(), ..graph.clone() }
}

fn in_module(module: &Module) -> Module {
    let mut module = module.clone();
    let gates = gates(&module);
    module.nodes.retain(|node| !node.outputs.iter().any(|id| gates.contains_key(id)));
    for node in &mut module.nodes {
        if let (Op::Mul, [a, b]) = (&node.op, node.inputs.as_slice()) {
            let fused = gates.get(a).map(|gate| (gate, *b)).or_else(|| gates.get(b).map(|gate| (gate, *a)));
            if let Some(((activation, gate), x)) = fused {
                node.op = Op::Gate(*activation);
                node.inputs = vec![*gate, x];
            }
        }
    }
    module
}

/// The activations that only a product reads, with what they are computed from, by their results.
fn gates(module: &Module) -> BTreeMap<ValueId, (Activation, ValueId)> {
    let mut readers: BTreeMap<ValueId, Vec<Option<&Node>>> = BTreeMap::new();
    for node in &module.nodes {
        node.inputs.iter().for_each(|id| readers.entry(*id).or_default().push(Some(node)));
    }
    module.results.iter().for_each(|id| readers.entry(*id).or_default().push(None));
    let mut found: BTreeMap<ValueId, (Activation, ValueId)> = BTreeMap::new();
    for node in &module.nodes {
        let (Op::Activate(activation), [x], [y]) =
            (&node.op, node.inputs.as_slice(), node.outputs.as_slice())
        else {
            continue;
        };
        let Some([Some(Node { op: Op::Mul, inputs, .. })]) = readers.get(y).map(Vec::as_slice) else {
            continue;
        };
        // A product of two activations has one kernel with either of them, not with both.
        let is_taken = inputs.iter().any(|id| found.contains_key(id));
        // Factors of other shapes would have to be repeated.
        let has_one_shape = inputs.iter().all(|id| module.value(*id).ty == module.value(*y).ty);
        if activation.has_gate() && has_one_shape && !is_taken {
            found.insert(*y, (*activation, *x));
        }
    }
    found
}
