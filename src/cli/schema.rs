//! `trafoc schema`: what editors need to complete and check a spec in YAML.

use clap::Args;

use super::ui::{Failure, FormatArg, Output, Ui};
use crate::learn::recipe;
use crate::spec::schema::schema;

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// Of recipes, not of specs
    #[arg(long)]
    recipe: bool,
    /// How to speak.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Schema {
    /// The JSON schema of the language.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        let schema = if self.recipe { recipe::schema() } else { schema() };
        let text = serde_json::to_string_pretty(&schema).map_err(|e| Failure::bug(e.to_string()))? + "\n";
        ui.note("an editor takes it from a spec's first line: # yaml-language-server: $schema=FILE");
        Output::new(text, schema)
    }
}
