//! Files written: new ones, ones replaced as a whole, and their way to the disk.
//!
//! What is written through here is complete or not there: it is written under another name in the same
//! folder, flushed and renamed. A process that is killed leaves that other file, which the next one that writes to the
//! folder removes.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The longest name of a file or folder on common file systems, in bytes.
const LONGEST_NAME: usize = 255;
/// Bytes that are collected before they are given to the system.
const BUFFER: usize = 1 << 20;

/// Writes and flushes a file that must not exist yet.
///
/// # Errors
/// It exists, or the system refuses.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a file by what `write` writes, or creates it, together with the folders it needs. A link is
/// followed, so that it stays one; a device or a pipe is written to and not replaced.
///
/// # Errors
/// The system refuses; the file is then unchanged.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    check_names(path)?;
    // The rename would otherwise replace a link by a file. A path that does not exist yet has no links to
    // follow.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let old = fs::metadata(&path).ok();
    // Such as `/dev/stdout` and `/dev/null`: a rename would put a file in their place.
    if old.as_ref().is_some_and(|meta| !meta.is_file()) {
        let mut file = BufWriter::with_capacity(BUFFER, File::create(&path)?);
        write(&mut file)?;
        return file.flush();
    }
    if path.file_name().is_none() {
        return Err(io::Error::other("it has no file name"));
    }
    if !is_incomplete(folder) {
        remove_abandoned(folder);
    }
    let (draft, new) = draft_in(folder)?;
    let written = (|| {
        let mut file = BufWriter::with_capacity(BUFFER, new);
        write(&mut file)?;
        file.flush()?;
        // The new file would otherwise have the default permissions, even if the old one was private.
        if let Some(old) = old {
            file.get_ref().set_permissions(old.permissions())?;
        }
        // Before the rename, which could otherwise reach the disk before the content and leave an empty
        // file.
        file.get_ref().sync_all()?;
        fs::rename(&draft, &path)
    })();
    match written {
        Ok(()) => flush_folder(folder),
        Err(error) => {
            // The first error is the one to report.
            let _ = fs::remove_file(&draft);
            Err(error)
        }
    }
}

/// Replaces a file as [`replace`] does, or creates it, but never through a link, by which a file elsewhere would change.
///
/// # Errors
/// It is a link or not an ordinary file, or the system refuses; nothing is then changed.
pub fn replace_own(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(named) if !named.is_file() => Err(foreign()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(_) | Err(_) => replace(path, write),
    }
}

/// The error that a file of trafoc's own is something else.
fn foreign() -> io::Error {
    io::Error::other("it is a link or not an ordinary file, and is not written to")
}

/// What the names of drafts begin with. A file's own name with an ending could be too long for the file system.
const DRAFT: &str = "trafoc";

/// A new file for what will replace another one. Its lock says that a process still writes it.
fn draft_in(folder: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let path = folder.join(scratch(DRAFT));
        // A killed process of the same id may have left one, or somebody else a link.
        unless_missing(fs::remove_file(&path))?;
        let file = File::options().write(true).create_new(true).open(&path)?;
        if is_incomplete(folder) {
            return Ok((path, file));
        }
        // Another process may have taken it for abandoned before it had the lock. A file system without locks has
        // no abandoned files either.
        let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if !is_taken && fs::symlink_metadata(&path).is_ok() {
            return Ok((path, file));
        }
    }
}

/// A draft that no process writes any more, with its lock: the process that began it was killed. `None` for any other file.
fn abandoned(path: &Path) -> Option<File> {
    let name = path.file_name()?.to_str()?;
    let numbers = name.strip_prefix('.')?.strip_prefix(DRAFT)?.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (call, process) = numbers.split_once('.')?;
    let is_draft = [call, process].iter().all(|number| number.parse::<u64>().is_ok());
    // Neither a link nor a pipe, which would not open.
    if !is_draft || !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let file = File::options().read(true).write(true).open(path).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// Whether a killed process of trafoc has left this file, which the next [`replace`] in its folder removes.
pub fn is_abandoned(path: &Path) -> bool {
    abandoned(path).is_some()
}

/// Removes the drafts that killed processes have left in a folder, once in this process. Those that cannot be removed stay,
/// since they do no harm.
fn remove_abandoned(folder: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if !SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // With the lock, so that a process that begins a draft of this name sees that it is taken.
        if let Some(_lock) = abandoned(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Refuses a path with a name that no file system accepts, before any folder is created for it.
fn check_names(path: &Path) -> io::Result<()> {
    match path.components().map(|name| name.as_os_str().len()).max() {
        Some(bytes) if bytes > LONGEST_NAME => Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            format!("a name in it has {bytes} bytes, but a file system allows {LONGEST_NAME}"),
        )),
        Some(_) | None => Ok(()),
    }
}

/// A name for a file or folder that is not complete yet. No other call and no other process returns the same,
/// so several of them may write at the same time.
pub fn scratch(name: &str) -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    format!(".{name}.{}.{}.tmp", CALLS.fetch_add(1, Ordering::Relaxed), std::process::id())
}

/// Whether a name is one that [`scratch`] gives, in any process.
pub fn is_scratch(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// Whether a folder has no name of its own yet. Only the process that makes it writes into it, and what a killed process has left
/// of one goes away as a whole, so its files need no locks.
fn is_incomplete(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| is_scratch(&name.to_string_lossy()))
}

/// Flushes a file that has been written and closed.
///
/// # Errors
/// The system refuses.
pub fn flush(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Flushes the entries of a folder: only then does a rename survive a crash of the system. Where the system
/// does not allow it, nothing can be done, and that is not an error.
///
/// # Errors
/// The system fails.
pub fn flush_folder(path: &Path) -> io::Result<()> {
    match flush(path) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied && cfg!(unix) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The result of a deletion, for which it is no error that there was nothing to delete.
///
/// # Errors
/// Any other error.
pub fn unless_missing(deleted: io::Result<()>) -> io::Result<()> {
    match deleted {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Opens a file for reading and for writing at its end, created if it does not exist, never through a link of
/// any kind: that would write to a file elsewhere.
///
/// # Errors
/// It is a link or not an ordinary file, or the system refuses.
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    // `create_new` follows no link, so a new file is where its name is.
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created,
    }
    // A pipe would not open before another process reads from it.
    let named = fs::symlink_metadata(path)?;
    if !named.is_file() {
        return Err(foreign());
    }
    let file = options.open(path)?;
    // The name may have become a link since; nothing has been written yet.
    if is_same_file(&named, &file.metadata()?) { Ok(file) } else { Err(foreign()) }
}

/// Whether both are metadata of the same file, and the file has no other name, through which a change would
/// appear elsewhere.
#[cfg(unix)]
fn is_same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino()) && b.nlink() == 1
}

#[cfg(not(unix))]
fn is_same_file(_: &fs::Metadata, b: &fs::Metadata) -> bool {
    b.is_file()
}
