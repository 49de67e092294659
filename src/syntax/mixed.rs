//! Recognises a text that is written in the other notation than the one it is read in.

use super::notation::Notation;
use crate::diag::{Code, Diagnostic};
use crate::source::{SourceId, SourceMap, Span};

/// The diagnostic for a source that could not be read in this notation because it is written in the other one; `None` if
/// its first line does not show that.
pub fn other_notation(sources: &SourceMap, id: SourceId, notation: Notation) -> Option<Diagnostic> {
    let source = sources.get(id)?;
    let (start, first) = first_line(&source.text)?;
    let other = match notation {
        Notation::Yaml => (Notation::guess(&source.text) == Notation::Dsl).then_some(Notation::Dsl)?,
        Notation::Dsl => begins_yaml(first).then_some(Notation::Yaml)?,
    };
    let name = |notation: Notation| match notation {
        Notation::Yaml => "YAML",
        Notation::Dsl => "the DSL",
    };
    let place = Span::new(id, start, start.saturating_add(first.len()));
    let (written, read) = (name(other), name(notation));
    // Only the name of a file decides without being asked.
    if Notation::from_path(&source.name) != Some(notation) {
        let message = format!("this text is written in {written}, but it is read as {read}");
        return Some(Diagnostic::error(Code::Syntax, place, message));
    }
    let (stem, extension) = source.name.rsplit_once('.')?;
    let message =
        format!("this text is written in {written}, but `.{extension}` is the ending of files in {read}");
    let renamed = format!("{stem}.{}", other.extension());
    let help = format!("rename the file to `{renamed}`; `trafoc convert {renamed}` then writes it in {read}");
    Some(Diagnostic::error(Code::Syntax, place, message).help(help))
}

/// The first line of a text that is neither empty nor a comment, without the spaces around it, and where it begins.
fn first_line(text: &str) -> Option<(usize, &str)> {
    let mut at = 0usize;
    text.split_inclusive('\n').find_map(|line| {
        let trimmed = line.trim_start_matches('\u{feff}').trim();
        let start = at.saturating_add(line.find(trimmed).unwrap_or(0));
        at = at.saturating_add(line.len());
        let is_code = !trimmed.is_empty() && !trimmed.starts_with('#') && !trimmed.starts_with("//");
        is_code.then_some((start, trimmed))
    })
}

/// Whether a line begins a document in YAML: with its mark, or with a key and a colon.
fn begins_yaml(line: &str) -> bool {
    let after = line.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let is_key =
        after.len() < line.len() && after.strip_prefix(':').is_some_and(|rest| !rest.starts_with(':'));
    is_key || line == "---" || line.starts_with("%YAML")
}
