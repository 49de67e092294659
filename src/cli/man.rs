//! `trafoc man`: a manual page for the program, and one for every command.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::file;
use super::ui::{Failure, FormatArg, Output, Ui};

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

impl Man {
    /// Writes the pages; prints their paths.
    pub fn run(&self, _: &mut Ui) -> Result<Output, Failure> {
        let mut program = super::command(&[]);
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
            paths.push(path.display().to_string());
        }
        let text = paths.iter().map(|p| format!("{p}\n")).collect::<String>();
        Output::new(text, json!({ "paths": paths }))
    }
}
