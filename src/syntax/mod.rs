//! Parses text in one of two notations to a [`tree`] with source places.
//!
//! [`yaml`] and [`dsl`] produce the same trees and refuse the same hostile texts, [`mod@print`] writes trees,
//! and [`fmt`] formats a text without losing a comment. [`expr`] and [`equation`] parse the two small
//! languages inside of scalars, which are the same in both notations. [`merge`] and [`set`] apply one tree
//! over another. Nothing here knows what a transformer is.

mod comment;
mod comments;
pub mod dsl;
pub mod equation;
pub mod expr;
pub mod fmt;
pub mod merge;
mod outline;
pub mod print;
pub mod set;
pub mod text;
pub mod token;
pub mod tree;
pub mod yaml;

use crate::diag::Sink;
use crate::source::{SourceId, SourceMap};
use tree::Node;

/// The two ways to write a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// YAML, in files that end in `.yaml` or `.yml`
    Yaml,
    /// The DSL, in files that end in `.trafo`
    Dsl,
}

impl Notation {
    /// The notation that a file name's extension indicates.
    pub fn from_path(path: &str) -> Option<Self> {
        // Without an extension, as for standard input, the text itself has to be looked at.
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Notation::Yaml),
            "trafo" => Some(Notation::Dsl),
            _ => None,
        }
    }

    /// The extension of its files, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Notation::Yaml => "yaml",
            Notation::Dsl => "trafo",
        }
    }

    /// The notation of a text without a file name: the DSL begins with `model` or `block`.
    pub fn guess(text: &str) -> Self {
        // Editors on Windows may begin a file with a byte order mark.
        let code = text.trim_start_matches('\u{feff}').lines().map(str::trim);
        let first = code.into_iter().find(|l| !l.is_empty() && !l.starts_with('#') && !l.starts_with("//"));
        // `model : x` is a key in YAML.
        let word = |l: &str, w: &str| l.strip_prefix(w).is_some_and(|r| !r.trim_start().starts_with(':'));
        match first {
            Some(line)
                if word(line, "model ")
                    || word(line, "model{")
                    || word(line, "block ")
                    || word(line, "part ") =>
            {
                Notation::Dsl
            }
            Some(_) | None => Notation::Yaml,
        }
    }
}

/// Parses a source to a tree. Returns `None` only if a diagnostic says why. A tree may come with
/// diagnostics too; later stages can then still find more errors in it.
pub fn parse(sources: &SourceMap, id: SourceId, notation: Notation, sink: &mut Sink) -> Option<Node> {
    match notation {
        Notation::Yaml => yaml::parse(sources, id, sink),
        Notation::Dsl => dsl::parse(sources, id, sink),
    }
}
