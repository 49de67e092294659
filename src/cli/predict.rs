//! `trafoc predict`: classes of texts and images, tags of words, answers, vectors.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::amount;
use super::format::FormatArg;
use super::model::ModelArgs;

/// The command line of `predict`.
#[derive(Debug, Args)]
pub struct Predict {
    /// The model and its weights.
    #[command(flatten)]
    pub model: ModelArgs,
    /// A text; may be repeated. For questions, the text they are about
    #[arg(long, short, value_name = "TEXT")]
    pub text: Vec<String>,
    /// A file with one text per line; `-` for stdin. For questions, the whole file is the text
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
    /// How many of the most probable classes to show
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = amount::at_least(1_u64))]
    pub top: u64,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `predict` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// One entry per input, in the order of the command line.
    pub predictions: Vec<Prediction>,
}

/// What the model predicts for one input.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Prediction {
    /// The classes of a text or an image, the most probable first.
    Classes {
        /// The text that was classified; absent for an image.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The file of the image.
        #[serde(skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// Every class of the model with its probability, also beyond `--top`.
        classes: Vec<Class>,
    },
    /// The number that a model with a single class, or one whose config says `regression`, gives a text or an image.
    Score {
        /// The text; absent for an image.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The file of the image.
        #[serde(skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// The scores of the classes in their order, as the model computes them: no probabilities.
        scores: Vec<Score>,
    },
    /// The embedding of a text or an image.
    Embedding {
        /// The text that was embedded; absent for an image.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The file of the image.
        #[serde(skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// The vector; null for numbers that are not finite.
        #[schemars(with = "Vec<Option<f32>>")]
        embedding: Vec<f32>,
    },
    /// The classes of words.
    Tags {
        /// The whole text as it was given.
        text: String,
        /// The words of the text in order, without those that were cut off.
        tags: Vec<Tag>,
    },
    /// The most probable tokens in place of each mask token.
    Hidden {
        /// The text with its mask tokens.
        text: String,
        /// As many tokens as `--top` asks for in the place of each mask token, the most probable first.
        hidden: Vec<Guess>,
    },
    /// The answer to a question.
    Answer {
        /// The question as it was asked.
        question: String,
        /// The answer; null if the text is empty.
        answer: Option<String>,
        /// The first byte of the answer in the text.
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<usize>,
        /// One past its last byte.
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<usize>,
        /// The probability of its start and end together.
        #[serde(skip_serializing_if = "Option::is_none")]
        probability: Option<f64>,
    },
}

/// A class with its probability.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Class {
    /// The name of the class.
    pub class: String,
    /// Its probability; null if the model's outputs are not finite.
    #[schemars(with = "Option<f64>")]
    pub probability: f64,
}

/// A class with its score.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Score {
    /// The name of the class.
    pub class: String,
    /// Its score; null if the model's outputs are not finite.
    #[schemars(with = "Option<f32>")]
    pub score: f32,
}

/// The class of a word.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tag {
    /// The word as it is in the text, between spaces.
    pub word: String,
    /// The name of its class.
    pub class: String,
    /// The probability of the class.
    pub probability: Option<f64>,
}

/// A token with its probability.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Guess {
    /// The text of the token.
    pub token: String,
    /// Its probability; null if the model's outputs are not finite.
    #[schemars(with = "Option<f64>")]
    pub probability: f64,
}
