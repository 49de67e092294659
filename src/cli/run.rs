//! `trafoc run`: runs a model on inputs and writes its outputs.

use std::path::PathBuf;

use clap::Args;

use super::place::PlaceArgs;
use super::subject::SpecArgs;
use super::ui::{Failure, FormatArg, Output, Ui};

/// The arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The spec and its settings.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// Inputs by name as nested lists, such as {"tokens": [[1, 2, 3]]}; `-` for stdin
    #[arg(long, short, value_name = "JSON")]
    pub inputs: PathBuf,
    /// The file for the outputs, .safetensors or .json; if not given, only their shapes and ranges are
    /// shown
    #[arg(long, short, value_name = "FILE")]
    pub outputs: Option<PathBuf>,
    /// Weights in safetensors, named by the paths of parameters; if not given, those of a run or a model
    /// directory, or random ones
    #[arg(long, short, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Seed of random weights; 0 if not given
    #[arg(long, value_name = "N", conflicts_with = "weights")]
    pub seed: Option<u64>,
    /// A value to return too, by its path, such as `decoder.blocks.0.attention.weights`; may be repeated
    #[arg(long, value_name = "PATH")]
    pub capture: Vec<String>,
    /// The device and the element type.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Run {
    /// Runs the model once.
    #[cfg(feature = "interp")]
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        super::execute::execute(self, ui)
    }

    /// Checks the spec, then reports the missing feature.
    #[cfg(not(feature = "interp"))]
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        self.spec.compile(ui)?;
        let message = "this trafoc was built without the feature `interp`, so it cannot run models";
        Err(Failure::new(super::ui::Exit::Device, message)
            .help("build it with `--features flex`, its default"))
    }
}
