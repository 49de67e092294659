//! Examples as the readers of all formats return them, and how they report bad lines.

use std::ops::ControlFlow;

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

/// How many bad lines are reported. Reading then stops: a file of another format is wrong on every line.
const SHOWN: usize = 10;

/// Collects the errors in data files. Lines with the same fault are one error, in the end.
pub struct Faults<'a> {
    sink: &'a mut Sink,
    lines: Vec<Lines>,
    count: usize,
}

/// The lines of a file, or the files, that have the same fault.
struct Lines {
    span: Span,
    message: String,
    help: Option<String>,
    /// The file; the first, if they have no lines.
    name: String,
    /// The numbers of the lines; 0 for each file without.
    numbers: Vec<u64>,
}

impl Lines {
    /// Where the fault is: `a.csv`, lines 1 to 3 and 5.
    fn place(&self) -> String {
        let name = format!("`{}`", self.name);
        let others = self.numbers.len().saturating_sub(1);
        match self.numbers.as_slice() {
            [0] => name,
            [0, ..] => format!("{name} and {}", counted(others, "other file")),
            [line] => format!("{name}, line {line}"),
            numbers => format!("{name}, lines {}", ranges(numbers)),
        }
    }
}

/// Ascending numbers, of which those that follow each other are a range: `1 to 3 and 5`.
fn ranges(numbers: &[u64]) -> String {
    let runs: Vec<String> = numbers
        .chunk_by(|a, b| a + 1 == *b)
        .flat_map(|run| match run {
            [first, _, .., last] => vec![format!("{first} to {last}")],
            few => few.iter().map(u64::to_string).collect(),
        })
        .collect();
    match runs.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => runs.concat(),
    }
}

impl<'a> Faults<'a> {
    /// A collection without errors, which reports to this sink.
    pub fn new(sink: &'a mut Sink) -> Self {
        Self { sink, lines: Vec::new(), count: 0 }
    }

    /// Collects a bad line, and says whether to go on reading.
    pub fn line(&mut self, place: Place<'_>, message: &str, help: Option<&str>) -> ControlFlow<()> {
        let path = &place.file.path;
        // Images are named with the folder of their class, because each folder may have a `1.png`.
        let name = match path.parent().filter(|_| place.line == 0).and_then(|folder| folder.file_name()) {
            Some(folder) => format!("{}/{}", folder.to_string_lossy(), file::name(path)),
            None => file::name(path),
        };
        let span = place.file.span;
        let is_same = |lines: &&mut Lines| {
            let is_there = lines.span == span && (lines.name == name || place.line == 0);
            is_there && lines.message == message && lines.help.as_deref() == help
        };
        match self.lines.iter_mut().find(is_same) {
            Some(lines) => lines.numbers.push(place.line),
            None => {
                let (message, help, numbers) =
                    (message.to_owned(), help.map(str::to_owned), vec![place.line]);
                self.lines.push(Lines { span, message, help, name, numbers });
            }
        }
        self.count += 1;
        if self.count >= SHOWN { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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
        for lines in self.lines {
            let message = format!("{}: {}", lines.place(), lines.message);
            let diagnostic = Diagnostic::error(Code::BadData, lines.span, message);
            self.sink.push(lines.help.into_iter().fold(diagnostic, Diagnostic::help));
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
