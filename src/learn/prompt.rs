//! Texts to what a decoder begins with, by the codebook a model was trained with.

use super::data::{Array, Codebook};
use super::decode::{Limits, Prompt};
use super::recipe::agree::Task;
use super::token::{Tokenizer, Unknown};

/// What a language model writes on from: a text, behind the mark of the start where there is one, between
/// those of its template where another library's tokenizer has one. None where there would be no token at
/// all.
///
/// # Errors
/// A piece of the text has no token.
pub fn of_text(codebook: &Codebook, text: &str) -> Result<Option<Prompt>, Unknown> {
    if let (Some(writing), Some(Tokenizer::Subword(own))) = (&codebook.writing, &codebook.tokenizer)
        && let Some(mut tokens) = own.framed(text).map_err(|what| Unknown { what })?
    {
        // A mark of the end has nothing behind it, unless it is the mark of the start as well.
        while tokens.len() > 1 && tokens.last().is_some_and(|last| writing.ends.contains(last)) {
            tokens.pop();
        }
        if tokens.is_empty() {
            tokens.extend(writing.start);
        }
        return Ok((!tokens.is_empty()).then_some(Prompt { tokens, memory: Vec::new() }));
    }
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

/// What a translation of a text begins with. The source of another library's model stands between the marks
/// that its tokenizer puts around it.
///
/// # Errors
/// A piece of the text has no token.
pub fn of_source_text(codebook: &Codebook, text: &str, language: Option<u32>) -> Result<Prompt, Unknown> {
    let Some(tokenizer) = codebook.source_tokenizer() else { return Ok(of_source(codebook, &[], language)) };
    let framed = match (&codebook.writing, tokenizer) {
        (Some(_), Tokenizer::Subword(own)) => own.framed(text).map_err(|what| Unknown { what })?,
        (_, _) => None,
    };
    Ok(match framed {
        Some(source) => begun(codebook, &source, language),
        None => of_source(codebook, &tokenizer.encode(text)?, language),
    })
}

/// What a translation begins with: the tokens of a source, without marks, and the index of a language
/// where the model has several.
pub fn of_source(codebook: &Codebook, source: &[u32], language: Option<u32>) -> Prompt {
    let own = codebook.writing.as_ref().and_then(|writing| writing.ends.first()).copied();
    let end = own.or(codebook.source_marks().end);
    let source: Vec<u32> = source.iter().copied().chain(end).collect();
    begun(codebook, &source, language)
}

/// A decoder begins with the mark of the start, or with padding where its vocabulary has none, as T5 does;
/// another library's model with what that says.
fn begun(codebook: &Codebook, source: &[u32], language: Option<u32>) -> Prompt {
    let values: Vec<i64> = source.iter().copied().map(i64::from).collect();
    let mut memory = vec![("source", Array::Ints { shape: vec![1, values.len()], values })];
    let (start, writing) = (codebook.first_of_target(), codebook.writing.as_ref());
    let mut first = writing.and_then(|writing| writing.first);
    match (language, writing) {
        // There, a language is the first token.
        (Some(language), Some(_)) => first = Some(language),
        (Some(language), None) => {
            memory.push(("language", Array::Ints { shape: vec![1], values: vec![i64::from(language)] }));
        }
        (None, _) => {}
    }
    Prompt { tokens: std::iter::once(start).chain(first).collect(), memory }
}

/// Limits of a model: its own mark of the end, and as many positions as it was trained with at most.
pub fn limits(codebook: &Codebook, context: u64, most: Option<usize>) -> Limits {
    let context = usize::try_from(context).unwrap_or(usize::MAX);
    let context = match codebook.task {
        Task::NextToken | Task::Translate => context,
        Task::HiddenToken | Task::ClassifyText | Task::ClassifyImage | Task::Tag | Task::Span => 0,
    };
    let writing = codebook.writing.clone().unwrap_or_default();
    let stop = match writing.ends.is_empty() {
        true => codebook.marks().end.into_iter().collect(),
        false => writing.ends,
    };
    // The number of new tokens, where it is said, is said instead of the length. The last token of all takes
    // no position, since none follows it.
    let longest = writing.longest.filter(|_| most.is_none() && writing.most.is_none()).map(|n| n - 1);
    Limits {
        most: most.or(writing.most).unwrap_or(context),
        context: longest.unwrap_or(context).min(context),
        stop,
        never: writing.never,
        last: writing.last,
    }
}
