//! Files, read with a limit and written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::ui::{Exit, Failure};
use crate::syntax::text::MAX_BYTES;

/// The bytes of a spec. One more than allowed is read, so that its decoding can say it is too long.
///
/// # Errors
/// The system refuses, or it is a folder.
pub fn read_spec(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    limited(file)
}

/// The bytes of a spec on stdin.
///
/// # Errors
/// The system refuses.
pub fn read_stdin() -> io::Result<Vec<u8>> {
    limited(io::stdin().lock())
}

/// The bytes of a file, or of stdin for `-`; an error beyond `most`.
///
/// # Errors
/// The system refuses, or there is more.
#[cfg(feature = "interp")]
pub fn read_bounded(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = most as u64;
    if path == Path::new("-") {
        io::stdin().lock().take(most + 1).read_to_end(&mut bytes)?;
    } else {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it is longer than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// Bytes of memory a process could still have, where the system says so.
#[cfg(feature = "interp")]
pub fn free_memory() -> Option<u128> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u128 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

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

fn limited(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
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

/// Writes a text beside its target and renames it, making the folders it needs.
///
/// # Errors
/// The system refuses; the target is then as it was.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed =
        |e: &io::Error| Failure::new(Exit::File, format!("cannot write `{}`: {}", path.display(), reason(e)));
    write_whole(path, text.as_bytes()).map_err(|e| failed(&e))
}

/// Writes a figure as png, in the same way.
///
/// # Errors
/// It cannot be drawn, or the system refuses.
#[cfg(feature = "png")]
pub fn write_png(path: &Path, figure: &crate::draw::Figure) -> Result<(), Failure> {
    let bytes = crate::draw::png::png(figure).map_err(|why| Failure::new(Exit::Failed, why))?;
    let name = path.display();
    write_whole(path, &bytes)
        .map_err(|e| Failure::new(Exit::File, format!("cannot write `{name}`: {}", reason(&e))))
}

/// Says what is missing.
///
/// # Errors
/// Always.
#[cfg(not(feature = "png"))]
pub fn write_png(_: &Path, _: &crate::draw::Figure) -> Result<(), Failure> {
    let message = "this trafoc was built without the feature `png`, and writes no png";
    Err(Failure::new(Exit::Device, message).help("build it with `cargo build --release --features png`"))
}

/// The longest name of a file or folder on common file systems, in bytes.
const LONGEST_NAME: usize = 255;

/// Nothing is made on the way to a name that no file system takes.
fn check_names(path: &Path) -> io::Result<()> {
    match path.components().map(|name| name.as_os_str().len()).max() {
        Some(bytes) if bytes > LONGEST_NAME => Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            format!("a name in it has {bytes} bytes, and a file system takes {LONGEST_NAME}"),
        )),
        Some(_) | None => Ok(()),
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    check_names(path)?;
    // A link is followed, so that it stays one.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).map_or(Path::new("."), |p| p);
    fs::create_dir_all(folder)?;
    if fs::metadata(&path).is_ok_and(|m| !m.is_file()) {
        // A device or a pipe is written to, not replaced.
        return File::create(&path)?.write_all(bytes);
    }
    if path.file_name().is_none() {
        return Err(io::Error::other("it has no file name"));
    }
    // A name of its own: the file's may have no room for an ending.
    let beside: PathBuf = folder.join(format!(".trafoc.{}.tmp", std::process::id()));
    let write = || {
        let mut file = File::options().write(true).create_new(true).open(&beside)?;
        file.write_all(bytes)?;
        if let Ok(old) = fs::metadata(&path) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}
