//! Comments that allow a warning: `# trafoc: allow(beyond-end) the reason`.
//!
//! Such a comment after a value is about its line; on a line of its own it is about the entry that follows, with everything
//! below it. Errors cannot be allowed.

use std::ops::Range;

use super::comment::Comment;
use super::notation::Notation;
use super::{comments, parse};
use crate::diag::{Diagnostic, Severity, Sink};
use crate::source::{Source, SourceId, SourceMap, Span};

/// A code that a comment allows.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// The code as written; empty if the comment names none in the right form.
    pub code: String,
    /// The place of the code in the comment.
    pub place: Span,
    /// The bytes of the source in which warnings of the code are allowed.
    about: Range<usize>,
}

impl Allowance {
    /// Whether this allows a diagnostic.
    pub fn allows(&self, diagnostic: &Diagnostic) -> bool {
        let place = diagnostic.span();
        diagnostic.severity == Severity::Warning
            && diagnostic.code.slug() == self.code
            && place.source == self.place.source
            && self.about.contains(&place.range().start)
    }
}

/// What these comments begin with, after the mark of a comment.
pub const WORD: &str = "trafoc:";

/// All that is allowed in some sources.
pub fn allowances(sources: &SourceMap) -> Vec<Allowance> {
    // Only such a text is read for its comments.
    let has_word = |(_, source): &(SourceId, &Source)| source.text.contains(WORD);
    sources
        .iter()
        .filter(has_word)
        .flat_map(|(id, source)| of(sources, id, &source.text, &source.name))
        .collect()
}

fn of(sources: &SourceMap, id: SourceId, text: &str, name: &str) -> Vec<Allowance> {
    let notation = Notation::from_path(name).unwrap_or_else(|| Notation::guess(text));
    let mut sink = Sink::new();
    let Some(tree) = parse(sources, id, notation, &mut sink).filter(|_| !sink.has_errors()) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for Comment { text: comment, start } in comments::all(text, notation, &tree) {
        let said = comment.trim_start_matches(['#', '/']).trim_start();
        let Some(rest) = said.strip_prefix(WORD) else { continue };
        let listed = rest.trim_start().strip_prefix("allow(").unwrap_or("");
        let Some((codes, _)) = listed.split_once(')').filter(|(codes, _)| !codes.trim().is_empty()) else {
            // No code, so that it is said how one is allowed.
            let place = Span::new(id, start, start.saturating_add(comment.trim_end().len()));
            all.push(Allowance { code: String::new(), place, about: start..start });
            continue;
        };
        let mut at = start.saturating_add(comment.len().saturating_sub(listed.len()));
        for code in codes.split(',') {
            let blanks = code.len().saturating_sub(code.trim_start().len());
            let begin = at.saturating_add(blanks);
            let place = Span::new(id, begin, begin.saturating_add(code.trim().len()));
            all.push(Allowance { code: code.trim().to_owned(), place, about: about(text, start) });
            at = at.saturating_add(code.len()).saturating_add(1);
        }
    }
    all
}

/// What a comment that begins at `start` is about.
fn about(text: &str, start: usize) -> Range<usize> {
    let before = text.get(..start).unwrap_or("");
    let line_start = before.rfind('\n').map_or(0, |end| end.saturating_add(1));
    let lines = |from: usize| {
        let rest = text.get(from..).unwrap_or("");
        rest.split_inclusive('\n').scan(from, |at, line| {
            let begin = *at;
            *at = begin.saturating_add(line.len());
            Some((begin, line))
        })
    };
    let indent = |line: &str| line.len().saturating_sub(line.trim_start().len());
    let is_empty = |line: &str| {
        let line = line.trim_start_matches('\u{feff}');
        // The mark of the beginning of a document comes before its first entry.
        line.trim().is_empty() || line.trim_start().starts_with(['#', '/']) || line.trim_end() == "---"
    };
    // After a value.
    // A mark of the byte order at the beginning of a text is no value.
    let is_blank = |text: &str| text.trim_start_matches('\u{feff}').trim().is_empty();
    if text.get(line_start..start).is_some_and(|text| !is_blank(text)) {
        let end = lines(line_start).next().map_or(start, |(at, line)| at.saturating_add(line.len()));
        return line_start..end;
    }
    let mut following = lines(line_start).filter(|(_, line)| !is_empty(line));
    let Some((from, first)) = following.next() else { return start..start };
    let after = following.find(|(_, line)| indent(line) <= indent(first)).map(|(at, _)| at);
    from..after.unwrap_or(text.len())
}
