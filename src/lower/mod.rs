//! From the spec to the graph.
//!
//! Parts lower themselves; here they are put together: embeddings, stacks of blocks, head. A decoded spec
//! has passed every check, so nothing can fail on the author's account, but for one: whether a rule
//! of `init` matches a parameter shows only when all of them are there.

mod block;
mod root;
mod stack;

use crate::diag::Sink;
use crate::ir::infer::Mismatch;
use crate::ir::verify::{Verified, Violation, verify};
use crate::spec::ModelSpec;

/// A fault of trafoc: a spec that passed every check and still made no graph.
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

/// Lowers and verifies a spec. `Ok(None)` after reporting what is wrong with it.
///
/// # Errors
/// A fault of trafoc itself.
pub fn lower(spec: &ModelSpec, sink: &mut Sink) -> Result<Option<Verified>, Bug> {
    let (graph, found) = root::lower(spec)?;
    found.into_iter().for_each(|d| sink.push(d));
    if sink.has_errors() { Ok(None) } else { Ok(Some(verify(graph)?)) }
}
