//! The graph of a model without the losses of its parts: what is run, counted and emitted.
//!
//! A loss is a value that nothing reads. What is computed for losses alone is left out with them; the layers that it
//! applies stay members, so that a model has the same parameters with and without its losses.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Graph, Module, Node, ValueId};

/// The graph without losses; `None` if it has none.
pub fn without_losses(graph: &Graph) -> Option<Graph> {
    let modules: Vec<Cow<'_, Module>> = graph.modules.iter().map(without).collect();
    let has_losses = modules.iter().any(|module| matches!(module, Cow::Owned(_)));
    has_losses.then(|| Graph { modules: modules.into_iter().map(Cow::into_owned).collect(), ..graph.clone() })
}

/// Whether a node computes a loss.
pub fn is_loss(node: &Node) -> bool {
    node.op.meaning().loss_weight().is_some()
}

fn without(module: &Module) -> Cow<'_, Module> {
    if !module.nodes.iter().any(is_loss) {
        return Cow::Borrowed(module);
    }
    // What a loss reads, and what that is computed from.
    let mut of_losses: BTreeSet<ValueId> = BTreeSet::new();
    // What anything else reads. From the end, so that the readers of a value are known before it.
    let mut read: BTreeSet<ValueId> = module.results.iter().copied().collect();
    let mut left = Vec::new();
    for node in module.nodes.iter().rev() {
        let is_for_losses = node.outputs.iter().any(|id| of_losses.contains(id));
        let is_read = node.outputs.iter().any(|id| read.contains(id));
        // Other values that nothing reads were there before, and stay.
        if is_loss(node) || (is_for_losses && !is_read) {
            of_losses.extend(node.inputs.iter().copied());
        } else {
            read.extend(node.inputs.iter().copied());
            left.push(node.clone());
        }
    }
    left.reverse();
    let mut module = module.clone();
    module.nodes = left;
    Cow::Owned(module)
}
