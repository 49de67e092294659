//! The forward pass of the tape: walks the ops of a graph in order, and records what each allocates, what it
//! keeps for the backward pass, and where its gradient goes.

use std::collections::BTreeSet;

use super::super::scores::of_memory;
use super::forward::copied;
use super::routed::Routed;
use super::{Again, Tape, Tracked};
use crate::ir::last::for_last_position;
use crate::ir::op::meaning::Site;
use crate::ir::op::training::{Entry, Operand, Passing, Training};
use crate::ir::paths::elements;
use crate::ir::{Graph, Lengths, Member, MemberId, MemberKind, Module, ModuleId, Node, Op, Run, ValueId};

impl Tape<'_> {
    /// Runs a module and returns its results, whose holder is the caller. The arguments stay the caller's.
    pub(super) fn module(
        &mut self,
        id: ModuleId,
        lengths: &Lengths,
        arguments: &[Tracked],
        path: &[u64],
    ) -> Vec<Tracked> {
        for argument in arguments {
            self.hold(argument.buffer);
        }
        self.body(id, lengths, arguments, path)
    }

    /// As [`Tape::module`], but the arguments are moved into the module, which releases each after its last
    /// use.
    pub(super) fn body(
        &mut self,
        id: ModuleId,
        lengths: &Lengths,
        arguments: &[Tracked],
        path: &[u64],
    ) -> Vec<Tracked> {
        let graph = self.graph;
        let module = graph.module(id);
        let mut values = vec![Tracked::default(); module.values.len()];
        for (slot, argument) in values.iter_mut().zip(arguments) {
            *slot = *argument;
        }
        let released = released_after(module);
        let of = |values: &[Tracked], id: &ValueId| values.get(id.0).copied().unwrap_or_default();
        let for_last = match self.only_last && id == graph.root {
            true => for_last_position(graph, module),
            false => Vec::new(),
        };
        // The first step has computed these and kept them.
        let known = match self.is_cached && lengths.past > 0 {
            true => of_memory(module),
            false => BTreeSet::new(),
        };
        let one = Lengths { time: 1, ..*lengths };
        for (i, node) in module.nodes.iter().enumerate() {
            let lengths = if for_last.get(i) == Some(&true) { &one } else { lengths };
            let inputs: Vec<Tracked> = node.inputs.iter().map(|id| of(&values, id)).collect();
            let dying = released.get(i).map(Vec::as_slice).unwrap_or_default();
            let outputs = if !known.is_empty() && node.outputs.iter().all(|id| known.contains(id)) {
                let kept = |id: &ValueId| {
                    let bytes = self.bytes(&module.value(*id).ty, lengths);
                    Tracked { bytes, is_strided: true, ..Tracked::default() }
                };
                node.outputs.iter().map(kept).collect()
            } else if self.is_training {
                self.node(module, node, lengths, &inputs, path)
            } else {
                // A value that nothing needs later is moved into a call, which can then free it early.
                if matches!(node.op, Op::Call { .. } | Op::Scan { .. }) {
                    inputs.iter().for_each(|input| self.hold(input.buffer));
                    for id in dying {
                        let value = values.get_mut(id.0).map(std::mem::take).unwrap_or_default();
                        self.release(value.buffer);
                    }
                }
                let dies: Vec<bool> = node.inputs.iter().map(|id| dying.contains(id)).collect();
                self.forward(module, node, lengths, &inputs, &dies)
            };
            for (id, output) in node.outputs.iter().zip(outputs) {
                if self.is_training && node.op.meaning().loss_weight().is_some() {
                    self.loss(&output);
                }
                if let Some(slot) = values.get_mut(id.0) {
                    *slot = output;
                }
            }
            // Those that were moved into a call are empty here, so nothing is released twice.
            for id in dying {
                let value = values.get_mut(id.0).map(std::mem::take).unwrap_or_default();
                self.release(value.buffer);
            }
        }
        // The results are not released here: their holder is now the caller.
        module.results.iter().map(|id| of(&values, id)).collect()
    }

    fn node(
        &mut self,
        module: &Module,
        node: &Node,
        lengths: &Lengths,
        inputs: &[Tracked],
        path: &[u64],
    ) -> Vec<Tracked> {
        let sizes: Vec<u128> =
            node.outputs.iter().map(|id| self.bytes(&module.value(*id).ty, lengths)).collect();
        // What an op copies first, and what it needs for a moment.
        let how = node.op.meaning().forward(&Site { node, module, measured: &[] });
        let first = sizes.first().copied().unwrap_or_default();
        if let Some(how) = how.filter(|how| !how.is_view) {
            let others = first.saturating_mul(u128::from(how.halves)) / 2;
            self.briefly(copied(how, inputs).saturating_add(others).saturating_add(first));
        }
        match node.op.meaning().training(&Site { node, module, measured: &[] }) {
            Training::Member => self.member(module, node, lengths, inputs, path),
            Training::Table => {
                let table = |bytes: u128| Tracked {
                    buffer: Some(self.take(bytes)),
                    bytes,
                    gradient: None,
                    is_strided: false,
                };
                sizes.into_iter().map(table).collect()
            }
            Training::View(passing) => {
                let x = inputs.iter().find(|x| x.bytes > 0).copied().unwrap_or_default();
                sizes.first().map(|bytes| self.view(x, *bytes, passing)).into_iter().collect()
            }
            Training::Computed { entries, results } => {
                let weight = self.weight(module, node, path);
                let before = self.steps.len();
                let outputs = self.entries(&entries, &results, &sizes, inputs, weight);
                if self.steps.len() > before && is_normed(module, node) {
                    // In both directions, features that do not lie side by side are copied. The copy of a kernel waits for the
                    // next one.
                    let apart = inputs.iter().filter(|x| x.is_strided).map(|x| x.bytes);
                    let apart = apart.fold(0, u128::saturating_add);
                    if !matches!(node.op, Op::Normalize) {
                        self.waits(apart);
                    }
                    if let Some(step) = self.steps.last_mut() {
                        step.extra = step.extra.saturating_add(apart);
                    }
                }
                // The fused operation computes the gradient of a bias for every sequence, and then their sum.
                if let (Op::Attention(attention), true) = (&node.op, entries.len() == 1) {
                    let bias = attention.bias().and_then(|at| inputs.get(at));
                    let scores = sizes.get(1).copied().unwrap_or_default();
                    if let (Some(bias), Some(step)) =
                        (bias.filter(|bias| bias.gradient.is_some()), self.steps.last_mut())
                    {
                        step.extra = step.extra.saturating_add(scores).saturating_add(bias.bytes);
                    }
                }
                outputs
            }
        }
    }

    /// Runs the layer, module or stack that a node applies.
    fn member(
        &mut self,
        module: &Module,
        node: &Node,
        lengths: &Lengths,
        inputs: &[Tracked],
        path: &[u64],
    ) -> Vec<Tracked> {
        if let Op::Weight { path: members } = &node.op {
            // By the members of the layer that owns it, so that it is not counted twice.
            let path: Vec<u64> = path.iter().copied().chain(members.iter().map(|m| m.0 as u64)).collect();
            let bytes: Vec<u128> =
                node.outputs.iter().map(|id| self.bytes(&module.value(*id).ty, lengths)).collect();
            if self.is_frozen(&path, name_of(module, self.graph, members)) {
                return bytes
                    .into_iter()
                    .map(|bytes| Tracked { buffer: None, bytes, gradient: None, is_strided: false })
                    .collect();
            }
            let (gradient, bytes) = self.parameter(&path, &bytes);
            return vec![Tracked { buffer: None, bytes, gradient: Some(gradient), is_strided: false }];
        }
        let Some(id) = node.op.meaning().member() else { return Vec::new() };
        let member = module.member(id);
        let at: Vec<u64> = path.iter().copied().chain([id.0 as u64]).collect();
        if let Op::Scan { each, args, .. } = &node.op {
            return vec![self.scan(member, *each, args, lengths, inputs, &at)];
        }
        if let Op::Experts { active, .. } = &node.op {
            let rows = node.inputs.first().map_or(0, |id| module.value(*id).ty.rows().eval(lengths));
            return vec![self.experts(member, Routed { rows, active: *active }, lengths, inputs, &at)];
        }
        match &member.kind {
            MemberKind::Module(child) => self.module(*child, lengths, inputs, &at),
            MemberKind::Layer(_) => vec![self.weight(module, node, path)],
            MemberKind::Stack(_) => Vec::new(),
        }
    }

    /// The parameters of the layer that a node applies; nothing for other nodes.
    fn weight(&mut self, module: &Module, node: &Node, path: &[u64]) -> Tracked {
        let Some(id) = node.op.meaning().member() else { return Tracked::default() };
        let MemberKind::Layer(layer) = &module.member(id).kind else { return Tracked::default() };
        let path: Vec<u64> = path.iter().copied().chain([id.0 as u64]).collect();
        let trained = layer.parameters().into_iter().filter(|p| p.trained && !self.is_frozen(&path, p.name));
        let tensors: Vec<u128> = trained.map(|p| elements(&p.shape).saturating_mul(self.element)).collect();
        let (gradient, bytes) = self.parameter(&path, &tensors);
        // A layer without trained parameters has no gradient of its own.
        Tracked { buffer: None, bytes, gradient: (bytes > 0).then_some(gradient), is_strided: false }
    }

    /// Values computed one after the other; `sizes` are those of the op's results, in bytes.
    fn entries(
        &mut self,
        entries: &[Entry],
        results: &[usize],
        sizes: &[u128],
        inputs: &[Tracked],
        weight: Tracked,
    ) -> Vec<Tracked> {
        let mut values: Vec<Tracked> = Vec::with_capacity(entries.len());
        for entry in entries {
            let of = |operand: &Operand| match operand {
                Operand::Input(i) => inputs.get(*i).copied().unwrap_or_default(),
                Operand::Weight => weight,
                Operand::Entry(i) => values.get(*i).copied().unwrap_or_default(),
            };
            let from: Vec<Tracked> = entry.from.iter().map(of).collect();
            // Without a gradient of the other, an operand is not needed.
            let is_needed = |i: usize| {
                let other = if i == 0 { from.get(1) } else { from.first() };
                !entry.for_other || other.is_none_or(|other| other.gradient.is_some())
            };
            let kept = entry.kept.iter().enumerate().filter(|(i, _)| is_needed(*i));
            let kept: Vec<Tracked> = kept.map(|(_, operand)| of(operand)).collect();
            let size = sizes.get(entry.size_of).copied().unwrap_or_default();
            let size = size.saturating_mul(u128::from(entry.times));
            let times = |n: u64| size.saturating_mul(u128::from(n));
            let flags =
                u128::from(entry.flags).saturating_mul(size.checked_div(self.element).unwrap_or(size));
            self.briefly(times(entry.briefly));
            let copied = entry.copied.iter().map(|operand| of(operand).bytes).sum();
            let own = times(entry.own).saturating_add(flags).saturating_add(copied);
            let value = self.computed(size, &from, &kept, own, entry.passing);
            // If the value has a gradient, `computed` has just added its step.
            if let (Some(_), Some(step)) = (value.gradient, self.steps.last_mut()) {
                let of_first = from.first().map_or(0, |x| x.bytes);
                let of_first = of_first.saturating_mul(u128::from(entry.needs_inputs));
                step.extra = (times(entry.needs_halves) / 2).saturating_add(of_first);
            }
            values.push(value);
        }
        // Only the tape needs what is computed on the way to the results.
        for (_, value) in values.iter().enumerate().filter(|(i, _)| !results.contains(i)) {
            self.release(value.buffer);
        }
        results.iter().filter_map(|i| values.get(*i).copied()).collect()
    }

    /// Runs the blocks of a stack one after the other.
    fn scan(
        &mut self,
        member: &Member,
        each: u64,
        args: &[Vec<Vec<usize>>],
        lengths: &Lengths,
        inputs: &[Tracked],
        path: &[u64],
    ) -> Tracked {
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
                    let arguments: Vec<Tracked> = [x].into_iter().chain(others).collect();
                    let y = if tape.recomputes {
                        tape.deferred(Again {
                            module: *id,
                            lengths: *lengths,
                            arguments,
                            path: block.clone(),
                        })
                    } else {
                        tape.module(*id, lengths, &arguments, &block).first().copied().unwrap_or_default()
                    };
                    // A module leaves its arguments to the caller.
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
    pub(super) fn blocks(
        &mut self,
        run: &Run,
        x: Tracked,
        mut one: impl FnMut(&mut Self, Tracked, usize, u64) -> Tracked,
    ) -> Tracked {
        let cycle = run.cycle.len() as u64;
        let Some(cycles) = run.count.checked_div(cycle) else { return x };
        let mut part = |tape: &mut Self, x: Tracked, start: u64, blocks: u64| {
            (0..blocks).zip(0..).fold(x, |x, (i, at)| one(tape, x, at, start.saturating_add(i)))
        };
        let whole = self.repeated(cycles, x, |tape, x, n| part(tape, x, n.saturating_mul(cycle), cycle));
        // A run may end within a cycle.
        part(self, whole, cycles.saturating_mul(cycle), run.count.checked_rem(cycle).unwrap_or(0))
    }

    /// Runs the experts one after the other: each takes the rows sent to it, and its results are weighted and
    /// added to the sum.
    fn experts(
        &mut self,
        member: &Member,
        routed: Routed,
        lengths: &Lengths,
        inputs: &[Tracked],
        path: &[u64],
    ) -> Tracked {
        let [x, weights] = [0, 1].map(|i| inputs.get(i).copied().unwrap_or_default());
        // Zeros at first, which have no gradient.
        let mut sum = self.computed(x.bytes, &[], &[], 0, Passing::Shared);
        let MemberKind::Stack(runs) = &member.kind else { return sum };
        let mut first = 0u64;
        for (run, rows) in routed.runs(runs) {
            let lengths = Lengths { rows, ..*lengths };
            sum = self.blocks(&run, sum, |tape, sum, at, i| {
                let Some(id) = run.cycle.get(at) else { return sum };
                let argument = tape.graph.module(*id).values.first();
                let bytes = argument.map_or(0, |value| tape.bytes(&value.ty, &lengths));
                let picked = tape.computed(bytes, &[x], &[], 0, Passing::Fresh);
                let expert: Vec<u64> = path.iter().copied().chain([first.saturating_add(i)]).collect();
                let y = tape.module(*id, &lengths, &[picked], &expert).first().copied().unwrap_or_default();
                tape.release(picked.buffer);
                let to = [sum, y].iter().filter_map(|v| Some((v.gradient?, v.bytes))).collect();
                // The result of the expert and the weight it is multiplied with are kept for the gradients of each other.
                let sum = tape.recorded(sum, to, &[y, weights], 0, Passing::Shared);
                tape.release(y.buffer);
                sum
            });
            first = first.saturating_add(run.count);
        }
        sum
    }
}

/// Whether an op is a norm, or scales features to unit length.
fn is_normed(module: &Module, node: &Node) -> bool {
    let layer = node.op.meaning().member().map(|id| &module.member(id).kind);
    matches!(node.op, Op::Normalize) || matches!(layer, Some(MemberKind::Layer(layer)) if layer.is_norm())
}

/// The name of the parameter that `Op::Weight` reads: the first of the layer at these members.
fn name_of(module: &Module, graph: &Graph, members: &[MemberId]) -> &'static str {
    let Some((first, rest)) = members.split_first() else { return "" };
    match &module.member(*first).kind {
        MemberKind::Layer(layer) => layer.parameters().first().map_or("", |p| p.name),
        MemberKind::Module(child) => name_of(graph.module(*child), graph, rest),
        MemberKind::Stack(_) => "",
    }
}

/// For every node the values that nothing needs after it: those it reads or makes that no later node reads
/// and that are no result.
fn released_after(module: &Module) -> Vec<Vec<ValueId>> {
    let mut released = vec![Vec::new(); module.nodes.len()];
    let mut is_needed = vec![false; module.values.len()];
    for id in &module.results {
        if let Some(needed) = is_needed.get_mut(id.0) {
            *needed = true;
        }
    }
    // Backwards, so that the first node that is met with a value is the last one that reads it.
    for (node, released) in module.nodes.iter().zip(&mut released).rev() {
        for id in node.outputs.iter().chain(&node.inputs) {
            let is_later = is_needed.get_mut(id.0).is_none_or(|needed| std::mem::replace(needed, true));
            if !is_later {
                released.push(*id);
            }
        }
    }
    // An argument that nothing reads is released with the first op.
    if let Some(first) = released.first_mut() {
        let arguments = is_needed.iter().take(module.args).enumerate();
        first.extend(arguments.filter(|(_, needed)| !**needed).map(|(i, _)| ValueId(i)));
    }
    released
}
