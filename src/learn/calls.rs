//! What a run was called with: `calls.jsonl`, with one JSON object per line for the call that began it and for each
//! that continued it.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::read::{self, limit};
use crate::write;

/// The file's name in the folder of a run.
pub const FILE: &str = "calls.jsonl";

/// A call that began or continued a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// When it began to train, in UTC: `2026-05-01T08:30:00Z`.
    pub started: String,
    /// The version of trafoc, with the commit if it is known.
    pub version: String,
    /// The words of the command line.
    pub command: Vec<String>,
    /// The device on which it trained.
    pub device: String,
    /// The number of threads that the process could use.
    pub threads: usize,
    /// The step after which it continued, 0 for the call that began the run.
    pub step: u64,
}

impl Call {
    /// A call of this process, which begins now.
    pub fn now(version: &str, device: &str, threads: usize, step: u64) -> Self {
        // The name of the program itself may be a path, which says something about the machine alone.
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        Self {
            started: time(),
            version: version.to_owned(),
            command: ["trafoc".to_owned()].into_iter().chain(words).collect(),
            device: device.to_owned(),
            threads,
            step,
        }
    }

    /// Adds the call to those of a run, whose lock this process has.
    ///
    /// # Errors
    /// The system refuses.
    pub fn record(&self, root: &Path) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        write::append(&root.join(FILE))?.write_all(&line)
    }
}

/// The calls of a run in their order. A run of an older version has none, and a damaged line is left out: nothing
/// depends on it.
pub fn calls(root: &Path) -> Vec<Call> {
    let bytes = read::bounded(&root.join(FILE), limit::SPEC).unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The date and the time of day in UTC.
pub fn time() -> String {
    utc(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// A time in seconds since 1970 as date and time of day in UTC.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from March of the year 0, so that the day that a leap year adds is the last of its year;
    // 719,468 days lie between that and 1970.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hours, minutes, seconds) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn a_time_is_that_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), shown);
        }
    }
}
