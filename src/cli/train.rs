//! `trafoc train`: trains a spec by a recipe, in a folder that survives interruptions.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::amount;
use super::figure::Figure;
use super::format::FormatArg;
use super::new_head::StartArgs;
use super::overwrite::{self, ForceArg};
use super::setting::DEVICE;
use super::subject::OverArgs;

/// The command line of `train`.
#[derive(Debug, Args)]
pub struct Train {
    /// A spec file, `-` for stdin, a shipped spec such as `@gpt1`, or a run or Hugging Face model directory,
    /// from whose weights it starts; not needed with --resume
    #[arg(value_name = "SPEC", required_unless_present = "resume")]
    pub spec: Option<String>,
    /// Changes to the spec.
    #[command(flatten)]
    pub over: OverArgs,
    /// What it starts from.
    #[command(flatten)]
    pub start: StartArgs,
    /// How to train: a recipe file, or a shipped recipe such as `@gbt-mulm`; not needed with --resume
    #[arg(long, short, value_name = "RECIPE", required_unless_present = "resume")]
    pub recipe: Option<PathBuf>,
    /// Change a value of the recipe, such as `steps=100`; may be repeated
    #[arg(long = "with", value_name = "PATH=VALUE")]
    pub with: Vec<String>,
    /// Data prepared by `trafoc data`, which is read in place of the recipe's files
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The folder of the run: a new one, or with --resume the one to continue
    #[arg(long, short, value_name = "DIR", required_unless_present = "dry_run")]
    pub out: Option<PathBuf>,
    /// Continue from the newest complete checkpoint; a new run if there is none
    #[arg(long)]
    pub resume: bool,
    /// Estimate what training would need and whether it would fit, without training
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Weights to start from, safetensors named by the paths of parameters; if not given, those of a run or a
    /// model directory, or random ones
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["resume", "from_scratch"])]
    pub weights: Option<PathBuf>,
    /// List every tensor that training starts from, and every fresh one
    #[arg(long, short)]
    pub verbose: bool,
    /// An .html page with the learning curve, updated every few seconds during training
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", value_parser = overwrite::page)]
    pub page: Option<PathBuf>,
    /// Whether a page is overwritten that trafoc did not write.
    #[command(flatten)]
    pub force: ForceArg,
    /// The device: flex, cuda:0, auto, ...; `trafoc doctor` lists them
    #[arg(long, value_name = "DEVICE", env = DEVICE.variable, hide_env_values = true)]
    pub device: Option<String>,
    /// The number of threads that `flex` uses; all cores if not given [env: TRAFOC_THREADS]
    #[arg(long, value_name = "N", conflicts_with = "dry_run", value_parser = amount::at_least(1_u16))]
    pub threads: Option<u16>,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `train` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Data {
    /// What a run has done.
    Trained(Trained),
    /// What a run would need, with `--dry-run`.
    Forecast(Forecast),
}

/// A run that came to its end or was interrupted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Trained {
    /// The folder of the run.
    pub run: String,
    /// The trained model that it started from; null if it started from random weights, or was continued.
    pub start: Option<StartedFrom>,
    /// The number of steps made.
    pub step: u64,
    /// The number of steps of the whole run.
    pub steps: u64,
    /// The training loss, averaged over the last steps.
    pub loss: Option<f64>,
    /// The metrics of the last evaluation; empty if none was made.
    pub figures: Vec<Figure>,
    /// The best evaluation so far; null if none was made.
    pub best: Option<Best>,
    /// Whether all steps were made, or why not.
    pub ending: Ending,
}

/// A trained model that training starts from.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StartedFrom {
    /// The path of that model.
    pub from: String,
    /// The paths of the parameters that were taken over.
    pub loaded: Vec<String>,
    /// The paths of the parameters that started fresh.
    pub fresh: Vec<String>,
    /// The paths of its parameters that were not used.
    pub unused: Vec<String>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// All steps were made.
    Complete,
    /// The recipe's `stop` ended it, because it did not become better.
    Stopped,
    /// The user or the system interrupted it.
    Interrupted,
}

/// The best evaluation of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Best {
    /// The number of steps before it.
    pub step: u64,
    /// The value of the metric; null if it is not finite.
    #[schemars(with = "Option<f64>")]
    pub value: f64,
}

/// What a run would need.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Forecast {
    /// The trained model that it would start from; null if it would start from random weights.
    pub start: Option<StartedFrom>,
    /// The parameters of the model.
    pub parameters: u64,
    /// Those that are trained.
    pub trained: u64,
    /// The examples of the training data.
    pub examples: usize,
    /// The tokens of the training data.
    pub tokens: usize,
    /// The number of steps.
    pub steps: u64,
    /// The duration of the whole run.
    pub seconds: f64,
    /// The duration of preparing the data, with its tokenizers, before the first step.
    pub seconds_preparing: f64,
    /// The duration of a step.
    pub seconds_a_step: f64,
    /// The number of evaluations.
    pub evaluations: u64,
    /// The duration of an evaluation.
    pub seconds_an_evaluation: f64,
    /// The memory of the process.
    pub memory_bytes: u64,
    /// The disk space of all checkpoints.
    pub disk_bytes: u64,
    /// The disk space of one checkpoint.
    pub checkpoint_bytes: u64,
}
