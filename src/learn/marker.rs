//! The file that makes a folder that of a run, `run.json`: with the format of everything in the folder.

use std::path::Path;

use serde::Serialize;

use super::format;
use crate::read::{self, limit};

/// The file's name in the folder of a run.
pub const FILE: &str = "run.json";
/// The format that it declares.
const FORMAT: &str = "trafoc-run/1";

/// The content of the file.
#[derive(Debug, Serialize)]
pub struct Marker {
    format: String,
    name: String,
}

impl Marker {
    /// That of a run with this name, in the format that this version writes.
    pub fn new(name: &str) -> Self {
        Self { format: FORMAT.to_owned(), name: name.to_owned() }
    }
}

/// Whether a folder is that of a run, of any version.
pub fn is_run(root: &Path) -> bool {
    read::is_there(&root.join(FILE))
}

/// Checks that this version can read the folder of a run.
///
/// # Errors
/// It is of another version or damaged, in lower case without a full stop.
pub fn check(root: &Path) -> Result<(), String> {
    let bytes = read::bounded(&root.join(FILE), limit::SPEC).map_err(|error| error.to_string())?;
    format::check(&bytes, FORMAT)
}
