//! `--force`: no file is lost that trafoc did not write.
//!
//! What trafoc draws and emits carries a mark, by which it is recognised and replaced the next time. Everything
//! else that exists is only replaced with `--force`.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use clap::Args;

use super::outcome::{Exit, Failure};
use crate::{draw, emit, read};

/// `--force`, for the commands that write files.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ForceArg {
    /// Overwrite files that trafoc did not write
    #[arg(long)]
    pub force: bool,
}

/// What a file of trafoc contains near its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A picture or a page.
    Drawn,
    /// Emitted source.
    Emitted,
    /// A page of the manual.
    Manual,
    /// Outputs of a model as safetensors.
    Outputs,
    /// Nothing, because people edit such files or other programs read them: specs, recipes, models, JSON.
    Unmarked,
}

/// How many bytes at the beginning of a file are searched for a mark.
const SEARCHED: u64 = 4096;

impl Mark {
    /// A file with one of these texts has the mark.
    fn texts(self) -> &'static [&'static str] {
        match self {
            Mark::Drawn => draw::MARKS,
            Mark::Emitted => &[emit::MARK],
            Mark::Manual => &[MANUAL],
            Mark::Outputs => &[OUTPUTS],
            Mark::Unmarked => &[],
        }
    }

    /// Whether a file has the mark.
    pub fn is_in(self, path: &Path) -> bool {
        let mut head = Vec::new();
        // A file that cannot be read is not recognised.
        let is_read = read::regular(path).and_then(|file| file.take(SEARCHED).read_to_end(&mut head)).is_ok();
        let has = |text: &&str| head.windows(text.len()).any(|part| part == text.as_bytes());
        is_read && self.texts().iter().any(has)
    }
}

/// The first line of a page of the manual.
pub const MANUAL: &str = ".\\\" Written by trafoc man.\n";

/// The metadata of outputs in the header of a safetensors file.
const OUTPUTS: &str = "\"__metadata__\":{\"written_by\":\"trafoc run\"}";

impl ForceArg {
    /// Checks that a file may be written. `another` is the option that names another file.
    ///
    /// # Errors
    /// It exists, is not a device or a pipe, and trafoc did not write it.
    pub fn permit(self, path: &Path, mark: Mark, another: &str) -> Result<(), Failure> {
        let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        if self.force || !is_file || mark.is_in(path) {
            return Ok(());
        }
        let message = match mark {
            Mark::Unmarked => format!("`{}` already exists", path.display()),
            Mark::Drawn | Mark::Emitted | Mark::Manual | Mark::Outputs => {
                format!("`{}` already exists, and trafoc did not write it", path.display())
            }
        };
        let help = format!("`--force` overwrites it; {another} writes to another place");
        Err(Failure::new(Exit::Refused, message).help(help))
    }

    /// Checks that `--force` has an effect.
    ///
    /// # Errors
    /// It is given, and no file is written.
    pub fn refuse_unused(self, writes: bool) -> Result<(), Failure> {
        if self.force && !writes {
            Err(Failure::usage("`--force` would have no effect: no file is written"))
        } else {
            Ok(())
        }
    }
}
