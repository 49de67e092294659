//! Versions of the languages: what `trafo: 1` and `recipe: 1` mean, and what is said to any other.
//!
//! A document keeps its meaning for as long as its version is read. There is one version of each language so far.
//! A change that would give an old document another meaning makes a new version, and then: the number here grows,
//! a document of the old one is brought to the new one as a tree, before it is decoded, and `trafoc fmt` writes the
//! new form. A change that gives no old document another meaning (a new part, a new key) needs no new version.

use crate::diag::{Code, Diagnostic};
use crate::source::Span;

/// The version of the spec language this program reads.
pub const SPEC: u64 = 1;

/// The version of the recipe language this program reads.
pub const RECIPE: u64 = 1;

/// What is wrong with the version a document names, if anything. `key` is the key that names it and `read` the
/// version that is read.
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
