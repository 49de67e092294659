//! `trafoc completions`: a script with which a shell completes commands and options.

use clap::Args;
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::ui::Ui;

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_enum, value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `completions` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The shell.
    shell: String,
    /// The script.
    script: String,
}

impl Command for Completions {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Prints the script for the shell.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut (ui.program().grammar)(), "trafoc", &mut script);
        let script = String::from_utf8(script).map_err(|e| Failure::bug(e.to_string()))?;
        let data = Data { shell: self.shell.to_string(), script: script.clone() };
        Ok(Output::new(script, data))
    }
}
