//! The specs, recipes and configs that have been read, so that a command can be repeated when one of them changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// What tells a version of a file from another one: when it was written and how long it is; `None` if there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(Option<(SystemTime, u64)>);

impl Version {
    /// The version that a path leads to now.
    pub fn of(path: &Path) -> Self {
        let found = fs::metadata(path).ok();
        Self(found.and_then(|meta| Some((meta.modified().ok()?, meta.len()))))
    }

    /// Whether there is a file.
    pub fn exists(self) -> bool {
        self.0.is_some()
    }
}

/// A file that was read, with its version before it was opened.
pub type Followed = (PathBuf, Version);

/// The files since the last [`begin`]; `None` before the first one. There is one list for the process, because files are read
/// far below the command that wants to know of them.
static FILES: Mutex<Option<Vec<Followed>>> = Mutex::new(None);

/// Begins a new list of files.
pub fn begin() {
    *FILES.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// Remembers a file that is about to be read, whether or not it exists. Nothing is remembered before the first [`begin`].
pub fn note(path: &Path) {
    if let Some(files) = FILES.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        && files.iter().all(|(known, _)| known != path)
    {
        files.push((path.to_owned(), Version::of(path)));
    }
}

/// The files that were read since the last [`begin`], in the order in which they were first read.
pub fn files() -> Vec<Followed> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}
