//! Attention as its masks shape it: which pairs of query and key are left, and what decoding must cache.
//!
//! A mask is often built in one module and used by the attention of another, so masks are followed through
//! calls and scans. Every module is visited once for each set of rules with which it is called, not once
//! per block. Padding is data and hides nothing here.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::op::meaning::{Site, State};
use crate::ir::op::{MaskRule, Runs, Sequence, reach, visible_pairs};
use crate::ir::{DType, Dim, Graph, Lengths, MemberKind, Module, ModuleId, Node, Op, Sym, ValueId};

use super::work::{callees, per_pair};

/// All attention in the model over the same pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// The number of queries of one sequence, in the lengths `T` or `S`.
    pub queries: Dim,
    /// The number of keys that each query is scored with, such as `T + P`.
    pub keys: Dim,
    /// The rules that hide keys; empty for full attention.
    pub rules: Vec<MaskRule>,
    /// The operations for one pair, multiplied by heads, layers and the batch.
    pub per_pair: Dim,
}

impl Scores {
    /// The operations for the pairs that the rules leave.
    pub fn visible(&self, lengths: &Lengths) -> u128 {
        let (queries, keys) = (self.queries.eval(lengths), self.keys.eval(lengths));
        // Where queries and keys are equally many, no cached key comes before the first query, whatever
        // `P` is: this is an encoder.
        let from = if self.keys == self.queries { 0 } else { u128::from(lengths.past) };
        visible_pairs(&self.rules, from, queries, keys).saturating_mul(self.per_pair.eval(lengths))
    }
}

/// All values in the model that decoding caches with the same reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The elements that a token of a sequence adds.
    pub per_token: u128,
    /// How many positions back a query can see; `None` if there is no limit.
    pub reach: Option<u64>,
}

/// The attention of a model or a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attended {
    /// The pairs, by their lengths and rules.
    pub scores: Vec<Scores>,
    /// What decoding caches of its own tokens.
    pub caches: Vec<Cached>,
    /// The elements of the states of a sequence, which do not grow with it: those of recurrences, the last positions
    /// that shifts and convolutions read, and sums over a source.
    pub states: u128,
    /// The elements of what is computed of the encoder's output alone and read at every step, such as keys and values of
    /// cross attention, that each token of the source adds.
    pub per_source_token: u128,
    /// The same for a source of a fixed length, which is an image.
    pub per_image: u128,
}

impl Attended {
    fn add(&mut self, other: &Attended, runs: u128) {
        for scores in &other.scores {
            let mut scores = scores.clone();
            // The pairs are those of one head of one layer; what repeats is the work for each of them.
            scores.per_pair = scores.per_pair * Dim::of(runs);
            self.add_scores(scores);
        }
        for cached in &other.caches {
            self.add_cached(Cached { per_token: cached.per_token.saturating_mul(runs), ..*cached });
        }
        for (own, more) in [
            (&mut self.states, other.states),
            (&mut self.per_source_token, other.per_source_token),
            (&mut self.per_image, other.per_image),
        ] {
            *own = own.saturating_add(more.saturating_mul(runs));
        }
    }

    /// The elements of what is computed of one source and kept: of an image, or of this many tokens.
    pub fn of_source(&self, tokens: u64) -> u128 {
        self.per_source_token.saturating_mul(u128::from(tokens)).saturating_add(self.per_image)
    }

    fn add_scores(&mut self, new: Scores) {
        let same = |s: &&mut Scores| (&s.queries, &s.keys, &s.rules) == (&new.queries, &new.keys, &new.rules);
        match self.scores.iter_mut().find(same) {
            Some(old) => old.per_pair = &old.per_pair + &new.per_pair,
            None => self.scores.push(new),
        }
    }

    fn add_cached(&mut self, new: Cached) {
        match self.caches.iter_mut().find(|c| c.reach == new.reach) {
            Some(old) => old.per_token = old.per_token.saturating_add(new.per_token),
            None => self.caches.push(new),
        }
    }
}

/// The attention of the whole model.
pub fn of_graph(graph: &Graph) -> Attended {
    let mut walk = Walk { graph, done: BTreeMap::new() };
    // No rule comes from outside: an input is a mask of padding at most.
    let inputs = vec![Vec::new(); graph.root().args];
    walk.module(graph.root, &inputs).0
}

type Rules = Vec<MaskRule>;
/// What a module contains, and the rules of the masks that it returns.
type Visited = (Attended, Vec<Rules>);

/// The modules visited so far, with the rules of their arguments.
struct Walk<'a> {
    graph: &'a Graph,
    done: BTreeMap<ModuleId, Vec<(Vec<Rules>, Visited)>>,
}

impl Walk<'_> {
    fn module(&mut self, id: ModuleId, args: &[Rules]) -> Visited {
        // A module may be called with different masks, so what it contains depends on its arguments.
        let earlier = self.done.get(&id).into_iter().flatten();
        if let Some((_, found)) = earlier.clone().find(|(known, _)| known == args) {
            return found.clone();
        }
        let module = self.graph.module(id);
        let mut rules = vec![Rules::new(); module.values.len()];
        for (at, given) in rules.iter_mut().zip(args) {
            at.clone_from(given);
        }
        let mut sum = Attended::default();
        let mut reaches = vec![None; module.nodes.len()];
        for node in &module.nodes {
            self.node(node, module, &mut rules, &mut sum, &mut reaches);
        }
        // A cache that no attention of this module reads is counted in full.
        for (node, reach) in module.nodes.iter().zip(reaches) {
            if let (Op::Cache, Some(id)) = (&node.op, node.inputs.first()) {
                let per_token = elements_at_one(module, *id);
                sum.add_cached(Cached { per_token, reach: reach.unwrap_or_default() });
            }
            let state = node.op.meaning().state(&Site { node, module, measured: &[] });
            sum.states = sum.states.saturating_add(state.map_or(0, State::elements));
        }
        add_of_memory(module, takes_image(self.graph), &mut sum);
        let results = module.results.iter().filter_map(|id| rules.get(id.0).cloned()).collect();
        let found = (sum, results);
        self.done.entry(id).or_default().push((args.to_vec(), found.clone()));
        found
    }

    /// Visits one op. `reaches` has an entry for every op: how far back attention reads a cache op, where
    /// `None` means that no attention reads it, and `Some(None)` that nothing limits how far.
    fn node(
        &mut self,
        node: &Node,
        module: &Module,
        rules: &mut [Rules],
        sum: &mut Attended,
        reaches: &mut [Option<Option<u64>>],
    ) {
        let of = |rules: &[Rules], i: usize| {
            node.inputs.get(i).and_then(|id| rules.get(id.0)).cloned().unwrap_or_default()
        };
        let given: Vec<Rules> = (0..node.inputs.len()).map(|i| of(rules, i)).collect();
        let hiding = node.op.meaning().hides(&given);
        if !hiding.is_empty() {
            set(rules, node, 0, hiding);
        }
        if let Op::Attention(attention) = &node.op {
            let hidden = attention.hidden_by(&given);
            for cache in caches_read_by(node, module) {
                if let Some(at) = reaches.get_mut(cache) {
                    // If it is read twice, it keeps what the reader with the longer reach needs.
                    let reach = reach(&hidden);
                    *at = Some(at.map_or(reach, |old| old.zip(reach).map(|(a, b)| a.max(b))));
                }
            }
            self.attention(node, module, hidden, sum);
        } else if let Op::Call { member } = &node.op {
            if let MemberKind::Module(id) = module.member(*member).kind {
                let (found, results) = self.module(id, &given);
                sum.add(&found, 1);
                for (i, result) in results.into_iter().enumerate() {
                    set(rules, node, i, result);
                }
            }
        } else if let Op::Scan { args, .. } = &node.op {
            // `args` and `callees` list the blocks in the same order.
            let extras = args.iter().flatten();
            for (callee, extra) in callees(node, module).into_iter().zip(extras) {
                let args: Vec<Rules> =
                    std::iter::once(of(rules, 0)).chain(extra.iter().map(|i| of(rules, *i))).collect();
                let (found, _) = self.module(callee.module, &args);
                // Blocks that are the same module are one callee with their number, so they are visited once.
                match callee.runs {
                    Runs::Whole(n) => sum.add(&found, n),
                    Runs::Routed { taken, .. } => sum.add(&found, taken),
                }
            }
        }
        // Experts are not visited: they take single rows `[N, D]`, so they contain no attention.
    }

    fn attention(&self, node: &Node, module: &Module, rules: Rules, sum: &mut Attended) {
        let shape = |i: usize| node.inputs.get(i).map(|id| module.value(*id).ty.shape.as_slice());
        let (Some([batch, heads, queries, _]), Some([_, _, keys, _])) = (shape(0), shape(1)) else { return };
        let per_pair = &(batch * heads) * &per_pair(node, module);
        sum.add_scores(Scores { queries: queries.clone(), keys: keys.clone(), rules, per_pair });
    }
}

/// Adds what a module of a decoder computes of its memory alone and reads at every step. These values never change, so the
/// graph has no op that caches them, and a runner keeps them.
fn add_of_memory(module: &Module, takes_image: bool, sum: &mut Attended) {
    let has = |id: ValueId, sym: Sym| has_length(module, id, sym);
    let memory = of_memory(module);
    let mut kept = BTreeSet::new();
    for node in &module.nodes {
        let is_computed_once = node.outputs.iter().all(|id| memory.contains(id));
        // What a module is given it reads by itself.
        if !is_computed_once && callees(node, module).is_empty() {
            let computed = node.inputs.iter().filter(|id| memory.contains(id));
            kept.extend(computed.map(|id| before_repeats(module, *id)).filter(|id| id.0 >= module.args));
        }
    }
    for id in kept.into_iter().filter(|id| module.value(*id).ty.dtype == DType::Float) {
        let of = match (takes_image, has(id, Sym::Source)) {
            (true, _) => &mut sum.per_image,
            (false, true) => &mut sum.per_source_token,
            (false, false) => &mut sum.states,
        };
        *of = of.saturating_add(elements_at_one(module, id));
    }
}

/// Whether a model reads an image, the only input that is no number of a word, a language or a kind. What is given with
/// texts and has no length, such as the language, is kept like a state.
fn takes_image(graph: &Graph) -> bool {
    graph.root().arguments().iter().any(|value| value.ty.dtype == DType::Float)
}

fn has_length(module: &Module, id: ValueId, sym: Sym) -> bool {
    module.value(id).ty.shape.iter().any(|dim| dim.uses(sym))
}

/// The values of a module of a decoder that are its memory or are computed of it alone, which runners compute in the first
/// step only. Empty for a module that is given nothing of the target, such as an encoder, which runs as a whole or not at
/// all.
pub fn of_memory(module: &Module) -> BTreeSet<ValueId> {
    let is_timed = |id: ValueId| has_length(module, id, Sym::Time) || has_length(module, id, Sym::Past);
    let arguments = || (0..module.args).map(ValueId);
    if !arguments().any(is_timed) {
        return BTreeSet::new();
    }
    // What is the same for every source, such as a parameter, is free and no memory.
    let has_batch = |id: &ValueId| has_length(module, *id, Sym::Batch);
    let mut free: BTreeSet<ValueId> = arguments().filter(|id| !has_batch(id)).collect();
    let mut memory: BTreeSet<ValueId> = arguments().filter(|id| has_batch(id) && !is_timed(*id)).collect();
    for node in &module.nodes {
        let known = |id: &ValueId| memory.contains(id) || free.contains(id);
        let runs_in_time =
            node.op.meaning().along().iter().any(|s| matches!(s, Sequence::Whole | Sequence::Cached));
        if node.inputs.iter().all(known) && !runs_in_time {
            let of = if node.inputs.iter().any(|id| memory.contains(id)) { &mut memory } else { &mut free };
            of.extend(node.outputs.iter().copied());
        }
    }
    memory
}

fn set(rules: &mut [Rules], node: &Node, output: usize, new: Rules) {
    if let Some(at) = node.outputs.get(output).and_then(|id| rules.get_mut(id.0)) {
        *at = new;
    }
}

/// The elements of a value for one sequence of one token.
fn elements_at_one(module: &Module, id: ValueId) -> u128 {
    let one = Lengths { batch: 1, time: 1, source: 1, past: 0, rows: 1 };
    module.value(id).ty.shape.iter().fold(1, |n, dim| n.saturating_mul(dim.eval(&one)))
}

/// The index of the node that defines a value, and the node; `None` for arguments.
fn definition(module: &Module, id: ValueId) -> Option<(usize, &Node)> {
    module.nodes.iter().enumerate().find(|(_, node)| node.outputs.contains(&id))
}

/// Keys or values as they are cached: before their heads are repeated for grouped queries.
fn before_repeats(module: &Module, mut id: ValueId) -> ValueId {
    while let Some((_, node)) = definition(module, id) {
        let (Op::RepeatHeads { .. }, Some(input)) = (&node.op, node.inputs.first()) else { break };
        id = *input;
    }
    id
}

/// The indices of the cache ops from which keys or values of this attention come.
fn caches_read_by(attention: &Node, module: &Module) -> Vec<usize> {
    // The inputs are queries, keys and values; masks, biases and sinks come from no cache.
    let mut open: Vec<ValueId> = attention.inputs.iter().skip(1).take(2).copied().collect();
    let mut visited = Vec::new();
    let mut found = Vec::new();
    while let Some(id) = open.pop() {
        let Some((index, node)) = definition(module, id) else { continue };
        // Several paths may lead to one op, and following each of them would take time that grows with their
        // number.
        if visited.contains(&index) {
            continue;
        }
        visited.push(index);
        if let Op::Cache = &node.op {
            found.push(index);
        } else {
            open.extend(&node.inputs);
        }
    }
    found
}
