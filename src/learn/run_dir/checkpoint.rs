//! The checkpoints of a run, and which of them can be used.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Damaged, RunDirError, io_at, readable};
use super::list::{FORMAT, STATE, check};
use super::state::State;
use crate::learn::whole::{FileList, LIST, MAX_LIST};
use crate::read;

/// A checkpoint all of whose files have their recorded checksums.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The path of its folder.
    pub path: PathBuf,
    /// The state of the training at that step.
    pub state: State,
    /// Newer checkpoints that cannot be used.
    pub damaged: Vec<Damaged>,
}

impl Checkpoint {
    /// The name of the checkpoint.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The folder of the run.
    pub fn root(&self) -> &Path {
        // `RUN/checkpoints/step-...`
        self.path.ancestors().nth(2).unwrap_or(&self.path)
    }

    /// The list of its files.
    ///
    /// # Errors
    /// It cannot be read, in lower case without a full stop.
    pub fn list(&self) -> Result<FileList, String> {
        FileList::read(&self.path, FORMAT)
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// The name of the mean of several checkpoints, in place of that of a step.
pub const AVERAGED: &str = "averaged";

/// The newest complete checkpoint of a run, which may be training at the same time.
///
/// # Errors
/// No checkpoint is complete, or the run is of another version.
pub fn newest(root: &Path) -> Result<Checkpoint, RunDirError> {
    readable(root)?;
    let folder = folder_of(root);
    let mut damaged = Vec::new();
    // A damaged checkpoint costs the steps after the one before it, and not the run.
    for step in steps(&folder).map_err(io_at(&folder))? {
        match check(&folder.join(step_name(step))) {
            Ok(state) => return Ok(Checkpoint { path: folder.join(step_name(step)), state, damaged }),
            Err(why) => damaged.push(Damaged { name: step_name(step), why }),
        }
    }
    Err(RunDirError::NoCheckpoint { path: root.to_owned(), found: damaged })
}

/// The total number of steps of a run, according to its newest checkpoint. Checksums are not compared,
/// because the number only serves to show the progress of the run.
pub fn planned(root: &Path) -> Option<u64> {
    let folder = folder_of(root);
    let newest = steps(&folder).ok()?.into_iter().next()?;
    let bytes = read::bounded(&folder.join(step_name(newest)).join(STATE), MAX_LIST).ok()?;
    serde_json::from_slice::<State>(&bytes).ok().map(|state| state.steps)
}

/// The checkpoint with this name.
///
/// # Errors
/// It does not exist, or is not complete, or the run is of another version.
pub fn named(root: &Path, name: &str) -> Result<Checkpoint, RunDirError> {
    readable(root)?;
    let path = folder_of(root).join(name);
    match check(&path) {
        Ok(state) => Ok(Checkpoint { path, state, damaged: Vec::new() }),
        Err(why) => {
            let found = vec![Damaged { name: name.to_owned(), why }];
            Err(RunDirError::NoCheckpoint { path: root.to_owned(), found })
        }
    }
}

/// Whether there is a checkpoint with this name, complete or not.
pub fn exists(root: &Path, name: &str) -> bool {
    folder_of(root).join(name).is_dir()
}

/// The last `count` complete checkpoints, newest first.
///
/// # Errors
/// An I/O error.
pub fn last(root: &Path, count: usize) -> Result<Vec<Checkpoint>, RunDirError> {
    let folder = folder_of(root);
    let steps = steps(&folder).map_err(io_at(&folder))?;
    // A damaged checkpoint is left out, and an older one takes its place.
    let found = steps.into_iter().filter_map(|step| named(root, &step_name(step)).ok());
    Ok(found.take(count).collect())
}

/// The name of a step's checkpoint.
pub fn step_name(step: u64) -> String {
    // With leading zeros, so that a listing of the folder is in the order of steps.
    format!("step-{step:09}")
}

/// The folder of a run's checkpoints.
pub(super) fn folder_of(root: &Path) -> PathBuf {
    root.join("checkpoints")
}

/// The step of a checkpoint's folder with this name.
pub(super) fn step_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("step-")?;
    let step = digits.parse().ok()?;
    // Only the form that is written: `step-4` would have the number of `step-000000004`.
    (step_name(step) == name).then_some(step)
}

/// The steps of the checkpoints in a folder, newest first.
pub(super) fn steps(folder: &Path) -> io::Result<Vec<u64>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A folder without its list is being written or deleted.
        if let Some(step) = step_of(&entry.file_name().to_string_lossy())
            && read::is_there(&entry.path().join(LIST))
        {
            out.push(step);
        }
    }
    out.sort_unstable_by(|a, b| b.cmp(a));
    Ok(out)
}
