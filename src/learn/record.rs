//! What a run records: `metrics.jsonl`, with one JSON object per line, for a step or an evaluation.
//!
//! The lines are written and read with the same types, so what is drawn of a run is exactly what it
//! recorded.

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::read;

/// The file's name in the folder of a run.
pub const FILE: &str = "metrics.jsonl";

/// The longest line in bytes, so that a file without line breaks is not read into memory as one line.
const LONGEST: usize = 1 << 16;

/// One step of training, as a line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The number of the step, counted from 1.
    pub step: u64,
    /// The mean loss of the step's predictions before it, in nats.
    pub loss: f64,
    /// The losses of parts by name, each the mean over the layers that have it, without its weight; absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub losses: IndexMap<String, f64>,
    /// The optimizer's learning rate times the schedule's factor for this step.
    pub rate: f64,
    /// The norm of the gradient before clipping; absent if gradients are not clipped.
    pub norm: Option<f64>,
    /// The number of predictions in the loss.
    pub targets: u64,
    /// The number of tokens that were read.
    pub tokens: u64,
    /// The seconds that all steps since the start or the last resumption took, without evaluations.
    pub seconds: f64,
}

// Unlike in a step, unknown fields cannot be refused: the names of metrics are fields, and serde does not
// combine `flatten` with `deny_unknown_fields`.
/// The metrics that were computed after a step, on one part of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The number of the step.
    pub step: u64,
    /// The part of the data: `train`, `validation` or `test`.
    pub split: String,
    /// Metrics by their names in recipes; a value is absent if it is not a number.
    #[serde(flatten)]
    pub figures: IndexMap<String, Option<f64>>,
}

/// One line of the file, told apart by the key `split`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    /// A line about a step, which has no `split`.
    Step(Step),
    /// An evaluation after a step.
    Evaluation(Evaluation),
}

impl Entry {
    /// Reads a line without its line break.
    ///
    /// # Errors
    /// What is wrong with it, in lower case without a full stop.
    fn read(text: &[u8]) -> Result<Self, String> {
        // Not as the untagged enum, whose error would only say that no variant fits.
        let value: serde_json::Value = read::json(text)?;
        // Only an evaluation is of a part of the data.
        let line = match value.get("split") {
            Some(_) => serde_json::from_value(value).map(Entry::Evaluation),
            None => serde_json::from_value(value).map(Entry::Step),
        };
        line.map_err(|error| read::json_fault(&error))
    }
}

/// What a run has recorded so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// All steps, in the order in which they were made.
    pub steps: Vec<Step>,
    /// All evaluations, in the order in which they were made.
    pub evaluations: Vec<Evaluation>,
}

/// Why a record cannot be read.
#[derive(Debug)]
pub enum RecordError {
    /// The file with this path cannot be opened or read.
    Io(PathBuf, io::Error),
    /// A line is not one that trafoc writes.
    Line {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl Record {
    /// Reads the record in the folder of a run, which may still be training. A last line without a line
    /// break is still being written and is left out.
    ///
    /// # Errors
    /// The file cannot be read, or a line is invalid.
    pub fn read(root: &Path) -> Result<Self, RecordError> {
        let path = root.join(FILE);
        let io_error = |error| RecordError::Io(path.clone(), error);
        let mut reader = BufReader::new(read::regular(&path).map_err(io_error)?);
        let mut record = Self::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let mut limited = io::Read::take(&mut reader, LONGEST as u64);
            limited.read_until(b'\n', &mut line).map_err(io_error)?;
            let wrong = |why: String| RecordError::Line { path: path.clone(), number, why };
            match line.strip_suffix(b"\n") {
                // A line that fills the limit was cut by it; a shorter one without its break ends with the
                // file.
                None if line.len() >= LONGEST => return Err(wrong("it is too long".to_owned())),
                None => break,
                Some(text) => match Entry::read(text).map_err(wrong)? {
                    Entry::Step(step) => record.steps.push(step),
                    Entry::Evaluation(evaluation) => record.evaluations.push(evaluation),
                },
            }
        }
        Ok(record)
    }
}
