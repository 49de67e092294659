//! `trafoc show`: the layer table.

use clap::Args;

use super::subject::SpecArgs;
use super::ui::{Failure, Format, Output, Ui};
use crate::ir::Lengths;
use crate::report::cost::cost;
use crate::report::layers::layers;

/// The arguments of `show`.
#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    spec: SpecArgs,
    /// How many levels of modules to show; all of them if not given
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    depth: Option<u16>,
    /// The number of sequences in the batch, for counting operations
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// The tokens of each sequence; the context if not given
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tokens: Option<u64>,
    /// text, json, csv or markdown
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    format: TableFormat,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TableFormat {
    /// Aligned columns
    #[default]
    Text,
    /// A JSON object
    Json,
    /// Comma-separated values with full paths and plain numbers
    Csv,
    /// A pipe table
    Markdown,
}

impl TableFormat {
    /// The format in which diagnostics are printed.
    pub fn spoken(self) -> Format {
        match self {
            TableFormat::Json => Format::Json,
            TableFormat::Text | TableFormat::Csv | TableFormat::Markdown => Format::Text,
        }
    }
}

impl Show {
    /// The format in which diagnostics are printed.
    pub fn spoken(&self) -> Format {
        self.format.spoken()
    }

    /// Prints the table.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        let subject = self.spec.compile(ui)?;
        let whole = cost(&subject.graph).whole_context();
        let tokens = self.tokens;
        let lengths = Lengths {
            batch: self.batch,
            time: tokens.unwrap_or(whole.time),
            source: tokens.unwrap_or(whole.source),
            ..whole
        };
        let table = layers(&subject.graph, self.depth.map_or(usize::MAX, usize::from), &lengths);
        let text = match self.format {
            TableFormat::Text => table.text(ui.width()),
            TableFormat::Csv => table.csv(),
            TableFormat::Markdown => table.markdown(),
            TableFormat::Json => String::new(),
        };
        Output::new(text, &table)
    }
}
