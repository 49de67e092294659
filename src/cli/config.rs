//! `trafoc config`: every setting, its value, and what says so.

use std::fmt::Write as _;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::setting::SETTINGS;
use super::settings::{self, PROJECT, Settings};
use super::ui::Ui;
use crate::diag::render::visible_name;

/// What a file of settings looks like, and what takes precedence over what, for the help.
pub fn files() -> String {
    let mut text = format!("A file `{PROJECT}` in the working folder, or the nearest one above it:\n\n");
    let lines: Vec<String> = SETTINGS.iter().map(|s| format!("{} = {}", s.key, s.example)).collect();
    let widest = lines.iter().map(String::len).max().unwrap_or_default();
    for (line, setting) in lines.iter().zip(SETTINGS) {
        let _ = writeln!(text, "  {line:widest$}  # --{}, {}", setting.key, setting.variable);
    }
    text += "\nThe same lines in ~/.config/trafoc/config.toml count in every folder. An option\n\
             takes precedence over its variable, that over `trafoc.toml`, and that over\n\
             the file for every folder. `--no-config`, or a value of TRAFOC_NO_CONFIG,\n\
             reads neither file.";
    text
}

/// The command line of `config`.
#[derive(Debug, Args)]
pub struct Config {
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `config` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// Every setting.
    settings: Vec<Shown>,
    /// The configuration files that were read; an earlier one takes precedence.
    files: Vec<String>,
    /// The file that holds for all projects of the user, whether or not it exists; null if the system names no folder for it,
    /// or no files are read.
    user_file: Option<String>,
    /// The option or the variable because of which no file is read; null if there is none.
    off: Option<&'static str>,
}

/// A setting.
#[derive(Debug, Serialize, JsonSchema)]
struct Shown {
    /// Its key in a file; with two dashes, its option.
    key: &'static str,
    /// Its value; null if it has none.
    value: Option<String>,
    /// What says so: `default`, an option, a variable, or a line of a file as `FILE:LINE`.
    origin: String,
    /// The variable of the environment that sets it.
    variable: &'static str,
    /// What it is.
    about: &'static str,
}

impl Command for Config {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Prints the settings and the files they are from.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let all = settings::get();
        // A variable is read only where it is needed, and here to be shown.
        all.threads()?;
        let shown = SETTINGS.iter().map(|setting| {
            let (value, origin) = all.chosen(setting);
            Shown {
                key: setting.key,
                value: value.map(|value| value.to_string_lossy().into_owned()),
                origin: origin.to_string(),
                variable: setting.variable,
                about: setting.about,
            }
        });
        let data = Data {
            settings: shown.collect(),
            files: all.files.iter().map(|file| file.name.clone()).collect(),
            user_file: all.own.as_ref().map(|path| path.display().to_string()),
            off: all.off,
        };
        ui.note(&where_files_are(all));
        Ok(Output::new(ui.page(data.text()), data))
    }
}

impl Data {
    fn text(&self) -> String {
        let value = |shown: &Shown| match &shown.value {
            Some(value) => visible_name(value).into_owned(),
            None => "not set".to_owned(),
        };
        let keys = self.settings.iter().map(|shown| shown.key.len()).max().unwrap_or_default();
        let values = self.settings.iter().map(|shown| value(shown).chars().count()).max().unwrap_or_default();
        let mut text = String::new();
        for shown in &self.settings {
            let origin = visible_name(&shown.origin);
            let _ = writeln!(text, "{:keys$}  {:values$}  {origin}", shown.key, value(shown));
        }
        text
    }
}

/// Which files are read, or would be.
pub fn where_files_are(all: &Settings) -> String {
    if let Some(off) = all.off {
        return format!("no configuration files are read, because of {off}");
    }
    let read: Vec<&str> = all.files.iter().map(|file| file.name.as_str()).collect();
    match (read.is_empty(), &all.own) {
        (false, _) => format!("read: {}", read.join(", ")),
        (true, Some(own)) => {
            format!("there is no `{PROJECT}` in this folder or above it, and no `{}`", own.display())
        }
        (true, None) => format!("there is no `{PROJECT}` in this folder or above it"),
    }
}
