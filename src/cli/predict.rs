//! `trafoc predict`: classes of texts and images, tags of words, answers, vectors.

use std::path::PathBuf;

use clap::Args;

use super::model::ModelArgs;
use super::ui::{Failure, FormatArg, Output, Ui};

/// The arguments of `predict`.
#[derive(Debug, Args)]
pub struct Predict {
    /// The model and its weights.
    #[command(flatten)]
    pub model: ModelArgs,
    /// A text; may be repeated. For questions, the text they are about
    #[arg(long, short, value_name = "TEXT")]
    pub text: Vec<String>,
    /// A file with a text in every line; `-` for stdin. For questions, the whole file is the text
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub texts: Option<PathBuf>,
    /// A second text, which follows every text
    #[arg(long, value_name = "TEXT")]
    pub second: Option<String>,
    /// A question about the text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub question: Vec<String>,
    /// An image, png or jpeg; may be repeated
    #[arg(long, short, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// How many of the most probable classes are shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub top: u64,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Predict {
    /// Predicts.
    #[cfg(feature = "interp")]
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        super::prediction::predict(self, ui)
    }

    /// Reports the missing feature.
    #[cfg(not(feature = "interp"))]
    pub fn run(&self, _: &mut Ui) -> Result<Output, Failure> {
        Err(super::ui::without_interp("predict"))
    }
}
