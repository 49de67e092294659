//! Data that is ready for training.

use super::codebook::Codebook;
use super::examples::Part;
use crate::learn::recipe::{Batch, Masking, Split};
use crate::learn::token::Tokenizer;

/// A text of the data with which a trained model can be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextToTry {
    /// A text to translate, and the name of the language if there are several.
    Source {
        /// The text.
        text: String,
        /// The name of the language.
        language: Option<String>,
    },
    /// A text in which a word is replaced by the mask token.
    Masked(String),
}

/// The most texts that are looked at for one with a word that can be masked.
const MOST_TRIED: usize = 100;

/// Whether a text can be written on a command line, where `-` begins an option.
fn is_short(text: &str) -> bool {
    const SHORT: usize = 60;
    (1..=SHORT).contains(&text.chars().count())
        && !text.starts_with('-')
        && !text.chars().any(char::is_control)
}

/// A text with the mask token in the place of a word near its middle, if it is read so: some words are of several tokens.
fn masked(tokenizer: &Tokenizer, ids: &[u32]) -> Option<String> {
    let mask = tokenizer.token(tokenizer.special_tokens().mask?)?;
    let middle = ids.len() / 2;
    let reads_as = |text: &str, ids: &[u32]| tokenizer.encode(text).is_ok_and(|own| own == ids);
    // A mask alone, without a word around it, says nothing.
    (1..ids.len().saturating_sub(1)).map(|i| (middle.saturating_add(i)) % ids.len()).find_map(|at| {
        let (before, after) = (ids.get(..at)?, ids.get(at.saturating_add(1)..)?);
        let (left, right) = (tokenizer.decode(before), tokenizer.decode(after));
        let is_read = reads_as(&left, before) && reads_as(&right, after);
        is_read.then(|| format!("{left} {mask} {right}").trim().to_owned())
    })
}

/// The data with which a run trains and evaluates.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The meaning of ids and classes.
    pub codebook: Codebook,
    /// The examples of training steps, at least one.
    pub train: Part,
    /// The validation data, which decides which checkpoint is the best.
    pub validation: Option<Part>,
    /// The data for a test after training.
    pub test: Option<Part>,
    /// How examples are combined into batches.
    pub batch: Batch,
    /// The seed from which the order of examples and the masking of tokens follow.
    pub seed: u64,
    /// Which tokens are masked, for `mlm`.
    pub masking: Option<Masking>,
    /// Whether the graph has an input for token types.
    pub has_types: bool,
    /// The number of rows of the model's embedding table.
    pub vocab: u64,
    /// The number of classes that the spec's head has: 1 for a single sigmoid, which distinguishes two, and 0
    /// if it has no classes.
    pub outputs: usize,
    /// The number of patches of an image; 0 if the model reads none.
    pub positions: usize,
}

impl Dataset {
    /// The same data, whose codebook knows its longest target.
    pub(super) fn with_longest_target(mut self) -> Self {
        // Of all parts, so that a translation of a held-out example is not cut shorter than its reference.
        let lengths = Split::ALL.iter().filter_map(|split| self.part(*split)?.longest_target());
        // Its end is a token, too.
        self.codebook.longest_target = lengths.max().map(|n| n.saturating_add(1));
        self
    }

    /// A text that a trained model can be tried with, short enough for a command line, from the data that it was not
    /// trained with if there is such. `None` if there is none, or nothing is read from a text.
    pub fn text_to_try(&self) -> Option<TextToTry> {
        [Split::Test, Split::Validation, Split::Train].into_iter().find_map(|split| {
            match self.part(split)? {
                Part::Pairs { texts, language, .. } => {
                    let at = texts.iter().position(|(source, _)| is_short(source))?;
                    let language = language.get(at).and_then(|i| self.codebook.languages.get(*i as usize));
                    Some(TextToTry::Source { text: texts.get(at)?.0.clone(), language: language.cloned() })
                }
                Part::Texts { ids, .. } => {
                    let tokenizer = self.codebook.tokenizer.as_ref()?;
                    // Most texts have a word that is a single token; a vocabulary of characters has no mask that can be written.
                    let all = (0..ids.len().min(MOST_TRIED)).map(|at| ids.get(at));
                    all.filter_map(|ids| masked(tokenizer, ids))
                        .find(|text| is_short(text))
                        .map(TextToTry::Masked)
                }
                Part::Classes { .. } | Part::Images { .. } | Part::Tags { .. } | Part::Spans { .. } => None,
            }
        })
    }

    /// A part of the data, if there is one.
    pub fn part(&self, split: Split) -> Option<&Part> {
        match split {
            Split::Train => Some(&self.train),
            Split::Validation => self.validation.as_ref(),
            Split::Test => self.test.as_ref(),
        }
    }

    /// The number of characters that a language model predicts in the first `count` texts of a part.
    pub fn characters(&self, split: Split, count: usize) -> u64 {
        // Only the metric of language models asks for it, and recipes of other tasks that name it are
        // refused.
        let Some(Part::Texts { ids, whole, characters }) = self.part(split) else { return 0 };
        if count >= ids.len() {
            return *characters;
        }
        // Only the sum over all texts was counted when they were encoded.
        let Some(tokenizer) = &self.codebook.tokenizer else { return 0 };
        let length = |ids: &[u32]| tokenizer.decode(ids).chars().count() as u64;
        // Pieces of one text begin with the token that the piece before them predicts last. It is decoded and
        // subtracted, since what follows it may be decoded otherwise at the start of a text.
        let unpredicted = usize::from(!self.codebook.predicts_first(*whole));
        let one = |ids: &[u32]| length(ids).saturating_sub(ids.get(..unpredicted).map_or(0, length));
        (0..count).map(|i| one(ids.get(i))).sum()
    }
}
