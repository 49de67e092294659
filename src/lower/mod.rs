//! From the spec to the graph.
//!
//! Parts lower themselves; here they are put together: embeddings, stacks of blocks, head. What a part
//! cannot know alone (does rotation fit this head, does a window fit this direction) is checked first,
//! and reported in the author's words; after that nothing can fail on the author's account.

mod block;
mod root;
mod stack;

use crate::diag::{Diagnostic, Sink};
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
    let (graph, found): (_, Vec<Diagnostic>) = root::lower(spec)?;
    found.into_iter().for_each(|d| sink.push(d));
    match graph {
        Some(graph) if !sink.has_errors() => Ok(Some(verify(graph)?)),
        Some(_) | None => Ok(None),
    }
}
