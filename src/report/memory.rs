//! The memory that a model takes, to run and to train.
//!
//! Conventions. To run: every tensor of the model, and the largest set of computed values that are alive at
//! the same time. A value is alive from the op that computes it to the last op that reads it or a view of
//! it. The values of a called module are alive while it runs, and attention scores `[B,H,T,K]` while their
//! op runs. To train: the tensors, a gradient and Adam's two moments for each trained one, and the
//! activation memory at its peak ([`tape`]). All numbers have the same size. What a device's allocator and
//! its kernels need in addition is not counted.

use schemars::JsonSchema;
use serde::Serialize;

use super::cost::Cost;
use super::scene::Scene;
use super::serialize_count;
use super::tape;
use super::work::callees;
use crate::ir::op::Score;
use crate::ir::{
    DType, Dim, Graph, Layer, Lengths, Member, MemberKind, Module, ModuleId, Node, Op, Sym, Type, ValueId,
    Verified,
};

/// The bytes that a model takes at some lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Memory {
    /// Bytes of parameters and buffers.
    #[serde(serialize_with = "serialize_count")]
    pub weights: u128,
    /// A gradient for every parameter.
    #[serde(serialize_with = "serialize_count")]
    pub gradients: u128,
    /// Adam's two moments for every parameter.
    #[serde(serialize_with = "serialize_count")]
    pub optimizer: u128,
    /// Activation memory: the largest number of bytes that a training step takes in addition to these,
    /// namely values kept for the backward pass, gradients of values, and the logits from which the loss is
    /// computed.
    #[serde(serialize_with = "serialize_count")]
    pub activations: u128,
    /// The peak of a forward pass: the most bytes of computed values that are alive at the same time.
    #[serde(serialize_with = "serialize_count")]
    pub peak: u128,
}

impl Memory {
    /// The bytes for a forward pass: weights and the peak of computed values.
    pub fn to_run(&self) -> u128 {
        self.weights.saturating_add(self.peak)
    }

    /// The bytes for a training step: weights, gradients, the optimizer's moments and activation memory.
    pub fn to_train(&self) -> u128 {
        [self.gradients, self.optimizer, self.activations]
            .iter()
            .fold(self.weights, |a, b| a.saturating_add(*b))
    }
}

/// Computes the memory of a model.
pub fn memory(graph: &Verified, cost: &Cost, scene: &Scene) -> Memory {
    let bytes = scene.element.bytes();
    let trained = cost.parameters.all().total.saturating_mul(bytes);
    let lengths = scene.whole();
    Memory {
        weights: cost.parameters.bytes(bytes),
        gradients: trained,
        optimizer: trained.saturating_mul(2),
        activations: tape::activation_memory(graph, &lengths, bytes),
        peak: peak(graph, graph.root, &lengths, &mut Vec::new()).saturating_mul(bytes),
    }
}

/// The peaks computed so far, by module and lengths. Without them, a module that is called in several places
/// would be walked for each, and so would everything in it.
type Peaks = Vec<(ModuleId, Lengths, u128)>;

/// The most elements that are alive at the same time inside a module, without its arguments, with its
/// results.
fn peak(graph: &Graph, id: ModuleId, lengths: &Lengths, found: &mut Peaks) -> u128 {
    if let Some((.., peak)) = found.iter().find(|(m, at, _)| *m == id && at == lengths) {
        return *peak;
    }
    let module = graph.module(id);
    let owners = owners(module);
    let last_read = last_reads(module, &owners);
    // Arguments belong to the caller, which counts them.
    let own = |id: ValueId| owners.get(id.0) == Some(&Some(id)) && id.0 >= module.args;
    let mut alive = 0u128;
    let mut most = 0u128;
    for (i, node) in module.nodes.iter().enumerate() {
        // What nothing reads is not kept.
        // A view has no memory of its own, either.
        let new =
            node.outputs.iter().filter(|id| own(**id) && last_read.get(id.0).is_some_and(Option::is_some));
        let created = new.fold(0u128, |n, id| n.saturating_add(size(module, *id, lengths)));
        // The inputs are freed only after the op, so the peak is that of inputs and results together.
        most = most.max(alive.saturating_add(during(graph, module, node, lengths, created, found)));
        alive = alive.saturating_add(created);
        let over = last_read.iter().enumerate().filter(|(value, at)| **at == Some(i) && own(ValueId(*value)));
        let freed = over.fold(0u128, |n, (value, _)| n.saturating_add(size(module, ValueId(value), lengths)));
        alive = alive.saturating_sub(freed);
    }
    found.push((id, *lengths, most));
    most
}

/// The owner of each value's memory: the value itself, the value it is a view of, or `None` for parameters.
fn owners(module: &Module) -> Vec<Option<ValueId>> {
    let mut owners: Vec<Option<ValueId>> = (0..module.values.len()).map(|i| Some(ValueId(i))).collect();
    for node in &module.nodes {
        let is_view = node.op.meaning().is_view();
        let is_param = |member: &Member| matches!(member.kind, MemberKind::Layer(Layer::Param { .. }));
        let is_parameter = matches!(&node.op, Op::Weight { .. })
            || matches!(&node.op, Op::Layer { member } if is_param(module.member(*member)));
        if !is_view && !is_parameter {
            continue;
        }
        // The owner of the input, not the input itself, so that a view of a view keeps the right memory
        // alive.
        let of = node.inputs.first().filter(|_| is_view).and_then(|id| owners.get(id.0).copied().flatten());
        for id in &node.outputs {
            if let Some(owner) = owners.get_mut(id.0) {
                *owner = of;
            }
        }
    }
    owners
}

/// The index of the node that last reads each value or a view of it; for results, an index beyond the last
/// node.
fn last_reads(module: &Module, owners: &[Option<ValueId>]) -> Vec<Option<usize>> {
    let mut last = vec![None; module.values.len()];
    let end = module.nodes.len();
    let reads =
        module.nodes.iter().enumerate().flat_map(|(i, node)| node.inputs.iter().map(move |id| (i, *id)));
    for (i, id) in reads.chain(module.results.iter().map(|id| (end, *id))) {
        let owner = owners.get(id.0).copied().flatten();
        if let Some(at) = owner.and_then(|id| last.get_mut(id.0)) {
            *at = Some(i);
        }
    }
    last
}

/// The elements that are alive while an op runs, without its inputs, with its outputs.
fn during(
    graph: &Graph,
    module: &Module,
    node: &Node,
    lengths: &Lengths,
    created: u128,
    found: &mut Peaks,
) -> u128 {
    if let Op::Attention(attention) = &node.op {
        // Attention scores are computed even if nothing reads them, additive ones from the sums of queries
        // and keys.
        let scores = node.outputs.get(1).map_or(0, |id| size(module, *id, lengths));
        let width = node.inputs.first().and_then(|id| module.value(*id).ty.last());
        let sums = match attention.score {
            Score::Dot => 0,
            Score::Additive => width.map_or(0, |width| width.eval(lengths)).saturating_mul(scores),
        };
        let result = node.outputs.first().map_or(0, |id| size(module, *id, lengths));
        return created.max(result.saturating_add(scores)).max(sums.saturating_add(scores));
    }
    let inner = callees(node, module);
    if inner.is_empty() {
        return created;
    }
    let input = node.inputs.first().map(|id| &module.value(*id).ty);
    let rows = input.map_or(0, |ty| rows(ty).eval(lengths));
    let routed = Lengths { rows: u64::try_from(rows).unwrap_or(u64::MAX), ..*lengths };
    // A router may send every row to the same expert, which is the most that one can take.
    let is_routed = matches!(node.op, Op::Experts { .. });
    let at = if is_routed { &routed } else { lengths };
    let most = inner.iter().map(|callee| peak(graph, callee.module, at, found)).max().unwrap_or(0);
    // The results of a call are those of the module. While a scan runs, the value of the previous block is
    // alive too, and while a mixture runs, the sum of the experts so far.
    if matches!(node.op, Op::Call { .. }) { most.max(created) } else { most.saturating_add(created) }
}

/// The elements of a value of floating-point numbers; ids and masks are not counted.
fn size(module: &Module, id: ValueId, lengths: &Lengths) -> u128 {
    let ty = &module.value(id).ty;
    match ty.dtype {
        DType::Float => ty.shape.iter().fold(1, |n, dim| n.saturating_mul(dim.eval(lengths))),
        DType::Int | DType::Bool => 0,
    }
}

/// The number of rows of a value: the product of all sizes except the last.
fn rows(ty: &Type) -> Dim {
    ty.shape.iter().rev().skip(1).filter(|dim| dim.symbol() != Some(Sym::Rows)).cloned().product()
}
