//! The names of models on the command line.

use super::shelf::{is_of, shipped_of};
use crate::diag::foreign::is_same;
use crate::diag::ideas::{self, Met};
use crate::hub::shelf as families;
use crate::learn::recipe;
use crate::spec::explain::catalogue;
use crate::spec::library;

/// Words for which several templates of `trafoc new` could be meant, each with what is done for which of them.
const SEVERAL: &[(&str, &str)] = &[(
    "classifier classification classify sequence_classification text_classification",
    "`vit` classifies images; for texts, `trafoc new bert`, and in it `head: {classify: {classes: 2}}`",
)];

/// What to write in the place of a word for which several templates could be meant.
pub fn of_several(word: &str) -> Option<&'static str> {
    let is_one = |names: &str| names.split(' ').any(|name| is_same(name, word));
    SEVERAL.iter().find(|(names, _)| is_one(names)).map(|(_, tip)| *tip)
}

/// For the name of a model: the spec that comes with trafoc, or how a spec is made of its weights.
pub fn of_family(what: &str) -> Option<String> {
    let spec = shipped_of(what);
    let import = "`trafoc import DIR` makes a spec of its Hugging Face directory";
    match (spec, is_family(what)) {
        (Some(spec), true) => {
            Some(format!("it is a model: {import}; `trafoc explain @{spec}` is a shipped one"))
        }
        (Some(spec), false) => Some(format!("`@{spec}` is a shipped spec: `trafoc explain @{spec}`")),
        (None, true) => Some(format!("it is a model: {import}")),
        (None, false) => None,
    }
}

fn is_family(word: &str) -> bool {
    families::SHELF.iter().any(|(name, _)| *name != "shared" && is_of(name, word))
}

/// Whether a word is certainly a model that `trafoc new` has no template of, whatever template is spelt like it: `opt` is no
/// slip of `gpt`.
pub fn is_model(word: &str) -> bool {
    is_family(word) || as_model(word).is_some()
}

/// What is said of a word for which `trafoc new` has no template. A model is meant before anything else that has the name: of
/// `clip` the model, and not the norm of a gradient.
pub fn no_template(word: &str) -> Vec<String> {
    if let Some(model) = as_model(word) {
        return vec![model];
    }
    let idea = ideas::outside(word, Met::Command);
    let known: Vec<String> = idea.into_iter().chain(of_family(word)).collect();
    // A model that is called like its part.
    let part = library::all().iter().find(|part| part.name == word);
    let slot = part.map(|part| part.slot.unwrap_or("ffn"));
    let part = slot.map(|slot| format!("the library has a part of this name: `{slot}: {word}` in a spec"));
    let known: Vec<String> = known.into_iter().chain(part).collect();
    let is_word = || [catalogue(), recipe::catalogue()].concat().iter().any(|topic| topic.name == word);
    if !known.is_empty() || !is_word() {
        return known;
    }
    // A part, such as `differential_attention`, is none, but something is said about it.
    vec![format!("`trafoc explain {word}` says what that is and where it belongs")]
}

/// What is said of a word whose model is an idea outside of the language.
fn as_model(word: &str) -> Option<String> {
    ideas::outside(&format!("{word}_model"), Met::Command)
}
