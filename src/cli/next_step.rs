//! The commands that usually come next.

use std::path::Path;

use super::shelf::{RECIPES, shipped};
#[cfg(feature = "interp")]
use crate::learn::data::TextToTry;
use crate::parts::Head;

/// Whether something exists at a path that is neither a file nor a folder, such as `/dev/null` or a pipe.
pub fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether the next command can read this spec again: stdin and a pipe, as of `<(...)`, are read once.
pub fn is_lasting(spec: &str) -> bool {
    spec != "-" && !is_device(Path::new(spec))
}

/// A word of a command line, quoted where a shell would change it.
pub fn quoted(word: &str) -> String {
    // What Python's `shlex.quote` leaves unquoted too. `~`, `{` and `*` are left out, which shells expand.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if word.chars().any(char::is_control) {
        // bash and zsh read such a word, and it shows what would otherwise begin a line or steer the terminal.
        format!("$'{}'", word.chars().map(escaped).collect::<String>())
    } else {
        // Between single quotes nothing can be escaped, so the quoted text ends before each of its own and
        // begins again.
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A character between `$'` and `'`.
fn escaped(character: char) -> String {
    match character {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\'' | '\\' => format!("\\{character}"),
        _ if character.is_ascii_control() => format!("\\x{:02x}", u32::from(character)),
        _ if character.is_control() => format!("\\u{:04x}", u32::from(character)),
        _ => character.to_string(),
    }
}

/// How a spec is trained: options besides those that the user gave, and the recipe. For a shipped spec, that is a shipped
/// recipe whose data is part of the program, with the variant that it is for; for a file, the `SPEC.recipe.yaml` that `new`
/// writes.
fn training_of(spec: &str, changes: &str) -> Option<(&'static str, String)> {
    if spec.starts_with('@') {
        let name = shipped(spec)?.name;
        let command = format!("trafoc train specs/{name}.yaml");
        return RECIPES.iter().find_map(|recipe| {
            // Only what is in a folder below is not part of the program.
            let (_, data) = recipe.text.split_once("../../data/")?;
            let file = data.split([' ', ',', '}', '\n']).next().filter(|file| !file.contains('/'));
            // Its first lines give the command for which it is made.
            let (_, options) = recipe.text.split_once(&command).filter(|_| file.is_some())?;
            let (options, _) = options.split_once(" --recipe ")?;
            let own = if changes.is_empty() { options } else { "" };
            // A setting of the user may be for another variant than that of the recipe.
            let is_for_it = changes.is_empty() || changes.contains(options);
            is_for_it.then(|| (own, format!("@{}", recipe.name)))
        });
    }
    let path = Path::new(spec);
    // The name that `trafoc new` gives to the recipe next to its spec.
    let name = format!("{}.recipe.yaml", path.file_stem()?.to_str()?);
    let recipe = path.with_file_name(name);
    recipe.is_file().then(|| ("", recipe.display().to_string()))
}

/// After a spec was checked, with the changes to it as options: it is trained if there is a recipe, else
/// emitted.
pub fn after_check(spec: &str, changes: &str, recipe: Option<&str>) -> String {
    let training = match recipe {
        Some(recipe) => Some(("", recipe.to_owned())),
        None => training_of(spec, changes),
    };
    let spec = quoted(spec);
    match training {
        Some((own, recipe)) => {
            format!("trafoc train {spec}{changes}{own} --recipe {} --out run", quoted(&recipe))
        }
        None => format!("trafoc build {spec}{changes}"),
    }
}

/// After a spec was emitted as a file: it is trained; if there is no recipe, one is written, or a crate.
pub fn after_build(spec: &str, changes: &str, head: &Head) -> String {
    if training_of(spec, changes).is_some() {
        return after_check(spec, changes, None);
    }
    // The template whose recipe trains such a head.
    let template = match head {
        Head::Lm(_) => "gpt",
        Head::Mlm(_) => "bert",
        Head::Translate(_) => "t5",
        Head::Classify(_) | Head::Tag(_) | Head::Span(_) | Head::Embed(_) => {
            // No template has a recipe for texts with these heads.
            return format!("trafoc build {}{changes} --crate model", quoted(spec));
        }
    };
    format!("trafoc new recipe recipe.yaml --for {template}")
}

/// After training: the command that shows what a model with this head has learned. `text` is a text of its data that it
/// can be tried with.
#[cfg(feature = "interp")]
pub fn after_training(head: &Head, run: &str, text: Option<&TextToTry>) -> String {
    let run = quoted(run);
    match (head, text) {
        (Head::Lm(_), _) => format!("trafoc generate {run} --count 5"),
        // A vocabulary of few words has none of a text that anyone else thinks of.
        (Head::Translate(_), Some(TextToTry::Source { text, language })) => {
            let language = language.as_ref().map(|name| format!(" --language {}", quoted(name)));
            format!("trafoc generate {run}{} --prompt {}", language.unwrap_or_default(), quoted(text))
        }
        (Head::Translate(_), _) => format!("trafoc generate {run} --prompt 'a text to translate'"),
        (Head::Mlm(_), Some(TextToTry::Masked(text))) => {
            format!("trafoc predict {run} --text {}", quoted(text))
        }
        // The metrics show what was learned.
        (Head::Mlm(_) | Head::Classify(_) | Head::Tag(_) | Head::Span(_) | Head::Embed(_), _) => {
            format!("trafoc eval {run}")
        }
    }
}
