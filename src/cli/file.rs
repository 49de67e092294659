//! Files written whole or not at all, and what the system says of files.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::outcome::{Exit, Failure};
use crate::write;

/// Makes the folder a file is to be written to.
///
/// # Errors
/// The system refuses.
#[cfg(feature = "interp")]
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|e| {
        Failure::new(Exit::File, format!("cannot make the folder `{}`: {}", folder.display(), reason(&e)))
    })
}

/// What the system said, without its number.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => {
            let said = error.to_string();
            said.split(" (os error").next().unwrap_or(&said).to_lowercase()
        }
    }
}

/// Replaces a file by a text, and creates the folders it needs.
///
/// # Errors
/// The system refuses; the target is then as it was.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write::replace(path, |file| file.write_all(text.as_bytes())).map_err(|e| cannot_write(path, &e))
}

/// Replaces a file by a figure as png.
///
/// # Errors
/// It cannot be drawn, or the system refuses.
#[cfg(feature = "png")]
pub fn write_png(path: &Path, figure: &crate::draw::Figure) -> Result<(), Failure> {
    let bytes = crate::draw::png::png(figure).map_err(|why| Failure::new(Exit::Failed, why))?;
    write::replace(path, |file| file.write_all(&bytes)).map_err(|e| cannot_write(path, &e))
}

/// Reports the missing feature.
///
/// # Errors
/// Always.
#[cfg(not(feature = "png"))]
pub fn write_png(_: &Path, _: &crate::draw::Figure) -> Result<(), Failure> {
    let message = "this trafoc was built without the feature `png`, and writes no png";
    Err(Failure::new(Exit::Device, message).help("build it with `cargo build --release --features png`"))
}

/// Files of one folder that appear together or not at all: they are written into a folder of another name, and
/// renamed at the end. What a killed process leaves has a name that no reader looks for, and the next attempt removes
/// it.
#[derive(Debug)]
pub struct Staged {
    to: PathBuf,
    staging: PathBuf,
    is_done: bool,
}

impl Staged {
    /// Begins to write files for the folder `to`, which need not exist.
    ///
    /// # Errors
    /// The system refuses.
    pub fn begin(to: &Path) -> Result<Self, Failure> {
        // A link is followed, so that it stays one.
        let to = fs::canonicalize(to).unwrap_or_else(|_| to.to_owned());
        let begin = || {
            // If the folder does not exist yet, next to it, so that it appears whole; else inside of it.
            let staging = match (to.is_dir(), to.file_name()) {
                (false, Some(name)) => {
                    let mut hidden = OsString::from(".");
                    hidden.push(name);
                    hidden.push(".trafoc.tmp");
                    to.with_file_name(hidden)
                }
                _ => to.join(".trafoc.tmp"),
            };
            write::unless_missing(fs::remove_dir_all(&staging))?;
            fs::create_dir_all(&staging)?;
            Ok(staging)
        };
        let staging = begin().map_err(|e| cannot_write(&to, &e))?;
        Ok(Self { to, staging, is_done: false })
    }

    /// The folder to write into.
    pub fn folder(&self) -> &Path {
        &self.staging
    }

    /// Gives everything its name, the file `last` after all others: if the folder existed before, readers look for this
    /// file first.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(mut self, last: &str) -> Result<(), Failure> {
        let finish = || {
            if !self.to.exists() {
                return fs::rename(&self.staging, &self.to);
            }
            let mut names: Vec<OsString> = fs::read_dir(&self.staging)?
                .map(|entry| Ok(entry?.file_name()))
                .collect::<io::Result<_>>()?;
            names.sort_by_key(|name| (name == last, name.clone()));
            for name in names {
                fs::rename(self.staging.join(&name), self.to.join(&name))?;
            }
            fs::remove_dir(&self.staging)
        };
        finish().map_err(|e| cannot_write(&self.to, &e))?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_done {
            // The failure that led here is reported; the next attempt removes what remains.
            let _ = fs::remove_dir_all(&self.staging);
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::File, format!("cannot write `{}`: {}", path.display(), reason(error)))
}
