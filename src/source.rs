//! Source texts, and places in them.
//!
//! Every input (a spec file, a `--set` argument, the built-in prelude) is a [`Source`] in one
//! [`SourceMap`]; a [`Span`] is a byte range in one of them. Nothing here reads a file.

use std::fmt;

/// The index of a source in its [`SourceMap`]. It means nothing in another map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SourceId(pub u32);

/// A byte range in one source. `start <= end`, both on character boundaries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The source that contains the range.
    pub source: SourceId,
    /// The offset of the first byte in the text.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end` of `source`, in bytes; an end before the start counts as the start.
    pub fn new(source: SourceId, start: usize, end: usize) -> Self {
        // Offsets of 32 bits keep a span small. Texts are bounded far below 4 GiB before they get here.
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { source, start: clamp(start), end: clamp(end.max(start)) }
    }

    /// The range of `text`, which is the text of `source`, that lies nearest to `start..end`: inside of it
    /// and between characters. For places that come from elsewhere, such as a parser's byte counts.
    pub fn within(source: SourceId, text: &str, start: usize, end: usize) -> Self {
        let start = text.floor_char_boundary(start);
        let end = text.ceil_char_boundary(end.max(start));
        Self::new(source, start, end)
    }

    /// The smallest range that covers both. Ranges of different sources do not join: `self` stays.
    pub fn to(self, other: Span) -> Self {
        if self.source != other.source {
            return self;
        }
        Self { source: self.source, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether all of another place is in this one.
    pub fn contains(self, other: Span) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }

    /// The range as offsets in the text, with which the text can be sliced.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}..{}", self.source.0, self.start, self.end)
    }
}

/// A text with the name that diagnostics show for it.
#[derive(Clone, Debug)]
pub struct Source {
    /// What diagnostics print: a path, `<stdin>`, `--set`, `<prelude>`.
    pub name: String,
    /// The whole text, in which spans count bytes.
    pub text: String,
    /// Where its lines begin, so that the line of a place is found without reading the text again.
    lines: Vec<usize>,
    /// How many characters begin before every multiple of [`STEP`] bytes, so that a column is found without
    /// counting all characters of a long line.
    characters: Vec<usize>,
}

/// Bytes of a text for each entry of [`Source::characters`].
const STEP: usize = 512;

/// The number of characters that begin in some bytes of a text.
fn beginning(bytes: &[u8]) -> usize {
    // In UTF-8 the further bytes of a character are 10xxxxxx.
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

impl Source {
    /// The line and column of a byte offset, both counted from 1; columns count characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        // An offset from a parser may be inside of a character or beyond the end.
        let end = self.text.floor_char_boundary(offset);
        let line = self.line_at(end);
        let start = line.checked_sub(1).and_then(|i| self.lines.get(i)).copied().unwrap_or(0);
        let before = self.characters_before(end).saturating_sub(self.characters_before(start));
        (line, before.saturating_add(1))
    }

    /// The number of characters before an offset that is between two of them.
    fn characters_before(&self, at: usize) -> usize {
        let step = at / STEP;
        let rest = self.text.as_bytes().get(step.saturating_mul(STEP)..at).unwrap_or_default();
        self.characters.get(step).copied().unwrap_or(0).saturating_add(beginning(rest))
    }

    /// The line of a byte offset, counted from 1.
    pub fn line_at(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset.min(self.text.len()))
    }

    /// The text of a line, which is counted from 1, without its end.
    pub fn line(&self, number: usize) -> Option<&str> {
        let start = *self.lines.get(number.checked_sub(1)?)?;
        // The last line ends with the text.
        let end = self.lines.get(number).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..end)?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        // Files from Windows end their lines with both.
        Some(line.strip_suffix('\r').unwrap_or(line))
    }
}

/// All texts of one compilation: the spec, what it extends, settings of the command line, the prelude.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    sources: Vec<Source>,
}

impl SourceMap {
    /// A map to which no source has been added yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text and returns its id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        let id = SourceId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
        let text = text.into();
        let ends = text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
        let lines = std::iter::once(0).chain(ends).collect();
        let counts = text.as_bytes().chunks(STEP).map(beginning);
        let characters = std::iter::once(0).chain(counts).scan(0usize, |sum, count| {
            *sum = sum.saturating_add(count);
            Some(*sum)
        });
        let characters = characters.collect();
        self.sources.push(Source { name: name.into(), text, lines, characters });
        id
    }

    /// The source with this id, which must come from [`SourceMap::add`] of the same map.
    pub fn get(&self, id: SourceId) -> Option<&Source> {
        self.sources.get(id.0 as usize)
    }

    /// The text at a span, empty if the span does not belong to this map.
    pub fn text(&self, span: Span) -> &str {
        self.get(span.source).and_then(|s| s.text.get(span.range())).unwrap_or("")
    }

    /// The word with hyphens of which a piece begins where a span does, and its place: all of `layer-norm` for the
    /// place of `layer` or of `norm(x)`. `None` if the word has no hyphen.
    pub fn hyphenated(&self, piece: Span) -> Option<(&str, Span)> {
        let text = &self.get(piece.source)?.text;
        let (before, after) = text.split_at_checked(piece.start as usize)?;
        let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let start = before.trim_end_matches(is_inside).len();
        let rest = after.trim_start_matches(is_inside).len();
        let end = text.len().saturating_sub(rest);
        let word = text.get(start..end)?;
        let is_whole = word.contains('-') && word.split('-').all(|piece| !piece.is_empty());
        is_whole.then(|| (word, Span::new(piece.source, start, end)))
    }

    /// A span that can be shown: inside of its text and on character boundaries, whatever parser it came
    /// from.
    pub fn inside(&self, span: Span) -> Span {
        match self.get(span.source) {
            Some(source) => Span::within(span.source, &source.text, span.start as usize, span.end as usize),
            None => span,
        }
    }

    /// `name:line:column` of a span's start.
    pub fn place(&self, span: Span) -> String {
        match self.get(span.source) {
            Some(source) => {
                let (line, column) = source.line_column(span.start as usize);
                format!("{}:{line}:{column}", source.name)
            }
            None => "<unknown>".to_owned(),
        }
    }

    /// The line of a span's start, counted from 1.
    pub fn line(&self, span: Span) -> usize {
        self.get(span.source).map_or(0, |s| s.line_at(span.start as usize))
    }

    /// All sources in the order they were added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (SourceId, &Source)> {
        self.sources.iter().enumerate().map(|(i, s)| (SourceId(i as u32), s))
    }
}

/// Whether a character can make a text look different from what it says.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        // Overrides and isolates of direction, by which a comment can look like code (CVE-2021-42574).
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

/// Whether a character may make a terminal do something, or show a text in another order: the hidden ones,
/// a carriage return, and marks of direction, which a text may contain for good reasons.
pub fn steers(c: char) -> bool {
    is_hidden(c) || matches!(c, '\r' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
}

/// How many columns of a terminal a text takes: characters of East Asian scripts and emoji take two, accents that are
/// drawn over the letter before them none (Unicode Standard Annex 11).
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// How many columns of a terminal a character takes.
pub fn columns_of(c: char) -> usize {
    match c {
        '\u{0300}'..='\u{036f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        c if is_wide(c) => 2,
        _ => 1,
    }
}

/// Whether a character is about one em wide: East Asian scripts and emoji.
pub fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd)
}
