//! The specs and recipes that come with trafoc: `@gpt1` on any command, their texts inside the program.

use std::path::Path;

use super::file;
use super::outcome::{Exit, Failure};
use crate::diag::foreign::is_same;
use crate::diag::suggest::{did_you_mean, suggest, suggest_several};
use crate::diag::terms::plain;
use crate::read;
use crate::syntax::Notation;

/// A shipped spec or recipe.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name, without the `@`.
    pub name: &'static str,
    /// Its text in YAML, which is part of the program.
    pub text: &'static str,
}

// A macro, because `include_str!` takes a literal alone.
macro_rules! shelf {
    ($($name:literal)*) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../specs/", $name, ".yaml")) }),*]
    };
}

/// The specs, ordered by name.
pub const SHELF: &[Shipped] = shelf! {
    "bart-base" "bert-base" "bert-classify" "bert-qa" "d2l-nmt" "d2l-nmt-light-dropout" "deepseek-v3-tiny" "doc-classify" "falcon-7b"
    "gbt-mulm" "gemma2-2b" "gpt1" "gpt2-small" "llama3-8b" "mistral-7b" "mixtral-8x7b" "multilingual-nmt"
    "pythia-160m" "qwen2.5-0.5b" "t5-small" "transformer" "transformer-heavy-dropout" "vit" "vit-b16"
};

macro_rules! recipes {
    ($($name:literal)*) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../specs/recipes/", $name, ".yaml")) }),*]
    };
}

/// The recipes, ordered by name.
pub const RECIPES: &[Shipped] = recipes! {
    "bert-classify" "bert-classify.reuters" "bert-qa" "bert-qa.people" "d2l-nmt" "d2l-nmt-light-dropout" "doc-classify"
    "doc-classify.reports" "finetune-classify" "finetune-classify.reuters" "finetune-qa" "finetune-tag" "gbt-mulm" "gpt1" "gpt1.sentences" "multilingual-nmt" "transformer" "transformer-heavy-dropout"
    "transformer.numbers" "vit" "vit.mnist"
};

/// The shipped spec of that name, with or without `@` and extension.
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    let name = name.strip_prefix('@').unwrap_or(name);
    // Shipped specs name the spec that they extend as a file.
    let name = without_ending(name);
    SHELF.iter().find(|s| s.name == name)
}

/// The name of a spec without the ending that its file may have.
fn without_ending(name: &str) -> &str {
    let stem = name.rsplit_once('.').map(|(stem, _)| stem);
    stem.filter(|_| Notation::from_path(name).is_some()).unwrap_or(name)
}

/// The shipped spec that is spelt like a name, which may have an ending.
pub fn shipped_near(name: &str) -> Option<String> {
    let names: Vec<&str> = SHELF.iter().map(|spec| spec.name).collect();
    suggest(without_ending(name.trim_start_matches('@')), &names)
}

/// Names by which a shipped spec is also known, with its own.
const OTHER_NAMES: &[(&str, &str)] =
    &[("vanilla", "transformer"), ("attention_is_all_you_need", "transformer"), ("vit_base", "vit-b16")];

/// The shipped specs that were probably meant by a name: the one that is called so elsewhere, those that are spelt
/// like it, or those of which it is a part, as `nmt` is of `d2l-nmt`.
pub fn shipped_for(name: &str) -> Vec<String> {
    if let Some((_, ours)) = OTHER_NAMES.iter().find(|(theirs, _)| is_same(theirs, name)) {
        return vec![(*ours).to_owned()];
    }
    let names: Vec<&str> = SHELF.iter().map(|spec| spec.name).collect();
    let near = suggest_several(name, &names);
    if !near.is_empty() {
        return near;
    }
    let is_part = |spec: &&&str| spec.split('-').any(|part| part == name);
    names.iter().filter(is_part).map(|spec| (*spec).to_owned()).collect()
}

/// Whether the name of a model or a spec is this word with a size or a version after it: `qwen2.5-0.5b` is of
/// `qwen`.
pub fn is_of(name: &str, word: &str) -> bool {
    let rest = plain(name).strip_prefix(&plain(word)).map(str::to_owned);
    // A short word begins too many names.
    is_same(name, word) || word.len() > 2 && rest.is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
}

/// The first shipped spec of a model of this name.
pub fn shipped_of(word: &str) -> Option<&'static str> {
    SHELF.iter().map(|spec| spec.name).find(|name| is_of(name, word))
}

/// Which option takes a recipe that was given in the place of a spec.
pub fn is_recipe(name: &str) -> Option<String> {
    let name = name.trim_start_matches('@');
    let known = RECIPES.iter().find(|recipe| recipe.name == name)?;
    Some(format!("`@{}` is a recipe, which `trafoc train SPEC --recipe` takes", known.name))
}

fn recipe_names() -> Vec<&'static str> {
    RECIPES.iter().map(|recipe| recipe.name).collect()
}

/// Why the file of a recipe cannot be read, with the recipe or the file that was probably meant.
fn unreadable_recipe(path: &Path, error: &std::io::Error) -> Failure {
    let name = path.display().to_string();
    let failure = Failure::new(Exit::File, format!("cannot read `{name}`: {}", file::reason(error)));
    if error.kind() != std::io::ErrorKind::NotFound {
        return failure;
    }
    // A plain word is more likely a name than a file, and to leave out the `@` is an easy slip.
    let near = match name.contains(['.', '/', '\\']) {
        true => Vec::new(),
        false => suggest_several(&name, &recipe_names()),
    };
    let alike = file::alike(path, |name| name.ends_with(".yaml") || name.ends_with(".yml"));
    match (RECIPES.iter().find(|recipe| recipe.name == name), near.as_slice(), alike) {
        (Some(known), ..) => failure.help(format!("`@{}` is a recipe that comes with trafoc", known.name)),
        (None, [], Some(file)) => failure.help(format!("did you mean `{}`?", file.display())),
        (None, [], None) => failure,
        (None, near, _) => failure.help(did_you_mean("@", near)),
    }
}

/// The text of a recipe with the name messages give it: a file's, or after `@` one that comes with trafoc.
///
/// # Errors
/// The file cannot be read, or no shipped recipe has this name.
pub fn recipe_text(recipe: &Path) -> Result<(String, Vec<u8>), Failure> {
    let name = recipe.display().to_string();
    // Without `@` it is always a file, even if a shipped recipe has its name.
    let Some(shipped) = name.strip_prefix('@') else {
        let bytes = read::spec(recipe).map_err(|error| unreadable_recipe(recipe, &error))?;
        return Ok((name, bytes));
    };
    let names = recipe_names();
    match RECIPES.iter().find(|s| s.name == shipped) {
        // A spec can have the same name; messages distinguish the two texts.
        Some(found) => Ok((format!("@recipes/{}", found.name), found.text.as_bytes().to_vec())),
        None => {
            let failure = Failure::usage(format!("no recipe called `{name}` comes with trafoc"));
            if let Some(spec) = SHELF.iter().find(|spec| spec.name == shipped) {
                let advice = format!("`@{}` is a spec; `--recipe` takes how it is trained", spec.name);
                return Err(failure.help(advice));
            }
            Err(match suggest_several(shipped, &names).as_slice() {
                [] => failure.help(format!("there are @{}", names.join(", @"))),
                near => failure.help(did_you_mean("@", near)),
            })
        }
    }
}
