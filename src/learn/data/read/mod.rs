//! Formats to raw examples, one at a time.
//!
//! Adding one: a file here, an arm in [`read`] and a row in the recipe's `format`.

mod image;
mod squad;
mod table;
mod text;

pub use image::Form;

use std::ops::ControlFlow;

use super::Refused;
use super::file::{self, Named};
use crate::diag::{Code, Diagnostic, Sink};
use crate::learn::recipe::Format;

/// An example as a file has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// A text alone, or a stretch of a long one.
    Text(String),
    /// A text and its translation.
    Pair {
        /// What is translated.
        source: String,
        /// Its translation.
        target: String,
        /// Its language, where there are several.
        language: Option<String>,
    },
    /// A text and its classes.
    Labelled {
        /// The text.
        text: String,
        /// Another one behind it.
        second: Option<String>,
        /// Its class, or several.
        labels: Vec<String>,
    },
    /// Words and their classes.
    Tagged {
        /// The words.
        words: Vec<String>,
        /// As many classes.
        tags: Vec<String>,
    },
    /// A question about a text.
    Question {
        /// Its name in the file.
        id: String,
        /// The question.
        question: String,
        /// Which paragraph of the files it is about.
        paragraph: usize,
        /// The paragraph.
        context: String,
        /// Right answers, each with its first byte in the paragraph.
        answers: Vec<(usize, String)>,
    },
    /// An image and its class.
    Image {
        /// `[C, H, W]`, black 0 and white 1.
        pixels: Vec<f32>,
        /// Its class.
        label: String,
    },
}

/// Where an example stands.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a Named,
    /// Its line from 1; 0 where a file has no lines.
    pub line: u64,
}

/// Bad lines that are shown; reading ends with the last of them.
const SHOWN: usize = 10;

/// Collects what is wrong with lines.
pub struct Faults<'a> {
    sink: &'a mut Sink,
    count: usize,
}

impl<'a> Faults<'a> {
    /// Nothing wrong so far.
    pub fn new(sink: &'a mut Sink) -> Self {
        Self { sink, count: 0 }
    }

    /// Records a bad line. Reading goes on until enough of them are known.
    pub fn line(&mut self, place: Place<'_>, message: &str, help: Option<&str>) -> ControlFlow<()> {
        let path = &place.file.path;
        // Images are named with their class's folder: every one may have a `1.png`.
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

    /// Records what is wrong with a file as a whole.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.sink.push(diagnostic);
        self.count += 1;
    }

    /// Whether something is wrong.
    pub fn any(&self) -> bool {
        self.count > 0
    }
}

/// What is called with every example.
pub type Visit<'v> = dyn FnMut(Raw, Place<'_>, &mut Faults<'_>) -> ControlFlow<()> + 'v;

/// Calls `visit` with every example of some files, at most `limit` of them. `form` is what images must
/// look like.
///
/// # Errors
/// A file cannot be read. Bad lines are in `faults`.
pub fn read(
    format: &Format,
    files: &[Named],
    form: Option<Form>,
    limit: Option<u64>,
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), Refused> {
    let mut left = limit.unwrap_or(u64::MAX);
    let mut counted = |raw: Raw, place: Place<'_>, faults: &mut Faults<'_>| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        let flow = visit(raw, place, faults);
        if left == 0 { ControlFlow::Break(()) } else { flow }
    };
    match format {
        Format::Lines(_) => text::lines(files, faults, &mut counted),
        Format::Text(_) => text::stretches(files, faults, &mut counted),
        Format::Pairs(_) => text::pairs(files, faults, &mut counted),
        Format::Parallel(_) => text::parallel(files, faults, &mut counted),
        Format::Tagged(_) => text::tagged(files, faults, &mut counted),
        Format::Table(table) => table::read(table, files, faults, &mut counted),
        Format::Squad(_) => squad::read(files, faults, &mut counted),
        Format::Images(images) => image::folders(images, files, form, faults, &mut counted),
        Format::Pixels(pixels) => image::pixels(pixels, files, form, faults, &mut counted),
        Format::Idx(_) => image::idx(files, form, faults, &mut counted),
    }
}

/// What is called with every line.
type VisitLine<'v> = dyn FnMut(&str, Place<'_>, &mut Faults<'_>) -> ControlFlow<()> + 'v;

/// Every line of some files; a line that is no text is a fault. Says whether it was broken off.
fn each_line(
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
