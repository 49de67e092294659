//! Texts to what a decoder begins with, by the codebook a model was trained with.

use super::data::{Array, Codebook};
use super::decode::{Limits, Prompt};
use super::recipe::agree::Task;
use super::token::{Tokenizer, Unknown};

/// What a language model writes on from: a text, behind the mark of the start where there is one. None
/// where there would be no token at all.
///
/// # Errors
/// A piece of the text has no token.
pub fn of_text(codebook: &Codebook, text: &str) -> Result<Option<Prompt>, Unknown> {
    let ids = match &codebook.tokenizer {
        Some(tokenizer) => tokenizer.encode(text)?,
        None => Vec::new(),
    };
    let marks = codebook.marks();
    // GPT-2's one mark stands between texts, and before none that a prompt begins.
    let between = matches!(codebook.tokenizer, Some(Tokenizer::Subword(_))) && marks.start == marks.end;
    let start = marks.start.filter(|_| !between || ids.is_empty());
    let tokens: Vec<u32> = start.into_iter().chain(ids).collect();
    Ok((!tokens.is_empty()).then_some(Prompt { tokens, memory: Vec::new() }))
}

/// What a translation begins with: the tokens of a source, without marks, and the index of a language
/// where the model has several. A vocabulary without a mark of the start begins with padding, as T5 does.
pub fn of_source(codebook: &Codebook, source: &[u32], language: Option<u32>) -> Prompt {
    let values: Vec<i64> = source.iter().copied().chain(codebook.source_marks().end).map(i64::from).collect();
    let mut memory = vec![("source", Array::Ints { shape: vec![1, values.len()], values })];
    if let Some(language) = language {
        memory.push(("language", Array::Ints { shape: vec![1], values: vec![i64::from(language)] }));
    }
    let marks = codebook.marks();
    Prompt { tokens: vec![marks.start.unwrap_or(marks.pad)], memory }
}

/// Limits of a model: its own mark of the end, and as many positions as it was trained with at most.
pub fn limits(codebook: &Codebook, context: u64, most: Option<usize>) -> Limits {
    let context = usize::try_from(context).unwrap_or(usize::MAX);
    let context = match codebook.task {
        Task::NextToken | Task::Translate => context,
        Task::HiddenToken | Task::ClassifyText | Task::ClassifyImage | Task::Tag | Task::Span => 0,
    };
    Limits { most: most.unwrap_or(context), context, stop: codebook.marks().end.into_iter().collect() }
}
