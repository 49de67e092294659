//! From the spec to the graph.
//!
//! Parts lower themselves; this module combines them: embeddings, stacks of blocks, head. A decoded spec
//! has passed every check, so an author's mistake can no longer cause a failure, with one exception:
//! whether a rule of `init` matches a parameter is known only when all parameters exist.

mod block;
mod root;
mod stack;

use crate::diag::Sink;
use crate::ir::infer::Mismatch;
use crate::ir::verify::{Verified, Violation, verify};
use crate::spec::ModelSpec;

/// A bug in trafoc: a spec that passed every check did not give a graph.
#[derive(Clone, Debug)]
pub struct Bug(pub String);

impl std::fmt::Display for Bug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this is a bug in trafoc: {}", self.0)
    }
}

impl From<Mismatch> for Bug {
    fn from(mismatch: Mismatch) -> Self {
        Bug(mismatch.0)
    }
}

impl From<Vec<Violation>> for Bug {
    fn from(violations: Vec<Violation>) -> Self {
        let lines: Vec<String> = violations.iter().map(Violation::to_string).collect();
        Bug(lines.join("; "))
    }
}

/// Lowers and verifies a spec. Returns `Ok(None)` after reporting errors of the spec.
///
/// # Errors
/// A bug in trafoc.
pub fn lower(spec: &ModelSpec, sink: &mut Sink) -> Result<Option<Verified>, Bug> {
    let (graph, found) = root::lower(spec)?;
    found.into_iter().for_each(|d| sink.push(d));
    if sink.has_errors() { Ok(None) } else { Ok(Some(verify(graph)?)) }
}
