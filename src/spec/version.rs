//! The versions of the languages, `trafo: 1` and `recipe: 1`, and the refusal of all others.
//!
//! A document keeps its meaning for as long as its version is read. There is one version of each language so
//! far. A change that would give an old document another meaning needs a new version: the number here is
//! raised, a tree of the old version is converted to the new one before it is decoded, and `trafoc fmt`
//! writes the new form. A change that leaves the meaning of all old documents as it is, such as a new part
//! or a new key, needs no new version.

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::tree::Node;
use crate::syntax::{Notation, parse};

/// The version of the spec language that this program reads.
pub const SPEC: u64 = 1;

/// The version of the recipe language that this program reads.
pub const RECIPE: u64 = 1;

/// The error for a document whose `version` is not `read`, the version that this program reads; `None` if it
/// is. `key` is the key that gives the version: `trafo` or `recipe`.
pub fn check(key: &str, version: u64, read: u64, place: Span) -> Option<Diagnostic> {
    if version == read {
        return None;
    }
    let program = env!("CARGO_PKG_VERSION");
    let (message, help) = if version > read {
        (
            format!("`{key}: {version}` is written for a later trafoc: {program} reads version {read}"),
            format!("a newer trafoc reads it; if it is meant for this one, write `{key}: {read}`"),
        )
    } else {
        (
            format!("there has been no version {version}: the first one is {read}"),
            format!("write `{key}: {read}`"),
        )
    };
    Some(Diagnostic::error(Code::UnknownVersion, place, message).help(help))
}

/// The error for a text, a spec or a recipe, that is written for a later version. Its form may be another one, so it
/// is not formatted either. `None` also for a text that cannot be parsed.
pub fn later(sources: &SourceMap, id: SourceId, notation: Notation) -> Option<Diagnostic> {
    let tree = parse(sources, id, notation, &mut Sink::new())?;
    [("trafo", SPEC), ("recipe", RECIPE)].into_iter().find_map(|(key, read)| later_tree(&tree, key, read))
}

/// As [`later`], for a tree of one of the two languages. What a later version means by anything else in it is not known
/// here, so nothing else is checked.
pub fn later_tree(tree: &Node, key: &str, read: u64) -> Option<Diagnostic> {
    let value = tree.get(key)?;
    let version: u64 = value.text()?.parse().ok().filter(|version| *version > read)?;
    check(key, version, read, value.span)
}
