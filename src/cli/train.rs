//! `trafoc train`: a spec and a recipe to a trained model, in a folder that survives interruptions.

use std::path::PathBuf;

use clap::Args;

use super::subject::OverArgs;
use super::ui::{Failure, FormatArg, Output, Ui};

/// Arguments of `train`.
#[derive(Debug, Args)]
pub struct Train {
    /// A spec file, `-` for stdin, or a shipped spec such as `@gpt1`; not needed with --resume
    #[arg(value_name = "SPEC", required_unless_present = "resume")]
    pub spec: Option<String>,
    /// What is laid over the spec.
    #[command(flatten)]
    pub over: OverArgs,
    /// How it is trained: a recipe file, or a shipped recipe such as `@gbt-mulm`; not needed with --resume
    #[arg(long, short, value_name = "FILE", required_unless_present = "resume")]
    pub recipe: Option<PathBuf>,
    /// Change a value of the recipe, such as `steps=100`; may be repeated
    #[arg(long = "with", value_name = "PATH=VALUE")]
    pub with: Vec<String>,
    /// The folder of the run: new, or with --resume the one to go on with
    #[arg(long, short, value_name = "DIR", required_unless_present = "dry_run")]
    pub out: Option<PathBuf>,
    /// Go on from the newest whole checkpoint; a new run where there is none
    #[arg(long)]
    pub resume: bool,
    /// Say what it would need, and whether it would fit; train nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Weights to begin with, safetensors named by the paths of parameters; random ones if not given
    #[arg(long, short, value_name = "FILE", conflicts_with = "resume")]
    pub weights: Option<PathBuf>,
    /// A page of the learning curve, .html, written anew every few seconds while it trains
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", value_parser = page)]
    pub page: Option<PathBuf>,
    /// The device: flex, cuda:0, auto, ...; `trafoc doctor` lists them
    #[arg(long, value_name = "DEVICE", env = "TRAFOC_DEVICE", hide_env_values = true)]
    pub device: Option<String>,
    /// How to speak.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The name of a page.
fn page(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().is_some_and(|ending| ending == "html" || ending == "htm") {
        true => Ok(path),
        false => Err("a page is written as .html".to_owned()),
    }
}

impl Train {
    /// Trains.
    #[cfg(feature = "interp")]
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        super::training::train(self, ui)
    }

    /// Says what is missing.
    #[cfg(not(feature = "interp"))]
    pub fn run(&self, _: &mut Ui) -> Result<Output, Failure> {
        Err(super::ui::without_interp("train models"))
    }
}
