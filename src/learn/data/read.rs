//! Formats to raw examples, one at a time.

use std::ops::ControlFlow;

use super::Refused;
use super::file::{self, Named};
use crate::diag::{Code, Diagnostic, Sink};
use crate::learn::recipe::Format;

/// An example as a file has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// A text alone.
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
}

/// Where an example stands.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a Named,
    /// Its line, from 1.
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
        let name = file::name(&place.file.path);
        let message = format!("`{name}`, line {}: {message}", place.line);
        let diagnostic = Diagnostic::error(Code::BadData, place.file.span, message);
        self.push(help.into_iter().fold(diagnostic, Diagnostic::help))
    }

    /// Records a finding of any kind.
    pub fn push(&mut self, diagnostic: Diagnostic) -> ControlFlow<()> {
        self.sink.push(diagnostic);
        self.count += 1;
        if self.count >= SHOWN { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether something is wrong.
    pub fn any(&self) -> bool {
        self.count > 0
    }
}

/// What is called with every example.
pub type Visit<'v> = dyn FnMut(Raw, Place<'_>, &mut Faults<'_>) -> ControlFlow<()> + 'v;

/// Calls `visit` with every example of some files, at most `limit` of them.
///
/// # Errors
/// A file cannot be read. Bad lines are in `faults`.
pub fn read(
    format: &Format,
    files: &[Named],
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
        Format::Lines(_) => each_line(files, faults, &mut |line, place, faults| match line.is_empty() {
            true => ControlFlow::Continue(()),
            false => counted(Raw::Text(line.to_owned()), place, faults),
        }),
        Format::Pairs(_) => each_line(files, faults, &mut |line, place, faults| {
            let columns: Vec<&str> = line.split('\t').collect();
            match columns.as_slice() {
                [""] => ControlFlow::Continue(()),
                [source, target] if !source.trim().is_empty() && !target.trim().is_empty() => {
                    let (source, target) = ((*source).to_owned(), (*target).to_owned());
                    counted(Raw::Pair { source, target, language: None }, place, faults)
                }
                columns => pair_fault(columns, place, faults),
            }
        }),
        _ => Ok(()),
    }
}

fn pair_fault(columns: &[&str], place: Place<'_>, faults: &mut Faults<'_>) -> ControlFlow<()> {
    match columns {
        [_] => faults.line(place, "expected a source, a tab and a target, found no tab", None),
        [_, _] => faults.line(place, "the source or the target is empty", None),
        more => {
            let message = format!("expected a source, a tab and a target, found {} columns", more.len());
            let help = "`{table: {header: 0, source: 1, target: 2}}` reads the columns you name";
            faults.line(place, &message, Some(help))
        }
    }
}

type VisitLine<'v> = dyn FnMut(&str, Place<'_>, &mut Faults<'_>) -> ControlFlow<()> + 'v;

/// Every line of some files; a line that is no text is a fault.
fn each_line(files: &[Named], faults: &mut Faults<'_>, visit: &mut VisitLine<'_>) -> Result<(), Refused> {
    for file in files {
        let mut done = false;
        file::lines(&file.path, &mut |line, text| {
            let place = Place { file, line };
            let flow = match text {
                Ok(text) => visit(text, place, faults),
                Err(why) => faults.line(place, &why, Some("save the file as UTF-8")),
            };
            done |= flow.is_break();
            Ok(flow)
        })?;
        if done {
            break;
        }
    }
    Ok(())
}
