//! `trafoc man`: a page of the manual for the program and for every command.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::overwrite::{self, ForceArg, MANUAL, Mark};
use super::ui::{Ui, VERSION, path_line};

/// The command line of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder to write the pages to
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    force: ForceArg,
    /// `--format`: how the result and the diagnostics are printed.
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

    /// Writes a page for the program and one for every command; prints their paths, one in each line.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let mut program = (ui.program().grammar)();
        // Building adds the global options to every command.
        program.build();
        let mut commands = Vec::new();
        collect(&program, "trafoc", &mut commands);
        let path = |name: &str| self.out.join(format!("{name}.1"));
        // All pages are permitted before the first is replaced.
        for (name, _) in &commands {
            overwrite::permit_own(&path(name))?;
            self.force.permit(&path(name), Mark::Manual, "another `--out`")?;
        }
        let mut paths = Vec::new();
        for (name, command) in commands {
            // Before the page's own first line, because the mark is searched at the beginning of a file.
            let mut page = MANUAL.as_bytes().to_vec();
            let bug = |e: String| Failure::bug(e);
            let source = format!("trafoc {VERSION}");
            let man = clap_mangen::Man::new(command.clone());
            // By convention the title of a page is in capitals.
            // A release has no date. Without the quotes, the version would take its place.
            let man = man.title(name.to_uppercase()).date("\"\"").source(source).manual("trafoc");
            man.render(&mut page).map_err(|e| bug(e.to_string()))?;
            let page = String::from_utf8(page).map_err(|e| bug(e.to_string()))?;
            let page = with_usual_sections(page, command);
            overwrite::write(&path(&name), &page)?;
            paths.push(path(&name));
        }
        let text = paths.iter().map(|p| path_line(p)).collect::<String>();
        Ok(Output::new(text, Data { paths }))
    }
}

/// The page with the sections that readers of manuals look for: the text after a command's help is called "extra" by the
/// library that makes the pages, which leaves out the example before it.
fn with_usual_sections(page: String, command: &clap::Command) -> String {
    let named = page.replace(".SH EXTRA\n", ".SH NOTES\n").replace("Exit codes: ", ".SH \"EXIT STATUS\"\n");
    let example = command.get_before_help().map(ToString::to_string);
    match example.as_deref().and_then(|text| text.strip_prefix("Example: ")) {
        // Otherwise a minus would be typeset as a hyphen, which no shell takes.
        Some(example) => format!("{named}.SH EXAMPLES\n{}\n", example.replace('-', "\\-")),
        None => named,
    }
}

/// A command and all commands below it, by the names of their pages, which the pages name too.
fn collect<'c>(command: &'c clap::Command, name: &str, out: &mut Vec<(String, &'c clap::Command)>) {
    out.push((name.to_owned(), command));
    // A hidden command is not for users.
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, &format!("{name}-{}", below.get_name()), out);
    }
}
