//! Examples as the readers of all formats return them, and how they report bad lines.

use std::ops::ControlFlow;

use crate::diag::{Code, Diagnostic, Sink};
use crate::learn::data::Refused;
use crate::learn::data::file::{self, Named};

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

/// Collects the errors in data files.
pub struct Faults<'a> {
    sink: &'a mut Sink,
    count: usize,
}

impl<'a> Faults<'a> {
    /// A collection without errors, which reports to this sink.
    pub fn new(sink: &'a mut Sink) -> Self {
        Self { sink, count: 0 }
    }

    /// Reports a bad line, and says whether to go on reading.
    pub fn line(&mut self, place: Place<'_>, message: &str, help: Option<&str>) -> ControlFlow<()> {
        let path = &place.file.path;
        // Images are named with the folder of their class, because each folder may have a `1.png`.
        let name = match path.parent().filter(|_| place.line == 0).and_then(|folder| folder.file_name()) {
            Some(folder) => format!("{}/{}", folder.to_string_lossy(), file::name(path)),
            None => file::name(path),
        };
        let at = if place.line > 0 { format!(", line {}", place.line) } else { String::new() };
        let message = format!("`{name}`{at}: {message}");
        let diagnostic = Diagnostic::error(Code::BadData, place.file.span, message);
        self.sink.push(help.into_iter().fold(diagnostic, Diagnostic::help));
        self.count += 1;
        if self.count >= SHOWN { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Reports what is wrong with a file as a whole.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.sink.push(diagnostic);
        // Counted, so that nothing is trained.
        self.count += 1;
    }

    /// Whether anything was reported, so that nothing may be trained.
    pub fn any(&self) -> bool {
        self.count > 0
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
