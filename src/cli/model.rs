//! Which trained model a command uses: its arguments, shared by all that use one.

use std::path::PathBuf;

use clap::Args;

use super::place::PlaceArgs;
use super::subject::OverArgs;

/// Which model, and where it runs.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The folder of a run, a Hugging Face model directory, or a spec with --weights
    #[arg(value_name = "MODEL")]
    pub model: String,
    /// What is laid over a spec.
    #[command(flatten)]
    pub over: OverArgs,
    /// Weights of a spec, safetensors named by the paths of parameters
    #[arg(long, short, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// The `codebook.json` of a checkpoint, which says what ids mean, for a spec with --weights
    #[arg(long, value_name = "FILE", requires = "weights")]
    pub codebook: Option<PathBuf>,
    /// Which checkpoint of a run: best, last, averaged, or its step; averaged if there is one, else best
    #[arg(long, value_name = "NAME", conflicts_with = "weights")]
    pub checkpoint: Option<String>,
    /// Where it runs.
    #[command(flatten)]
    pub place: PlaceArgs,
}
