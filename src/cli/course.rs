//! Prepares what a run has recorded of its training for drawing.

use std::path::Path;

use super::file;
use super::next_step::quoted;
use super::outcome::{Exit, Failure};
use crate::diag::count::counted;
use crate::inspect::training::{Course, Step};
use crate::learn::calls::{self, Call};
use crate::learn::marker;
use crate::learn::recipe::Metric;
use crate::learn::record::{self, Record, RecordError};

/// The record in the folder of a run; it is empty if the run ended before its first step.
///
/// # Errors
/// The record cannot be read, or the run is of another version.
pub fn record(root: &Path) -> Result<Record, Failure> {
    marker::check(root).map_err(|why| unreadable(root, &why))?;
    match Record::read(root) {
        Ok(record) => Ok(record),
        // The record is created with its first line.
        Err(RecordError::Io(_, error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Record::default())
        }
        Err(RecordError::Io(path, error)) => {
            let why = file::reason(&error);
            Err(Failure::new(Exit::File, format!("cannot read `{}`: {why}", path.display())))
        }
        Err(RecordError::Line { path, number, why }) => {
            let message = format!("line {number} of `{}` is damaged: {why}", path.display());
            Err(Failure::new(Exit::File, message)
                .help("`trafoc train --resume` removes what does not belong to the newest checkpoint"))
        }
    }
}

/// That the folder of a run cannot be read because of what its mark says.
pub fn unreadable(root: &Path, why: &str) -> Failure {
    let message = format!("cannot read `{}`: {why}", root.join(marker::FILE).display());
    Failure::new(Exit::File, message).help("the version of trafoc that has written a run reads it")
}

/// The recorded run of a folder in the form in which it is drawn.
pub fn course(root: &Path, record: &Record, planned: Option<u64>) -> Course {
    let mut course = Course { planned, calls: calls(root), ..Course::default() };
    course.steps = record.steps.iter().map(step).collect();
    record.evaluations.iter().for_each(|e| measure(&mut course, e));
    course
}

/// A recorded step in the form in which it is drawn.
pub fn step(line: &record::Step) -> Step {
    let record::Step { step, loss, losses, rate, norm, targets: _, tokens, seconds } = line;
    let losses = losses.iter().map(|(name, value)| (name.clone(), *value)).collect();
    Step { step: *step, loss: *loss, losses, rate: *rate, norm: *norm, tokens: *tokens, seconds: *seconds }
}

/// Adds a recorded evaluation to the curves, of which there is one for each metric and part of the data.
pub fn measure(course: &mut Course, line: &record::Evaluation) {
    for (name, value) in &line.figures {
        // A metric that this version does not know is drawn as one that rises.
        let falls = Metric::of_word(name).is_some_and(Metric::falls);
        course.measure(name, &line.split, falls, (line.step, *value));
    }
}

/// What a run was called with, as facts with their names, each in the order of the calls.
fn calls(root: &Path) -> Vec<(String, String)> {
    let shown = |call: Call| {
        let what = match call.step {
            0 => "started".to_owned(),
            step => format!("continued after step {step}"),
        };
        let words: Vec<String> = call.command.iter().map(|word| quoted(word)).collect();
        let threads = counted(call.threads, "thread");
        let Call { started, version, device, .. } = &call;
        (what, format!("{started} by trafoc {version} on {device}, {threads}: {}", words.join(" ")))
    };
    calls::calls(root).into_iter().map(shown).collect()
}

/// The name under which a run is shown: that of its folder, which distinguishes runs of the same spec.
pub fn name(root: &Path) -> String {
    // A path such as `.` has no name of its own.
    let whole = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    whole.file_name().map_or_else(|| root.display().to_string(), |name| name.to_string_lossy().into_owned())
}
