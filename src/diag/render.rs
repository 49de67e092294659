//! Diagnostics → text for readers ([`render`]), one line each for editors ([`short`]), data for programs
//! ([`data`]).
//!
//! Only this file determines what a diagnostic looks like. Control characters in the author's text are made
//! visible, so that no text can control the terminal that shows it.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Diagnostic, Label, Severity};
use crate::source::{Source, SourceId, SourceMap, steers};

/// The width used when the terminal's width is not known.
pub const DEFAULT_WIDTH: usize = 110;

/// How many bytes of a label, and how many after the last one, are given to the renderer: more than any
/// terminal shows.
const TAIL: usize = 2_000;

/// All diagnostics in the style of rustc, separated by blank lines.
pub fn render(diagnostics: &[Diagnostic], sources: &SourceMap, color: bool, width: usize) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    // Some terminals report a width of 0.
    let renderer = renderer.term_width(width.max(40));
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&renderer.render(&[group(diagnostic, sources)]));
        out.push('\n');
    }
    out
}

/// One line for editors: `file:line:column: error[code]: message`.
pub fn short(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let place = sources.place(diagnostic.span());
    let severity = severity(diagnostic.severity);
    format!(
        "{}: {severity}[{}]: {}",
        visible_name(&place),
        diagnostic.code,
        visible_name(&diagnostic.message)
    )
}

/// One line with all that a diagnostic says: as [`short`], then what is said at its places, then its help.
pub fn whole_line(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let mut line = short(diagnostic, sources);
    for (i, label) in diagnostic.labels.iter().enumerate().filter(|(_, label)| !label.text.is_empty()) {
        let place = if i == 0 { String::new() } else { sources.place(label.span) + ": " };
        line += &format!("; note: {}{}", visible_name(&place), visible_name(&label.text));
    }
    for help in &diagnostic.help {
        line += &format!("; help: {}", visible_name(help));
    }
    line
}

/// A diagnostic as data, for `--format json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Data {
    /// The code's stable name.
    pub code: String,
    /// How severe it is.
    pub severity: Severity,
    /// What is wrong: one sentence in lower case without a full stop.
    pub message: String,
    /// The places, the primary one first.
    pub labels: Vec<LabelData>,
    /// How to fix it, one suggestion each.
    pub help: Vec<String>,
    /// The first suggestion as changes to the text of the primary place, if a program can make them. Whether the result
    /// is better has not been tried, as `check --fix` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<FixData>,
}

/// Changes to a source that carry out a suggestion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FixData {
    /// Whether nothing that the author wrote is lost.
    pub safe: bool,
    /// The changes, which do not overlap; all of them belong together.
    pub edits: Vec<EditData>,
}

/// A piece of a source that another text replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EditData {
    /// The offset of the first byte that is replaced, counted from 0.
    pub start: usize,
    /// One past the last byte; equal to `start` where a text is inserted.
    pub end: usize,
    /// What is there instead.
    pub text: String,
}

/// A place of a diagnostic as data. Lines and columns are counted from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabelData {
    /// The name of the source.
    pub file: String,
    /// The offset of the first byte in the source, counted from 0.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// The line in which the place begins.
    pub line: usize,
    /// The column at which it begins.
    pub column: usize,
    /// The line in which it ends.
    pub end_line: usize,
    /// One past the column at which it ends.
    pub end_column: usize,
    /// The explanation at this place; empty if the message says everything.
    pub text: String,
    /// Whether this is the primary place.
    pub primary: bool,
}

/// A diagnostic as data, its places with lines and columns, without changes to the text.
pub fn data(diagnostic: &Diagnostic, sources: &SourceMap) -> Data {
    let place = |(i, label): (usize, &Label)| {
        // Whatever made the span, its readers get one within the text and between characters.
        let span = sources.inside(label.span);
        let source = sources.get(span.source);
        let at = |offset: u32| source.map_or((0, 0), |s| s.line_column(offset as usize));
        let ((line, column), (end_line, end_column)) = (at(span.start), at(span.end));
        LabelData {
            file: source.map_or(String::new(), |s| s.name.clone()),
            start: span.start,
            end: span.end,
            line,
            column,
            end_line,
            end_column,
            text: label.text.clone(),
            primary: i == 0,
        }
    };
    Data {
        code: diagnostic.code.slug().to_owned(),
        severity: diagnostic.severity,
        message: diagnostic.message.clone(),
        labels: diagnostic.labels.iter().enumerate().map(place).collect(),
        help: diagnostic.help.clone(),
        fix: None,
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn group<'a>(diagnostic: &'a Diagnostic, sources: &'a SourceMap) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(visible(&diagnostic.message)).id(diagnostic.code.slug());
    let mut group = Group::with_title(title);
    let mut shown: Vec<SourceId> = Vec::new();
    for label in &diagnostic.labels {
        let id = label.span.source;
        // All labels of one source are in one snippet, at the place of the first of them.
        let Some(source) = sources.get(id).filter(|_| !shown.contains(&id)) else { continue };
        shown.push(id);
        let labels: Vec<&Label> = diagnostic.labels.iter().filter(|l| l.span.source == id).collect();
        // In an empty text there is no line to show.
        group = if source.text.is_empty() {
            group.element(Origin::path(visible_name(&source.name)))
        } else {
            group.element(snippet(source, &labels, diagnostic.labels.first()))
        };
    }
    let help = diagnostic.help.iter().map(|text| Level::HELP.message(visible(text)));
    group.elements(help)
}

/// The lines of one source that contain labels.
fn snippet<'a>(
    source: &'a Source,
    labels: &[&'a Label],
    primary: Option<&'a Label>,
) -> Snippet<'a, Annotation<'a>> {
    let text = source.text.as_str();
    // The renderer counts and measures every line it is given, so it gets only those from the first label
    // to the last.
    let start = labels.iter().map(|l| l.span.start as usize).min().unwrap_or(0).min(text.len());
    let ends = labels.iter().map(|l| l.span.end.min(l.span.start.saturating_add(TAIL as u32)) as usize);
    let end = text.ceil_char_boundary(ends.max().unwrap_or(0).clamp(start, text.len()));
    let begin = text.get(..start).and_then(|t| t.rfind('\n')).map_or(0, |i| i.saturating_add(1));
    let finish = text.get(end..).and_then(|t| t.find('\n')).map_or(text.len(), |i| end.saturating_add(i));
    // For the same reason, most of a long last line is left out.
    let finish = (end.saturating_add(TAIL)..finish).find(|i| text.is_char_boundary(*i)).unwrap_or(finish);
    let shown = text.get(begin..finish).unwrap_or("");
    let line = source.line_column(begin).0;
    let annotations = labels.iter().map(|label| {
        let kind = match primary {
            // By identity, because two labels may be equal.
            Some(first) if std::ptr::eq(first, *label) => AnnotationKind::Primary,
            Some(_) | None => AnnotationKind::Context,
        };
        let range = within(&label.span.range(), text, begin, finish);
        let text = Some(visible(&label.text)).filter(|t| !t.is_empty());
        kind.span(range).label(text)
    });
    Snippet::source(same_length(shown))
        .line_start(line)
        .path(visible_name(&source.name))
        .annotations(annotations)
}

/// A byte range relative to `begin`, on character boundaries of `text[begin..finish]`. A range over several
/// lines is cut to its first line, which is enough to recognise it.
fn within(range: &Range<usize>, text: &str, begin: usize, finish: usize) -> Range<usize> {
    let start = text.floor_char_boundary(range.start.clamp(begin, finish));
    let end = text.ceil_char_boundary(range.end.clamp(start, finish));
    let line = text.get(start..end).and_then(|t| t.find('\n')).map_or(end, |n| start.saturating_add(n));
    start.saturating_sub(begin)..line.saturating_sub(begin)
}

/// A text from a file or a user, made safe for a terminal: characters that would control the terminal are
/// replaced by their numbers, `\u{1b}`. Line ends and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    // As numbers and not removed, so that a reader sees why two words that look alike are different.
    let show = |c: char| if steers(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(show).collect())
}

/// The signs of messages, tables and progress, each with what stands for it in ASCII. One character stands for one
/// where columns are aligned by it.
const SIGNS: &[(char, &str)] = &[
    ('─', "-"),
    ('━', "-"),
    ('│', "|"),
    ('┌', "+"),
    ('┐', "+"),
    ('└', "+"),
    ('┘', "+"),
    ('├', "+"),
    ('┤', "+"),
    ('┬', "+"),
    ('┴', "+"),
    ('┼', "+"),
    ('…', "..."),
    ('×', "x"),
    ('·', "*"),
    ('−', "-"),
    ('–', "-"),
    ('±', "+-"),
    ('→', "->"),
    ('↔', "<->"),
    ('≤', "<="),
    ('≥', ">="),
    ('≈', "~"),
    ('∞', "inf"),
    ('²', "^2"),
    ('³', "^3"),
    ('√', "sqrt"),
    ('⊕', "+"),
    ('▁', "_"),
    ('▂', "_"),
    ('▃', "-"),
    ('▄', "-"),
    ('▅', "="),
    ('▆', "="),
    ('▇', "#"),
    ('█', "#"),
];

/// A text for a terminal that shows no UTF-8: our own signs in ASCII, and everything else, such as an author's
/// names, as it is.
pub fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match SIGNS.iter().find(|(sign, _)| *sign == c) {
            Some((_, plain)) => out.push_str(plain),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The name of a file on a line of a message, in which it must not begin another line.
pub fn visible_name(name: &str) -> Cow<'_, str> {
    if name.contains(['\n', '\t']) {
        Cow::Owned(visible(&name.replace('\n', "\\n").replace('\t', "\\t")).into_owned())
    } else {
        visible(name)
    }
}

/// As [`visible`] for lines in which labels are placed by bytes: each such character is replaced by one of
/// the same length in UTF-8.
fn same_length(text: &str) -> Cow<'_, str> {
    // A carriage return before a line feed is only the end of a line in Windows.
    if !text.replace("\r\n", "\n").chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let ends_line = c == '\r' && characters.peek() == Some(&'\n');
        match c.len_utf8() {
            _ if ends_line || !steers(c) => out.push(c),
            // Alone it would move a terminal's cursor back to the start of the line.
            1 if c == '\r' => out.push('?'),
            // The renderer shows a symbol for each control character of ASCII.
            1 => out.push(c),
            2 => out.push('\u{bf}'),
            _ => out.push('\u{fffd}'),
        }
    }
    Cow::Owned(out)
}
