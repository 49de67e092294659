//! `trafoc run`: runs a model on inputs and writes its outputs.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::amount;
use super::format::FormatArg;
use super::overwrite::ForceArg;
use super::place::{PlaceArgs, WeightsArgs};
use super::subject::SpecArgs;

/// The command line of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The spec and its settings.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// Inputs by name as nested lists, such as {"tokens": [[1, 2, 3]]}, or a file of these; `-` for stdin
    #[arg(long, short, value_name = "JSON|FILE")]
    pub inputs: PathBuf,
    /// The file for the outputs, .safetensors or .json; if not given, only their shapes and ranges are
    /// shown
    #[arg(long, short, value_name = "FILE")]
    pub outputs: Option<PathBuf>,
    /// Whether a file is overwritten that trafoc did not write.
    #[command(flatten)]
    pub force: ForceArg,
    /// Weights in safetensors, named by the paths of parameters; if not given, those of a run or a model
    /// directory, or random ones
    #[arg(long, short, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Seed of random weights; 0 if not given
    #[arg(long, value_name = "N", conflicts_with = "weights", value_parser = amount::at_least(0_u64))]
    pub seed: Option<u64>,
    /// Also return the value at this path, such as `decoder.blocks.0.attention.weights`; may be repeated
    #[arg(long, value_name = "PATH")]
    pub capture: Vec<String>,
    /// The device and the element type.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The type of the weights.
    #[command(flatten)]
    pub kept: WeightsArgs,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `run` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The name of the device on which the model ran.
    pub device: String,
    /// The outputs and the captured values.
    pub outputs: Vec<Shown>,
    /// The file with all their numbers.
    pub path: Option<PathBuf>,
}

/// A summary of an output.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Shown {
    /// The name of the output, or the path of the captured value.
    pub name: String,
    /// The length of every axis, outermost first.
    pub shape: Vec<usize>,
    /// The mean of the finite numbers.
    pub mean: f64,
    /// The smallest of them.
    pub min: f64,
    /// The largest of them.
    pub max: f64,
    /// The first four numbers, without those that are not finite.
    pub first: Vec<f32>,
    /// The count of numbers that are not finite.
    pub not_finite: usize,
}
