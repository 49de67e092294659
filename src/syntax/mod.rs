//! Parses text in one of two notations to a [`tree`] with source places.
//!
//! [`yaml`] and [`dsl`] produce the same trees and refuse the same hostile texts, [`mod@print`] writes trees,
//! and [`fmt`] formats a text without losing a comment. [`expr`] and [`equation`] parse the two small
//! languages inside of scalars, which are the same in both notations. [`merge`] and [`set`] apply one tree
//! over another. Nothing here knows what a transformer is.

pub mod allow;
mod comment;
mod comments;
pub mod dsl;
pub mod edit;
pub mod equation;
pub mod expr;
pub mod fmt;
pub mod merge;
mod mixed;
mod notation;
mod outline;
pub mod print;
mod quotient;
pub mod set;
pub mod snippet;
pub mod text;
pub mod token;
pub mod tree;
pub mod yaml;

pub use notation::Notation;

use crate::diag::Sink;
use crate::source::{SourceId, SourceMap};
use text::Limits;
use tree::Node;

/// Parses a source to a tree. Returns `None` only if a diagnostic says why. A tree may come with
/// diagnostics too; later stages can then still find more errors in it.
pub fn parse(sources: &SourceMap, id: SourceId, notation: Notation, sink: &mut Sink) -> Option<Node> {
    let mut found = Sink::new();
    let tree = match notation {
        Notation::Yaml => yaml::parse(Limits::SPEC, sources, id, &mut found),
        Notation::Dsl => dsl::parse(sources, id, &mut found),
    };
    // A text in the DSL may be valid YAML: one long value.
    let is_read = tree.as_ref().is_some_and(|tree| tree.text().is_none());
    if !is_read && let Some(diagnostic) = mixed::other_notation(sources, id, notation) {
        sink.push(diagnostic);
        return None;
    }
    found.into_sorted().into_iter().for_each(|diagnostic| sink.push(diagnostic));
    tree
}

/// Parses the config of a model, which is JSON and so YAML, too. As [`parse`] otherwise.
pub fn parse_config(sources: &SourceMap, id: SourceId, sink: &mut Sink) -> Option<Node> {
    yaml::parse(Limits::CONFIG, sources, id, sink)
}
