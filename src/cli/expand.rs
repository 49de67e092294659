//! `trafoc expand`: writes the spec with every default, again as a spec.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::subject::{Lang, SpecArgs};
use super::ui::Ui;
use crate::spec::expand::expand;

/// The command line of `expand`.
#[derive(Debug, Args)]
pub struct Expand {
    #[command(flatten)]
    spec: SpecArgs,
    /// The notation, yaml or trafo; that of the spec if not given
    #[arg(long, value_enum, value_name = "LANG", hide_possible_values = true)]
    to: Option<Lang>,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `expand` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The notation: `yaml` or `trafo`.
    lang: &'static str,
    /// The spec with every default.
    text: String,
}

impl Command for Expand {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the spec; parsing the output gives an equal one.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let subject = self.spec.compile(ui)?;
        let notation = self.to.map_or(subject.notation, Into::into);
        let text = expand(&subject.spec, notation);
        let data = Data { lang: notation.extension(), text: text.clone() };
        Ok(Output::new(text, data))
    }
}
