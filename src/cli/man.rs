//! `trafoc man`: a manual page for the program, and one for every command.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::file;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::ui::Ui;

/// The arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder to write the pages to
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `man` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The files that were written.
    paths: Vec<PathBuf>,
}

impl Command for Man {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the pages; prints their paths.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let mut program = (ui.program().grammar)();
        program.build();
        let mut pages = vec![("trafoc".to_owned(), program.clone())];
        pages.extend(program.get_subcommands().map(|c| (format!("trafoc-{}", c.get_name()), c.clone())));
        let mut paths = Vec::new();
        for (name, command) in pages {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(|e| Failure::bug(e.to_string()))?;
            let page = String::from_utf8(page).map_err(|e| Failure::bug(e.to_string()))?;
            let path = self.out.join(format!("{name}.1"));
            file::write(&path, &page)?;
            paths.push(path);
        }
        let text = paths.iter().map(|p| format!("{}\n", p.display())).collect::<String>();
        Ok(Output::new(text, Data { paths }))
    }
}
