//! Which value a setting has where no option gives it one, and what says so: its variable of the environment, then the nearest
//! `trafoc.toml` in the working folder or above it, then the file of the user, then the default.
//!
//! The files are read once, when the program starts. Like the variables, they are the same for the whole process.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::arguments::{has_flag, value_of};
use super::file;
use super::outcome::{Exit, Failure};
use super::setting::{COLOR, NO_FILES, SETTINGS, Setting, THREADS};
use super::settings_file::{Said, parse};
use super::ui::counted;
use crate::diag::{Diagnostic, Sink};
use crate::read;
use crate::source::SourceMap;

/// The name of the file of a project, in its folder.
pub const PROJECT: &str = "trafoc.toml";
/// The option that turns the files off.
pub const NO_CONFIG: &str = "--no-config";

/// What the configuration files say, and which were looked for.
#[derive(Debug, Default)]
pub struct Settings {
    /// The files that were read, of which an earlier one takes precedence.
    pub files: Vec<File>,
    /// Where the user's own file would be, if the system says where such files are.
    pub own: Option<PathBuf>,
    /// The option or variable that turned the files off.
    pub off: Option<&'static str>,
    /// The colour of the command line: every command has that option.
    color: Option<String>,
}

/// A file that was read.
#[derive(Debug)]
pub struct File {
    /// Its name in messages: without a folder if it is in the working folder.
    pub name: String,
    said: Vec<Said>,
}

/// What says the value of a setting.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Nothing, so that it has its default.
    Default,
    /// This option.
    Option(&'static str),
    /// This variable of the environment.
    Variable(&'static str),
    /// A line of a file.
    File {
        /// The name of the file.
        name: String,
        /// The line, counted from 1.
        line: usize,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::Option(key) => write!(f, "--{key}"),
            Self::Variable(name) => write!(f, "{name}"),
            Self::File { name, line } => write!(f, "{name}:{line}"),
        }
    }
}

/// Configuration files that cannot be used.
#[derive(Debug)]
pub struct Wrong {
    /// The texts of the files.
    pub sources: SourceMap,
    /// What is wrong in them.
    pub found: Vec<Diagnostic>,
    /// That they are wrong, or that one cannot be read.
    pub failure: Failure,
}

static READ: OnceLock<Settings> = OnceLock::new();

/// The settings of this process; without [`begin`] none are from files.
pub fn get() -> &'static Settings {
    READ.get_or_init(Settings::default)
}

/// Reads the files, unless the command line or the environment says not to.
///
/// # Errors
/// A file cannot be read or is wrong. The settings are then those without files.
pub fn begin(arguments: &[OsString]) -> Result<(), Box<Wrong>> {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let off = match () {
        () if has_flag(arguments, NO_CONFIG) => Some(NO_CONFIG),
        () if is_set(NO_FILES) => Some(NO_FILES),
        () => None,
    };
    let color = value_of(arguments, &format!("--{}", COLOR.key));
    let (own, read) = match off {
        Some(_) => (None, Ok(Vec::new())),
        None => (own_file(), files(own_file())),
    };
    let (files, wrong) = match read {
        Ok(files) => (files, Ok(())),
        Err(wrong) => (Vec::new(), Err(wrong)),
    };
    let _ = READ.set(Settings { files, own, off, color });
    wrong
}

/// The user's own file, by the XDG Base Directory Specification 0.8, in which a relative folder counts as none.
fn own_file() -> Option<PathBuf> {
    let given = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = given.or_else(|| Some(env::home_dir()?.join(".config")))?;
    Some(folder.join("trafoc").join("config.toml"))
}

/// The nearest file in the working folder or above it, with its name in messages and its folder.
fn nearest() -> Option<(String, PathBuf)> {
    let here = env::current_dir().ok()?;
    let folder = here.ancestors().find(|folder| is_there(&folder.join(PROJECT)))?;
    let name = if folder == here { PROJECT.to_owned() } else { folder.join(PROJECT).display().to_string() };
    Some((name, folder.to_owned()))
}

/// Whether there is something of this name, even if it can be no file of settings. What the system hides is not there.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Reads both files.
fn files(own: Option<PathBuf>) -> Result<Vec<File>, Box<Wrong>> {
    let own = own.filter(|path| is_there(path)).and_then(|path| {
        let folder = path.parent()?.to_owned();
        Some((path.display().to_string(), folder))
    });
    let (mut sources, mut sink) = (SourceMap::new(), Sink::new());
    let (mut files, mut wrong, mut failure) = (Vec::new(), Vec::new(), None);
    for (name, folder) in nearest().into_iter().chain(own) {
        match read::bounded(Path::new(&name), read::limit::SETTINGS) {
            Ok(bytes) => {
                let before = sink.iter().count();
                let said = parse(&name, &bytes, &folder, &mut sources, &mut sink);
                if sink.iter().count() > before {
                    wrong.push(format!("`{name}`"));
                }
                files.push(File { name, said });
            }
            Err(error) => {
                let message = format!("cannot read `{name}`: {}", file::reason(&error));
                failure = failure.or(Some(Failure::new(Exit::File, message)));
            }
        }
    }
    let found = sink.into_sorted();
    if failure.is_none() && !found.is_empty() {
        let have = if wrong.len() == 1 { "has" } else { "have" };
        failure = Some(Failure::usage(format!("{} {have} {}", wrong.join(" and "), counted(&found))));
    }
    match failure {
        Some(failure) => {
            let failure = failure.help(format!("`{NO_CONFIG}` reads no configuration files"));
            Err(Box::new(Wrong { sources, found, failure }))
        }
        None => Ok(files),
    }
}

impl Settings {
    /// What a file says of a setting.
    pub fn of_files(&self, setting: &Setting) -> Option<(&OsStr, Origin)> {
        // Variables take precedence over files, and these are about colour, too.
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        if setting.key == COLOR.key && ["NO_COLOR", "CLICOLOR_FORCE"].into_iter().any(is_set) {
            return None;
        }
        self.files.iter().find_map(|file| {
            let said = file.said.iter().find(|said| said.key == setting.key)?;
            Some((said.value.as_os_str(), Origin::File { name: file.name.clone(), line: said.line }))
        })
    }

    /// The value of a setting where no option gives it one, and what says it; `None` if nothing does.
    pub fn standing(&self, setting: &Setting) -> Option<(OsString, Origin)> {
        let variable = env::var_os(setting.variable).filter(|value| !value.is_empty());
        let variable = variable.map(|value| (value, Origin::Variable(setting.variable)));
        variable.or_else(|| self.of_files(setting).map(|(value, origin)| (value.to_owned(), origin)))
    }

    /// The value of a setting for a command that is given none, and what says it.
    pub fn chosen(&self, setting: &Setting) -> (Option<OsString>, Origin) {
        let given = self.color.as_ref().filter(|_| setting.key == COLOR.key);
        match (given, self.standing(setting)) {
            (Some(word), _) => (Some(word.into()), Origin::Option(setting.key)),
            (None, Some((value, origin))) => (Some(value), origin),
            (None, None) => (setting.default.map(OsString::from), Origin::Default),
        }
    }

    /// Where a value comes from that no option gives, for the help of a message about it: its user may not remember that it is
    /// set. `None` if it is from the command line.
    pub fn reminder(&self, setting: &Setting, value: &OsStr) -> Option<String> {
        let (_, origin) = self.standing(setting).filter(|(standing, _)| standing == value)?;
        let (key, shown) = (setting.key, value.to_string_lossy());
        Some(match origin {
            Origin::File { .. } => format!("{origin} says `{shown}`, unless `--{key}` does"),
            _ => format!("the variable `{origin}` says `{shown}`, unless `--{key}` does"),
        })
    }

    /// The number of threads that a variable or a file gives to training.
    ///
    /// # Errors
    /// The variable says no such number.
    pub fn threads(&self) -> Result<Option<u16>, Failure> {
        let Some((value, _)) = self.standing(&THREADS) else { return Ok(None) };
        let number = value.to_str().and_then(|text| text.trim().parse::<u16>().ok()).filter(|n| *n > 0);
        number.map(Some).ok_or_else(|| {
            let (variable, most) = (THREADS.variable, u16::MAX);
            let shown = value.to_string_lossy();
            Failure::usage(format!("`{variable}` is a whole number from 1 to {most}, and not `{shown}`"))
        })
    }
}

/// The setting of an option with a variable.
pub fn of_variable(variable: &OsStr) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| variable == setting.variable)
}
