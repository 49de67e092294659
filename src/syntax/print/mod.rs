//! Writes trees as text, in either notation.
//!
//! The text parses to an equal tree, whatever the tree contains: if a short form is not possible, a plainer
//! one is used. Maps and lists are written on one line if they fit, unless their author wrote them on
//! several.

mod dsl;
mod lines;
mod yaml;

use super::merge::IsPart;
use super::outline::Outline;
use super::tree::Node;

/// Writes a tree as YAML.
pub fn yaml(node: &Node) -> String {
    yaml::print(&Outline::of(node))
}

/// Writes a tree in the DSL; maps with one key that names a part are written as `part(field: value)`.
pub fn dsl(node: &Node, is_part: IsPart<'_>) -> String {
    dsl::print(&Outline::of(node), is_part)
}

/// A text in quotes as YAML.
pub fn yaml_quoted(text: &str) -> String {
    yaml::quoted(text)
}

/// A key as the DSL writes it, in quotes unless it is a word.
pub fn dsl_key(key: &str) -> String {
    dsl::key_text(key)
}

/// Writes an outline as YAML.
pub(super) fn yaml_outline(outline: &Outline) -> String {
    yaml::print(outline)
}

/// Writes an outline in the DSL.
pub(super) fn dsl_outline(outline: &Outline, is_part: IsPart<'_>) -> String {
    dsl::print(outline, is_part)
}
