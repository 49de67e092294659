//! The work of one forward pass, summed over modules. The conventions are those of [`crate::ir::work`].

use crate::ir::op::meaning::Site;
use crate::ir::op::{Attention, Callee};
use crate::ir::{Dim, Graph, Module, Node};

pub use crate::ir::work::Work;

/// The work of every module, indexed like [`Graph::modules`].
pub fn of_modules(graph: &Graph) -> Vec<Work> {
    let mut measured: Vec<Work> = Vec::with_capacity(graph.modules.len());
    // Children come before parents, so the work of what a module calls is known.
    for module in &graph.modules {
        let mut sum = Work::default();
        for node in &module.nodes {
            sum.add(&of_node(node, module, &measured));
        }
        measured.push(sum);
    }
    measured
}

/// The work of one op; `measured` has that of the modules it may call.
pub(super) fn of_node(node: &Node, module: &Module, measured: &[Work]) -> Work {
    node.op.meaning().work(&Site { node, module, measured })
}

/// The modules that a node runs, with how often; empty for ops that run none.
pub(super) fn callees(node: &Node, module: &Module) -> Vec<Callee> {
    node.op.meaning().callees(&Site { node, module, measured: &[] })
}

/// Operations of attention for one query and one key of one head.
pub(super) fn per_pair(node: &Node, module: &Module) -> Dim {
    Attention::per_pair(&Site { node, module, measured: &[] })
}
