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

/// The command line of `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// The schema of recipes instead of specs
    #[arg(long)]
    recipe: bool,
    /// The schema of what this command prints with `--format json`
    #[arg(long, value_name = "COMMAND", conflicts_with = "recipe")]
    output: Option<String>,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Command for Schema {
    /// A schema can be any object.
    type Data = Json;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Prints the schema, and on stderr how an editor uses it.
    fn run(&self, ui: &mut Ui) -> Result<Output<Json>, Failure> {
        let (schema, note) = match &self.output {
            // Editors use only the schemas of files that people write.
            Some(command) => (of_output(command, ui)?, None),
            None if self.recipe => (recipe::schema(), Some("the recipe")),
            None => (schema(), Some("the spec")),
        };
        let mut text = String::new();
        lay_out(&schema, 0, &mut text);
        text.push('\n');
        if let Some(which) = note {
            ui.note(&format!(
                "to use it in an editor, begin {which} with: # yaml-language-server: $schema=FILE"
            ));
        }
        Ok(Output::new(text, schema))
    }
}

/// The columns that a value may take to be on one line.
const WIDE: usize = 110;
/// How deep a value may be inside of others to have more than one line: a definition, its parts, and those of
/// them.
const DEEP: usize = 4;

/// Writes a schema so that it can be read in an editor, and is not three times as long for its indentation.
fn lay_out(value: &Json, depth: usize, out: &mut String) {
    let line = value.to_string();
    let inner = "  ".repeat(depth.saturating_add(1));
    // Below a certain depth everything is in one line, however long: what is there is rarely read by
    // people.
    let fits = line.len().saturating_add(inner.len()) <= WIDE || depth >= DEEP;
    let mut lines = |open: char, close: char, parts: Vec<(String, &Json)>| {
        out.push(open);
        for (i, (key, part)) in parts.into_iter().enumerate() {
            out.push_str(if i == 0 { "\n" } else { ",\n" });
            out.push_str(&inner);
            out.push_str(&key);
            lay_out(part, depth.saturating_add(1), out);
        }
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
        out.push(close);
    };
    match value {
        Json::Object(entries) if !fits => {
            let entries = entries.iter().map(|(key, part)| (format!("{}: ", Json::from(key.as_str())), part));
            lines('{', '}', entries.collect());
        }
        Json::Array(items) if !fits => {
            lines('[', ']', items.iter().map(|part| (String::new(), part)).collect())
        }
        Json::Object(_) | Json::Array(_) | Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            out.push_str(&line);
        }
    }
}

/// The schema of what a command prints with `--format json`; the command may be named by an alias.
fn of_output(command: &str, ui: &Ui) -> Result<Json, Failure> {
    let program = ui.program();
    let grammar = (program.grammar)();
    // An alias, such as `c` of `check`, leads to its command.
    let name = grammar.find_subcommand(command).map_or(command, |found| found.get_name());
    // The empty name has a schema as well: that of a command line that names no command.
    (program.schema)(name).filter(|_| !name.is_empty()).ok_or_else(|| {
        let names: Vec<&str> = grammar.get_subcommands().map(clap::Command::get_name).collect();
        let failure = Failure::usage(format!("there is no command `{command}`"));
        match suggest(command, &names) {
            Some(near) => failure.help(format!("did you mean `{near}`?")),
            None => failure.help(format!("the commands are {}", names.join(", "))),
        }
    })
}
