//! `trafoc schema`: the schema with which editors complete and check a spec in YAML, and the schemas of what
//! commands print for programs.

use clap::Args;
use serde_json::Value as Json;

use super::command::Command;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::ui::Ui;
use crate::diag::suggest::suggest;
use crate::learn::recipe;
use crate::spec::schema::schema;

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// The schema of recipes instead of specs
    #[arg(long)]
    recipe: bool,
    /// The schema of what this command prints with `--format json`
    #[arg(long, value_name = "COMMAND", conflicts_with = "recipe")]
    output: Option<String>,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Command for Schema {
    /// A schema can be any object.
    type Data = Json;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Prints the schema.
    fn run(&self, ui: &mut Ui) -> Result<Output<Json>, Failure> {
        let (schema, note) = match &self.output {
            Some(command) => (of_output(command, ui)?, None),
            None if self.recipe => (recipe::schema(), Some("the recipe")),
            None => (schema(), Some("the spec")),
        };
        let text = serde_json::to_string_pretty(&schema).map_err(|e| Failure::bug(e.to_string()))? + "\n";
        if let Some(which) = note {
            ui.note(&format!(
                "to use it in an editor, begin {which} with: # yaml-language-server: $schema=FILE"
            ));
        }
        Ok(Output::new(text, schema))
    }
}

/// The schema of a command's output.
fn of_output(command: &str, ui: &Ui) -> Result<Json, Failure> {
    let program = ui.program();
    let grammar = (program.grammar)();
    let name = grammar.find_subcommand(command).map_or(command, |found| found.get_name());
    (program.schema)(name).filter(|_| !name.is_empty()).ok_or_else(|| {
        let names: Vec<&str> = grammar.get_subcommands().map(clap::Command::get_name).collect();
        let failure = Failure::usage(format!("there is no command `{command}`"));
        match suggest(command, &names) {
            Some(near) => failure.help(format!("did you mean `{near}`?")),
            None => failure.help(format!("the commands are {}", names.join(", "))),
        }
    })
}
