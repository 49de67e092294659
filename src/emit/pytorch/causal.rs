//! Which masks also hide the future, so that it is hidden once in a forward pass and not by every attention.
//!
//! Attention in the graph is causal on its own, next to its mask. A mask that only causal attention reads may
//! hide the future itself: where a stack makes it of the padding, or a rule makes it of positions.

use std::collections::{BTreeMap, BTreeSet};

use crate::emit::program::needs::{Need, origin};
use crate::ir::{Graph, MemberKind, Module, ModuleId, Node, Op, ValueId};

/// A value, with the module in which it is computed.
type Place = (ModuleId, ValueId);

/// The masks of a graph that hide the future wherever they hide anything.
pub fn masks(graph: &Graph) -> BTreeSet<Place> {
    let others = others(graph);
    let mut found: BTreeSet<Place> = BTreeSet::new();
    // For each parameter, whether all that is passed for it hides the future.
    let mut passed: BTreeMap<Place, bool> = BTreeMap::new();
    // From callers to what they call (modules come before those that call them), so all that is passed to a
    // module is known when it is reached.
    for (index, module) in graph.modules.iter().enumerate().rev() {
        let id = ModuleId(index);
        let parameters = (0..module.args).map(|at| (id, ValueId(at)));
        found.extend(parameters.filter(|place| passed.get(place) == Some(&true)));
        for node in &module.nodes {
            // All of them and not one, since any of them may be absent.
            let of_hiding = || node.inputs.iter().all(|input| found.contains(&(id, *input)));
            let hides = matches!(node.op, Op::Mask { .. })
                // The functions of the root have other parameters than the root.
                || node.op == Op::PaddingMask && id != graph.root && has_length(module)
                || node.op == Op::EitherMask && of_hiding();
            let outputs = node.outputs.iter().map(|output| (id, *output));
            found.extend(outputs.filter(|place| hides && !others.contains(place)));
            for (input, parameter) in arguments(module, node) {
                *passed.entry(parameter).or_insert(true) &= found.contains(&(id, input));
            }
        }
    }
    found
}

/// Values that something else reads than causal attention, as its mask.
fn others(graph: &Graph) -> BTreeSet<Place> {
    let mut others: BTreeSet<Place> = BTreeSet::new();
    for (index, module) in graph.modules.iter().enumerate() {
        let id = ModuleId(index);
        others.extend(module.results.iter().map(|result| (id, *result)));
        // Backwards, because who reads a joined mask decides about the masks that were joined.
        for node in module.nodes.iter().rev() {
            // What is passed for several parameters is a mask only if it is one for all of them.
            let passed: BTreeMap<ValueId, bool> =
                arguments(module, node).into_iter().fold(BTreeMap::new(), |mut all, (input, parameter)| {
                    *all.entry(input).or_insert(true) &= !others.contains(&parameter);
                    all
                });
            for (at, input) in node.inputs.iter().enumerate() {
                let is_of_causal = matches!(&node.op,
                    Op::Attention(attention) if attention.causal && attention.mask() == Some(at));
                let is_joined = node.op == Op::EitherMask;
                let is_mask = is_of_causal
                    || is_joined && node.outputs.iter().all(|output| !others.contains(&(id, *output)))
                    || passed.get(input) == Some(&true);
                others.extend((!is_mask).then_some((id, *input)));
            }
        }
    }
    others
}

/// Whether a module knows how many queries there are, without which it cannot hide the future itself.
fn has_length(module: &Module) -> bool {
    let parameters: Vec<ValueId> = (0..module.args).map(ValueId).collect();
    origin(Need::Time, module, &parameters).is_some()
}

/// What a node passes to which parameters of the modules it calls.
fn arguments(module: &Module, node: &Node) -> Vec<(ValueId, Place)> {
    let (Op::Call { member } | Op::Scan { member, .. }) = &node.op else { return Vec::new() };
    match (&node.op, module.members.get(member.0).map(|member| &member.kind)) {
        (Op::Call { .. }, Some(MemberKind::Module(callee))) => {
            let inputs = node.inputs.iter().copied().enumerate();
            inputs.map(|(at, input)| (input, (*callee, ValueId(at)))).collect()
        }
        (Op::Scan { args, .. }, Some(MemberKind::Stack(runs))) => {
            let calls = runs.iter().zip(args).flat_map(|(run, args)| run.cycle.iter().zip(args));
            let of_call = |(callee, args): (&ModuleId, &Vec<usize>)| {
                let inputs = args.iter().map(|at| node.inputs.get(*at).copied());
                let callee = *callee;
                // The first argument of a block is what is folded.
                inputs
                    .enumerate()
                    .filter_map(move |(at, input)| Some((input?, (callee, ValueId(at + 1)))))
                    .collect::<Vec<_>>()
            };
            calls.flat_map(of_call).collect()
        }
        (_, _) => Vec::new(),
    }
}
