//! The formats of trafoc's own files: a name and a version, such as `trafoc-run/1`, under the key `format`.

use serde::Deserialize;

use crate::read;

/// Compares the format that a file declares with the one that this version reads. The rest of the file is not looked at,
/// because one of another version may say anything.
///
/// # Errors
/// It declares another one, or none, in lower case without a full stop.
pub fn check(bytes: &[u8], reads: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Declared {
        format: String,
    }
    let Declared { format } = read::json(bytes)?;
    if format == reads {
        return Ok(());
    }
    Err(format!("it has the format `{format}`, and this version of trafoc reads `{reads}`"))
}
