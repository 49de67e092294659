//! Keys and values whose heads PyTorch shares among queries itself, so that they are not repeated.

use std::collections::BTreeSet;

use super::attention::is_one_function;
use crate::ir::op::Attention;
use crate::ir::{Module, Node, Op, ValueId};

/// The repeated keys and values of a module that only attention without weights of its own reads.
pub fn repeated(module: &Module) -> BTreeSet<ValueId> {
    let by_times = |id: &ValueId| {
        let node = module.nodes.iter().find(|node| node.outputs.contains(id))?;
        if let Op::RepeatHeads { times } = &node.op { Some(*times) } else { None }
    };
    let mut found = BTreeSet::new();
    for node in &module.nodes {
        let Op::Attention(attention) = &node.op else { continue };
        let [_, k, v, ..] = node.inputs.as_slice() else { continue };
        // PyTorch has one flag for keys and values together.
        let shares = by_times(k).is_some() && by_times(k) == by_times(v);
        // Any other reader would need the repeated heads, which are then not computed.
        // One tensor that is both keys and values is read twice by the same attention.
        let is_read_once = |id: &ValueId| uses(module, *id) == usize::from(k == v) + 1;
        if is_whole(attention, module, node) && shares && is_read_once(k) && is_read_once(v) {
            found.extend([*k, *v]);
        }
    }
    found
}

/// Whether PyTorch's own function computes an attention, whose weights are not needed.
fn is_whole(attention: &Attention, module: &Module, node: &Node) -> bool {
    let wants_weights = node.outputs.iter().skip(1).any(|weights| uses(module, *weights) > 0);
    is_one_function(attention) && !wants_weights
}

fn uses(module: &Module, id: ValueId) -> usize {
    let inputs = module.nodes.iter().flat_map(|node| &node.inputs);
    inputs.chain(&module.results).filter(|used| **used == id).count()
}
