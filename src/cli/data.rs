//! `trafoc data`: writes the files of a recipe as arrays into a folder, which trainers read instead of the
//! files.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::format::FormatArg;
use super::new_head::StartArgs;
use super::overwrite::ForceArg;
use super::subject::OverArgs;

/// The command line of `data`.
#[derive(Debug, Args)]
pub struct Prepare {
    /// A spec file, `-` for stdin, or a shipped spec such as `@gpt1`
    #[arg(value_name = "SPEC")]
    pub spec: String,
    /// Changes to the spec.
    #[command(flatten)]
    pub over: OverArgs,
    /// What training starts from.
    #[command(flatten)]
    pub start: StartArgs,
    /// The recipe, which names the data: a file, or a shipped recipe such as `@gbt-mulm`
    #[arg(long, short, value_name = "RECIPE")]
    pub recipe: PathBuf,
    /// Change a value of the recipe, such as `data.limit=100`; may be repeated
    #[arg(long = "with", value_name = "PATH=VALUE")]
    pub with: Vec<String>,
    /// The folder to write
    #[arg(long, short, value_name = "DIR")]
    pub out: PathBuf,
    /// Whether files are overwritten that trafoc did not write.
    #[command(flatten)]
    pub force: ForceArg,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `data` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The folder that was written.
    pub folder: String,
    /// The parts of the data.
    pub parts: Vec<Part>,
    /// The number of tokens in the vocabulary; null for images.
    pub vocab: Option<usize>,
    /// The number of tokens in the vocabulary of the source, if it has its own.
    pub source_vocab: Option<usize>,
    /// The names of the classes by index; empty if there are none.
    pub classes: Vec<String>,
    /// The number of files.
    pub files: usize,
    /// The number of their bytes.
    pub bytes: u64,
}

/// A part of the data.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Part {
    /// Which part it is: train, validation or test.
    pub part: &'static str,
    /// The number of examples.
    pub examples: usize,
    /// The number of tokens, without special tokens.
    pub tokens: usize,
}
