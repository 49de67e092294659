//! `trafoc reproduce`: trains again what a run records, and compares the two bit by bit.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::amount;
use super::format::FormatArg;
use super::setting::{DEVICE, FAMILIES};

/// The command line of `reproduce`.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// The folder of a run, which is read and not changed; it may be in training
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Train up to this step, of which the run must have a checkpoint; the newest if not given
    #[arg(long, value_name = "N", value_parser = amount::at_least(1_u64))]
    pub steps: Option<u64>,
    /// A new folder for the run that is made; if not given, a temporary one that is removed at the end
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// A folder of family files of your own, if the run began from a Hugging Face model
    #[arg(long, value_name = "DIR", env = FAMILIES.variable, hide_env_values = true)]
    pub families: Option<PathBuf>,
    /// The device: flex, cuda:0, auto, ...; `trafoc doctor` lists them
    #[arg(long, value_name = "DEVICE", env = DEVICE.variable, hide_env_values = true)]
    pub device: Option<String>,
    /// The number of threads that `flex` uses; all cores if not given [env: TRAFOC_THREADS]
    #[arg(long, value_name = "N", value_parser = amount::at_least(1_u16))]
    pub threads: Option<u16>,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `reproduce` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The folder of the run.
    pub run: String,
    /// The folder of the run that was made again; null if it was temporary.
    pub out: Option<String>,
    /// The step at which they were compared.
    pub step: u64,
    /// The number of steps of the whole run.
    pub steps: u64,
    /// Whether all that was compared has equal bits.
    pub is_equal: bool,
    /// The number of steps whose metrics were compared.
    pub recorded: usize,
    /// The first number of `metrics.jsonl` that differs; null if none does.
    pub first: Option<First>,
    /// The files of the checkpoint; empty if training ended before it.
    pub files: Vec<Compared>,
    /// What the run was made with, call by call; empty if it has not recorded it.
    pub made_with: Vec<Maker>,
    /// What it was made again with.
    pub made_again_with: Maker,
}

/// The first recorded number that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct First {
    /// The number of the step, counted from 1.
    pub step: u64,
    /// The part of the data, if it is of an evaluation.
    pub split: Option<String>,
    /// The name of the number in `metrics.jsonl`.
    pub metric: String,
    /// The number that the run has recorded; null if it has none.
    pub run: Option<f64>,
    /// The number of the run that was made again; null if it has none.
    pub again: Option<f64>,
}

/// A file with tensors of the two checkpoints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Compared {
    /// The name of the file; that of the mean of checkpoints begins with `averaged/`.
    pub file: String,
    /// The number of its tensors.
    pub tensors: usize,
    /// The number of tensors that differ; null if the run no longer has the file, which is another one by its
    /// checksum.
    pub different: Option<usize>,
    /// The largest difference between two numbers; null if there is none, or it cannot be computed.
    pub largest: Option<f64>,
    /// The tensor with that difference, else the first that differs.
    pub tensor: Option<String>,
}

/// What a run was made with.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Maker {
    /// The version of trafoc, with the commit if it is known.
    pub version: String,
    /// The device.
    pub device: String,
    /// The number of threads that the process could use.
    pub threads: usize,
}
