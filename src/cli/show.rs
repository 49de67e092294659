//! `trafoc show`: the layer table.

use clap::Args;

use super::amount;
use super::command::Command;
use super::format::{Format, FormatArg, TableFormat};
use super::outcome::{Failure, Output};
use super::subject::SpecArgs;
use super::ui::Ui;
use super::watch::WatchArg;
use crate::ir::Lengths;
use crate::report::cost::cost;
use crate::report::layers::{Layers, layers};
use crate::report::number;

/// The command line of `show`.
#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    spec: SpecArgs,
    /// How many levels of modules to show; all of them if not given
    #[arg(long, short, value_name = "N", value_parser = amount::at_least(1_u16))]
    depth: Option<u16>,
    /// The number of sequences in the batch, for counting operations
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = amount::at_least(1_u64))]
    batch: u64,
    /// The number of tokens in each sequence; the context if not given
    #[arg(long, short, value_name = "N", value_parser = amount::at_least(1_u64))]
    tokens: Option<u64>,
    #[command(flatten)]
    watch: WatchArg,
    #[command(flatten)]
    format: FormatArg<TableFormat>,
}

impl Command for Show {
    type Data = Layers;

    fn format(&self) -> Format {
        self.format.format.into()
    }

    fn watch(&self) -> WatchArg {
        self.watch
    }

    /// Prints the layers with shapes, parameters and operations.
    fn run(&self, ui: &mut Ui) -> Result<Output<Layers>, Failure> {
        self.watch.agree(self.format(), [self.spec.spec.as_str()])?;
        let subject = self.spec.compile(ui)?;
        let costs = cost(&subject.graph);
        let whole = costs.whole_context();
        // One option for both sequences of an encoder-decoder.
        let tokens = self.tokens;
        if let Some(given) = tokens {
            if !costs.has_time {
                ui.note("note: the model reads images, so `--tokens` changes nothing");
            } else if given > costs.context {
                let (given, context) = (number::exact(given.into()), number::exact(costs.context.into()));
                ui.note(&format!(
                    "note: counted for {given} tokens, beyond the model's context of {context}"
                ));
            }
        }
        let lengths = Lengths {
            batch: self.batch,
            time: tokens.unwrap_or(whole.time),
            source: tokens.unwrap_or(whole.source),
            ..whole
        };
        let table = layers(&subject.graph, self.depth.map_or(usize::MAX, usize::from), &lengths);
        let text = match self.format.format {
            TableFormat::Text => table.text(ui.width()),
            TableFormat::Csv => table.csv(),
            TableFormat::Agent => table.plain().tsv(),
            TableFormat::Markdown => table.markdown(),
            TableFormat::Json => String::new(),
        };
        Ok(Output::new(text, table))
    }
}
