//! Converts texts to prompts, with the codebook of a trained model.

use super::data::{Array, Codebook};
use super::decode::{Limits, Prompt};
use super::recipe::agree::Task;
use super::token::{Tokenizer, Unknown};

/// The prompt of a language model for a text. The text follows the start token if there is one, or is
/// framed by the template of another library's tokenizer. `None` if the prompt would have no token at all.
///
/// # Errors
/// A piece of the text has no token.
pub fn of_text(codebook: &Codebook, text: &str) -> Result<Option<Prompt>, Unknown> {
    // A model of another library was trained with the template of its own tokenizer, which may put more
    // around a text than a start token.
    if let (Some(writing), Some(Tokenizer::Subword(own))) = (&codebook.writing, &codebook.tokenizer)
        && let Some(mut tokens) = own.framed(text).map_err(|what| Unknown { what })?
    {
        // Nothing would follow an end token that the tokenizer adds, so it is removed, unless it is the start
        // token as well. One that the text itself ends with stays.
        let added = own.frame().map_or(tokens.len(), |frame| frame.after.len());
        // At most as many as the template adds, and never the only token, since a prompt needs one.
        for _ in 0..added.min(tokens.len().saturating_sub(1)) {
            if tokens.pop_if(|last| writing.ends.contains(last)).is_none() {
                break;
            }
        }
        if tokens.is_empty() {
            tokens.extend(writing.start);
        }
        return Ok((!tokens.is_empty()).then_some(Prompt { tokens, ..Prompt::default() }));
    }
    let ids = match &codebook.tokenizer {
        Some(tokenizer) => tokenizer.encode(text)?,
        None => Vec::new(),
    };
    // An empty prompt may begin with a token that otherwise only separates texts: there must be one token.
    let start = match ids.is_empty() {
        true => codebook.special_tokens().start,
        false => codebook.before_prompt(),
    };
    let tokens: Vec<u32> = start.into_iter().chain(ids).collect();
    Ok((!tokens.is_empty()).then_some(Prompt { tokens, ..Prompt::default() }))
}

/// The prompt for translating a text. For another library's model, the source is framed by the special
/// tokens that its tokenizer adds.
///
/// # Errors
/// A piece of the text has no token.
pub fn of_source_text(codebook: &Codebook, text: &str, language: Option<u32>) -> Result<Prompt, Unknown> {
    let Some(tokenizer) = codebook.source_tokenizer() else { return Ok(of_source(codebook, &[], language)) };
    Ok(of_source(codebook, &tokenizer.encode(text)?, language))
}

/// The prompt for translating a source, given as tokens without special ones, and the index of a language
/// if the model has several.
pub fn of_source(codebook: &Codebook, source: &[u32], language: Option<u32>) -> Prompt {
    begun(codebook, &codebook.framed_source(source), language)
}

/// The prompt begins with the start token, with padding if the vocabulary has no start token (as in T5), or
/// with the token that another library's model prescribes.
fn begun(codebook: &Codebook, source: &[u32], language: Option<u32>) -> Prompt {
    let values: Vec<i64> = source.iter().copied().map(i64::from).collect();
    let mut memory = vec![("source", Array::Ints { shape: vec![1, values.len()], values })];
    let (start, writing) = (codebook.first_of_target(), codebook.writing.as_ref());
    let mut first = writing.and_then(|writing| writing.first);
    match (language, writing) {
        // Models of other libraries have a token for each language, which comes after the start token.
        (Some(language), Some(_)) => first = Some(language),
        (Some(language), None) => {
            memory.push(("language", Array::Ints { shape: vec![1], values: vec![i64::from(language)] }));
        }
        (None, _) => {}
    }
    let prescribed = usize::from(first.is_some());
    Prompt { tokens: std::iter::once(start).chain(first).collect(), prescribed, memory }
}

/// The limits of a model: its end token, and at most as many positions as it was trained with. If `most` is
/// not given, a translation has at most as many tokens as the longest one of its data.
pub fn limits(codebook: &Codebook, context: u64, most: Option<usize>) -> Limits {
    let context = usize::try_from(context).unwrap_or(usize::MAX);
    let context = match codebook.task {
        Task::NextToken | Task::Translate => context,
        // These predict nothing that could follow, so there is no position for a new token.
        Task::HiddenToken
        | Task::ClassifyText
        | Task::ClassifyImage
        | Task::Tag
        | Task::Span
        | Task::Embed => 0,
    };
    let writing = codebook.writing.clone().unwrap_or_default();
    // A model of another library says in its config which tokens end a text; its tokenizer may know only one.
    let stop = match writing.ends.is_empty() {
        true => codebook.special_tokens().end.into_iter().collect(),
        false => writing.ends,
    };
    // A given number of new tokens replaces the limit on the length. The last token takes no position,
    // because none follows it.
    let longest =
        writing.longest.filter(|_| most.is_none() && writing.most.is_none()).map(|n| n.saturating_sub(1));
    // A model trained here never saw a longer target than its data had; another library's says itself.
    let is_own = codebook.task == Task::Translate && codebook.writing.is_none();
    // A run of an earlier version knows only the bound of its recipe.
    let of_data = is_own.then(|| codebook.longest_target.unwrap_or(codebook.longest));
    Limits {
        most: most.or(writing.most).or(of_data).unwrap_or(context),
        context: longest.unwrap_or(context).min(context),
        stop,
        never: writing.never,
        last: writing.last,
    }
}
