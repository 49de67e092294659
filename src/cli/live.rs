//! The page of a learning curve that `trafoc train --page` keeps up to date.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::course::{course, measure, name, record, step};
use super::file;
use super::ui::{Failure, Ui};
use crate::inspect::training::{Course, training};
use crate::learn::record::{Evaluation, Step};
use crate::learn::run_dir::State;

/// Seconds after which a page is written anew, and after which a browser loads it again.
const EVERY: u64 = 3;

/// A page of a run that goes on. A browser that shows it loads it again by itself; the last one no more.
pub struct LivePage {
    path: PathBuf,
    name: String,
    course: Course,
    written: Instant,
    /// Whether it could be written the last time; a disk that is full is told once, and ends no training.
    is_well: bool,
}

impl LivePage {
    /// The page of a run at a state, written at once, so that a place where it cannot be written is found before
    /// training begins.
    ///
    /// # Errors
    /// What is recorded cannot be read, or the page cannot be written.
    pub fn begin(path: &Path, root: &Path, state: &State) -> Result<Self, Failure> {
        let course = course(&record(root)?, Some(state.steps));
        let (path, name) = (path.to_owned(), name(root));
        let page = Self { path, name, course, written: Instant::now(), is_well: true };
        page.write(true)?;
        Ok(page)
    }

    /// A step was made.
    pub fn stepped(&mut self, line: &Step, ui: &Ui) {
        self.course.steps.push(step(line));
        if self.written.elapsed().as_secs() >= EVERY || self.course.steps.len() == 1 {
            self.try_write(true, ui);
            // Counted from its end, so that slow disks and long runs leave time for training.
            self.written = Instant::now();
        }
    }

    /// Something was measured.
    pub fn evaluated(&mut self, line: &Evaluation) {
        measure(&mut self.course, line);
    }

    /// Training is over, at its end or before.
    pub fn end(mut self, ui: &Ui) {
        self.try_write(false, ui);
    }

    fn try_write(&mut self, goes_on: bool, ui: &Ui) {
        match self.write(goes_on) {
            Ok(()) => self.is_well = true,
            Err(failure) if self.is_well => {
                self.is_well = false;
                ui.note(&format!("warning: {}; training goes on", failure.message));
            }
            Err(_) => {}
        }
    }

    fn write(&self, goes_on: bool) -> Result<(), Failure> {
        let page = training(&self.name, &self.course).page();
        let page = if goes_on { page.refreshed(EVERY) } else { page };
        file::write(&self.path, &page.html())
    }
}
