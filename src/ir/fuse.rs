//! The graph that is run and emitted as Rust: where two ops have one kernel together, they are one op.
//!
//! The graph that is checked, counted and drawn keeps the ops of the author's equation. A fused op has the same bits as
//! the two ops in whose place it is, forward and backward, so it may be left out where a value in between is wanted.

use std::collections::BTreeMap;

use super::op::Activation;
use super::{Graph, MemberKind, Module, ModuleId, Node, Op, ValueId};

/// The graph with fused ops. Values that are not computed any more stay in the lists of their modules.
pub fn fused(graph: &Graph) -> Graph {
    let modules = graph.modules.iter().enumerate();
    let modules = modules.map(|(id, module)| in_module(module, ModuleId(id) == graph.root)).collect();
    Graph { modules, ..graph.clone() }
}

fn in_module(module: &Module, is_root: bool) -> Module {
    let mut module = module.clone();
    gate(&mut module);
    // In the root a norm may be computed for the last position alone, and the sum for all of them.
    if !is_root {
        add_norms(&mut module);
    }
    module
}

/// Fuses activations with the products that read them.
fn gate(module: &mut Module) {
    let gates = gates(module);
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
}

/// Fuses sums with the norms that read them first. A norm then has two inputs and two results, of which the second is the
/// sum.
fn add_norms(module: &mut Module) {
    let read_first = |(at, sum): (usize, &Node)| Some((at, norm_of_sum(module, at, sum)?));
    let pairs: Vec<(usize, usize)> = module.nodes.iter().enumerate().filter_map(read_first).collect();
    let mut nodes: Vec<Option<Node>> = module.nodes.drain(..).map(Some).collect();
    for (sum, norm) in pairs {
        let norm = nodes.get_mut(norm).and_then(Option::take);
        if let (Some(norm), Some(Some(sum))) = (norm, nodes.get_mut(sum)) {
            sum.op = norm.op;
            sum.outputs.splice(0..0, norm.outputs);
        }
    }
    module.nodes = nodes.into_iter().flatten().collect();
}

/// The index of the norm that reads the result of this node first, if it is a sum of two tensors of the same shape.
fn norm_of_sum(module: &Module, at: usize, sum: &Node) -> Option<usize> {
    let (Op::Add, [a, b], [y]) = (&sum.op, sum.inputs.as_slice(), sum.outputs.as_slice()) else {
        return None;
    };
    let has_one_shape = [a, b].iter().all(|id| module.value(**id).ty == module.value(*y).ty);
    let mut later = module.nodes.iter().enumerate().skip(at);
    let (norm, reader) = later.find(|(_, node)| node.inputs.contains(y)).filter(|_| has_one_shape)?;
    let Op::Layer { member } = reader.op else { return None };
    matches!(&module.member(member).kind, MemberKind::Layer(layer) if layer.is_norm()).then_some(norm)
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
