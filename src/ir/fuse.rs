//! The graph that is run and emitted as Rust: where two ops have one kernel together, they are one op.
//!
//! The graph that is checked, counted and drawn keeps the ops of the author's equation. A fused op has the same bits as
//! the two ops in whose place it is, forward and backward, so it may be left out where a value in between is wanted.

use std::collections::{BTreeMap, BTreeSet};

use super::op::Activation;
use super::{Graph, Layer, MemberKind, Module, ModuleId, Node, Op, ValueId};

/// The graph with fused ops. Values that are not computed any more stay in the lists of their modules.
pub fn fused(graph: &Graph) -> Graph {
    let modules = graph.modules.iter().enumerate();
    let modules = modules.map(|(id, module)| in_module(module, ModuleId(id) == graph.root)).collect();
    Graph { modules, ..graph.clone() }
}

fn in_module(module: &Module, is_root: bool) -> Module {
    let mut module = module.clone();
    gate(&mut module);
    activate_layers(&mut module);
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

/// Fuses projections with the activations that alone read them.
fn activate_layers(module: &mut Module) {
    let readers = readers(module);
    let pair = |(at, node): (usize, &Node)| {
        let (Op::Layer { member }, [y]) = (&node.op, node.outputs.as_slice()) else { return None };
        let MemberKind::Layer(Layer::Linear { .. }) = &module.member(*member).kind else { return None };
        let [Some(reader)] = readers.get(y)?.as_slice() else { return None };
        let Node { op: Op::Activate(activation), outputs, .. } = module.nodes.get(*reader)? else {
            return None;
        };
        let op = Op::ActivatedLayer { member: *member, activation: *activation };
        activation.has_kernel().then(|| Pair { first: at, second: *reader, op, outputs: outputs.clone() })
    };
    let pairs = module.nodes.iter().enumerate().filter_map(pair).collect();
    join(module, pairs);
}

/// Fuses sums with the norms that read them first. A norm then has two inputs and two results, of which the second is the
/// sum.
fn add_norms(module: &mut Module) {
    let pair = |(at, node): (usize, &Node)| {
        let second = norm_of_sum(module, at, node)?;
        let norm = module.nodes.get(second)?;
        let outputs = norm.outputs.iter().chain(&node.outputs).copied().collect();
        Some(Pair { first: at, second, op: norm.op.clone(), outputs })
    };
    let pairs = module.nodes.iter().enumerate().filter_map(pair).collect();
    join(module, pairs);
}

/// Two nodes that become one: the first takes this op and these results, and the second is left out.
struct Pair {
    first: usize,
    second: usize,
    op: Op,
    outputs: Vec<ValueId>,
}

fn join(module: &mut Module, pairs: Vec<Pair>) {
    let left_out: BTreeSet<usize> = pairs.iter().map(|pair| pair.second).collect();
    for Pair { first, op, outputs, .. } in pairs {
        if let Some(node) = module.nodes.get_mut(first) {
            (node.op, node.outputs) = (op, outputs);
        }
    }
    let mut at = 0..;
    module.nodes.retain(|_| !at.next().is_some_and(|at| left_out.contains(&at)));
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

/// Who reads each value: the index of a node, or `None` for the caller of the module.
fn readers(module: &Module) -> BTreeMap<ValueId, Vec<Option<usize>>> {
    let mut readers: BTreeMap<ValueId, Vec<Option<usize>>> = BTreeMap::new();
    for (at, node) in module.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|id| readers.entry(*id).or_default().push(Some(at)));
    }
    module.results.iter().for_each(|id| readers.entry(*id).or_default().push(None));
    readers
}

/// The activations that only a product reads, with what they are computed from, by their results.
fn gates(module: &Module) -> BTreeMap<ValueId, (Activation, ValueId)> {
    let readers = readers(module);
    let mut found: BTreeMap<ValueId, (Activation, ValueId)> = BTreeMap::new();
    for node in &module.nodes {
        let (Op::Activate(activation), [x], [y]) =
            (&node.op, node.inputs.as_slice(), node.outputs.as_slice())
        else {
            continue;
        };
        let Some([Some(reader)]) = readers.get(y).map(Vec::as_slice) else { continue };
        let Some(Node { op: Op::Mul, inputs, .. }) = module.nodes.get(*reader) else { continue };
        // A product of two activations has one kernel with either of them, not with both.
        let is_taken = inputs.iter().any(|id| found.contains_key(id));
        // Factors of other shapes would have to be repeated.
        let has_one_shape = inputs.iter().all(|id| module.value(*id).ty == module.value(*y).ty);
        if activation.has_kernel() && has_one_shape && !is_taken {
            found.insert(*y, (*activation, *x));
        }
    }
    found
}
