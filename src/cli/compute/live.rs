//! The page with the learning curve that `trafoc train --page` keeps up to date.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::cli::course::{course, measure, name, record, step};
use crate::cli::outcome::Failure;
use crate::cli::overwrite;
use crate::cli::ui::Ui;
use crate::inspect::training::{Course, training};
use crate::learn::calls::time;
use crate::learn::record::{Evaluation, Step};
use crate::learn::run_dir::State;

/// The time in seconds between two updates of the page, and between two reloads by a browser.
const EVERY: u64 = 3;

/// The page of a running training. A browser reloads it automatically until the training has ended.
pub struct LivePage {
    path: PathBuf,
    name: String,
    course: Course,
    written: Instant,
    /// Whether the last update succeeded; a failure, such as a full disk, is reported once and does not end
    /// the training.
    is_well: bool,
}

impl LivePage {
    /// The page of a run at this state. It is written at once, so that a place where it cannot be written
    /// is reported before training begins.
    ///
    /// # Errors
    /// The record cannot be read, or the page cannot be written.
    pub fn begin(path: &Path, root: &Path, state: &State) -> Result<Self, Failure> {
        let course = course(root, &record(root)?, Some(state.steps));
        let (path, name) = (path.to_owned(), name(root));
        let page = Self { path, name, course, written: Instant::now(), is_well: true };
        page.write(true)?;
        Ok(page)
    }

    /// Adds a step, and updates the page if it is time.
    pub fn stepped(&mut self, line: &Step, ui: &Ui) {
        self.course.steps.push(step(line));
        // The first step is shown at once, which tells a waiting user that training has begun.
        if self.written.elapsed().as_secs() >= EVERY || self.course.steps.len() == 1 {
            self.try_write(true, ui);
            // The time is counted from the end of writing, so that slow disks and long runs leave time for
            // training.
            self.written = Instant::now();
        }
    }

    /// Adds an evaluation, which the next update of the page shows.
    pub fn evaluated(&mut self, line: &Evaluation) {
        measure(&mut self.course, line);
    }

    /// Writes the last page after training has ended or was interrupted.
    pub fn end(mut self, ui: &Ui) {
        self.try_write(false, ui);
    }

    fn try_write(&mut self, goes_on: bool, ui: &Ui) {
        match self.write(goes_on) {
            // Once it has succeeded again, a new failure is news.
            Ok(()) => self.is_well = true,
            Err(failure) if self.is_well => {
                self.is_well = false;
                ui.note(&format!("warning: {}; training continues", failure.message));
            }
            Err(_) => {}
        }
    }

    fn write(&self, goes_on: bool) -> Result<(), Failure> {
        let mut report = training(&self.name, &self.course);
        if goes_on {
            // A training that is killed writes no last page, so a reader needs the time of this one.
            report.lead += &format!(", written at {}; this page loads again every {EVERY} seconds", time());
        }
        let page = report.page();
        // The last page does not reload, so that a reader's place in it is not lost.
        let page = if goes_on { page.refreshed(EVERY) } else { page };
        overwrite::write(&self.path, &page.html())
    }
}
