//! `trafoc eval`: the metrics of a trained model on a part of its data.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::figure::Figure;
use super::format::FormatArg;
use super::model::ModelArgs;

/// The command line of `eval`.
#[derive(Debug, Args)]
pub struct Eval {
    /// The model and its weights.
    #[command(flatten)]
    pub model: ModelArgs,
    /// A recipe with other data or metrics; the run's own if not given
    #[arg(long, short, value_name = "RECIPE")]
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
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `eval` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The checkpoint of a run.
    pub checkpoint: Option<String>,
    /// The number of steps before it.
    pub step: Option<u64>,
    /// The part of the data.
    pub split: &'static str,
    /// The metrics that the recipe asks for, in its order.
    pub figures: Vec<Figure>,
    /// The type of the weights in memory.
    pub weights_dtype: &'static str,
    /// The metrics with weights in f32, if the type is another one.
    pub in_f32: Option<Vec<Figure>>,
    /// Every translation, with `--each`.
    pub translations: Option<Vec<Translation>>,
}

/// A translation with its scores.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Translation {
    /// The text to translate.
    pub source: String,
    /// The translation that the data gives.
    pub reference: String,
    /// The translation that the model gives.
    pub written: String,
    /// The score of sacreBLEU's `sentence_bleu`, 0 to 100.
    pub bleu: f64,
    /// The same score over words separated by spaces.
    pub word_bleu: f64,
    /// The score of "Dive into Deep Learning" with `k = 2`, 0 to 1.
    pub sentence_bleu: f64,
}
