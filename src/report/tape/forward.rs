//! Memory of a forward pass without gradients: every value lives from the op that computes it to the last one
//! that reads it or a view of it.
//!
//! The figures are those of burn's operations on Flex (0.22.1), measured with a heap that counts: an
//! elementwise operation overwrites an input that nothing else needs; a product of matrices first copies a
//! tensor that is not contiguous; fused attention copies a mask or bias that it has to broadcast.

use super::super::scores;
use super::recurrent;
use super::routed::Routed;
use super::{MARGIN, SMALL_TENSORS, Tape, Tracked};
use crate::ir::op::forward::{Copied, Forward};
use crate::ir::op::meaning::Site;
use crate::ir::op::training::{Passing, Training};
use crate::ir::op::{Attention, Score};
use crate::ir::{
    Dim, Graph, Layer, Lengths, MemberKind, Module, ModuleId, Node, Op, Run, Type, ValueId, Verified,
    stack_len,
};

/// The inputs of a forward pass, and what is kept of it.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    /// The lengths `B, T, S, P` of the pass.
    pub lengths: &'a Lengths,
    /// Whether an input of that name is given.
    pub is_given: &'a dyn Fn(&str) -> bool,
    /// Whether keys and values are appended to a cache.
    pub is_cached: bool,
    /// Whether only the outputs at the last position are wanted, so that the head is applied to no other.
    pub only_last: bool,
    /// Whether attention weights are captured, so that attention is not one fused operation. The captured
    /// tensors themselves are not counted here.
    pub shows_attention: bool,
    /// The number of threads that compute tiles of attention at the same time.
    pub threads: u128,
    /// Whether the processor has the instructions of the kernels, which read cached keys and values in place.
    pub has_kernels: bool,
}

/// The most bytes of the lists of a thread in a product with weights: 2,040 rows in four parts, 16 bytes each.
const LISTS: u128 = 4 * 2_040 * 16;
/// The most attention scores that fused attention computes in one tile.
const SCORES_AT_ONCE: u128 = 256 * 1024;
/// The fewest queries that are computed in tiles; `FEWEST_QUERIES` of the kernels.
const FEWEST_QUERIES: u128 = 6;
/// The most queries of a tile; `MOST` of the kernel.
const QUERIES_AT_ONCE: u128 = 60;
/// The most scores by which a row of a tile is longer than its number of keys: the kernel rounds rows up to
/// whole vectors of 16 and leaves one vector free.
const ROW_PADDING: u128 = 32;

/// The peak memory of a forward pass in bytes, without parameters and without what was cached before it.
pub fn forward(graph: &Verified, pass: &Pass<'_>, element: u128) -> u128 {
    let graph = &graph.fused();
    let mut tape = Tape::new(graph, element, false);
    tape.is_cached = pass.is_cached;
    tape.only_last = pass.only_last;
    tape.shows_attention = pass.shows_attention;
    tape.threads = pass.threads;
    tape.has_kernels = pass.has_kernels;
    let root = graph.module(graph.root);
    let arguments: Vec<Tracked> = (0..root.args)
        .map(|i| {
            let value = root.value(ValueId(i));
            if !(pass.is_given)(&value.name) {
                return Tracked::default();
            }
            let bytes = tape.bytes(&value.ty, pass.lengths);
            tape.new_value(bytes)
        })
        .collect();
    // The caller keeps the inputs until the end.
    tape.module(graph.root, pass.lengths, &arguments, &[]);
    let cached = if pass.is_cached { grown(graph, pass, element) } else { 0 };
    let most = tape.most.saturating_add(cached);
    most.saturating_add(most / MARGIN).saturating_add(SMALL_TENSORS)
}

/// Bytes by which the caches grow: those of keys and values have room for a power of two positions, and
/// states and what is computed from a source are kept from the first call on.
fn grown(graph: &Graph, pass: &Pass<'_>, element: u128) -> u128 {
    let lengths = pass.lengths;
    // As `append` of the kernels makes room.
    let capacity = |n: u64| if n == 0 { 0 } else { u128::from(n.next_power_of_two().max(64)) };
    let positions = lengths.past.saturating_add(lengths.time);
    let more = capacity(positions).saturating_sub(capacity(lengths.past));
    let attended = scores::of_graph(graph);
    let per_token = attended.caches.iter().fold(0u128, |sum, c| sum.saturating_add(c.per_token));
    // The source is encoded in the first pass only, and its keys and values are cached then.
    let from_first = match lengths.past {
        0 => attended.of_source(lengths.source).saturating_add(attended.states),
        // The program that decodes a single text without tensors has a copy of its own, in order by heads.
        _ if pass.has_kernels && lengths.batch == 1 && lengths.time == 1 => {
            attended.of_source(lengths.source)
        }
        _ => 0,
    };
    let of_sequence = per_token.saturating_mul(more).saturating_add(from_first);
    of_sequence.saturating_mul(u128::from(lengths.batch)).saturating_mul(element)
}

impl Tape<'_> {
    fn new_value(&mut self, bytes: u128) -> Tracked {
        Tracked { buffer: Some(self.take(bytes)), bytes, gradient: None, is_strided: false }
    }

    /// A view of a value, of `bytes` bytes, which keeps the buffer of the value alive.
    fn seen(&mut self, x: Tracked, bytes: u128, is_strided: bool) -> Tracked {
        self.hold(x.buffer);
        Tracked { bytes, is_strided, ..x }
    }

    /// A result that overwrites an input of the same size that nothing else needs, if there is one whose numbers are in the
    /// order of its axes.
    fn in_place(&mut self, inputs: &[Tracked], dies: &[bool], out: u128) -> Tracked {
        let free = inputs.iter().zip(dies).find(|(input, dies)| {
            let is_whole = input.bytes == out && !input.is_strided;
            **dies && is_whole && input.buffer.is_some_and(|id| self.is_own(id))
        });
        match free {
            Some((input, _)) => self.seen(*input, out, input.is_strided),
            None => self.new_value(out),
        }
    }

    /// The results of an op. `dies` tells for each input whether nothing needs it afterwards.
    pub(super) fn forward(
        &mut self,
        module: &Module,
        node: &Node,
        lengths: &Lengths,
        inputs: &[Tracked],
        dies: &[bool],
    ) -> Vec<Tracked> {
        let is_kernel = node.op.meaning().is_kernel();
        if is_kernel {
            self.waits(0);
        }
        let outputs = self.computed_without(module, node, lengths, inputs, dies);
        if is_kernel {
            self.of_kernels.extend(outputs.iter().filter_map(|y| y.buffer));
        }
        outputs
    }

    /// The results of an op without gradients.
    fn computed_without(
        &mut self,
        module: &Module,
        node: &Node,
        lengths: &Lengths,
        inputs: &[Tracked],
        dies: &[bool],
    ) -> Vec<Tracked> {
        let bytes = |tape: &Self, i: usize| {
            node.outputs.get(i).map_or(0, |id| tape.bytes(&module.value(*id).ty, lengths))
        };
        let x = inputs.first().copied().unwrap_or_default();
        let out = bytes(self, 0);
        let meaning = node.op.meaning();
        let site = Site { node, module, measured: &[] };
        // The notes on training describe layers with autodiff; without it they need less.
        if let Some(MemberKind::Layer(layer)) = meaning.member().map(|id| &module.member(id).kind) {
            if layer.is_norm() && inputs.len() > 1 {
                return self.forward_add_norm(inputs, dies, out);
            }
            return vec![self.forward_layer(layer, (inputs, dies), out)];
        }
        if let Op::Attention(attention) = &node.op {
            let shape = node.outputs.get(1).map(|id| module.value(*id).ty.shape.as_slice());
            let mut sizes = shape.unwrap_or_default().iter().rev().map(|dim| dim.eval(lengths));
            let (keys, queries) = (sizes.next().unwrap_or(1), sizes.next().unwrap_or(1));
            let scores = bytes(self, 1);
            let sums = match attention.score {
                Score::Dot => 0,
                Score::Additive => {
                    let width = site.input(0).and_then(Type::last).map_or(0, |dim| dim.eval(lengths));
                    scores.saturating_mul(width)
                }
            };
            return self.forward_attention(attention, (inputs, dies), (out, scores), [queries, keys], sums);
        }
        // Without its optional inputs an op has no result. Of two masks of which one is absent, the other is
        // the result.
        let is_optional = node.outputs.first().is_some_and(|id| module.value(*id).ty.optional);
        if is_optional && inputs.iter().all(|input| input.buffer.is_none()) {
            return vec![Tracked::default()];
        }
        if let (Op::EitherMask, [a, b]) = (&node.op, inputs) {
            return vec![match (a.buffer, b.buffer) {
                (Some(_), Some(_)) => {
                    // Both are expanded to the shape of the result before they are combined.
                    self.briefly(out.saturating_mul(3));
                    self.new_value(out)
                }
                (Some(_), None) => self.seen(*a, a.bytes, a.is_strided),
                (None, _) => self.seen(*b, b.bytes, b.is_strided),
            }];
        }
        // The memory of a cache is counted by `grown`.
        if let (Op::Cache, true) = (&node.op, self.is_cached) {
            return vec![Tracked { bytes: out, is_strided: true, ..Tracked::default() }];
        }
        // What training keeps of a recurrence is many times what it takes without gradients.
        let sizes = (out, self.element);
        let is_own = |(x, dies): (&Tracked, &bool)| *dies && x.buffer.is_some_and(|id| self.is_own(id));
        let freed: Vec<bool> = inputs.iter().zip(dies).map(is_own).collect();
        if let Some(bytes) = recurrent::briefly(module, node, lengths, (inputs, &freed), sizes) {
            self.briefly(bytes);
            return vec![self.new_value(out)];
        }
        let is_absent = |at: usize| inputs.get(at).is_none_or(|input| input.buffer.is_none());
        if meaning.is_view_without().is_some_and(is_absent) {
            return vec![self.seen(x, out, x.is_strided || x.bytes != out)];
        }
        if let Some(how) = meaning.forward(&site) {
            return vec![self.computed_as(how, inputs, dies, out)];
        }
        let training = meaning.training(&site);
        let given = inputs.iter().find(|input| input.bytes > 0).copied().unwrap_or_default();
        match training {
            Training::Member => self.forward_member(module, node, lengths, inputs, out),
            Training::Table => {
                if let Op::AlibiBias { slopes, .. } = &node.op {
                    // One table of distances is multiplied by the slope of each head.
                    let distances = out.checked_div(u128::from(slopes.heads.get())).unwrap_or(out);
                    self.briefly(out.saturating_add(distances.saturating_mul(2)));
                }
                let sizes: Vec<u128> = (0..node.outputs.len()).map(|i| bytes(self, i)).collect();
                sizes.into_iter().map(|bytes| self.constant(bytes)).collect()
            }
            Training::View(passing) => {
                let is_strided = passing == Passing::Fresh || given.is_strided;
                vec![self.seen(given, out, is_strided)]
            }
            Training::Computed { .. } if meaning.is_view() => vec![self.seen(given, out, given.is_strided)],
            Training::Computed { entries, .. } => {
                // Several entries are what autodiff records of one op; without it their memory is not needed
                // at the same time.
                let is_product = entries.iter().any(|entry| entry.passing == Passing::Product);
                if is_product {
                    // A product of matrices has its result twice for a moment, and reads its factors where they are.
                    self.briefly(out.saturating_mul(2));
                    return vec![self.new_value(out)];
                }
                let times = |n: u64| out.saturating_mul(u128::from(n));
                // An elementwise operation overwrites an input, unless it builds its result from parts. Of the
                // numbers that it keeps for a gradient, one is then where the input was.
                let is_arithmetic = meaning.work(&site).elementwise != Dim::default();
                let is_in_place = is_arithmetic && entries.iter().all(|entry| entry.briefly == 0);
                let saved = u64::from(is_in_place);
                let parts = entries.iter().map(|entry| entry.briefly.max(entry.own.saturating_sub(saved)));
                self.briefly(times(parts.max().unwrap_or(0)));
                if is_in_place {
                    return vec![self.in_place(inputs, dies, out)];
                }
                vec![self.new_value(out)]
            }
        }
    }

    /// The result of an op that says itself how it is computed.
    fn computed_as(&mut self, how: Forward, inputs: &[Tracked], dies: &[bool], out: u128) -> Tracked {
        let x = inputs.first().copied().unwrap_or_default();
        if how.is_view {
            return self.seen(x, out, how.is_strided);
        }
        let copied = copied(how, inputs);
        let sum = |values: &mut dyn Iterator<Item = &Tracked>| {
            values.map(|value| value.bytes).fold(0, u128::saturating_add)
        };
        let is_free = |(x, dies): &(&Tracked, &bool)| **dies && x.buffer.is_some_and(|id| self.is_own(id));
        let freed = match how.frees {
            true => sum(&mut inputs.iter().zip(dies).filter(is_free).map(|(x, _)| x)),
            false => 0,
        };
        let others = out.saturating_mul(u128::from(how.halves)) / 2;
        let later = out.saturating_add(others).saturating_sub(freed);
        self.briefly(match how.frees {
            // Copies are free as well by then.
            true => later.max(copied.saturating_add(out)),
            false => later.saturating_add(copied),
        });
        Tracked { is_strided: how.is_strided, ..self.new_value(out) }
    }

    /// Runs a module or a stack. A parameter takes no memory here.
    fn forward_member(
        &mut self,
        module: &Module,
        node: &Node,
        lengths: &Lengths,
        inputs: &[Tracked],
        out: u128,
    ) -> Vec<Tracked> {
        let x = inputs.first().copied().unwrap_or_default();
        let member = node.op.meaning().member().map(|id| &module.member(id).kind);
        match (member, &node.op) {
            (Some(MemberKind::Module(id)), _) => self.body(*id, lengths, inputs, &[]),
            (Some(MemberKind::Stack(runs)), Op::Scan { each, args, .. }) => {
                vec![self.forward_scan(runs, *each, args, lengths, inputs)]
            }
            (Some(MemberKind::Stack(runs)), Op::Experts { active, .. }) => {
                let rows = node.inputs.first().map_or(0, |id| module.value(*id).ty.rows().eval(lengths));
                vec![self.forward_experts(runs, Routed { rows, active: *active }, lengths, x)]
            }
            // A parameter, which is counted elsewhere.
            (_, _) => vec![Tracked { bytes: out, ..Tracked::default() }],
        }
    }

    /// A value that depends on lengths alone, which a plan keeps.
    fn constant(&mut self, bytes: u128) -> Tracked {
        let value = self.new_value(bytes);
        // The plan is a second holder, so the walk never frees it.
        self.hold(value.buffer);
        value
    }

    /// Replaces the memory that waits for the next kernel: what a kernel has read for the last time.
    pub(super) fn waits(&mut self, bytes: u128) {
        self.live = self.live.saturating_sub(self.waiting).saturating_add(bytes);
        self.waiting = bytes;
    }

    fn forward_layer(&mut self, layer: &Layer, (inputs, dies): (&[Tracked], &[bool]), out: u128) -> Tracked {
        let x = inputs.first().copied().unwrap_or_default();
        let copied = if x.is_strided { x.bytes } else { 0 };
        let y = self.applied(layer, x, copied, out);
        // The input itself was released already if it was copied, and what burn's own ops have made does not wait.
        let waits = |id| self.is_own(id) && self.of_kernels.contains(&id);
        let is_last = dies.first() == Some(&true) && x.buffer.is_some_and(waits);
        let read = if is_last && !x.is_strided { x.bytes } else { 0 };
        self.waits(copied.saturating_add(read));
        y
    }

    /// The result of a layer, for which `copied` bytes are copied first.
    fn applied(&mut self, layer: &Layer, x: Tracked, copied: u128, out: u128) -> Tracked {
        match layer {
            // The kernel reads rows where they are, and writes the result once. Each thread has lists of the
            // pieces of rows that it writes.
            Layer::Linear { .. } => {
                let lists = LISTS.saturating_mul(self.threads).min(out.div_ceil(8).saturating_add(x.bytes));
                self.briefly(out.saturating_add(lists).saturating_add(copied));
                self.new_value(out)
            }
            Layer::Embedding { .. } => self.new_value(out),
            Layer::LayerNorm { .. } | Layer::RmsNorm { .. } => {
                self.briefly(out.saturating_add(copied));
                self.new_value(out)
            }
            Layer::Patches { .. } => {
                self.briefly(out.saturating_mul(2).saturating_add(x.bytes));
                self.new_value(out)
            }
            Layer::Param { .. } => Tracked { bytes: out, ..Tracked::default() },
        }
    }

    /// A norm of a sum, and the sum, which overwrites a term that nothing else needs.
    fn forward_add_norm(&mut self, inputs: &[Tracked], dies: &[bool], out: u128) -> Vec<Tracked> {
        let copied: u128 = inputs.iter().filter(|x| x.is_strided).map(|x| x.bytes).sum();
        let sum = self.in_place(inputs, dies, out);
        self.briefly(out.saturating_add(copied));
        vec![self.new_value(out), sum]
    }

    fn forward_attention(
        &mut self,
        attention: &Attention,
        (inputs, dies): (&[Tracked], &[bool]),
        (out, scores): (u128, u128),
        [queries, keys]: [u128; 2],
        sums: u128,
    ) -> Vec<Tracked> {
        let elements = scores.checked_div(self.element).unwrap_or(scores);
        let (q_k_v, mut others) = inputs.split_at(inputs.len().min(3));
        // Cached keys and values, whose rows are apart because there is room for more positions, are copied
        // twice.
        let copied = |value: &Tracked| match (value.is_strided, value.buffer) {
            (false, _) => 0,
            (true, Some(_)) => value.bytes,
            (true, None) if attention.score == Score::Additive => value.bytes,
            (true, None) => value.bytes.saturating_mul(2),
        };
        // Additive scores read queries and keys in place; a product of matrices copies them.
        let products = match attention.score {
            Score::Dot => q_k_v,
            Score::Additive => q_k_v.get(2..).unwrap_or_default(),
        };
        let mut briefly = products.iter().map(copied).fold(out, u128::saturating_add);
        // Without the kernels, sinks are one more key, for which keys, values and a bias are copied.
        let copies_keys = attention.has_sinks && !self.has_kernels;
        let is_composed = attention.is_composed() || self.shows_attention || copies_keys;
        if !is_composed && queries < FEWEST_QUERIES {
            // In each thread the scores of a query. Keys and values are read where they are; without the
            // kernels they are copied once.
            let row = keys.saturating_mul(self.element).saturating_mul(self.threads);
            let is_copied = |x: &&Tracked| x.is_strided && !self.has_kernels;
            let once = q_k_v.iter().filter(is_copied).map(|x| x.bytes);
            self.briefly(once.fold(out, u128::saturating_add).saturating_add(row));
            return vec![self.new_value(out), Tracked::default()];
        }
        if !is_composed {
            // Two numbers for each query, and in each thread the scores of a tile, and the keys and values of
            // a head once more.
            let tiles = keys.saturating_add(ROW_PADDING).saturating_mul(queries.min(QUERIES_AT_ONCE));
            let of_all =
                [1, 2].iter().filter_map(|i| q_k_v.get(*i)).map(|x| x.bytes).fold(0, u128::saturating_add);
            let heads = elements.checked_div(queries.saturating_mul(keys)).unwrap_or(1).max(1);
            let in_thread =
                tiles.min(SCORES_AT_ONCE).saturating_mul(self.element).saturating_add(of_all.div_ceil(heads));
            let norms = queries.saturating_mul(heads).saturating_mul(2).saturating_mul(self.element);
            let in_threads = in_thread.saturating_mul(self.threads);
            let is_last_use =
                |(x, dies): &(&Tracked, &bool)| **dies && x.buffer.is_some_and(|id| self.is_own(id));
            let (last, others): (Vec<_>, Vec<_>) = q_k_v.iter().zip(dies).partition(is_last_use);
            let briefly = if self.has_kernels {
                // The kernels read inputs where they are. When those that nothing else needs are free again, the result is
                // put in the order of positions.
                let freed = last.iter().fold(0u128, |sum, (x, _)| sum.saturating_add(x.bytes));
                out.saturating_add(in_threads).max(out.saturating_mul(2).saturating_sub(freed))
            } else {
                // A copy takes the place of an input that nothing else needs, one after the other.
                let copies = others.iter().fold(0u128, |sum, (x, _)| sum.saturating_add(copied(x)));
                let largest = last.iter().fold(out, |most, (x, _)| most.max(copied(x)));
                copies.saturating_add(largest).saturating_add(in_threads)
            };
            self.briefly(briefly.saturating_add(norms));
            return vec![self.new_value(out), Tracked::default()];
        }
        if let (true, Some((mask, rest))) = (attention.has_mask, others.split_first()) {
            // One byte for each score, broadcast to all heads.
            briefly = briefly.saturating_add(if mask.buffer.is_some() { elements } else { 0 });
            others = rest;
        }
        if let (true, Some(bias)) = (attention.has_bias, others.first()) {
            let is_broadcast = bias.bytes < scores || bias.is_strided;
            briefly = briefly.saturating_add(if is_broadcast { scores } else { 0 });
        }
        // Scores, what the next operation makes of them, and what is hidden.
        let composed = scores.saturating_mul(3).saturating_add(elements.saturating_mul(2));
        // Before that, the sums from which additive scores are computed.
        let summed = sums.saturating_add(scores.saturating_mul(2));
        self.briefly(briefly.saturating_add(composed.max(summed)));
        let y = self.new_value(out);
        vec![y, Tracked::default()]
    }

    /// Runs the blocks of a stack one after the other, and releases the inputs.
    fn forward_scan(
        &mut self,
        runs: &[Run],
        each: u64,
        args: &[Vec<Vec<usize>>],
        lengths: &Lengths,
        inputs: &[Tracked],
    ) -> Tracked {
        let mut x = inputs.first().copied().unwrap_or_default();
        for (run, extra) in runs.iter().zip(args) {
            x = self.blocks(run, x, |tape, x, at, _| {
                let (Some(id), Some(extra)) = (run.cycle.get(at), extra.get(at)) else { return x };
                tape.repeated(each, x, |tape, x, _| {
                    let others: Vec<Tracked> =
                        extra.iter().map(|i| inputs.get(*i).copied().unwrap_or_default()).collect();
                    // Every block releases its arguments, and the next one needs the same.
                    others.iter().for_each(|value| tape.hold(value.buffer));
                    let arguments: Vec<Tracked> = [x].into_iter().chain(others).collect();
                    tape.body(*id, lengths, &arguments, &[]).first().copied().unwrap_or_default()
                })
            });
        }
        // `body` holds the inputs of a call on its behalf, so they are released here.
        for other in inputs.iter().skip(1) {
            self.release(other.buffer);
        }
        x
    }

    /// Runs the experts one after the other. All memory of one is free before the next begins, so the one
    /// that gets the most rows has the peak.
    fn forward_experts(&mut self, runs: &[Run], routed: Routed, lengths: &Lengths, x: Tracked) -> Tracked {
        let sum = self.new_value(x.bytes);
        let lengths = Lengths { rows: routed.most(stack_len(runs)), ..*lengths };
        // Experts of the same module have the same peak, so one of them is enough.
        let kinds: std::collections::BTreeSet<ModuleId> =
            runs.iter().flat_map(|run| run.cycle.iter().copied()).collect();
        for id in kinds {
            let argument = self.graph.module(id).values.first();
            let bytes = argument.map_or(0, |value| self.bytes(&value.ty, &lengths));
            let picked = self.new_value(bytes);
            let results = self.body(id, &lengths, &[picked], &[]);
            // The sum with an expert's rows added is a new value for a moment.
            self.briefly(x.bytes);
            results.iter().for_each(|y| self.release(y.buffer));
        }
        sum
    }
}

/// The bytes of the inputs that an op copies first.
pub(super) fn copied(how: Forward, inputs: &[Tracked]) -> u128 {
    let is_copied = |(i, x): &(usize, &Tracked)| match how.copied {
        Copied::Nothing => false,
        Copied::OutOfOrder => x.is_strided,
        Copied::These(these) => x.is_strided || these.get(*i) == Some(&true),
    };
    inputs.iter().enumerate().filter(is_copied).map(|(_, x)| x.bytes).fold(0, u128::saturating_add)
}
