//! Writes trees as text, in either notation.
//!
//! The text parses to an equal tree, whatever the tree contains: if a short form is not possible, a plainer
//! one is used. Maps and lists are written on one line if they fit, unless their author wrote them on
//! several.

mod dsl;
mod yaml;

use super::merge::IsPart;
use super::outline::Outline;
use super::tree::Node;

/// The preferred width of lines.
const WIDTH: usize = 80;
/// The width up to which maps and lists that their author wrote on one line stay on one line.
const AUTHOR_WIDTH: usize = 100;

/// Writes a tree as YAML.
pub fn yaml(node: &Node) -> String {
    yaml::print(&Outline::of(node))
}

/// Writes a tree in the DSL; maps with one key that names a part are written as `part(field: value)`.
pub fn dsl(node: &Node, is_part: IsPart<'_>) -> String {
    dsl::print(&Outline::of(node), is_part)
}

/// A key as the DSL has it, in quotes if it is no word.
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

/// Adds lines of comments, with at most one blank line at a time and none at the top.
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

/// Adds the comments after the end of the whole document.
fn push_below(out: &mut String, root: &Outline, comment: impl Fn(&str) -> String) {
    let lines: Vec<String> = root.tail.iter().flat_map(|t| t.split('\n')).map(str::to_owned).collect();
    push_lead(out, &lines, 0, comment);
}

/// Whether the text ends with a line that opens a map or list, after which no blank line is written.
fn opens(out: &str) -> bool {
    let line = out.trim_end_matches('\n').rsplit('\n').next().unwrap_or("");
    let code = line.split("  #").next().unwrap_or("").trim_end();
    !line.trim_start().starts_with('#') && code.ends_with(['{', '[', '(', ':'])
}
