//! A fault of trafoc itself.

use crate::ir::infer::Mismatch;
use crate::ir::verify::Violation;

/// A bug in trafoc: a spec that passed every check did not give a graph.
#[derive(Clone, Debug)]
pub struct Bug(pub String);

impl std::fmt::Display for Bug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this is a bug in trafoc: {}", self.0)
    }
}

impl std::error::Error for Bug {}

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
