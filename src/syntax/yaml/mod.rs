//! Parses YAML to a tree.
//!
//! There are two passes over the text. `survey` goes through the parser's events and reports everything
//! that a spec may not contain (depth, size, duplicate keys, foreign tags, invalid aliases), all in one
//! run. `read` then builds the tree through serde. It keeps the text of every scalar as it was written,
//! so that no YAML schema decides what `no`, `0755` or `1e-5` mean.

mod colon;
mod fault;
mod indent;
pub(super) mod lossless;
mod read;
mod rules;
mod survey;

use crate::diag::Sink;
use crate::source::{SourceId, SourceMap};

use super::text::{self, Limits};
use super::tree::Node;

pub(super) use rules::is_null;
pub use rules::{MAX_ALIASES, MAX_EXPANDED};

/// Parses a YAML source with these limits to a tree.
pub fn parse(limits: Limits, sources: &SourceMap, id: SourceId, sink: &mut Sink) -> Option<Node> {
    if !text::check_within(limits, sources, id, sink) {
        return None;
    }
    let source = sources.get(id)?;
    if !survey::survey(limits, &source.text, id, sink) {
        return None;
    }
    read::read(limits, &source.text, id, sink)
}
