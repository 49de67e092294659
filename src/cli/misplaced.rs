//! Words of a command line in a place where the command takes none: where each of them belongs.

use std::ffi::OsString;
use std::path::Path;

use super::next_step::quoted;
use super::shelf::RECIPES;
use crate::field::words::listed;
use crate::learn::recipe;
use crate::read;
use crate::spec::explain::{Sort, Topic, catalogue};
use crate::syntax::Notation;

/// The endings of files that commands write.
const WRITTEN: &[&str] =
    &["svg", "html", "png", "dot", "mmd", "rs", "py", "json", "csv", "md", "safetensors"];

/// Which option a further word is the value of, as far as the word shows it.
pub fn value(word: &str, command: &clap::Command) -> Option<String> {
    let has = |long: &str| {
        command.get_arguments().any(|argument| argument.get_long() == Some(long) && !argument.is_hide_set())
    };
    let shown = quoted(word);
    if let Some(tip) = setting(word).filter(|_| has("set")) {
        return Some(tip);
    }
    if has("params") && word.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(format!("a target cost has a name: `--params {word}`"));
    }
    if has("recipe") && is_recipe(word) {
        return Some(format!("`--recipe {shown}` names the recipe"));
    }
    let ending = Path::new(word).extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| WRITTEN.contains(&ending)) && has("out") {
        return Some(format!("`--out {shown}` writes to a file"));
    }
    match command.get_name() {
        "export" => Some(format!("`--to {shown}` names the folder to write")),
        "predict" => Some(format!("`--text {shown}` gives a text")),
        "generate" => Some(format!("`--prompt {shown}` gives a prompt")),
        _ => None,
    }
}

/// What changes a value of the spec, if the word is a change: `decoder.layers=4`.
pub fn setting(word: &str) -> Option<String> {
    let (path, _) = word.split_once('=')?;
    let is_path =
        !path.is_empty() && path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
    is_path.then(|| format!("`--set {}` changes a value of the spec", quoted(word)))
}

/// What is said about an option that is a key of specs or of recipes: `--layers`.
pub fn key(option: &str, command: &clap::Command) -> Option<String> {
    let key = option.strip_prefix("--")?.replace('-', "_");
    let takes = |long: &str| command.get_arguments().any(|argument| argument.get_long() == Some(long));
    let places = |topics: Vec<Topic>| -> Vec<String> {
        let own = topics.into_iter().filter(|topic| topic.sort == Sort::Key && topic.name == key);
        own.map(|topic| topic.path.trim_start_matches("recipe.").to_owned()).collect()
    };
    let documents = [("specs", "set", places(catalogue())), ("recipes", "with", places(recipe::catalogue()))];
    let mut documents: Vec<_> = documents.into_iter().filter(|(.., places)| !places.is_empty()).collect();
    // A key near the top of its document is the one that is known best.
    documents.sort_by_key(|(.., places)| places.iter().map(|path| path.split('.').count()).min());
    let how = |(document, option, places): &(&str, &str, Vec<String>)| {
        let change = if takes(option) { change(option, places) } else { "it is written there".to_owned() };
        format!("a key of {document}: {change}")
    };
    let all: Vec<String> = documents.iter().map(how).collect();
    let said = || format!("`{key}` is {}; `trafoc explain {key}` says where it belongs", all.join("; and "));
    (!all.is_empty()).then(said)
}

/// How an option changes a key at one of some paths. A spec has the stack that its model has, so a path through a stack is an
/// example.
fn change(option: &str, places: &[String]) -> String {
    /// As many paths are all named.
    const FEW: usize = 2;
    let is_example = |path: &String| path.starts_with("decoder.") || path.starts_with("encoder.");
    match places {
        [first, ..] if places.len() > FEW || places.iter().any(is_example) => {
            format!("`--{option} PATH=VALUE` changes it, with a path such as `{first}`")
        }
        _ => {
            let all: Vec<String> = places.iter().map(|path| format!("`--{option} {path}=VALUE`")).collect();
            format!("{} changes it", all.join(" or "))
        }
    }
}

/// Which other commands have an option, and if it is one alone, what to type; `None` if no command has it.
pub fn of_others(
    flag: &str,
    command: &clap::Command,
    grammar: &clap::Command,
    arguments: &[OsString],
) -> Option<String> {
    let long = flag.strip_prefix("--")?;
    // A hidden option is one that trafoc does not want to be found.
    let has = |c: &&clap::Command| c.get_arguments().any(|a| a.get_long() == Some(long) && !a.is_hide_set());
    let others: Vec<&clap::Command> =
        grammar.get_subcommands().filter(|c| c.get_name() != command.get_name()).filter(has).collect();
    let names: Vec<&str> = others.iter().map(|c| c.get_name()).collect();
    Some(match others.as_slice() {
        [] => return None,
        [only] => match typed(flag, command, only, arguments) {
            Some(line) => format!("`{}` has `{flag}`: `{line}`", only.get_name()),
            None => format!("`{}` has `{flag}`", only.get_name()),
        },
        _ => format!("{} have `{flag}`", listed(&names)),
    })
}

/// A command line for another command that has an option of it. `None` if that does not take all of it.
fn typed(
    flag: &str,
    command: &clap::Command,
    other: &clap::Command,
    arguments: &[OsString],
) -> Option<String> {
    let option = |long: &str| other.get_arguments().find(|a| a.get_long() == Some(long));
    let words: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str()).collect::<Option<_>>()?;
    let (named, rest) = words.split_first()?;
    // The name may be an alias, and that of a command below another one is not the first word.
    if command.get_name() != *named || other.has_subcommands() {
        return None;
    }
    let known = |word: &&str| {
        let long = word.strip_prefix("--").map(|long| long.split('=').next().unwrap_or(long));
        long.is_none_or(|long| option(long).is_some()) && (long.is_some() || !word.starts_with('-'))
    };
    if !rest.iter().all(known) {
        return None;
    }
    let mut line = vec!["trafoc".to_owned(), other.get_name().to_owned()];
    line.extend(rest.iter().map(|word| quoted(word)));
    let value = option(flag.strip_prefix("--")?)?;
    if rest.last() == Some(&flag) && value.get_action().takes_values() {
        line.push(value.get_value_names()?.first()?.to_string());
    }
    Some(line.join(" "))
}

/// Whether a word names a spec, or something else of which a model is made: a file, a folder, a shipped spec.
pub fn is_spec(word: &str) -> bool {
    word == "-" || word.starts_with('@') || Notation::from_path(word).is_some() || Path::new(word).exists()
}

/// Whether a word names a recipe.
fn is_recipe(word: &str) -> bool {
    if let Some(name) = word.strip_prefix('@') {
        return RECIPES.iter().any(|recipe| recipe.name == name);
    }
    let bytes = read::spec(Path::new(word)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().any(|line| line.starts_with("recipe:"))
}
