//! `trafoc run`: inputs through a model, outputs to a file.

use std::path::PathBuf;

use clap::Args;

use super::place::PlaceArgs;
use super::subject::SpecArgs;
use super::ui::{Failure, FormatArg, Output, Ui};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The spec.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// Inputs by name as nested lists, such as {"tokens": [[1, 2, 3]]}; `-` for stdin
    #[arg(long, short, value_name = "JSON")]
    pub inputs: PathBuf,
    /// Where outputs go, .safetensors or .json; only their shapes and ranges are shown if not given
    #[arg(long, short, value_name = "FILE")]
    pub outputs: Option<PathBuf>,
    /// Weights in safetensors, named by the paths of parameters; if not given, those of a run or a model
    /// directory, or random ones
    #[arg(long, short, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Seed of random weights; 0 if not given
    #[arg(long, value_name = "N", conflicts_with = "weights")]
    pub seed: Option<u64>,
    /// A value to give out too, by its path, such as `decoder.blocks.0.attention.weights`; may be repeated
    #[arg(long, value_name = "PATH")]
    pub capture: Vec<String>,
    /// Where it runs.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// How to speak.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Run {
    /// Runs the model once.
    #[cfg(feature = "interp")]
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        super::execute::execute(self, ui)
    }

    /// Says what is missing, after the spec.
    #[cfg(not(feature = "interp"))]
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        self.spec.compile(ui)?;
        let message = "this trafoc was built without the feature `interp`, and cannot run models";
        Err(Failure::new(super::ui::Exit::Device, message)
            .help("build it with `--features flex`, its default"))
    }
}
