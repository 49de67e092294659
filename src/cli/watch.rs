//! `--watch`: a command is carried out again whenever a spec, recipe or config that it has read changes.

use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;

use super::format::Format;
use super::next_step::is_lasting;
use super::outcome::Failure;
use super::ui::{self, Ui};
use crate::diag::render::visible;
use crate::field::words::listed;
use crate::followed::{self, Followed, Version};
use crate::report::summary::Summary;

/// `--watch`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct WatchArg {
    /// Do it again whenever a file that was read changes, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

/// How long nothing happens between two looks at the files.
const PAUSE: Duration = Duration::from_millis(50);
/// How many looks a file may be missing for: some editors delete it before they write it anew.
const PATIENCE: u32 = 6;

impl WatchArg {
    /// Whether the command is repeated.
    pub fn is_on(self) -> bool {
        self.watch
    }

    /// Refuses to repeat what cannot be repeated.
    ///
    /// # Errors
    /// A usage error: one of the files is read once, or the output is one object for a program.
    pub fn agree<'f>(self, format: Format, files: impl IntoIterator<Item = &'f str>) -> Result<(), Failure> {
        if !self.watch {
            return Ok(());
        }
        match format {
            Format::Text | Format::Short => {}
            Format::Json | Format::Github | Format::Sarif | Format::Agent => {
                return Err(Failure::usage(
                    "`--watch` prints for people, and cannot be combined with this `--format`",
                ));
            }
        }
        match files.into_iter().find(|file| !is_lasting(file)) {
            Some(file) => {
                Err(Failure::usage(format!("`--watch` needs files, and `{file}` can be read only once")))
            }
            None => Ok(()),
        }
    }
}

/// What was seen of a command that was carried out once.
pub struct Seen {
    /// How it ended.
    pub exit: ExitCode,
    /// Whether it gave data.
    pub is_done: bool,
    /// The page about the model in its data.
    pub page: Option<Summary>,
}

/// Carries out a command again and again, with new streams each time.
pub fn repeat(new: &dyn Fn() -> Ui, once: impl Fn(Ui) -> Seen) -> ExitCode {
    let mut before: Option<Summary> = None;
    loop {
        followed::begin();
        let begun = Instant::now();
        let Seen { exit, is_done, page: now } = once(new().without_next());
        let took = begun.elapsed();
        let files = followed::files();
        // A usage error, or nothing but what comes with trafoc, which does not change.
        let ui = new();
        if files.is_empty() && is_done {
            ui.note("note: no file was read, so there is nothing to watch");
        }
        if files.is_empty() {
            return exit;
        }
        if let (Some(before), Some(now)) = (&before, &now) {
            ui.say(&now.changes(before));
        }
        // After a mistake the last good page stays the one that is compared with.
        before = now.or(before);
        // What a spec extends is found by its whole path.
        let here = std::env::current_dir().unwrap_or_default();
        let near = |path: &Path| path.strip_prefix(&here).unwrap_or(path).display().to_string();
        let names: Vec<String> = files.iter().map(|(path, _)| near(path)).collect();
        ui.say(&visible(&format!(
            "watching {}, done in {} ms; Ctrl-C ends it\n",
            listed(&names.iter().map(String::as_str).collect::<Vec<_>>()),
            took.as_millis()
        )));
        wait(&files);
        ui::clear();
    }
}

/// Returns when one of the files has changed and is whole again.
fn wait(files: &[Followed]) {
    while files.iter().all(|(path, version)| Version::of(path) == *version) {
        sleep(PAUSE);
    }
    // An editor may write a file in several steps.
    let mut last: Vec<Version> = Vec::new();
    let mut looks = 0;
    loop {
        let now: Vec<Version> = files.iter().map(|(path, _)| Version::of(path)).collect();
        let is_missing = now.iter().zip(files).any(|(now, (_, before))| before.exists() && !now.exists());
        if now == last && (!is_missing || looks >= PATIENCE) {
            return;
        }
        (last, looks) = (now, looks + 1);
        sleep(PAUSE);
    }
}
