//! The list of a folder's files with their checksums. It is written last, so a folder that has it is
//! complete, and every byte can be compared with it.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::format;
use crate::diag::count::counted;
use crate::{read, write};

/// The name of the list's file, without which a folder is not complete.
pub const LIST: &str = "whole.json";
/// The longest list in bytes: enough for thousands of files, while the folder of a run has a dozen.
pub const MAX_LIST: usize = 1 << 20;

/// The files of a folder by name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileList {
    format: String,
    files: IndexMap<String, Sum>,
}

/// The length and the checksum of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// The length in bytes, which is compared before the checksum.
    pub bytes: u64,
    /// The SHA-256 in hexadecimal digits.
    pub sha256: String,
}

impl FileList {
    /// Flushes every file of a folder and lists it.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn flushed(folder: &Path, format: &str) -> io::Result<Self> {
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(folder)? {
            // In the order of names below, since that of a folder depends on the file system.
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Self::of(folder, format, names)
    }

    /// Flushes and lists these files of a folder.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn of(folder: &Path, format: &str, names: Vec<String>) -> io::Result<Self> {
        let mut files = IndexMap::new();
        for name in names {
            let path = folder.join(&name);
            // The list promises these bytes, so they must be on the disk before it is.
            write::flush(&path)?;
            files.insert(name, Sum::of_file(&path)?);
        }
        Ok(Self { format: format.to_owned(), files })
    }

    /// Compares every byte of a folder with its list.
    ///
    /// # Errors
    /// The first difference, in lower case without a full stop.
    pub fn check(folder: &Path, format: &str) -> Result<Self, String> {
        let list = Self::read(folder, format)?;
        for (name, expected) in &list.files {
            let file = folder.join(name);
            let length =
                read::regular(&file).and_then(|file| file.metadata()).map_err(|e| at(name, &e))?.len();
            // The length first: a file that was cut off is found without reading gigabytes.
            if length != expected.bytes {
                return Err(format!("{name} has {} instead of {}", counted(length, "byte"), expected.bytes));
            }
            if Sum::of_file(&file).map_err(|e| at(name, &e))? != *expected {
                return Err(format!("{name} is damaged: its checksum is wrong"));
            }
        }
        Ok(list)
    }

    /// Reads the list of a folder. A list with a name that is not that of a file directly in the folder is
    /// refused, because files elsewhere would be read or deleted.
    ///
    /// # Errors
    /// As [`FileList::check`].
    pub fn read(folder: &Path, reads: &str) -> Result<Self, String> {
        let bytes = read::bounded(&folder.join(LIST), MAX_LIST).map_err(|e| at(LIST, &e))?;
        format::check(&bytes, reads).map_err(|why| format!("{LIST}: {why}"))?;
        let list: Self = read::json(&bytes).map_err(|why| format!("{LIST} is damaged: {why}"))?;
        // The list has no checksum of its own. Its content determines its text, so a changed byte is found.
        if to_json(&list) != bytes {
            return Err(format!("{LIST} is damaged"));
        }
        for name in list.files.keys() {
            // The separators of every system, because a folder may be copied from one to another: a colon
            // follows the drive on Windows.
            if name.is_empty() || name.contains(['/', '\\', ':']) || name.starts_with('.') {
                return Err(format!("{LIST} is damaged: it names `{name}`"));
            }
        }
        Ok(list)
    }

    /// The names of the files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The files by name, each with its length and its checksum.
    pub fn files(&self) -> &IndexMap<String, Sum> {
        &self.files
    }

    /// The number of bytes of all files.
    pub fn bytes(&self) -> u64 {
        // Saturating, because the numbers may have been read from a file.
        self.files.values().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Writes the list into its folder, where there must not be one.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        write::create(&folder.join(LIST), &to_json(self))
    }
}

impl Sum {
    /// The sum of an ordinary file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        Self::of(&mut read::regular(path)?)
    }

    /// The sum of all that can be read.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(from: &mut dyn Read) -> io::Result<Self> {
        // In pieces: a checkpoint may be larger than the memory that is free.
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        let mut bytes = 0u64;
        loop {
            let n = from.read(&mut buffer)?;
            let Some(part) = buffer.get(..n).filter(|part| !part.is_empty()) else { break };
            hash.update(part);
            bytes = bytes.saturating_add(n as u64);
        }
        let digest = hash.finalize();
        Ok(Self { bytes, sha256: digest.iter().map(|b| format!("{b:02x}")).collect() })
    }
}

/// Why a file of a folder cannot be read.
pub fn at(name: &str, error: &io::Error) -> String {
    match error.kind() {
        // The system's own message has the number of the error in it, `(os error 2)`.
        io::ErrorKind::NotFound => format!("{name}: it does not exist"),
        _ => format!("{name}: {error}"),
    }
}

/// A value as the JSON of a file.
pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}
