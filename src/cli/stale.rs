//! Files that an earlier command wrote, and that what is written now no longer has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::overwrite;
use crate::write;

/// The folder of what cargo builds, which may be large, and in which nothing is trafoc's.
const BUILT: &str = "target";

/// What became of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Whether a file was deleted.
    pub deletes: bool,
    /// Whether a file is left that is not among those that are kept.
    pub leaves: bool,
}

/// Deletes the files below a folder that are still as trafoc wrote them, except those that are `kept`, and then the folders
/// that are empty.
///
/// # Errors
/// The operating system reports an error.
pub fn sweep(folder: &Path, kept: &[PathBuf]) -> io::Result<Swept> {
    let mut swept = Swept::default();
    // A link is somebody's own, and leads elsewhere.
    if !fs::symlink_metadata(folder).is_ok_and(|entry| entry.is_dir()) {
        return Ok(swept);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && entry.file_name() != BUILT {
            let below = sweep(&path, kept)?;
            swept.deletes |= below.deletes;
            swept.leaves |= below.leaves;
        } else if !kept.contains(&path) {
            if kind.is_file() && overwrite::is_as_written(&path) {
                write::unless_missing(fs::remove_file(&path))?;
                swept.deletes = true;
            } else {
                swept.leaves = true;
            }
        }
    }
    if swept.deletes && fs::read_dir(folder)?.next().is_none() {
        fs::remove_dir(folder)?;
    }
    Ok(swept)
}
