//! Reads raw examples from the data formats, one at a time.
//!
//! To add a format, add a file here, an arm in [`read`] and a row in the recipe's `format`.

mod image;
mod marks;
mod raw;
mod squad;
mod table;
mod text;

pub use raw::{Faults, Place, Raw, Visit};

use std::ops::ControlFlow;

use super::Refused;
use super::file::Named;
use super::form::Form;
use super::picture::Preparation;
use crate::learn::recipe::Format;

/// Calls `visit` with every example of some files, at most `limit` of them. `form` is the required form of
/// images, and how they are preprocessed if not as in training with trafoc; `several` says whether a text may have
/// several classes.
///
/// # Errors
/// A file cannot be read. Bad lines are in `faults`.
pub fn read(
    format: &Format,
    files: &[Named],
    form: Option<(Form, Option<&Preparation>)>,
    several: bool,
    limit: Option<u64>,
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), Refused> {
    // Reading stops with the last example, so that a bad line after it is not reported.
    let mut left = limit.unwrap_or(u64::MAX);
    let mut counted = |raw: Raw, place: Place<'_>, faults: &mut Faults<'_>| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        let flow = visit(raw, place, faults);
        // Bad lines do not count: if there is one, nothing is trained.
        if left == 0 { ControlFlow::Break(()) } else { flow }
    };
    match format {
        Format::Lines(_) => text::lines(files, faults, &mut counted),
        Format::Text(_) => text::stretches(files, faults, &mut counted),
        Format::Pairs(_) => text::pairs(files, faults, &mut counted),
        Format::Parallel(_) => text::parallel(files, faults, &mut counted),
        Format::Tagged(_) => text::tagged(files, faults, &mut counted),
        Format::Table(table) => table::read(table, several, files, faults, &mut counted),
        Format::Squad(_) => squad::read(files, faults, &mut counted),
        Format::Images(images) => image::folders(images, files, form, faults, &mut counted),
        Format::Pixels(pixels) => image::pixels(pixels, files, form, faults, &mut counted),
        Format::Idx(_) => image::idx(files, form, faults, &mut counted),
    }
}
