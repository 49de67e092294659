//! `trafoc eval`: the metrics of a trained model on a part of its data.

use std::path::PathBuf;

use clap::Args;

use super::model::ModelArgs;
use super::ui::{Failure, FormatArg, Output, Ui};

/// The arguments of `eval`.
#[derive(Debug, Args)]
pub struct Eval {
    /// The model and its weights.
    #[command(flatten)]
    pub model: ModelArgs,
    /// A recipe with other data or metrics; the run's own if not given
    #[arg(long, short, value_name = "FILE")]
    pub recipe: Option<PathBuf>,
    /// Change a value of the recipe, such as `evaluate.metrics=[bleu]`; may be repeated
    #[arg(long = "with", value_name = "PATH=VALUE")]
    pub with: Vec<String>,
    /// The part of the data: train, validation or test; the recipe's if not given
    #[arg(long, value_name = "PART", value_parser = ["train", "validation", "test"])]
    pub split: Option<String>,
    /// List every translation with its source, its reference and its BLEU, best first
    #[arg(long)]
    pub each: bool,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Eval {
    /// Computes the metrics.
    #[cfg(feature = "interp")]
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        super::measure::measure(self, ui)
    }

    /// Reports the missing feature.
    #[cfg(not(feature = "interp"))]
    pub fn run(&self, _: &mut Ui) -> Result<Output, Failure> {
        Err(super::ui::without_interp("evaluate models"))
    }
}
