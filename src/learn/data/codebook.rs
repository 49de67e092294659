//! The meaning of ids and classes, saved with each checkpoint as one file, so that a trained model can be
//! used.

use serde::{Deserialize, Serialize};

use super::form::Form;
use super::picture::Preparation;
use crate::learn::recipe::agree::Task;
use crate::learn::token::exchange::Frame;
use crate::learn::token::subword::Framed;
use crate::learn::token::{Layout, SpecialTokens, Tokenizer};
use crate::learn::writing::Writing;

/// The meaning of a model's inputs and outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Codebook {
    /// The task the model is trained for.
    pub task: Task,
    /// The tokenizer of the sequence, or of the target.
    pub tokenizer: Option<Tokenizer>,
    /// The tokenizer of the source, if it has its own vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Tokenizer>,
    /// The names of the classes by index. A single sigmoid has two: the class for 0 and the class for 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The names of the languages by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Whether several classes may apply to one example.
    #[serde(default)]
    pub several: bool,
    /// Whether all tokens have the first type, as another library's tokenizer gives a model no types.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untyped: bool,
    /// The size and the channels of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Form>,
    /// How image files are preprocessed, if not as in training with trafoc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Preparation>,
    /// The special tokens for decoding, for a model of another library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<Writing>,
    /// The most positions of an example.
    pub longest: usize,
    /// The most tokens of a target in the data of a translation, its end included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_target: Option<usize>,
}

impl Codebook {
    /// The text of `codebook.json`.
    ///
    /// # Errors
    /// The tokenizer cannot be serialized.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Parses the file's text.
    ///
    /// # Errors
    /// The text is not a valid codebook.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The tokenizer of the source, which may be the target's.
    pub fn source_tokenizer(&self) -> Option<&Tokenizer> {
        self.source.as_ref().or(self.tokenizer.as_ref())
    }

    /// The special tokens of the sequence, or of the target.
    pub fn special_tokens(&self) -> SpecialTokens {
        self.tokenizer.as_ref().map_or(SpecialTokens::NONE, Tokenizer::special_tokens)
    }

    /// The rows of texts that are read as a whole. What is generated begins and ends with tokens of its own
    /// instead: a template frames texts that are complete.
    pub fn layout(&self) -> Layout {
        let own = self.tokenizer.as_ref();
        let layout = own.map_or_else(|| Layout::usual(SpecialTokens::NONE), Tokenizer::layout);
        if self.untyped { layout.untyped() } else { layout }
    }

    /// The special tokens that one of its tokenizers has to put around a text, so that the model reads what
    /// it was trained with: around a prompt for a language model, around a source for a translation model.
    ///
    /// `None` if they are those of the tokenizer itself.
    pub fn frame(&self, tokenizer: &Tokenizer) -> Option<Frame> {
        // The tokenizer's own template is right already, and only it knows where a language belongs.
        if self.own_source_frame().is_some() {
            return None;
        }
        Some(match self.task {
            // An end token after a prompt would say that there is nothing to continue.
            Task::NextToken => {
                Frame { start: self.before_prompt(), end: None, twice: false, has_pairs: false }
            }
            Task::Translate => {
                let end = tokenizer.special_tokens().end;
                Frame { start: None, end, twice: false, has_pairs: false }
            }
            Task::HiddenToken
            | Task::ClassifyText
            | Task::ClassifyImage
            | Task::Tag
            | Task::Span
            | Task::Embed => {
                // The model reads what the tokenizer's own template makes.
                if tokenizer.own_layout().is_some() {
                    return None;
                }
                let SpecialTokens { start, end, twice, .. } = tokenizer.special_tokens();
                Frame { start, end, twice, has_pairs: true }
            }
        })
    }

    /// The special tokens that another library's tokenizer puts around a source, which may be more than an
    /// end token: that of its language. `None` if a source only has an end token after it.
    fn own_source_frame(&self) -> Option<&Framed> {
        match (&self.writing, self.source_tokenizer()) {
            (Some(_), Some(Tokenizer::Subword(own))) if self.task == Task::Translate => own.frame(),
            (_, _) => None,
        }
    }

    /// A source with the special tokens around it.
    pub fn framed_source(&self, ids: &[u32]) -> Vec<u32> {
        let (before, after) = self.around_source();
        [before.as_slice(), ids, &after].concat()
    }

    /// The special tokens before and after a source.
    pub fn around_source(&self) -> (Vec<u32>, Vec<u32>) {
        if let Some(Framed { before, after }) = self.own_source_frame() {
            return (before.clone(), after.clone());
        }
        // The config of another library's model says which token ends a text, where its tokenizer may not.
        let own = self.writing.as_ref().and_then(|writing| writing.ends.first()).copied();
        (Vec::new(), own.or(self.source_special_tokens().end).into_iter().collect())
    }

    /// The tokens before the first one of a target's text: the start token, and the language of another
    /// library's model.
    pub fn before_target(&self) -> Vec<u32> {
        let first = self.writing.as_ref().and_then(|writing| writing.first);
        std::iter::once(self.first_of_target()).chain(first).collect()
    }

    /// Whether translations should begin with the token of a language and nothing says which: the sources
    /// have such a token around them, and the translations do not begin with one.
    pub fn lacks_language(&self) -> bool {
        let Some(Framed { before, after }) = self.own_source_frame() else { return false };
        let (special, own) = (self.source_special_tokens(), self.writing.as_ref());
        // What a template adds in addition to these can only be the language.
        let usual = [special.start, special.end, special.mask, special.unknown];
        let is_usual =
            |id: &u32| usual.contains(&Some(*id)) || own.is_some_and(|writing| writing.ends.contains(id));
        let has_language = before.iter().chain(after).any(|id| !is_usual(id));
        has_language && self.before_target().iter().all(is_usual)
    }

    /// The token before a prompt that is not empty.
    pub fn before_prompt(&self) -> Option<u32> {
        let special = self.special_tokens();
        // GPT-2's only special token separates texts; it does not precede a prompt.
        let is_between =
            matches!(self.tokenizer, Some(Tokenizer::Subword(_))) && special.start == special.end;
        special.start.filter(|_| !is_between)
    }

    /// Whether a language model predicts the first token of a text: from the start token, which complete texts alone
    /// have before them.
    pub fn predicts_first(&self, whole: bool) -> bool {
        whole && self.special_tokens().start.is_some()
    }

    /// The special tokens of the source, which may be those of the target.
    pub fn source_special_tokens(&self) -> SpecialTokens {
        self.source_tokenizer().map_or(SpecialTokens::NONE, Tokenizer::special_tokens)
    }

    /// The most tokens of a text, without special tokens.
    pub fn room(&self) -> usize {
        match self.task {
            Task::NextToken => match self.special_tokens().start {
                // Predictions have an end token, too, but the last token is not read.
                Some(_) => self.longest.saturating_sub(1),
                // The first token is only read and the last one only predicted, so one more fits.
                None => self.longest.saturating_add(1),
            },
            // A source has an end token, and a target is read with a start token and predicted with an end
            // token.
            Task::Translate => {
                let around = self.framed_source(&[]).len();
                // One room for both sides, because `longest` bounds the longer of the two sequences.
                self.longest.saturating_sub(around.max(self.before_target().len()).max(1))
            }
            Task::HiddenToken | Task::ClassifyText | Task::Tag | Task::Span | Task::Embed => {
                // What is between two texts is subtracted where an example has two.
                self.longest.saturating_sub(self.layout().marks(1))
            }
            // Images have a fixed number of positions and no text.
            Task::ClassifyImage => 0,
        }
    }
}
