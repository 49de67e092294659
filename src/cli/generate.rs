//! `trafoc generate`: texts that a trained model generates, or translations.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::amount;
use super::format::FormatArg;
use super::model::ModelArgs;

/// The command line of `generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// The model and its weights.
    #[command(flatten)]
    pub model: ModelArgs,
    /// A text to continue or to translate; may be repeated
    #[arg(long, short, value_name = "TEXT")]
    pub prompt: Vec<String>,
    /// A file with one prompt per line; `-` for stdin
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub prompts: Option<PathBuf>,
    /// The number of texts for every prompt
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = amount::between(1_u64, 1_000_000))]
    pub count: u64,
    /// The largest number of tokens in a text; if not given, as many as fit into the context, or for a
    /// translation as many as the longest one in its data has
    #[arg(long, value_name = "N", value_parser = amount::at_least(1_usize))]
    pub max_tokens: Option<usize>,
    /// Scores are divided by it before sampling; 0 selects the best token. If not given, 1 for a language
    /// model and 0 for a translation
    #[arg(long, value_name = "T", value_parser = at_least_0, allow_negative_numbers = true)]
    pub temperature: Option<f64>,
    /// Sample from this many of the best tokens
    #[arg(long, value_name = "K", value_parser = amount::at_least(1_u64))]
    pub top_k: Option<u64>,
    /// Sample from the smallest set of best tokens with this total probability
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    pub top_p: Option<f64>,
    /// Sample from the tokens with at least this share of the best token's probability
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    pub min_p: Option<f64>,
    /// Values above 1 make tokens that have already occurred less probable
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = above_0, allow_negative_numbers = true)]
    pub repetition_penalty: f64,
    /// Search with this many hypotheses instead of sampling; returns `--count` of them. The search ends when no
    /// hypothesis can become better than those that have ended: `early_stopping: "never"` in transformers
    #[arg(
        long,
        value_name = "WIDTH",
        value_parser = amount::between(1_u64, 1024),
        conflicts_with_all = ["temperature", "top_k", "top_p", "min_p", "repetition_penalty"]
    )]
    pub beam: Option<u64>,
    /// The score of a hypothesis is divided by its length to this power
    #[arg(
        long,
        value_name = "X",
        default_value_t = 1.0,
        value_parser = number,
        allow_negative_numbers = true,
        requires = "beam",
        // clap does not require what another option excludes.
        conflicts_with_all = ["temperature", "top_k", "top_p", "min_p", "repetition_penalty"]
    )]
    pub length_penalty: f64,
    /// A text that ends the output and is not part of it; may be repeated
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub stop: Vec<String>,
    /// The language of a translation, as the training data names it; for an imported model, its token
    #[arg(long, value_name = "NAME")]
    pub language: Option<String>,
    /// The seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = amount::at_least(0_u64))]
    pub seed: u64,
    /// For every text, show which part of the run's data contains it, or that it is new
    #[arg(long)]
    pub known: bool,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

fn number(text: &str) -> Result<f64, String> {
    // Rust reads `nan` and `inf` as numbers too.
    text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| "not a number".to_owned())
}

fn at_least_0(text: &str) -> Result<f64, String> {
    number(text).and_then(|x| if x >= 0.0 { Ok(x) } else { Err("below 0".to_owned()) })
}

fn above_0(text: &str) -> Result<f64, String> {
    number(text).and_then(|x| if x > 0.0 { Ok(x) } else { Err("not above 0".to_owned()) })
}

fn share(text: &str) -> Result<f64, String> {
    number(text).and_then(|x| if (0.0..=1.0).contains(&x) { Ok(x) } else { Err("not in 0 to 1".to_owned()) })
}

/// The data of `generate` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The texts, in the order of the prompts.
    pub texts: Vec<Written>,
    /// The most tokens that a text could have.
    pub max_tokens: usize,
    /// What the `generation_config.json` of a Hugging Face model sets besides, which changes what the library
    /// writes and is not followed: options choose how tokens are selected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
}

/// One generated text, or one translation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Written {
    /// The text that the model continues or translates.
    pub prompt: String,
    /// The text; that of a language model begins with the prompt.
    pub text: String,
    /// The number of generated tokens.
    pub tokens: usize,
    /// The logarithm of their probability; null if it is not finite.
    #[schemars(with = "Option<f64>")]
    pub log_probability: f64,
    /// Whether the model, or a `--stop`, ended the text.
    pub ended: bool,
    /// The part of the run's data that contains the text, or `new`, with `--known`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<&'static str>,
}
