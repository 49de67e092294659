//! The list of a checkpoint's files with their checksums, which is written last and makes the checkpoint
//! complete.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{State, to_json};
use crate::{read, write};

/// The format that the list declares.
const FORMAT: &str = "trafoc-checkpoint/1";
/// The name of the list's file, without which a checkpoint is not complete.
pub(super) const LIST: &str = "whole.json";
/// The name of the file with the training's state.
pub(super) const STATE: &str = "state.json";
/// The longest list, and the longest state, in bytes.
pub(super) const MAX_LIST: usize = 1 << 20;

/// The files of a checkpoint by name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileList {
    format: String,
    files: IndexMap<String, Sum>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sum {
    bytes: u64,
    sha256: String,
}

impl FileList {
    /// Flushes every file of a folder and lists it.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub(super) fn flushed(folder: &Path) -> io::Result<Self> {
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        let mut files = IndexMap::new();
        for name in names {
            let path = folder.join(&name);
            write::flush(&path)?;
            files.insert(name, Sum::of(&path)?);
        }
        Ok(Self { format: FORMAT.to_owned(), files })
    }
}

impl Sum {
    fn of(path: &Path) -> io::Result<Self> {
        let mut file = read::regular(path)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        let mut bytes = 0;
        loop {
            let n = file.read(&mut buffer)?;
            let Some(part) = buffer.get(..n).filter(|part| !part.is_empty()) else { break };
            hash.update(part);
            bytes += n as u64;
        }
        let digest = hash.finalize();
        Ok(Self { bytes, sha256: digest.iter().map(|b| format!("{b:02x}")).collect() })
    }
}

/// Compares every byte of a checkpoint with its list, and reads its state.
///
/// # Errors
/// The first difference, in lower case without a full stop.
pub(super) fn check(folder: &Path) -> Result<State, String> {
    let at = |name: &str, error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("{name}: it does not exist"),
        _ => format!("{name}: {error}"),
    };
    let read = |name: &str| read::bounded(&folder.join(name), MAX_LIST).map_err(|e| at(name, &e));
    let bytes = read(LIST)?;
    let list: FileList = serde_json::from_slice(&bytes).map_err(|e| format!("{LIST} is damaged: {e}"))?;
    if list.format != FORMAT || to_json(&list) != bytes {
        return Err(format!("{LIST} is damaged, or of another version"));
    }
    for (name, expected) in &list.files {
        if name.is_empty() || name.contains(['/', '\\', ':']) || name.starts_with('.') {
            return Err(format!("{LIST} is damaged: it names `{name}`"));
        }
        let file = folder.join(name);
        let length = fs::metadata(&file).map_err(|e| at(name, &e))?.len();
        if length != expected.bytes {
            return Err(format!("{name} has {length} bytes instead of {}", expected.bytes));
        }
        if Sum::of(&file).map_err(|e| at(name, &e))? != *expected {
            return Err(format!("{name} is damaged: its checksum is wrong"));
        }
    }
    serde_json::from_slice(&read(STATE)?).map_err(|e| format!("{STATE}: {e}"))
}
