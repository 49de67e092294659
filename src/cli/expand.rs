//! `trafoc expand`: the spec with every default written, as a spec.

use clap::Args;
use serde_json::json;

use super::subject::{Lang, SpecArgs};
use super::ui::{Failure, FormatArg, Output, Ui};
use crate::spec::expand::expand;

/// The arguments of `expand`.
#[derive(Debug, Args)]
pub struct Expand {
    #[command(flatten)]
    spec: SpecArgs,
    /// The notation, yaml or trafo; that of the spec if not given
    #[arg(long, value_enum, value_name = "LANG", hide_possible_values = true)]
    to: Option<Lang>,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Expand {
    /// Writes the spec; parsing the output gives an equal one.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        let subject = self.spec.compile(ui)?;
        let notation = self.to.map_or(subject.notation, Into::into);
        let text = expand(&subject.spec, notation);
        let data = json!({ "lang": notation.extension(), "text": text });
        Output::new(text, data)
    }
}
