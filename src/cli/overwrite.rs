//! `--force`: no file is lost that trafoc did not write.
//!
//! What trafoc draws and emits carries a mark, by which it is recognised and replaced the next time, and at
//! its end a seal: a number that follows from the text, by which a file is recognised that was changed since.
//! Everything else that exists is only replaced with `--force`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::file;
use super::outcome::{Exit, Failure};
use crate::read::{self, limit};
use crate::{draw, emit};

/// `--force`, for the commands that write files.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ForceArg {
    /// Overwrite files that trafoc did not write
    #[arg(long)]
    pub force: bool,
}

/// Reads the value of an option for a page, which must end in `.html` or `.htm`.
///
/// # Errors
/// It ends in something else.
pub fn page(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    // Checked here and not when the page is drawn, which is after a training's first steps. `-` is refused where the
    // file is to be written, with a reason of its own.
    let is_page = text == "-" || path.extension().is_some_and(|ending| ending == "html" || ending == "htm");
    if is_page { Ok(path) } else { Err("a page is written as .html".to_owned()) }
}

/// What a file of trafoc contains near its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A picture or a page.
    Drawn,
    /// Source code in Rust or Python, and the other files of a crate or a project.
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

    /// Whether one of the mark's texts is in the first 4096 bytes of a file.
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
// As `tensor_file` writes it: without spaces, and before the tensors.
const OUTPUTS: &str = "\"__metadata__\":{\"written_by\":\"trafoc run\"}";

/// The beginning of the last line of a file that trafoc wrote, after the sign of a comment.
const SEAL: &str = "trafoc wrote the text above: ";

/// How a comment begins and ends in files with this extension; `None` if such files have no seal.
fn comment(path: &Path) -> Option<(&'static str, &'static str)> {
    Some(match path.extension()?.to_str()? {
        "rs" | "dot" => ("// ", ""),
        "toml" | "py" => ("# ", ""),
        "svg" | "html" | "htm" | "md" => ("<!-- ", " -->"),
        "mmd" => ("%% ", ""),
        // The manual's section is its extension: `trafoc.1`.
        "1" => (".\\\" ", ""),
        _ => return None,
    })
}

/// The number of a text, FNV-1a of 64 bits. It reveals changes; anyone could compute it for another text.
fn number(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The text with a seal as its last line, if its file's extension tells how a comment is written there.
pub fn sealed(path: &Path, text: &str) -> String {
    let Some((begins, ends)) = comment(path) else { return text.to_owned() };
    // The seal needs a line of its own, or it would be part of the text's last one.
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let text = format!("{text}{end}");
    let seal = number(&text);
    format!("{text}{begins}{SEAL}{seal:016x}{ends}\n")
}

/// A text without its seal, and the number in that. A text without a seal has no number.
pub fn unsealed(text: &str) -> (&str, Option<u64>) {
    // An editor that adds or removes a last empty line has not changed the file.
    let end = text.trim_end_matches('\n');
    let start = end.rfind('\n').map_or(0, |at| at.saturating_add(1));
    let seal = end
        .get(start..)
        .and_then(|line| line.split_once(SEAL))
        .and_then(|(_, rest)| u64::from_str_radix(rest.split_whitespace().next()?, 16).ok());
    match seal {
        Some(seal) => (text.get(..start).unwrap_or(text), Some(seal)),
        None => (text, None),
    }
}

/// The text of a file. A file that is longer than any with a seal, or is no text, counts as empty: a png, or one that trafoc
/// did not write. So does one that cannot be read.
fn text(path: &Path) -> String {
    String::from_utf8(read::bounded(path, limit::SOURCE).unwrap_or_default()).unwrap_or_default()
}

/// Whether a file is as trafoc wrote it: its last line has the checksum of its text.
pub fn is_as_written(path: &Path) -> bool {
    let text = text(path);
    matches!(unsealed(&text), (own, Some(seal)) if number(own) == seal)
}

/// Whether a file has a seal that is not that of its text, or text after its seal.
pub fn is_changed(path: &Path) -> bool {
    // A file that cannot be read counts as unchanged: then the mark alone decides, and one without it is refused anyway.
    match unsealed(&text(path)) {
        (own, Some(seal)) => number(own) != seal,
        // The seal is not in the last line, so something was appended.
        (all, None) => all.lines().any(|line| line.contains(SEAL)),
    }
}

/// The file that `--out` names, of a command that writes to stdout without it or with `-`.
pub fn named(out: Option<&PathBuf>) -> Option<&PathBuf> {
    out.filter(|path| path.as_path() != Path::new("-"))
}

/// Replaces a file by a text that trafoc made, with its seal.
///
/// # Errors
/// The operating system reports an error; the file is then unchanged.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    file::write(path, &sealed(path, text))
}

/// Checks that a file whose name trafoc chooses, in a folder of the user, is no link: a file elsewhere would change.
///
/// # Errors
/// It is a link.
pub fn permit_own(path: &Path) -> Result<(), Failure> {
    match fs::symlink_metadata(path) {
        Ok(named) if named.is_symlink() => {
            let message = format!("`{}` is a link, and what it leads to would be changed", path.display());
            Err(Failure::new(Exit::File, message).help("remove the link, or write to another folder"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

impl ForceArg {
    /// Checks that a file may be written. `another` is the option that names another file.
    ///
    /// # Errors
    /// An ordinary file exists there that trafoc did not write, or that was changed since.
    pub fn permit(self, path: &Path, mark: Mark, another: &str) -> Result<(), Failure> {
        if path == Path::new("-") {
            let message = "`-` means stdout, but this is written to a file";
            return Err(Failure::usage(message).help(format!("{another}; a file of this name is `./-`")));
        }
        // Anything else in the way, such as a folder, is named when it is written to.
        let is_file = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        // Otherwise the system's reason would be that something unnamed is not a folder.
        if let Some(above) = path.ancestors().skip(1).find(|above| is_file(above)) {
            let message = format!("`{}` is a file, and `{}` would be in it", above.display(), path.display());
            return Err(Failure::new(Exit::File, message).help(format!("{another} writes elsewhere")));
        }
        let is_file = is_file(path);
        // A pipe or a device has no seal, and reading it might wait.
        let is_changed = is_file && is_changed(path);
        // A mark alone is not enough: emitted code is meant to be edited, and edits must not be lost.
        if self.force || !is_file || mark.is_in(path) && !is_changed {
            return Ok(());
        }
        let message = match mark {
            _ if is_changed => {
                format!("`{}` already exists, and was changed since trafoc wrote it", path.display())
            }
            Mark::Unmarked => format!("`{}` already exists", path.display()),
            Mark::Drawn | Mark::Emitted | Mark::Manual | Mark::Outputs => {
                format!("`{}` already exists, and trafoc did not write it", path.display())
            }
        };
        let help = format!("`--force` overwrites it; {another} writes elsewhere");
        Err(Failure::new(Exit::Refused, message).help(help))
    }

    /// Checks that `--force` has an effect.
    ///
    /// # Errors
    /// The option is given, and no file is written.
    pub fn refuse_unused(self, writes: bool) -> Result<(), Failure> {
        if self.force && !writes {
            Err(Failure::usage("`--force` would have no effect: no file is written"))
        } else {
            Ok(())
        }
    }
}
