//! Creates tokenizers from training data or from files.

use std::path::{Path, PathBuf};

use super::subword::{Kind, Learner, Subword};
use super::vocabulary::Files;
use super::{Tokenizer, bytes::Bytes, characters, words};
use crate::diag::{Code, Diagnostic, Sink};
use crate::learn::data::{Refused, file};
use crate::learn::recipe::{self, Tokens};
use crate::read::{self, limit};
use crate::source::Span;

/// The size of a learnt vocabulary if neither the recipe nor the spec gives one.
const VOCAB: u64 = 8_000;

/// Collects texts and creates the tokenizer that a recipe asks for.
#[derive(Debug)]
pub struct Maker<'r> {
    kind: MakerKind<'r>,
}

#[derive(Debug)]
enum MakerKind<'r> {
    Characters(&'r recipe::tokens::Characters, characters::Collector),
    Words(&'r recipe::tokens::Words, words::Counter),
    Bytes,
    Learner { learner: Box<Learner>, vocab: u64, min_frequency: u64 },
    File(PathBuf, Option<PathBuf>),
}

/// Why a tokenizer cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A file cannot be opened.
    Refused(Refused),
    /// A file is not a valid tokenizer.
    Bad(String),
}

impl Fault {
    /// Reports the reason and returns the refusal.
    pub fn refused(self, span: Span, sink: &mut Sink) -> Refused {
        match self {
            Self::Refused(refused) => refused,
            Self::Bad(message) => {
                sink.push(Diagnostic::error(Code::BadData, span, message));
                Refused::Data
            }
        }
    }
}

impl<'r> Maker<'r> {
    /// Creates what the recipe asks for. `files` are the paths of a tokenizer that is read; `vocab` is the
    /// spec's.
    pub fn new(tokens: &'r Tokens, files: Option<(PathBuf, Option<PathBuf>)>, vocab: Option<u64>) -> Self {
        // Each row of the spec's table gets a token unless the recipe asks for fewer.
        let size = |own: Option<u64>| own.or(vocab).unwrap_or(VOCAB);
        let kind = match tokens {
            Tokens::Characters(t) => MakerKind::Characters(t, characters::Collector::default()),
            Tokens::Words(t) => MakerKind::Words(t, words::Counter::default()),
            Tokens::Bytes(_) => MakerKind::Bytes,
            Tokens::Bpe(t) => MakerKind::Learner {
                learner: Box::new(Learner::new(Kind::Bpe, t.lower)),
                vocab: size(t.vocab.map(|v| *v)),
                min_frequency: *t.min_frequency,
            },
            Tokens::WordPiece(t) => MakerKind::Learner {
                learner: Box::new(Learner::new(Kind::WordPiece, t.lower)),
                vocab: size(t.vocab.map(|v| *v)),
                min_frequency: *t.min_frequency,
            },
            Tokens::File(t) => {
                let (path, merges) = files.unwrap_or_else(|| (PathBuf::from(&t.path.text), None));
                MakerKind::File(path, merges)
            }
        };
        Self { kind }
    }

    /// Adds a text. A held-out text (`is_learnt` is `false`) only adds its characters to an alphabet, so
    /// that it can be encoded.
    pub fn add(&mut self, text: &str, is_learnt: bool) {
        match &mut self.kind {
            MakerKind::Characters(t, collector) => collector.add(text, t.lower),
            MakerKind::Words(t, counter) if is_learnt => counter.add(text, t.lower),
            MakerKind::Learner { learner, .. } if is_learnt => learner.add(text),
            MakerKind::Words(..) | MakerKind::Learner { .. } | MakerKind::Bytes | MakerKind::File(..) => {}
        }
    }

    /// The error that the character for start and end occurs in the texts, none of which could be encoded.
    pub fn clash(&self) -> Option<Diagnostic> {
        let MakerKind::Characters(t, collector) = &self.kind else { return None };
        let boundary = boundary(t).filter(|b| collector.has(*b))?;
        let message = format!("the boundary `{boundary}` occurs in the text");
        let diagnostic = Diagnostic::error(Code::BadData, t.places.of("boundary"), message);
        Some(diagnostic.help("choose another character, or leave `boundary` out"))
    }

    /// Creates the tokenizer.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn finish(self) -> Result<Tokenizer, Fault> {
        Ok(match self.kind {
            MakerKind::Characters(t, collector) => {
                Tokenizer::Characters(collector.finish(boundary(t), t.lower, t.order))
            }
            MakerKind::Words(t, counter) => {
                Tokenizer::Words(counter.finish(t.lower, *t.min_frequency, t.vocab.map(|v| *v)))
            }
            MakerKind::Bytes => Tokenizer::Bytes(Bytes {}),
            MakerKind::Learner { learner, vocab, min_frequency } => {
                let vocab = usize::try_from(vocab).unwrap_or(usize::MAX);
                Tokenizer::Subword(Box::new(learner.finish(vocab, min_frequency).map_err(Fault::Bad)?))
            }
            MakerKind::File(path, merges) => {
                Tokenizer::Subword(Box::new(from_files(&path, merges.as_deref())?))
            }
        })
    }
}

/// The character for start and end that a recipe gives.
fn boundary(characters: &recipe::tokens::Characters) -> Option<char> {
    // A recipe whose boundary is longer than one character is refused.
    characters.boundary.as_ref().and_then(|b| b.chars().next())
}

/// Reads `tokenizer.json`, `encoder.json` with its merges, or a model of SentencePiece, which then decides by
/// itself how texts are normalized.
///
/// # Errors
/// A file cannot be opened, or is not a valid tokenizer.
pub fn from_files(path: &Path, merges: Option<&Path>) -> Result<Subword, Fault> {
    let text = |path: &Path| {
        let bytes = file::bytes(path, limit::CODEBOOK).map_err(Fault::Refused)?;
        let name = file::name(path);
        read::text(bytes).ok_or_else(|| Fault::Bad(format!("`{name}` is not UTF-8")))
    };
    let bad = |why: String| Fault::Bad(format!("`{}` is not a valid tokenizer: {why}", file::name(path)));
    // By the ending, because the format has no magic number.
    if merges.is_none() && path.extension().is_some_and(|end| end == "model") {
        let pieces = Some(file::bytes(path, limit::CODEBOOK).map_err(Fault::Refused)?);
        return Files { pieces, ..Files::default() }.tokenizer().map_err(bad);
    }
    match merges {
        Some(merges) => Subword::from_gpt(&text(path)?, &text(merges)?).map_err(bad),
        None => Subword::from_json(&text(path)?).map_err(bad),
    }
}
