//! The way forward: every op of a graph in turn, what it makes, what it keeps and how its gradient goes back.

use super::{Held, Tape, Way};
use crate::ir::op::{Activation, Attention, Pool};
use crate::ir::paths::elements;
use crate::ir::{Layer, Lengths, Member, MemberKind, Module, ModuleId, Node, Op, Run, ValueId, stack_len};

/// What an op that computes feature by feature keeps.
#[derive(Clone, Copy, Debug)]
struct Keeps {
    /// Whether its input is kept.
    input: bool,
    /// What else, in sizes of the input.
    own: u128,
    way: Way,
    /// What its gradient needs at once, what it makes included, in sizes of the input.
    extra: u128,
}

impl Tape<'_> {
    /// What comes of running a module: its results, each held once.
    pub(super) fn module(
        &mut self,
        id: ModuleId,
        lengths: &Lengths,
        arguments: &[Held],
        path: &[u64],
    ) -> Vec<Held> {
        let graph = self.graph;
        let module = graph.module(id);
        let mut values = vec![Held::default(); module.values.len()];
        for (slot, argument) in values.iter_mut().zip(arguments) {
            self.hold(argument.buffer);
            *slot = *argument;
        }
        let released = released_after(module);
        let of = |values: &[Held], id: &ValueId| values.get(id.0).copied().unwrap_or_default();
        for (i, node) in module.nodes.iter().enumerate() {
            let inputs: Vec<Held> = node.inputs.iter().map(|id| of(&values, id)).collect();
            let outputs = self.node(module, node, lengths, &inputs, path);
            for (id, output) in node.outputs.iter().zip(outputs) {
                if let Some(slot) = values.get_mut(id.0) {
                    *slot = output;
                }
            }
            for id in released.get(i).into_iter().flatten() {
                let value = values.get_mut(id.0).map(std::mem::take).unwrap_or_default();
                self.release(value.buffer);
            }
        }
        // What this frame held of them is the caller's now.
        module.results.iter().map(|id| of(&values, id)).collect()
    }

    fn node(
        &mut self,
        module: &Module,
        node: &Node,
        lengths: &Lengths,
        inputs: &[Held],
        path: &[u64],
    ) -> Vec<Held> {
        let bytes = |tape: &Self, i: usize| {
            node.outputs.get(i).map_or(0, |id| tape.bytes(&module.value(*id).ty, lengths))
        };
        let (x, y) =
            (inputs.first().copied().unwrap_or_default(), inputs.get(1).copied().unwrap_or_default());
        let out = bytes(self, 0);
        let at = |member: u64| path.iter().copied().chain([member]).collect::<Vec<u64>>();
        let one = match &node.op {
            Op::Layer { member } => match &module.member(*member).kind {
                MemberKind::Layer(layer) => self.layer(layer, x, out, &at(member.0 as u64)),
                MemberKind::Module(_) | MemberKind::Stack(_) => Held::default(),
            },
            Op::Weight { path: members } => {
                let path: Vec<u64> = path.iter().copied().chain(members.iter().map(|m| m.0 as u64)).collect();
                let (gradient, bytes) = self.parameter(&path, &[out]);
                Held { buffer: None, bytes, gradient: Some(gradient) }
            }
            Op::Call { member } => {
                let MemberKind::Module(id) = &module.member(*member).kind else { return Vec::new() };
                return self.module(*id, lengths, inputs, &at(member.0 as u64));
            }
            Op::Scan { member, each, args } => {
                self.scan(module.member(*member), *each, args, lengths, inputs, &at(member.0 as u64))
            }
            Op::Experts { member, active } => {
                let rows = node.inputs.first().map_or(0, |id| module.value(*id).ty.rows().eval(lengths));
                self.experts(
                    module.member(*member),
                    rows * u128::from(*active),
                    lengths,
                    inputs,
                    &at(member.0 as u64),
                )
            }
            Op::Positions { .. }
            | Op::Sinusoid { .. }
            | Op::RotaryTable { .. }
            | Op::Mask { .. }
            | Op::AlibiBias { .. }
            | Op::RelativeBuckets { .. } => {
                return (0..node.outputs.len())
                    .map(|i| {
                        let bytes = bytes(self, i);
                        Held { buffer: Some(self.take(bytes)), bytes, gradient: None }
                    })
                    .collect();
            }
            Op::PaddingMask | Op::EitherMask => self.computed(out, &[], &[], 0, Way::Shared),
            Op::MergeHeads | Op::Concat { .. } | Op::Prepend => {
                self.computed(out, inputs, &[], 0, Way::Shared)
            }
            Op::Cache | Op::Unsqueeze | Op::Squeeze => self.view(x, out, Way::Shared),
            Op::OrZeros => self.view(if x.bytes > 0 { x } else { y }, out, Way::Shared),
            Op::SplitHeads { .. } | Op::BiasFromTable => self.view(x, out, Way::Fresh),
            Op::Slice { .. } => self.view(x, out, Way::Fresh),
            Op::RepeatHeads { .. } => self.computed(out, &[x], &[], 0, Way::Fresh),
            Op::Rotate { .. } => {
                self.briefly(out.saturating_mul(2));
                let turned = self.computed(out, &[x], &[], 0, Way::Fresh);
                self.needs(x.bytes.saturating_mul(5) / 2);
                turned
            }
            Op::Attention(attention) => {
                let scores = bytes(self, 1);
                return self.attention(attention, inputs, out, scores);
            }
            Op::Activate(kind) => self.pointwise(x, activation(*kind)),
            Op::Add => self.computed(out, &[x, y], &[], 0, Way::Shared),
            Op::Mul => self.computed(out, &[x, y], &[x, y], 0, Way::Reused),
            Op::Scale { .. } | Op::Shift { .. } => self.pointwise(x, Keeps::nothing()),
            Op::Clamp { min, max } => {
                let bounds = u128::from(min.is_some()) + u128::from(max.is_some());
                self.computed(out, &[x], &[], bounds.saturating_mul(out / self.element), Way::Reused)
            }
            Op::Softcap { .. } => self.pointwise(x, Keeps::own(1)),
            Op::Dropout { p } if *p > 0.0 => self.pointwise(x, Keeps { way: Way::Reused, ..Keeps::own(1) }),
            Op::Dropout { .. } => self.view(x, out, Way::Shared),
            Op::Lookup => self.computed(out, &[x], &[], 0, Way::Fresh),
            Op::Unembed => self.computed(out, &[x, y], &[x], 0, Way::Product),
            Op::Route(_) => self.pointwise(x, Keeps::own(3)),
            Op::Pool(Pool::First | Pool::Last) => self.view(x, out, Way::Fresh),
            Op::Pool(Pool::Mean | Pool::Max) => self.computed(out, &[x], &[], 0, Way::Fresh),
            Op::Normalize => self.pointwise(x, Keeps { input: true, extra: 2, ..Keeps::own(0) }),
        };
        vec![one]
    }

    fn layer(&mut self, layer: &Layer, x: Held, out: u128, path: &[u64]) -> Held {
        let element = self.element;
        let trained = layer.parameters().into_iter().filter(|p| p.trained);
        let tensors: Vec<u128> = trained.map(|p| elements(&p.shape).saturating_mul(element)).collect();
        let (gradient, bytes) = self.parameter(path, &tensors);
        let weight = Held { buffer: None, bytes, gradient: (bytes > 0).then_some(gradient) };
        match layer {
            Layer::Linear { .. } => self.computed(out, &[x, weight], &[x], 0, Way::Product),
            Layer::Embedding { .. } => self.computed(out, &[weight], &[], 0, Way::Fresh),
            // The product's two factors; the mean's and the variance's parts are of a row each.
            Layer::LayerNorm { affine: true, .. } => {
                self.computed(out, &[x, weight], &[], out.saturating_mul(2), Way::Fresh)
            }
            Layer::LayerNorm { .. } => self.pointwise(x, Keeps { extra: 2, ..Keeps::own(1) }),
            Layer::RmsNorm { affine: true, .. } => self.computed(out, &[x, weight], &[x], out, Way::Fresh),
            Layer::RmsNorm { .. } => self.pointwise(x, Keeps { input: true, extra: 2, ..Keeps::own(0) }),
            Layer::Patches { .. } => {
                let patches = self.computed(out, &[x, weight], &[x], 0, Way::Fresh);
                self.needs(out.saturating_mul(2));
                patches
            }
            Layer::Param { .. } => weight,
        }
    }

    /// An op that computes feature by feature.
    fn pointwise(&mut self, x: Held, keeps: Keeps) -> Held {
        let kept: &[Held] = if keeps.input { &[x] } else { &[] };
        let y = self.computed(x.bytes, &[x], kept, x.bytes.saturating_mul(keeps.own), keeps.way);
        if y.gradient.is_some() {
            self.needs(x.bytes.saturating_mul(keeps.extra));
        }
        y
    }

    /// The last op needs that many bytes for a while on the way back.
    fn needs(&mut self, extra: u128) {
        if let Some(step) = self.steps.last_mut() {
            step.extra = extra;
        }
    }

    /// Scores and their softmax keep two sizes of the scores, a softcap one more; what is multiplied by the
    /// values is kept too, and what dropout multiplied it by.
    fn attention(&mut self, attention: &Attention, inputs: &[Held], out: u128, scores: u128) -> Vec<Held> {
        let of = |i: usize| inputs.get(i).copied().unwrap_or_default();
        let (q, k, v) = (of(0), of(1), of(2));
        let is_composed = attention.dropout > 0.0 || attention.has_sinks;
        let masks =
            if is_composed && attention.has_mask && attention.causal { scores / self.element } else { 0 };
        let own = scores.saturating_mul(2 + u128::from(attention.softcap.is_some())).saturating_add(masks);
        let extras = usize::from(attention.has_mask);
        let added = inputs.iter().skip(3 + extras);
        let from: Vec<Held> = [q, k].into_iter().chain(added.copied()).collect();
        let weights = self.computed(scores, &from, &[q, k], own, Way::Product);
        self.needs(scores.saturating_mul(2));
        let dropped = if attention.dropout > 0.0 {
            self.pointwise(weights, Keeps { way: Way::Reused, ..Keeps::own(1) })
        } else {
            self.hold(weights.buffer);
            weights
        };
        let y = self.computed(out, &[dropped, v], &[dropped, v], 0, Way::Product);
        self.release(dropped.buffer);
        vec![y, weights]
    }

    /// Blocks one after the other.
    fn scan(
        &mut self,
        member: &Member,
        each: u64,
        args: &[Vec<Vec<usize>>],
        lengths: &Lengths,
        inputs: &[Held],
        path: &[u64],
    ) -> Held {
        let mut x = inputs.first().copied().unwrap_or_default();
        self.hold(x.buffer);
        let MemberKind::Stack(runs) = &member.kind else { return x };
        let mut first = 0u64;
        for (run, extra) in runs.iter().zip(args) {
            x = self.blocks(run, x, |tape, x, at, i| {
                let (Some(id), Some(extra)) = (run.cycle.get(at), extra.get(at)) else { return x };
                let block: Vec<u64> = path.iter().copied().chain([first.saturating_add(i)]).collect();
                tape.repeated(each, x, |tape, x, _| {
                    let others = extra.iter().map(|i| inputs.get(*i).copied().unwrap_or_default());
                    let arguments: Vec<Held> = [x].into_iter().chain(others).collect();
                    let y =
                        tape.module(*id, lengths, &arguments, &block).first().copied().unwrap_or_default();
                    tape.release(x.buffer);
                    y
                })
            });
            first = first.saturating_add(run.count);
        }
        x
    }

    /// Folds a value through the blocks of a run; `one` is told a block's place in the cycle and its index in
    /// the run.
    fn blocks(
        &mut self,
        run: &Run,
        x: Held,
        mut one: impl FnMut(&mut Self, Held, usize, u64) -> Held,
    ) -> Held {
        let cycle = run.cycle.len() as u64;
        let Some(cycles) = run.count.checked_div(cycle) else { return x };
        let mut part = |tape: &mut Self, x: Held, start: u64, blocks: u64| {
            (0..blocks).zip(0..).fold(x, |x, (i, at)| one(tape, x, at, start.saturating_add(i)))
        };
        let whole = self.repeated(cycles, x, |tape, x, n| part(tape, x, n.saturating_mul(cycle), cycle));
        part(self, whole, cycles.saturating_mul(cycle), run.count % cycle)
    }

    /// Every expert has its rows picked for it, and its results weighted and added to the sum.
    fn experts(
        &mut self,
        member: &Member,
        sent: u128,
        lengths: &Lengths,
        inputs: &[Held],
        path: &[u64],
    ) -> Held {
        let x = inputs.first().copied().unwrap_or_default();
        let mut sum = self.computed(x.bytes, &[], &[], 0, Way::Shared);
        let MemberKind::Stack(runs) = &member.kind else { return sum };
        let experts = u128::from(stack_len(runs)).max(1);
        let rows = u64::try_from(sent.div_ceil(experts)).unwrap_or(u64::MAX);
        let lengths = Lengths { rows, ..*lengths };
        let mut first = 0u64;
        for run in runs {
            sum = self.blocks(run, sum, |tape, sum, at, i| {
                let Some(id) = run.cycle.get(at) else { return sum };
                let argument = tape.graph.module(*id).values.first();
                let bytes = argument.map_or(0, |value| tape.bytes(&value.ty, &lengths));
                let picked = tape.computed(bytes, &[x], &[], 0, Way::Fresh);
                let expert: Vec<u64> = path.iter().copied().chain([first.saturating_add(i)]).collect();
                let y = tape.module(*id, &lengths, &[picked], &expert).first().copied().unwrap_or_default();
                tape.release(picked.buffer);
                let to = [sum, y].iter().filter_map(|v| Some((v.gradient?, v.bytes))).collect();
                let sum = tape.recorded(sum, to, &[y], 0, Way::Shared);
                tape.release(y.buffer);
                sum
            });
            first = first.saturating_add(run.count);
        }
        sum
    }
}

impl Keeps {
    /// Nothing, and its gradient takes the place of the one it is given.
    fn nothing() -> Self {
        Self { input: false, own: 0, way: Way::Reused, extra: 0 }
    }

    /// So many sizes of the input that nobody else holds.
    fn own(sizes: u128) -> Self {
        Self { own: sizes, way: Way::Fresh, ..Self::nothing() }
    }
}

/// What nonlinearities keep, as burn composes them.
fn activation(kind: Activation) -> Keeps {
    let (own, way) = match kind {
        Activation::Relu | Activation::Gelu | Activation::Sigmoid => (0, Way::Reused),
        Activation::Tanh => (0, Way::Fresh),
        Activation::Silu => (1, Way::Reused),
        Activation::Relu2 => (1, Way::Fresh),
        Activation::QuickGelu => (2, Way::Reused),
        Activation::GeluTanh => (2, Way::Fresh),
    };
    Keeps { input: true, way, ..Keeps::own(own) }
}

/// For every node the values that nothing needs after it: those it reads or makes that no later node reads and
/// that are no result.
fn released_after(module: &Module) -> Vec<Vec<ValueId>> {
    let mut released = vec![Vec::new(); module.nodes.len()];
    let mut is_needed = vec![false; module.values.len()];
    for id in &module.results {
        if let Some(needed) = is_needed.get_mut(id.0) {
            *needed = true;
        }
    }
    for (node, released) in module.nodes.iter().zip(&mut released).rev() {
        for id in node.outputs.iter().chain(&node.inputs) {
            let is_later = is_needed.get_mut(id.0).is_none_or(|needed| std::mem::replace(needed, true));
            if !is_later {
                released.push(*id);
            }
        }
    }
    if let Some(first) = released.first_mut() {
        let arguments = is_needed.iter().take(module.args).enumerate();
        first.extend(arguments.filter(|(_, needed)| !**needed).map(|(i, _)| ValueId(i)));
    }
    released
}
