//! Data that is ready for training.

use super::codebook::Codebook;
use super::examples::Part;
use crate::learn::recipe::{Batch, Masking, Split};

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

    /// A short source of a translation, with the name of its language if there are several, from the data that a model
    /// was not trained with if there is such.
    pub fn source_to_try(&self) -> Option<(&str, Option<&str>)> {
        const SHORT: usize = 60;
        let parts =
            [Split::Test, Split::Validation, Split::Train].into_iter().filter_map(|split| self.part(split));
        let mut pairs = parts.filter_map(|part| match part {
            Part::Pairs { texts, language, .. } => Some((texts, language)),
            Part::Texts { .. }
            | Part::Classes { .. }
            | Part::Images { .. }
            | Part::Tags { .. }
            | Part::Spans { .. } => None,
        });
        // It is written on a command line, where `-` begins an option.
        let is_short = |text: &str| {
            (1..=SHORT).contains(&text.chars().count())
                && !text.starts_with('-')
                && !text.chars().any(char::is_control)
        };
        pairs.find_map(|(texts, languages)| {
            let at = texts.iter().position(|(source, _)| is_short(source))?;
            let language = languages.get(at).and_then(|i| self.codebook.languages.get(*i as usize));
            Some((texts.get(at)?.0.as_str(), language.map(String::as_str)))
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
