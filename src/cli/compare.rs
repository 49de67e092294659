//! `trafoc compare`: what differs between specs, and what it costs.

use clap::Args;

use super::show::TableFormat;
use super::subject::{OverArgs, Subject};
use super::ui::{Failure, Format, Output, Ui};
use crate::report::compare::{Entry, compare};
use crate::report::cost::{Cost, cost};
use crate::report::costs::{Element, Scene};

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Two or more specs: files, `-` for stdin, or shipped specs such as `@gpt1`
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<String>,
    #[command(flatten)]
    over: OverArgs,
    #[command(flatten)]
    scene: SceneArgs,
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

/// At what costs are measured.
#[derive(Clone, Debug, Args)]
pub struct SceneArgs {
    /// Sequences in the batch
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Their length; the shortest context if not given
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tokens: Option<u64>,
    /// What numbers are held in, for bytes: bf16 or f32
    #[arg(
        long,
        value_enum,
        value_name = "TYPE",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    dtype: Dtype,
}

/// The size of an element on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Dtype {
    /// 2 bytes
    #[default]
    Bf16,
    /// 4 bytes
    F32,
}

impl SceneArgs {
    /// The scene for models of these costs.
    pub fn scene<'c>(&self, costs: impl Iterator<Item = &'c Cost>) -> Scene {
        let contexts = costs.filter(|c| c.has_time).map(|c| c.context);
        let tokens = self.tokens.or(contexts.min()).unwrap_or(1);
        let element = match self.dtype {
            Dtype::Bf16 => Element::Bf16,
            Dtype::F32 => Element::F32,
        };
        Scene { batch: self.batch, tokens, element }
    }
}

impl Compare {
    /// How diagnostics are told.
    pub fn spoken(&self) -> Format {
        self.format.spoken()
    }

    /// The comparison.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        let subjects: Vec<Subject> =
            self.specs.iter().map(|spec| self.over.compile(spec, ui)).collect::<Result<_, _>>()?;
        if subjects.len() < 2 {
            return Err(Failure::usage("comparing takes two specs or more"));
        }
        let costs: Vec<Cost> = subjects.iter().map(|s| cost(&s.graph)).collect();
        let scene = self.scene.scene(costs.iter());
        let entries: Vec<Entry<'_>> =
            subjects.iter().map(|s| Entry { name: &s.spec.name, spec: &s.spec, graph: &s.graph }).collect();
        let comparison = compare(&entries, scene);
        let text = match self.format {
            TableFormat::Text => comparison.text(ui.width()),
            TableFormat::Csv | TableFormat::Markdown | TableFormat::Json => String::new(),
        };
        Output::new(text, &comparison)
    }
}
