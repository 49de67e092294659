//! What ids and classes mean: saved beside a run as one file, so that a trained model can be used.

use serde::{Deserialize, Serialize};

use super::picture::Preparation;
use super::read::Form;
use crate::learn::recipe::agree::Task;
use crate::learn::token::{Marks, Tokenizer};
use crate::learn::writing::Writing;

/// The meaning of a model's inputs and outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Codebook {
    /// What the model is trained for.
    pub task: Task,
    /// Text of the one sequence, or of the target.
    pub tokenizer: Option<Tokenizer>,
    /// Text of the source, where it has a vocabulary of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Tokenizer>,
    /// Classes by their index. A sigmoid alone has two: the one it is 0 for and the one it is 1 for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Languages by their index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Whether several classes may hold at once.
    #[serde(default)]
    pub several: bool,
    /// What images look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Form>,
    /// How image files are prepared, where it is not as in training here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Preparation>,
    /// How it writes, where it is a model of another library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<Writing>,
    /// The most positions an example may have.
    pub longest: usize,
}

impl Codebook {
    /// The file's text.
    ///
    /// # Errors
    /// A tokenizer cannot be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Reads the file's text.
    ///
    /// # Errors
    /// It is no codebook.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The tokenizer of the source, which may be that of the target.
    pub fn source_tokenizer(&self) -> Option<&Tokenizer> {
        self.source.as_ref().or(self.tokenizer.as_ref())
    }

    /// Marks of the one sequence, or of the target.
    pub fn marks(&self) -> Marks {
        self.tokenizer.as_ref().map_or(Marks::NONE, Tokenizer::marks)
    }

    /// Marks of the source.
    pub fn source_marks(&self) -> Marks {
        self.source_tokenizer().map_or(Marks::NONE, Tokenizer::marks)
    }

    /// The most tokens of a text, beside the marks it is given.
    pub fn room(&self) -> usize {
        let marks = self.marks();
        let count = |marks: &[Option<u32>]| marks.iter().flatten().count();
        match self.task {
            Task::NextToken => match marks.start {
                Some(_) => self.longest.saturating_sub(1),
                // The first token is only read and the last only predicted.
                None => self.longest.saturating_add(1),
            },
            Task::Translate => self.longest.saturating_sub(1),
            Task::HiddenToken | Task::ClassifyText | Task::Tag | Task::Span => {
                self.longest.saturating_sub(count(&[marks.start, marks.end]))
            }
            Task::ClassifyImage => 0,
        }
    }
}
