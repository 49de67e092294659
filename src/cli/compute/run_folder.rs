//! The folder of a run: which checkpoint is used, and why one cannot be used.

use std::path::{Path, PathBuf};

use crate::cli::course::unreadable;
use crate::cli::file;
use crate::cli::next_step::quoted;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::ui::Ui;
use crate::learn::data::Codebook;
use crate::learn::run_dir::{self, AVERAGED, Checkpoint, RunDirError};
use crate::learn::session::files;
use crate::read::{self, limit};

/// The newest checkpoint of a run, if the folder is one and has any.
///
/// # Errors
/// All checkpoints that exist are damaged.
pub fn newest(root: &Path) -> Result<Option<Checkpoint>, Failure> {
    if !run_dir::is_run(root) {
        return Ok(None);
    }
    match run_dir::newest(root) {
        Ok(found) => Ok(Some(found)),
        // A run that was ended before its first checkpoint begins again.
        Err(RunDirError::NoCheckpoint { found, .. }) if found.is_empty() => Ok(None),
        Err(error) => Err(run_failure(error)),
    }
}

/// The folder of prepared data with which a run began; `None` if it began with files, or has not recorded it.
pub fn data_of_run(root: &Path) -> Option<PathBuf> {
    let path = run_dir::start_file(root, files::PREPARED)?;
    // The folder is a hint: without it, the recipe's files are read.
    let bytes = read::bounded(&path, limit::SPEC).ok()?;
    let json: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    json["folder"].as_str().map(PathBuf::from)
}

/// The weights of a run, from the checkpoint that [`pick`] takes without a name.
///
/// # Errors
/// The run has no checkpoint that is complete and undamaged.
pub fn weights_of_run(root: &Path, ui: &Ui) -> Result<PathBuf, Failure> {
    let found = pick(root, None).map_err(run_failure)?;
    report_damage(&found, ui);
    Ok(found.file(files::MODEL))
}

/// The checkpoint with this name. If no name is given, the first that is not damaged of: the average, the
/// best, the newest.
///
/// # Errors
/// No such checkpoint exists, or it is damaged.
pub fn pick(root: &Path, name: Option<&str>) -> Result<Checkpoint, RunDirError> {
    // The newest checkpoint has recorded which one is the best.
    let best = |newest: &Checkpoint| match &newest.state.best {
        // If the newest is the best, it has been opened and checked already.
        Some(best) if best.step != newest.state.step => Some(run_dir::step_name(best.step)),
        Some(_) | None => None,
    };
    match name {
        // The newest that is whole: a damaged one after it is passed over.
        Some("last") => run_dir::newest(root),
        // Named explicitly, it is this one or an error; a fallback would answer for another model.
        Some("averaged") => run_dir::named(root, AVERAGED),
        Some("best") => {
            let newest = run_dir::newest(root)?;
            // A run that has not been evaluated yet has no best checkpoint; its newest one is used.
            best(&newest).map_or(Ok(newest), |name| run_dir::named(root, &name))
        }
        None => {
            let mut damaged = Vec::new();
            if root.join("checkpoints").join(AVERAGED).exists() {
                match run_dir::named(root, AVERAGED) {
                    Err(RunDirError::NoCheckpoint { found, .. }) => damaged.extend(found),
                    other => return other,
                }
            }
            let newest = run_dir::newest(root).map_err(|error| including(error, &damaged))?;
            damaged.extend(newest.damaged.clone());
            let found = match best(&newest).map(|name| run_dir::named(root, &name)) {
                Some(Ok(found)) => found,
                Some(Err(RunDirError::NoCheckpoint { found, .. })) => {
                    damaged.extend(found);
                    newest
                }
                Some(Err(error)) => return Err(error),
                None => newest,
            };
            // The best checkpoint may be one of those that were tried in search of the newest.
            damaged.dedup();
            Ok(Checkpoint { damaged, ..found })
        }
        Some(step) => {
            // `100` is the step `step-000000100`, whose folder can be named as well.
            let step = step.parse().map_or_else(|_| step.to_owned(), run_dir::step_name);
            run_dir::named(root, &step)
        }
    }
}

/// The error that no checkpoint can be used, including those that were tried before.
fn including(error: RunDirError, before: &[run_dir::Damaged]) -> RunDirError {
    match error {
        RunDirError::NoCheckpoint { path, found } => {
            RunDirError::NoCheckpoint { path, found: before.iter().cloned().chain(found).collect() }
        }
        other => other,
    }
}

/// Reads the codebook of a checkpoint: the meaning of ids and classes.
///
/// # Errors
/// The file cannot be read, or is not a codebook.
pub fn read_codebook(path: &Path) -> Result<Codebook, Failure> {
    let failed = |why: String| {
        Failure::new(Exit::File, format!("cannot read the codebook `{}`: {why}", path.display()))
    };
    let bytes = read::bounded(path, limit::CODEBOOK).map_err(|e| failed(file::reason(&e)))?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".to_owned()))?;
    Codebook::from_json(&text).map_err(|e| failed(read::json_fault(&e)))
}

/// Reports the checkpoints that could not be used.
pub fn report_damage(found: &Checkpoint, ui: &Ui) {
    for damaged in &found.damaged {
        ui.note(&format!(
            "warning: the checkpoint {} cannot be used, so {} is used: {}",
            damaged.name,
            found.name(),
            damaged.why
        ));
    }
}

/// A suggestion for a run that has no checkpoint.
pub fn begin_again(root: &Path) -> String {
    let root = quoted(&root.display().to_string());
    format!("`trafoc train --resume --out {root}` begins it again, with what it began with")
}

/// What goes on once there is room on the disk again, where a file of a run could not be written.
fn with_room(path: &Path) -> String {
    let root = path.ancestors().find(|above| run_dir::is_run(above));
    match root.map(|root| (root, newest(root))) {
        Some((_, Ok(Some(_)))) => {
            "earlier checkpoints are intact: `trafoc train --resume` continues once there is room".to_owned()
        }
        Some((root, Ok(None))) => {
            format!("there is no checkpoint yet: with more room, {}", begin_again(root))
        }
        Some((_, Err(_))) | None => "the command can be repeated once there is room".to_owned(),
    }
}

/// The failure (exit code 4) of a folder that is no run, is in use, or has no usable checkpoint.
pub fn run_failure(error: RunDirError) -> Failure {
    let message = match &error {
        RunDirError::Unreadable { path, why } => return unreadable(path, why),
        RunDirError::Io(path, error) => format!("`{}`: {}", path.display(), file::reason(error)),
        RunDirError::Foreign(_)
        | RunDirError::Exists(_)
        | RunDirError::Locked { .. }
        | RunDirError::NoCheckpoint { .. } => error.to_string(),
    };
    let exit = match &error {
        // As for a file that would be replaced.
        RunDirError::Foreign(_) | RunDirError::Exists(_) => Exit::Refused,
        RunDirError::Io(..)
        | RunDirError::Unreadable { .. }
        | RunDirError::Locked { .. }
        | RunDirError::NoCheckpoint { .. } => Exit::File,
    };
    let failure = Failure::new(exit, message);
    match error {
        RunDirError::Foreign(_) => {
            failure.help("name another folder with `--out`; `--resume` continues only a run of trafoc")
        }
        RunDirError::Exists(_) => failure.help("`--resume` continues it; another `--out` begins a new run"),
        RunDirError::Io(path, error) if error.kind() == std::io::ErrorKind::StorageFull => {
            failure.help(with_room(&path))
        }
        RunDirError::NoCheckpoint { path, found } if found.is_empty() => failure.help(begin_again(&path)),
        RunDirError::NoCheckpoint { .. } => {
            failure.help("a copy of the folder would help; without one, train again with another `--out`")
        }
        RunDirError::Io(..) | RunDirError::Unreadable { .. } | RunDirError::Locked { .. } => failure,
    }
}
