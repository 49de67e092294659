//! `trafoc schema`: the schema with which editors complete and check a spec in YAML.

use clap::Args;

use super::ui::{Failure, FormatArg, Output, Ui};
use crate::learn::recipe;
use crate::spec::schema::schema;

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// The schema of recipes instead of specs
    #[arg(long)]
    recipe: bool,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Schema {
    /// Prints the JSON schema of the language.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        let schema = if self.recipe { recipe::schema() } else { schema() };
        let text = serde_json::to_string_pretty(&schema).map_err(|e| Failure::bug(e.to_string()))? + "\n";
        ui.note("to use it in an editor, begin the spec with: # yaml-language-server: $schema=FILE");
        Output::new(text, schema)
    }
}
