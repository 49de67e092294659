//! YAML → tree.
//!
//! Two passes over the text. [`survey`] walks the parser's events and reports everything a spec may not
//! contain: depth, size, doubled keys, foreign tags, wrong aliases, all in one run. [`read`] then
//! builds the tree through serde. It keeps the text of every scalar as it was written, so that no schema of YAML's decides
//! what `no`, `0755` or `1e-5` mean.

mod fault;
pub(super) mod lossless;
mod read;
mod survey;

use crate::diag::Sink;
use crate::source::{SourceId, SourceMap};

use super::text;
use super::tree::Node;

/// A text may use this many aliases.
pub const MAX_ALIASES: usize = 1_000;
/// A tree may hold this many nodes once every alias is replaced by what it stands for.
pub const MAX_EXPANDED: usize = 50_000;

/// Reads a YAML source as a tree.
pub fn parse(sources: &SourceMap, id: SourceId, sink: &mut Sink) -> Option<Node> {
    if !text::check(sources, id, sink) {
        return None;
    }
    let source = sources.get(id)?;
    if !survey::survey(&source.text, id, sink) {
        return None;
    }
    read::read(&source.text, id, sink)
}
