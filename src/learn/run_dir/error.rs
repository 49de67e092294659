//! Why the folder of a run cannot be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::learn::marker;

/// A checkpoint that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The name of the checkpoint.
    pub name: String,
    /// The reason, in lower case without a full stop.
    pub why: String,
}

/// Why a run cannot be opened or written.
#[derive(Debug)]
pub enum RunDirError {
    /// The file or folder with this path cannot be read or written.
    Io(PathBuf, io::Error),
    /// The folder is not empty, and not the folder of a run.
    Foreign(PathBuf),
    /// The folder already belongs to another run.
    Exists(PathBuf),
    /// Another process is training in the folder.
    Locked {
        /// The path of the folder.
        path: PathBuf,
        /// The id of that process, if it could be read.
        by: Option<u32>,
    },
    /// The folder was written by another version, or what says so is damaged.
    Unreadable {
        /// The path of the folder.
        path: PathBuf,
        /// The reason, in lower case without a full stop.
        why: String,
    },
    /// There is no complete checkpoint.
    NoCheckpoint {
        /// The path of the folder.
        path: PathBuf,
        /// The checkpoints that exist, and what is wrong with them.
        found: Vec<Damaged>,
    },
}

impl fmt::Display for RunDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunDirError::Io(path, error) => write!(f, "`{}`: {error}", path.display()),
            RunDirError::Foreign(path) => {
                write!(f, "`{}` is not empty, and not the folder of a run", path.display())
            }
            RunDirError::Exists(path) => write!(f, "`{}` is already the folder of a run", path.display()),
            RunDirError::Locked { path, by: Some(pid) } => {
                write!(f, "process {pid} is training in `{}`", path.display())
            }
            RunDirError::Locked { path, by: None } => {
                write!(f, "another process is training in `{}`", path.display())
            }
            RunDirError::Unreadable { path, why } => {
                write!(f, "`{}`: {why}", path.join(marker::FILE).display())
            }
            RunDirError::NoCheckpoint { path, found } => {
                write!(f, "`{}` has no complete checkpoint", path.display())?;
                found.iter().try_for_each(|d| write!(f, "; {}: {}", d.name, d.why))
            }
        }
    }
}

impl std::error::Error for RunDirError {}

/// Turns an I/O error at a path into an error of the run's folder.
pub(super) fn io_at(path: &Path) -> impl Fn(io::Error) -> RunDirError + '_ {
    |error| RunDirError::Io(path.to_owned(), error)
}

/// Checks that this version can read the folder of a run.
pub(super) fn readable(root: &Path) -> Result<(), RunDirError> {
    // Where there is no run at all, nothing was written by another version.
    std::fs::symlink_metadata(root.join(marker::FILE)).map_err(io_at(root))?;
    marker::check(root).map_err(|why| RunDirError::Unreadable { path: root.to_owned(), why })
}
