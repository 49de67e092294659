//! The settings of a person or a project: what counts for every command where no option says otherwise.
//!
//! A row of [`SETTINGS`] is all that a setting needs: the readers of files and variables, `trafoc config` and
//! `trafoc doctor` go through the table. None of them changes what a command computes or emits for a given device, because a
//! command line would then mean something else on another machine. So nothing of a spec or a recipe is a setting, and neither is
//! `--quiet`, which leaves summaries out of stdout.

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One of some words.
    Word(&'static [&'static str]),
    /// A name.
    Name,
    /// A folder; in a file it is relative to the folder of that file.
    Folder,
    /// A whole number from 1 to this one.
    Count(u16),
}

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its key in a file; with two dashes, its option.
    pub key: &'static str,
    /// Its variable of the environment.
    pub variable: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// A value as a file has it.
    pub example: &'static str,
    /// Its value where nothing says it; none if there is no such value.
    pub default: Option<&'static str>,
}

/// The device of a command that is given none. flex, in pure Rust, works on every machine; a build without it takes the best
/// device there is.
pub const USUAL_DEVICE: &str = if cfg!(feature = "flex") { "flex" } else { "auto" };

/// When to use colour.
pub const COLOR: Setting = Setting {
    key: "color",
    variable: "TRAFOC_COLOR",
    about: "colour: auto, always or never",
    kind: Kind::Word(&["auto", "always", "never"]),
    example: "\"never\"",
    default: Some("auto"),
};

/// What runs models.
pub const DEVICE: Setting = Setting {
    key: "device",
    variable: "TRAFOC_DEVICE",
    about: "the device that runs models; `trafoc doctor` lists them",
    kind: Kind::Name,
    example: "\"cuda:0\"",
    default: Some(USUAL_DEVICE),
};

/// Where the user's own families are.
pub const FAMILIES: Setting = Setting {
    key: "families",
    variable: "TRAFOC_FAMILIES",
    about: "a folder of family files of your own",
    kind: Kind::Folder,
    example: "\"my-families\"",
    default: None,
};

/// How many threads train.
pub const THREADS: Setting = Setting {
    key: "threads",
    variable: "TRAFOC_THREADS",
    about: "the threads with which `flex` trains; all cores if not given",
    kind: Kind::Count(u16::MAX),
    example: "4",
    default: None,
};

/// All settings.
pub const SETTINGS: &[Setting] = &[COLOR, DEVICE, FAMILIES, THREADS];

/// The variable that turns the files off if it is not empty.
pub const NO_FILES: &str = "TRAFOC_NO_CONFIG";
