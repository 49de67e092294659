//! The arguments that select a trained model, shared by all commands that use one.

use std::path::PathBuf;

use clap::Args;

use super::place::{PlaceArgs, WeightsArgs};
use super::subject::OverArgs;

/// The model, and the device it runs on.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The folder of a run, a Hugging Face model directory, or a spec with --weights
    #[arg(value_name = "MODEL")]
    pub model: String,
    /// Changes to a spec.
    #[command(flatten)]
    pub over: OverArgs,
    /// Weights of a spec, safetensors named by the paths of parameters
    #[arg(long, short, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// The `codebook.json` of a checkpoint, with the meaning of ids, for a spec with --weights
    #[arg(long, value_name = "FILE", requires = "weights", conflicts_with = "checkpoint")]
    pub codebook: Option<PathBuf>,
    /// Which checkpoint of a run: best, last, averaged, or its step; if not given, averaged if it exists,
    /// else best
    #[arg(long, value_name = "NAME", conflicts_with = "weights")]
    pub checkpoint: Option<String>,
    /// The device and the element type.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The type of the weights.
    #[command(flatten)]
    pub kept: WeightsArgs,
}
