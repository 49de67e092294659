//! Widths of lines, and lines of comments, in both notations.

use crate::syntax::outline::Outline;

/// The preferred width of lines, in characters.
pub const WIDTH: usize = 80;
/// The width up to which maps and lists that their author wrote on one line stay on one line.
pub const AUTHOR_WIDTH: usize = 100;

/// Adds lines of comments, with at most one blank line at a time and none at the top.
pub fn push_lead(out: &mut String, lines: &[String], indent: usize, comment: impl Fn(&str) -> String) {
    for line in lines {
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(&comment(line));
            out.push('\n');
        } else if !out.is_empty() && !out.ends_with("\n\n") && !opens(out) {
            // Formatting twice must give the same text, so blank lines may not add up.
            out.push('\n');
        }
    }
}

/// Adds the comments after the end of the whole document.
pub fn push_below(out: &mut String, root: &Outline, comment: impl Fn(&str) -> String) {
    let lines: Vec<String> = root.tail.iter().flat_map(|t| t.split('\n')).map(str::to_owned).collect();
    push_lead(out, &lines, 0, comment);
}

/// Whether the text ends with a line that opens a map or list, after which no blank line is written.
fn opens(out: &str) -> bool {
    let line = out.trim_end_matches('\n').rsplit('\n').next().unwrap_or("");
    // The printers write two blanks before a comment at the end of a line.
    let code = line.split("  #").next().unwrap_or("").trim_end();
    !line.trim_start().starts_with('#') && code.ends_with(['{', '[', '(', ':'])
}
