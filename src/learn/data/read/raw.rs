//! Examples as the readers of all formats return them, and how they report bad lines.

use std::ops::ControlFlow;

use super::marks::Spot;
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic, Sink};
use crate::learn::data::Refused;
use crate::learn::data::file::{self, Named};
use crate::source::Span;

/// An example as it is in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// A text, or a section of a long one.
    Text(String),
    /// A text and its translation.
    Pair {
        /// The text to translate.
        source: String,
        /// The text in the other language.
        target: String,
        /// The language of the translation, if there are several.
        language: Option<String>,
    },
    /// A text and its classes.
    Labelled {
        /// The text that is classified.
        text: String,
        /// A second text that follows the first.
        second: Option<String>,
        /// The class, or several classes.
        labels: Vec<String>,
    },
    /// Words and their classes, one for each.
    Tagged {
        /// The words in order, as the file separates them.
        words: Vec<String>,
        /// The class of each word.
        tags: Vec<String>,
    },
    /// A question about a text.
    Question {
        /// The id of the question in the file.
        id: String,
        /// The text of the question.
        question: String,
        /// The index of its paragraph in the files.
        paragraph: usize,
        /// The text of the paragraph.
        context: String,
        /// The reference answers, each with the offset of its first byte in the paragraph.
        answers: Vec<(usize, String)>,
    },
    /// An image and its class.
    Image {
        /// The values `[C, H, W]`, where black is 0 and white is 1.
        pixels: Vec<f32>,
        /// The class of the image.
        label: String,
    },
}

/// The place of an example.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The file, with its place in the recipe, which a diagnostic shows.
    pub file: &'a Named,
    /// The line, counted from 1; 0 if the file has no lines.
    pub line: u64,
}

/// How many bad lines are named, not counting those that directly follow each other with the same fault.
const SHOWN: usize = 10;

/// How many bad lines are counted. Reading then stops: a file of another format is wrong on every line.
const COUNTED: usize = 1000;

/// Collects the errors in data files. Lines with the same fault are one error, in the end.
pub struct Faults<'a> {
    sink: &'a mut Sink,
    lines: Vec<Lines>,
    /// How many lines are named.
    shown: usize,
    /// The lines with faults that no line before them has, after those that are named.
    others: usize,
    /// The last of them, for the place of its file.
    last: Span,
    count: usize,
}

/// The lines of a file, or the files, that have the same fault.
struct Lines {
    span: Span,
    message: String,
    help: Option<String>,
    /// The file; the first, if they have no lines.
    name: String,
    /// The lines that are named; one for each file without lines.
    runs: Vec<Run>,
    /// How many there are after those.
    more: usize,
}

/// Lines that follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Run {
    /// The first line; 0 for a file without lines.
    first: u64,
    last: u64,
    /// The character of the line at which it is wrong, if that is known.
    column: Option<u64>,
}

impl Run {
    /// Whether this line follows, so that the run may go on with it.
    fn is_followed_by(&self, next: &Self) -> bool {
        let columns = [self.column, next.column];
        columns == [None, None] && next.first > 0 && self.last.checked_add(1) == Some(next.first)
    }
}

impl Lines {
    /// Where the fault is: `a.csv`, lines 1 to 3 and 5. With `is_cut`, reading stopped before the end.
    fn place(&self, is_cut: bool) -> String {
        let name = format!("`{}`", self.name);
        let others = self.runs.len().saturating_sub(1) + self.more;
        let least = if is_cut { "at least " } else { "" };
        match self.runs.as_slice() {
            [Run { first: 0, .. }] if others == 0 => return name,
            [Run { first: 0, .. }, ..] => {
                return format!("{name} and {least}{}", counted(others, "other file"));
            }
            [Run { first, last, column }] if first == last && self.more == 0 => {
                let column = column.map_or(String::new(), |column| format!(", column {column}"));
                return format!("{name}, line {first}{column}");
            }
            _ => {}
        }
        let mut words: Vec<String> = self.runs.iter().flat_map(Run::words).collect();
        if self.more > 0 {
            words.push(format!("{least}{} more", self.more));
        } else if is_cut && self.runs.last().is_some_and(|run| run.last - run.first > 1) {
            // The lines after a long run were not read, and are probably wrong in the same way.
            words.push("perhaps more".to_owned());
        }
        let list = match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => words.concat(),
        };
        format!("{name}, lines {list}")
    }
}

impl Run {
    /// The numbers of its lines: `1 to 3`, or both of two.
    fn words(&self) -> Vec<String> {
        match (self.last - self.first, self.column) {
            (0, Some(column)) => vec![format!("{} (column {column})", self.first)],
            (0, None) => vec![self.first.to_string()],
            (1, _) => vec![self.first.to_string(), self.last.to_string()],
            (_, _) => vec![format!("{} to {}", self.first, self.last)],
        }
    }
}

impl<'a> Faults<'a> {
    /// A collection without errors, which reports to this sink.
    pub fn new(sink: &'a mut Sink) -> Self {
        Self { sink, lines: Vec::new(), shown: 0, others: 0, last: Span::default(), count: 0 }
    }

    /// Collects a bad line, and says whether to go on reading.
    pub fn line(&mut self, place: Place<'_>, message: &str, help: Option<&str>) -> ControlFlow<()> {
        let run = Run { first: place.line, last: place.line, column: None };
        self.add(place, run, message, help)
    }

    /// Collects a fault at a character of a line, of the row at this place, and says whether to go on reading.
    pub fn at(&mut self, place: Place<'_>, spot: Spot, message: &str, help: Option<&str>) -> ControlFlow<()> {
        let run = Run { first: spot.line, last: spot.line, column: Some(spot.column) };
        self.add(place, run, message, help)
    }

    fn add(&mut self, place: Place<'_>, run: Run, message: &str, help: Option<&str>) -> ControlFlow<()> {
        let path = &place.file.path;
        // Images are named with the folder of their class, because each folder may have a `1.png`.
        let name = match path.parent().filter(|_| run.first == 0).and_then(|folder| folder.file_name()) {
            Some(folder) => format!("{}/{}", folder.to_string_lossy(), file::name(path)),
            None => file::name(path),
        };
        let span = place.file.span;
        let is_same = |lines: &&mut Lines| {
            let is_there = lines.span == span && (lines.name == name || run.first == 0);
            is_there && lines.message == message && lines.help.as_deref() == help
        };
        let has_room = self.shown < SHOWN;
        match self.lines.iter_mut().find(is_same) {
            Some(lines) => match lines.runs.last_mut().filter(|last| last.is_followed_by(&run)) {
                // Not if some in between are not named.
                Some(last) if lines.more == 0 => last.last = run.last,
                _ if has_room => {
                    lines.runs.push(run);
                    self.shown += 1;
                }
                _ => lines.more += 1,
            },
            None if has_room => {
                let (message, help) = (message.to_owned(), help.map(str::to_owned));
                self.lines.push(Lines { span, message, help, name, runs: vec![run], more: 0 });
                self.shown += 1;
            }
            None => {
                self.others += 1;
                self.last = span;
            }
        }
        self.count += 1;
        if self.count >= COUNTED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Reports what is wrong with a file as a whole.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.sink.push(diagnostic);
        // Counted, so that nothing is trained.
        self.count += 1;
    }

    /// Whether there is any error, so that nothing may be trained.
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// Reports the lines, and whether there was any error, so that nothing may be trained.
    pub fn report(self) -> bool {
        let is_wrong = self.any();
        let is_cut = self.count >= COUNTED;
        for lines in self.lines {
            let message = format!("{}: {}", lines.place(is_cut), lines.message);
            let diagnostic = Diagnostic::error(Code::BadData, lines.span, message);
            self.sink.push(lines.help.into_iter().fold(diagnostic, Diagnostic::help));
        }
        if self.others > 0 {
            let least = if is_cut { "at least " } else { "" };
            let others = counted(self.others, "fault");
            let message = format!("there are {least}{others} of other kinds after these");
            self.sink.push(Diagnostic::error(Code::BadData, self.last, message));
        }
        is_wrong
    }
}

/// A function that is called with every example.
pub type Visit<'v> = dyn FnMut(Raw, Place<'_>, &mut Faults<'_>) -> ControlFlow<()> + 'v;

/// A function that is called with every line.
type VisitLine<'v> = dyn FnMut(&str, Place<'_>, &mut Faults<'_>) -> ControlFlow<()> + 'v;

/// Visits every line of some files; a line that is not valid text is reported. Returns whether reading was
/// stopped.
pub(super) fn each_line(
    files: &[Named],
    faults: &mut Faults<'_>,
    visit: &mut VisitLine<'_>,
) -> Result<ControlFlow<()>, Refused> {
    for file in files {
        let mut flow = ControlFlow::Continue(());
        file::lines(&file.path, &mut |line, text| {
            let place = Place { file, line };
            flow = match text {
                Ok(text) => visit(text, place, faults),
                // Counted as a bad line and not as the end: a single wrong byte should not hide the faults
                // after it.
                Err(why) => faults.line(place, &why, Some("save the file as UTF-8")),
            };
            Ok(flow)
        })?;
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}
