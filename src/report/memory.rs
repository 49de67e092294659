//! How much memory a model takes, to run and to train.
//!
//! Conventions. To run: every tensor of the model, and the largest set of computed values that are alive
//! at once: a value lives from the op that makes it to the last one that reads it, what a called module
//! makes lives while it runs, and the scores of attention `[B,H,T,K]` live while their op runs. To train: the tensors, a gradient and Adam's two moments for each trained
//! one, and every computed value, kept for the backward pass. All numbers are of one size. What a device's
//! allocator and its kernels take beyond that is not counted.

use serde::Serialize;

use super::cost::Cost;
use super::costs::Scene;
use super::serialize_count;
use super::work::callees;
use crate::ir::{DType, Dim, Graph, Lengths, Module, ModuleId, Node, Op, Sym, Type, ValueId, Verified};

/// Bytes of a model at some lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Parameters and buffers.
    #[serde(serialize_with = "serialize_count")]
    pub weights: u128,
    /// A gradient for every parameter.
    #[serde(serialize_with = "serialize_count")]
    pub gradients: u128,
    /// Adam's two moments.
    #[serde(serialize_with = "serialize_count")]
    pub optimizer: u128,
    /// All computed values, kept for the backward pass.
    #[serde(serialize_with = "serialize_count")]
    pub activations: u128,
    /// The most that is alive at once in a forward pass.
    #[serde(serialize_with = "serialize_count")]
    pub peak: u128,
}

impl Memory {
    /// For a forward pass.
    pub fn to_run(&self) -> u128 {
        self.weights.saturating_add(self.peak)
    }

    /// For a training step.
    pub fn to_train(&self) -> u128 {
        [self.gradients, self.optimizer, self.activations]
            .iter()
            .fold(self.weights, |a, b| a.saturating_add(*b))
    }
}

/// The memory of a model.
pub fn memory(graph: &Verified, cost: &Cost, scene: &Scene) -> Memory {
    let bytes = scene.element.bytes();
    let trained = cost.parameters.all().total.saturating_mul(bytes);
    let lengths = scene.whole();
    let kept =
        cost.work.activations.eval(&lengths).saturating_add(cost.work.attention_weights.eval(&lengths));
    Memory {
        weights: cost.parameters.bytes(bytes),
        gradients: trained,
        optimizer: trained.saturating_mul(2),
        activations: kept.saturating_mul(bytes),
        peak: peak(graph, graph.root, &lengths, &mut Vec::new()).saturating_mul(bytes),
    }
}

/// Peaks already found, by module and lengths.
type Found = Vec<(ModuleId, Lengths, u128)>;

/// Elements alive at once inside a module, its arguments aside.
fn peak(graph: &Graph, id: ModuleId, lengths: &Lengths, found: &mut Found) -> u128 {
    if let Some((.., peak)) = found.iter().find(|(m, at, _)| *m == id && at == lengths) {
        return *peak;
    }
    let module = graph.module(id);
    let last_read = last_reads(module);
    let mut alive = 0u128;
    let mut most = 0u128;
    for (i, node) in module.nodes.iter().enumerate() {
        let inside = within(graph, module, node, lengths, found);
        let made: u128 = node
            .outputs
            .iter()
            .filter(|id| is_read(&last_read, **id))
            .map(|id| size(module, *id, lengths))
            .sum();
        most = most.max(alive.saturating_add(made).saturating_add(inside));
        alive = alive.saturating_add(made);
        for (value, _) in
            last_read.iter().enumerate().filter(|(value, at)| *value >= module.args && **at == Some(i))
        {
            alive = alive.saturating_sub(size(module, ValueId(value), lengths));
        }
    }
    found.push((id, *lengths, most));
    most
}

/// For every value the index of the node that reads it last; beyond the last node for results.
fn last_reads(module: &Module) -> Vec<Option<usize>> {
    let mut last = vec![None; module.values.len()];
    let end = module.nodes.len();
    let reads =
        module.nodes.iter().enumerate().flat_map(|(i, node)| node.inputs.iter().map(move |id| (i, *id)));
    for (i, id) in reads.chain(module.results.iter().map(|id| (end, *id))) {
        if let Some(at) = last.get_mut(id.0) {
            *at = Some(i);
        }
    }
    last
}

fn is_read(last_read: &[Option<usize>], id: ValueId) -> bool {
    last_read.get(id.0).is_some_and(Option::is_some)
}

/// Elements alive inside an op, its inputs and outputs aside.
fn within(graph: &Graph, module: &Module, node: &Node, lengths: &Lengths, found: &mut Found) -> u128 {
    if let Op::Attention(_) = &node.op {
        // Scores that nobody asks for are made all the same.
        return node.outputs.get(1).map_or(0, |id| size(module, *id, lengths));
    }
    let (Op::Call { member } | Op::Scan { member, .. } | Op::Experts { member, .. }) = &node.op else {
        return 0;
    };
    let input = node.inputs.first().map(|id| &module.value(*id).ty);
    let rows = input.map_or(0, |ty| rows(ty).eval(lengths));
    let routed = Lengths { rows: u64::try_from(rows).unwrap_or(u64::MAX), ..*lengths };
    let at = if let Op::Experts { .. } = &node.op { &routed } else { lengths };
    let inner = callees(node, module.member(*member), input);
    inner.iter().map(|callee| peak(graph, ModuleId(callee.module), at, found)).max().unwrap_or(0)
}

fn size(module: &Module, id: ValueId, lengths: &Lengths) -> u128 {
    let ty = &module.value(id).ty;
    match ty.dtype {
        DType::Float => ty.shape.iter().fold(1, |n, dim| n.saturating_mul(dim.eval(lengths))),
        DType::Int | DType::Bool => 0,
    }
}

/// Rows of a value: all sizes but the last.
fn rows(ty: &Type) -> Dim {
    ty.shape.iter().rev().skip(1).filter(|dim| dim.symbol() != Some(Sym::Rows)).cloned().product()
}
