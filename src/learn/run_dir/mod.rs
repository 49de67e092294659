//! The folder of a training run: checkpoints, which are always complete, and a record of metrics.
//!
//! ```text
//! RUN/run.json                        what this folder is
//! RUN/start/                          the spec, the recipe and whose weights it began with
//! RUN/lock                            locked by the process that trains, whose id it contains
//! RUN/calls.jsonl                     one line for each call that began or continued it
//! RUN/metrics.jsonl                   one line for every step and every evaluation
//! RUN/checkpoints/step-000004000/     model, optimizer, state, tokenizers, spec, recipe
//!                               whole.json   every file with its size and SHA-256, written last
//! ```
//! A checkpoint is written into a folder with another name, flushed file by file, and then renamed: a
//! folder named `step-...` with a correct `whole.json` is complete. Older checkpoints are deleted only
//! afterwards. Reading compares every byte with `whole.json` and falls back to the previous checkpoint.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::learn::marker::{self, Marker};
use crate::learn::whole::{FileList, LIST, to_json};
use crate::read;
use crate::write::{self, is_scratch, scratch};

pub use crate::learn::marker::is_run;
pub use checkpoint::{AVERAGED, Checkpoint, exists, last, named, newest, planned, step_name};
pub use error::{Damaged, RunDirError};
pub use state::{Best, State};

use checkpoint::{folder_of, step_of, steps};
use error::{io_at, readable};
use list::{FORMAT, STATE};

mod checkpoint;
mod error;
mod list;
mod state;

/// The name of the folder with what a run began with.
const START: &str = "start";

/// The folder of a run, locked until this is dropped.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    // The operating system releases the lock when the process ends, even if it is killed.
    _lock: File,
}

impl RunDir {
    /// Creates the folder of a new run; if it exists, it must be empty. `start` writes what the run begins
    /// with into a folder, so that a run that ends before its first checkpoint can begin again.
    ///
    /// # Errors
    /// The folder is not empty, or an I/O error.
    pub fn create(
        root: &Path,
        name: &str,
        start: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Self, RunDirError> {
        if is_run(root) {
            return Err(RunDirError::Exists(root.to_owned()));
        }
        // Before anything is created: a folder that is refused stays as it is.
        // `run.json` is written last, so a process that was killed before may have left these.
        // `torch` is of a project for PyTorch, which begins its folders in another order.
        let known = ["checkpoints", "lock", "torch", START];
        let foreign = names(root)?
            .iter()
            .any(|name| !known.iter().any(|k| name == k) && !is_scratch(&name.to_string_lossy()));
        // A folder `checkpoints` or `torch` with content is somebody's work, even if nothing says that it is a run.
        let used = !names(&folder_of(root))?.is_empty() || !names(&root.join("torch"))?.is_empty();
        if foreign || used {
            return Err(RunDirError::Foreign(root.to_owned()));
        }
        fs::create_dir_all(folder_of(root)).map_err(io_at(root))?;
        let lock = hold(root)?;
        // Before this process had the lock, another one may have made a run.
        if is_run(root) {
            return Err(RunDirError::Exists(root.to_owned()));
        }
        sweep(root)?;
        put_start(root, start).map_err(io_at(root))?;
        // Last: a folder with this file is a run, which must have everything it began with. It appears with all of
        // its content, or a run that is killed here could not be read.
        let draft = root.join(scratch(marker::FILE));
        write::create(&draft, &to_json(&Marker::new(name))).map_err(io_at(root))?;
        fs::rename(&draft, root.join(marker::FILE)).map_err(io_at(root))?;
        write::flush_folder(root).map_err(io_at(root))?;
        Ok(Self { root: root.to_owned(), _lock: lock })
    }

    /// Opens the folder of an existing run and deletes what a killed process has left incomplete.
    ///
    /// # Errors
    /// It is not the folder of a run, or one of another version; another process trains there; or an I/O error.
    pub fn open(root: &Path) -> Result<Self, RunDirError> {
        if !is_run(root) {
            return Err(match fs::metadata(root) {
                Ok(_) => RunDirError::Foreign(root.to_owned()),
                Err(error) => RunDirError::Io(root.to_owned(), error),
            });
        }
        // Before anything is deleted: what looks incomplete may be how another version writes it.
        readable(root)?;
        let lock = hold(root)?;
        // With the lock: what looks abandoned may be what another process is writing.
        let run = Self { root: root.to_owned(), _lock: lock };
        sweep(root)?;
        let folder = run.checkpoints();
        fs::create_dir_all(&folder).map_err(io_at(&folder))?;
        for name in names(&folder)? {
            let (name, path) = (name.to_string_lossy(), folder.join(&name));
            // A checkpoint without its list was being deleted: that is how deleting begins.
            if is_scratch(&name) || (step_of(&name).is_some() && !read::is_there(&path.join(LIST))) {
                fs::remove_dir_all(path).map_err(io_at(&folder))?;
            }
        }
        Ok(run)
    }

    /// Begins a run again that has no checkpoint yet, with what `start` writes into a folder.
    ///
    /// # Errors
    /// As [`RunDir::open`].
    pub fn restart(root: &Path, start: impl FnOnce(&Path) -> io::Result<()>) -> Result<Self, RunDirError> {
        let run = Self::open(root)?;
        put_start(root, start).map_err(io_at(root))?;
        Ok(run)
    }

    /// The path of the folder, as the run was created or opened with it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn checkpoints(&self) -> PathBuf {
        folder_of(&self.root)
    }

    /// Writes a checkpoint: `fill` creates files in the folder it is given. Of the older checkpoints, the
    /// best one and the last `keep` (including this one) are kept.
    ///
    /// # Errors
    /// An I/O error; the earlier checkpoints are then unchanged.
    pub fn save(
        &self,
        state: &State,
        keep: u64,
        fill: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, RunDirError> {
        let name = step_name(state.step);
        let path = self.put(&name, state, fill)?;
        // Only now: until the new checkpoint is complete, the old ones are all there is.
        self.prune(keep, state.best.as_ref().map(|b| b.step)).map_err(io_at(&self.checkpoints()))?;
        Ok(path)
    }

    /// Writes the model that is the mean of several checkpoints.
    ///
    /// # Errors
    /// An I/O error.
    pub fn save_averaged(
        &self,
        state: &State,
        fill: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, RunDirError> {
        self.put(AVERAGED, state, fill)
    }

    /// Writes a checkpoint under a name: complete and flushed before it gets that name. A folder that has it
    /// already is replaced.
    fn put(
        &self,
        name: &str,
        state: &State,
        fill: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, RunDirError> {
        let folder = self.checkpoints();
        let draft = folder.join(scratch(name));
        let target = folder.join(name);
        let result = (|| {
            // A killed process with the same id may have left one of this name.
            write::unless_missing(fs::remove_dir_all(&draft))?;
            fs::create_dir_all(&draft)?;
            fill(&draft)?;
            write::create(&draft.join(STATE), &to_json(state))?;
            FileList::flushed(&draft, FORMAT)?.write(&draft)?;
            write::flush_folder(&draft)?;
            if target.exists() {
                // The old folder is damaged, or the step was repeated after an older checkpoint was
                // resumed.
                let aside = folder.join(scratch(&format!("{name}.old")));
                // A folder that is not empty cannot be replaced in one step. Between the two renames no
                // folder has this name, and the older checkpoints are still there.
                fs::rename(&target, &aside)?;
                fs::rename(&draft, &target)?;
                fs::remove_dir_all(&aside)?;
            } else {
                fs::rename(&draft, &target)?;
            }
            // A rename is on the disk only once the folder around it is.
            write::flush_folder(&folder)
        })();
        match result {
            Ok(()) => Ok(target),
            Err(error) => {
                // If it cannot be deleted now, it is deleted when the run is opened again.
                let _ = fs::remove_dir_all(&draft);
                Err(RunDirError::Io(target, error))
            }
        }
    }

    /// Deletes all checkpoints but the last `keep` and the one after the step `best`.
    fn prune(&self, keep: u64, best: Option<u64>) -> io::Result<()> {
        let steps = steps(&self.checkpoints())?;
        for step in steps.into_iter().skip(usize::try_from(keep).unwrap_or(usize::MAX)) {
            // The best model outlives its place among the last ones, or a long run could not return it.
            if Some(step) != best {
                let path = self.checkpoints().join(step_name(step));
                // Without its list it is no longer a checkpoint, even if deleting the rest fails.
                write::unless_missing(fs::remove_file(path.join(LIST)))?;
                fs::remove_dir_all(path)?;
            }
        }
        Ok(())
    }

    /// Adds lines to the record of metrics.
    ///
    /// # Errors
    /// An I/O error.
    pub fn record(&self, line: &impl Serialize) -> Result<(), RunDirError> {
        let path = self.root.join(super::record::FILE);
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        // Written together with its line break, by which readers know that a line is whole.
        text.push(b'\n');
        let mut file = write::append(&path).map_err(io_at(&path))?;
        file.write_all(&text).map_err(io_at(&path))
    }

    /// Removes from the record what was measured after a step, because it will be measured again.
    ///
    /// # Errors
    /// An I/O error.
    pub fn rewind(&self, step: u64) -> Result<(), RunDirError> {
        #[derive(Deserialize)]
        struct At {
            step: u64,
        }
        let path = self.root.join(super::record::FILE);
        let file = match read::regular(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(RunDirError::Io(path, error)),
        };
        let mut kept = Vec::new();
        for line in BufReader::new(file).split(b'\n') {
            let line = line.map_err(io_at(&path))?;
            // A last line that a killed process has not finished is no JSON, and is left out, too.
            if serde_json::from_slice::<At>(&line).is_ok_and(|at| at.step <= step) {
                kept.extend_from_slice(&line);
                kept.push(b'\n');
            }
        }
        // The file is replaced in one step: one that was cut off would lose what cannot be measured again.
        write::replace_own(&path, |file| file.write_all(&kept)).map_err(io_at(&path))
    }

    /// The newest complete checkpoint.
    ///
    /// # Errors
    /// No checkpoint is complete.
    pub fn newest(&self) -> Result<Checkpoint, RunDirError> {
        newest(&self.root)
    }
}

/// A file of what a run began with, if it is there.
pub fn start_file(root: &Path, name: &str) -> Option<PathBuf> {
    Some(root.join(START).join(name)).filter(|path| path.is_file())
}

/// The names in a folder; none if there is no such folder. A folder whose names cannot all be read is not taken for one
/// with fewer of them.
fn names(folder: &Path) -> Result<Vec<OsString>, RunDirError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io_at(folder))?,
    };
    entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(io_at(folder))).collect()
}

/// Deletes what a killed process has left incomplete in a folder, of which this process has the lock.
fn sweep(root: &Path) -> Result<(), RunDirError> {
    for name in names(root)? {
        if is_scratch(&name.to_string_lossy()) {
            let path = root.join(name);
            // A link to a folder is deleted as a file.
            let is_folder = fs::symlink_metadata(&path).is_ok_and(|entry| entry.is_dir());
            let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            write::unless_missing(removed).map_err(io_at(&path))?;
        }
    }
    Ok(())
}

/// Writes what a run begins with into its folder, in place of what is there.
fn put_start(root: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let (draft, folder) = (root.join(scratch(START)), root.join(START));
    // What a killed process has left of it cannot be trusted, so it is written again.
    for old in [&draft, &folder] {
        write::unless_missing(fs::remove_dir_all(old))?;
    }
    fs::create_dir(&draft)?;
    fill(&draft)?;
    write::flush_folder(&draft)?;
    fs::rename(&draft, &folder)?;
    write::flush_folder(root)
}

/// Takes the lock of a run's folder. The lock must be a new or an ordinary file: writing through a link would
/// overwrite a file somewhere else.
fn hold(root: &Path) -> Result<File, RunDirError> {
    let path = root.join("lock");
    let mut file = write::append(&path).map_err(io_at(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // An id has few digits; the file may be any other one of this name.
            let by = (&file).take(32).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(RunDirError::Locked { path: root.to_owned(), by });
        }
        Err(TryLockError::Error(error)) => return Err(RunDirError::Io(path, error)),
    }
    // Only with the lock, or the id of the process that has it would be overwritten.
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io_at(&path))?;
    Ok(file)
}
