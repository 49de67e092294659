//! Writes files completely or not at all, and turns I/O errors into failures.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::outcome::{Exit, Failure};
use crate::diag::suggest::{is_near, suggest};
pub use crate::read::reason;
use crate::syntax::Notation;
use crate::write;

/// Creates the folder of a file that is written later.
///
/// # Errors
/// The operating system reports an error.
#[cfg(feature = "interp")]
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    // The folder of a bare name is the empty path, which needs no making.
    let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|e| {
        Failure::new(Exit::File, format!("cannot make the folder `{}`: {}", folder.display(), reason(&e)))
    })
}

/// The help for a URL given where a path is expected, since nothing is downloaded.
pub fn address(name: &str) -> Option<String> {
    name.contains("://").then(|| "trafoc downloads nothing: download the file, and give its path".to_owned())
}

/// The advice for a name of something that is elsewhere: an address, or a model of Hugging Face's hub, as
/// `openai-community/gpt2`.
pub fn elsewhere(name: &str) -> Option<String> {
    if let Some(advice) = address(name) {
        return Some(advice);
    }
    let (owner, model) = name.split_once('/')?;
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with(['.', '~', '@']);
    let is_spec = Notation::from_path(name).is_some() || name.ends_with(".json");
    // In a folder that exists, a file was meant.
    let is_model = is_plain(owner) && is_plain(model) && !model.contains('/') && !is_spec;
    (is_model && !Path::new(owner).exists()).then(|| {
        format!(
            "trafoc downloads nothing: `hf download {name} --local-dir {model}` does, and then `{model}` \
            is the model"
        )
    })
}

/// The spec of the same name but for its ending, which may be missing or that of the other notation.
pub fn of_other_ending(path: &Path) -> Option<PathBuf> {
    ["yaml", "yml", "trafo"].map(|ending| path.with_extension(ending)).into_iter().find(|path| path.is_file())
}

/// The file of the same folder whose name is most similar, among those whose name is accepted.
pub fn alike(path: &Path, accepts: impl Fn(&str) -> bool) -> Option<PathBuf> {
    // To compare the names of a folder with a great many files takes time.
    const MOST: usize = 1000;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?;
    let names = entries.take(MOST).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| accepts(name)).collect();
    // A folder is listed in no order.
    names.sort();
    // What all names have in common, `.yaml`, makes none of them similar.
    let stem =
        |name: &str| Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name).to_owned();
    let sought = path.file_name()?.to_str()?;
    names.retain(|name| stem(name) == stem(sought) || is_near(&stem(sought), &stem(name)));
    let near = suggest(sought, &names)?;
    Some(parent.map_or_else(|| PathBuf::from(&near), |parent| parent.join(&near)))
}

/// Replaces a file by a text, and creates the folders it needs.
///
/// # Errors
/// The operating system reports an error; the file is then unchanged.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write::replace(path, |file| file.write_all(text.as_bytes())).map_err(|e| cannot_write(path, &e))
}

/// Replaces a file by a figure as png.
///
/// # Errors
/// The figure cannot be drawn, or the operating system reports an error.
#[cfg(feature = "png")]
pub fn write_png(path: &Path, figure: &crate::draw::Figure) -> Result<(), Failure> {
    let bytes = crate::draw::png::png(figure).map_err(|why| Failure::new(Exit::Failed, why))?;
    write::replace(path, |file| file.write_all(&bytes)).map_err(|e| cannot_write(path, &e))
}

/// Refuses to write a png, which this build cannot draw.
///
/// # Errors
/// In every case: the feature `png` is missing.
#[cfg(not(feature = "png"))]
pub fn write_png(_: &Path, _: &crate::draw::Figure) -> Result<(), Failure> {
    let message = "this trafoc was built without the feature `png`, and writes no png";
    Err(Failure::new(Exit::Device, message).help("build it with `cargo build --release --features png`"))
}

/// Files of one folder that are written into a folder with another name and renamed at the end, so that no
/// incomplete file gets its final name. A new folder appears as a whole; in an existing one the files are
/// renamed one after the other. If the process is killed, the folder with the other name remains, which no
/// reader looks for and the next attempt removes.
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
    /// The operating system reports an error.
    pub fn begin(to: &Path) -> Result<Self, Failure> {
        // A link is resolved, so that the files are written where it leads.
        let to = fs::canonicalize(to).unwrap_or_else(|_| to.to_owned());
        let begin = || {
            // If the folder does not exist yet, the files are written next to it, so that a rename makes it
            // appear complete; otherwise inside of it.
            let staging = match (to.is_dir(), to.file_name()) {
                (false, Some(name)) => {
                    let mut hidden = OsString::from(".");
                    hidden.push(name);
                    hidden.push(".trafoc.tmp");
                    to.with_file_name(hidden)
                }
                // Not in the system's folder for temporary files, which may be another file system, where a
                // rename fails.
                _ => to.join(".trafoc.tmp"),
            };
            // What an attempt that was killed has left would otherwise become part of this one.
            write::unless_missing(fs::remove_dir_all(&staging))?;
            fs::create_dir_all(&staging)?;
            Ok(staging)
        };
        let staging = begin().map_err(|e| cannot_write(&to, &e))?;
        Ok(Self { to, staging, is_done: false })
    }

    /// Writes files into the folder, which has another name than the final one until [`finish`](Self::finish).
    ///
    /// # Errors
    /// Those of `write`, with the name that the folder was to get.
    pub fn fill<T>(&self, write: impl FnOnce(&Path) -> Result<T, Failure>) -> Result<T, Failure> {
        let (hidden, named) = (self.staging.display().to_string(), self.to.display().to_string());
        write(&self.staging)
            .map_err(|failure| Failure { message: failure.message.replace(&hidden, &named), ..failure })
    }

    /// Gives all files their names. If the folder existed before, the file `last`, which readers look for
    /// first, is renamed after all others.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn finish(mut self, last: &str) -> Result<(), Failure> {
        let finish = || {
            // One rename, so that other programs see either no folder or all of its files.
            if !self.to.exists() {
                return fs::rename(&self.staging, &self.to);
            }
            let mut names: Vec<OsString> = fs::read_dir(&self.staging)?
                .map(|entry| Ok(entry?.file_name()))
                .collect::<io::Result<_>>()?;
            // `false` sorts before `true`: the file that makes the folder complete comes last.
            names.sort_by_key(|name| (name == last, name.clone()));
            for name in names {
                place(&self.staging.join(&name), &self.to.join(&name))?;
            }
            // It is empty now. If it were not, this would fail rather than lose a file.
            fs::remove_dir(&self.staging)
        };
        finish().map_err(|e| cannot_write(&self.to, &e))?;
        self.is_done = true;
        Ok(())
    }
}

/// Gives a file its name, and the files of a folder theirs in the folder that is there already.
fn place(from: &Path, to: &Path) -> io::Result<()> {
    if !(from.is_dir() && to.is_dir()) {
        return fs::rename(from, to);
    }
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        place(&from.join(&name), &to.join(&name))?;
    }
    fs::remove_dir(from)
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
