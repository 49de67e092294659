//! Tree → text, in either notation.
//!
//! What is printed parses to an equal tree, whatever the tree holds: where a short form does not fit, a
//! plainer one does. Maps and lists stand on one line where they fit and their author did not spread them.

mod dsl;
mod yaml;

use super::merge::IsPart;
use super::outline::Outline;
use super::tree::Node;

/// Lines are kept this short where they can be.
const WIDTH: usize = 80;
/// What its author wrote on one line stays there up to this width.
const AUTHOR_WIDTH: usize = 100;

/// A tree as YAML.
pub fn yaml(node: &Node) -> String {
    yaml::print(&Outline::of(node))
}

/// A tree as DSL; maps with one key that names a part are written `part(field: value)`.
pub fn dsl(node: &Node, is_part: IsPart<'_>) -> String {
    dsl::print(&Outline::of(node), is_part)
}

/// An outline as YAML.
pub(super) fn yaml_outline(outline: &Outline) -> String {
    yaml::print(outline)
}

/// An outline as DSL.
pub(super) fn dsl_outline(outline: &Outline, is_part: IsPart<'_>) -> String {
    dsl::print(outline, is_part)
}

/// Adds lines of comments and at most one empty line at a time, none at the top.
fn push_lead(out: &mut String, lines: &[String], indent: usize, comment: impl Fn(&str) -> String) {
    for line in lines {
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(&comment(line));
            out.push('\n');
        } else if !out.is_empty() && !out.ends_with("\n\n") && !opens(out) {
            out.push('\n');
        }
    }
}

/// Adds the lines that stand below the whole text.
fn push_below(out: &mut String, root: &Outline, comment: impl Fn(&str) -> String) {
    let lines: Vec<String> = root.tail.iter().flat_map(|t| t.split('\n')).map(str::to_owned).collect();
    push_lead(out, &lines, 0, comment);
}

/// Whether the text ends with a line that opens a map or list, below which no line is left empty.
fn opens(out: &str) -> bool {
    let line = out.trim_end_matches('\n').rsplit('\n').next().unwrap_or("");
    let code = line.split("  #").next().unwrap_or("").trim_end();
    !line.trim_start().starts_with('#') && code.ends_with(['{', '[', '(', ':'])
}
