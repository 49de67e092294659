//! The language of a translation.

use crate::cli::outcome::Failure;
use crate::learn::data::Codebook;
use crate::learn::token::{Subword, Tokenizer};

/// The language of a translation: its index, or in a model of another library the token that selects it.
///
/// # Errors
/// The model does not have this language, or it has several and none of them is named.
pub fn language(codebook: &Codebook, named: Option<&str>) -> Result<Option<u32>, Failure> {
    let languages = &codebook.languages;
    let there_are = |failure: Failure| Err(failure.help(format!("there are {}", languages.join(", "))));
    match named {
        // Another library's model has no list of languages: each is a token of the vocabulary.
        Some(name) if codebook.writing.is_some() => language_token(codebook, name).map(Some),
        Some(name) => match languages.iter().position(|l| l == name) {
            Some(index) => Ok(u32::try_from(index).ok()),
            None if languages.is_empty() => Err(Failure::usage("the model has one language only")),
            None => there_are(Failure::usage(format!("the model has no language `{name}`"))),
        },
        None if codebook.lacks_language() => Err(no_language().help("`--language fr` or `--language fr_XX`")),
        None if languages.is_empty() => Ok(None),
        None => there_are(Failure::usage("the model has several languages, and needs `--language NAME`")),
    }
}

/// A model of several languages whose files do not say into which it translates.
pub fn no_language() -> Failure {
    Failure::usage("the model translates into several languages, but none of them is named").help(
        "`tgt_lang` in its tokenizer_config.json names one, and `src_lang` that of the sources, or \
         `forced_bos_token_id` in its generation_config.json",
    )
}

/// The token that selects a language in a model of another library: `fr_XX`, or `__fr__`.
fn language_token(codebook: &Codebook, name: &str) -> Result<u32, Failure> {
    let Some(Tokenizer::Subword(tokenizer)) = &codebook.tokenizer else {
        return Err(Failure::bug("a codebook without a tokenizer"));
    };
    language_id(tokenizer, name).ok_or_else(|| {
        Failure::usage(format!("the model's vocabulary has no token for the language `{name}`"))
            .help("such models write it like `fr_XX` or `__fr__`")
    })
}

/// The id of the token of a language.
pub fn language_id(tokenizer: &Subword, name: &str) -> Option<u32> {
    // mBART writes its languages as `fr_XX`, M2M100 as `__fr__`; users type `fr`.
    tokenizer.id(name).or_else(|| tokenizer.id(&format!("__{name}__")))
}
