//! `trafoc completions`: a script with which a shell completes commands and options.

use clap::Args;
use clap_complete::Shell;
use serde_json::json;

use super::ui::{Failure, FormatArg, Output, Ui};

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

impl Completions {
    /// The script for the shell.
    pub fn run(&self, _: &mut Ui) -> Result<Output, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(&[]), "trafoc", &mut script);
        let script = String::from_utf8(script).map_err(|e| Failure::bug(e.to_string()))?;
        let data = json!({ "shell": self.shell.to_string(), "script": script });
        Output::new(script, data)
    }
}
