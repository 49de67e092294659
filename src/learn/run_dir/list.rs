//! A checkpoint's files and its state.

use std::path::Path;

use super::state::State;
use crate::learn::whole::{FileList, MAX_LIST, at};
use crate::read;

/// The format that the list of a checkpoint declares.
pub(super) const FORMAT: &str = "trafoc-checkpoint/1";
/// The name of the file with the training's state.
pub(super) const STATE: &str = "state.json";

/// Compares every byte of a checkpoint with its list, and reads its state.
///
/// # Errors
/// The first difference, in lower case without a full stop.
pub(super) fn check(folder: &Path) -> Result<State, String> {
    FileList::check(folder, FORMAT)?;
    let bytes = read::bounded(&folder.join(STATE), MAX_LIST).map_err(|e| at(STATE, &e))?;
    read::json(&bytes).map_err(|why| format!("{STATE} is damaged: {why}"))
}
