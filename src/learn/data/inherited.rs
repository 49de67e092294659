//! What fine-tuning takes over from a trained model in addition to its weights.

use super::codebook::Codebook;
use super::picture::Preparation;
use crate::learn::token::Tokenizer;
use crate::learn::writing::Writing;

/// What training takes over from a trained model, in place of what it would learn from the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inherited {
    /// The tokenizer of the sequence, or of the target, for a recipe that has no `tokens`.
    pub tokenizer: Option<Tokenizer>,
    /// The tokenizer of the source, if it has its own vocabulary.
    pub source: Option<Tokenizer>,
    /// The names of the classes by index; empty if the head is new, so that they come from the data.
    pub classes: Vec<String>,
    /// Whether all tokens have the first type.
    pub untyped: bool,
    /// The names of the languages by index, each of which has a trained row.
    pub languages: Vec<String>,
    /// How images are preprocessed, if not as in training with trafoc.
    pub preparation: Option<Preparation>,
    /// The special tokens of translations, for a model of another library.
    pub writing: Option<Writing>,
}

impl Inherited {
    /// What a model's codebook says.
    pub fn of(codebook: Codebook) -> Self {
        let Codebook { tokenizer, source, classes, untyped, languages, preparation, writing, .. } = codebook;
        Self { tokenizer, source, classes, untyped, languages, preparation, writing }
    }
}
