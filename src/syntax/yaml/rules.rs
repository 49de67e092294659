//! How much aliases may repeat, so that a short text does not become a huge tree, and what means null.

use crate::syntax::text::Limits;

/// The most aliases in a text.
pub const MAX_ALIASES: usize = 1_000;
/// The most nodes in a tree after every alias is expanded.
pub const MAX_EXPANDED: usize = 50_000;

/// The most nodes of a text with these limits after every alias is expanded. One without aliases has as many as it
/// contains.
pub fn most_expanded(limits: Limits) -> usize {
    MAX_EXPANDED.max(limits.nodes)
}

/// Whether a plain scalar means null: exactly the spellings of YAML 1.2's core schema. Any other, such as
/// `nUll`, is a text.
pub fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}
