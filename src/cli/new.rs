//! `trafoc new`: a spec to begin with, a recipe to train it by, or both, ready to be trained.

use std::path::{Component, Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::{Command, Printed};
use super::file;
use super::format::{Format, FormatArg};
use super::next_step::quoted;
use super::outcome::{Failure, Output};
use super::overwrite::{ForceArg, Mark};
use super::ui::{Ui, path_line};
use crate::syntax::print;

/// The command line of `new`.
#[derive(Debug, Args)]
pub struct New {
    /// gpt, llama, bert, t5, vit or moe; or recipe
    #[arg(value_enum, value_name = "TEMPLATE", hide_possible_values = true)]
    template: Template,
    /// The file to write; its name becomes the model's (`TEMPLATE.yaml` if not given, `-` for stdout)
    #[arg(value_name = "FILE")]
    path: Option<PathBuf>,
    /// Write a model small enough to train in two minutes, and its recipe in `FILE.recipe.yaml`
    #[arg(long)]
    small: bool,
    /// The data that the recipe names: a file of yours; if not given, data that comes with trafoc
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
    /// For `recipe`: the template it is for (gpt if not given)
    #[arg(long = "for", value_enum, value_name = "TEMPLATE", hide_possible_values = true)]
    of: Option<Template>,
    #[command(flatten)]
    force: ForceArg,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// What to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// A language model as GPT-2
    Gpt,
    /// A language model as Llama
    Llama,
    /// An encoder as BERT
    Bert,
    /// An encoder-decoder as T5
    T5,
    /// An image classifier as ViT
    Vit,
    /// A language model with a mixture of experts, as Mixtral
    Moe,
    /// How a spec is trained
    Recipe,
}

/// What a template is made of: two sizes of its spec, its recipe and the name of the data for that.
struct Texts {
    /// The name of the template on the command line.
    word: &'static str,
    /// The spec, with `NAME` where the model's name belongs.
    spec: &'static str,
    /// The same architecture, small enough to train at once.
    small: &'static str,
    /// How it is trained, with `DATA` where the data is named.
    recipe: &'static str,
    /// The shipped data that the recipe names unless the user gives a file: `@isimler.txt`.
    data: &'static str,
}

macro_rules! texts {
    ($word:literal, $recipe:literal, $data:literal) => {
        Some(Texts {
            word: $word,
            spec: include_str!(concat!("templates/", $word, ".yaml")),
            small: include_str!(concat!("templates/small/", $word, ".yaml")),
            recipe: include_str!(concat!("templates/recipes/", $recipe, ".yaml")),
            data: $data,
        })
    };
}

impl Template {
    /// The texts of the template; `None` for `recipe`, which has no spec.
    fn texts(self) -> Option<Texts> {
        match self {
            Template::Gpt => texts!("gpt", "lm", "@isimler.txt"),
            Template::Llama => texts!("llama", "lm", "@isimler.txt"),
            Template::Bert => texts!("bert", "mlm", "@numbers-en-fr.txt"),
            Template::T5 => texts!("t5", "translate", "@numbers-en-fr.txt"),
            Template::Vit => texts!("vit", "classify", "@digits.csv.gz"),
            Template::Moe => texts!("moe", "lm", "@isimler.txt"),
            Template::Recipe => None,
        }
    }
}

/// The data of `new` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Data {
    /// The files that were written.
    Written {
        /// The spec, or the recipe where only that was asked for.
        path: PathBuf,
        /// All files that were written, this one first.
        paths: Vec<PathBuf>,
    },
    /// The text, with `-` for the file.
    Printed(Printed),
}

impl Command for New {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the spec of a template, its recipe, or both.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let is_recipe = self.template == Template::Recipe;
        if self.of.is_some() && !is_recipe {
            let message = "`--for` would have no effect: the template is named already";
            return Err(Failure::usage(message).help("it belongs to `trafoc new recipe`"));
        }
        if self.small && is_recipe {
            let message = "`--small` would have no effect: a template has one recipe for both of its sizes";
            return Err(Failure::usage(message).help("leave it out"));
        }
        let of = if is_recipe { self.of.unwrap_or(Template::Gpt) } else { self.template };
        let Some(texts) = of.texts() else {
            return Err(Failure::usage(
                "a recipe is for a spec: `--for` takes gpt, llama, bert, t5, vit or moe",
            ));
        };
        let writes_recipe = self.small || is_recipe;
        // Only a recipe names data; a spec alone knows nothing of it.
        if self.data.is_some() && !writes_recipe {
            let message = "`--data` would have no effect: no recipe is written";
            return Err(Failure::usage(message).help("`--small` writes one, and so does `trafoc new recipe`"));
        }
        let word = if is_recipe { "recipe" } else { texts.word };
        let to_stdout = self.path.as_deref() == Some(Path::new("-"));
        let path = match &self.path {
            Some(path) if !to_stdout => path.clone(),
            // The name of the model comes from it also when the text goes to stdout.
            Some(_) | None => PathBuf::from(format!("{word}.yaml")),
        };
        if !matches!(path.extension().and_then(|e| e.to_str()), Some("yaml" | "yml")) {
            let message = format!("a template is YAML, and `{}` does not end in .yaml", path.display());
            return Err(Failure::usage(message).help("`trafoc convert` turns a spec into .trafo"));
        }
        let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or(word);
        let recipe_path = match self.template {
            Template::Recipe => path.clone(),
            // Under this name other commands find the recipe of a spec and suggest training with it.
            _ => path.with_file_name(format!("{name}.recipe.yaml")),
        };
        let data = self.data.as_deref().map(|data| named_from(data, &recipe_path));
        let mut recipe = texts.recipe.replace("DATA", &as_yaml(data.as_deref().unwrap_or(texts.data)));
        let mut spec = if self.small { texts.small } else { texts.spec }.replace("NAME", &as_yaml(name));
        // Before anything is written: data that cannot be used leaves no files to delete.
        if data.is_some() {
            (spec, recipe) = self.fitted(&texts, spec, recipe, &recipe_path, ui)?;
        }
        let text = if is_recipe { &recipe } else { &spec };
        if to_stdout {
            self.force.refuse_unused(false)?;
            if self.small {
                ui.note("note: only the spec is written; `trafoc new recipe -` writes the recipe");
            }
            let data = Data::Printed(Printed { text: text.clone() });
            return Ok(Output::new(text, data));
        }
        let mut files: Vec<(&Path, &str)> = vec![(&path, text)];
        if self.small {
            files.push((&recipe_path, &recipe));
        }
        // All files are permitted before the first is written.
        files.iter().try_for_each(|(path, _)| self.force.permit(path, Mark::Unmarked, "another FILE"))?;
        for (path, text) in &files {
            file::write(path, text)?;
        }
        let shown = quoted(&path.display().to_string());
        match (self.template, self.small) {
            (Template::Recipe, _) => {
                // A recipe is for any spec with such a head, and the user's own is not known here.
                ui.next(&format!("trafoc train SPEC --recipe {shown} --out run"));
            }
            (_, true) => ui.next(&format!(
                "trafoc train {shown} --recipe {} --out run",
                quoted(&recipe_path.display().to_string())
            )),
            // Without a recipe it cannot be trained yet.
            (_, false) => ui.next(&format!("trafoc check {shown}")),
        }
        let paths: Vec<PathBuf> = files.iter().map(|(path, _)| path.to_path_buf()).collect();
        let lines: String = paths.iter().map(|path| path_line(path)).collect();
        Ok(Output::new(lines, Data::Written { path, paths }))
    }
}

impl New {
    /// The spec and the recipe fitted to the user's data.
    ///
    /// # Errors
    /// The data cannot be used.
    #[cfg(feature = "learn")]
    fn fitted(
        &self,
        texts: &Texts,
        spec: String,
        recipe: String,
        path: &Path,
        ui: &mut Ui,
    ) -> Result<(String, String), Failure> {
        // A recipe alone is for a spec of the user's; its data is read with the small one.
        let with_spec = self.small;
        let own = if with_spec { spec.clone() } else { texts.small.replace("NAME", "data") };
        let draft = super::fitted::Draft { spec: &own, recipe: &recipe, path, with_spec };
        let fitted = super::fitted::fitted(&draft, ui)?;
        Ok((if with_spec { fitted.spec } else { spec }, fitted.recipe))
    }

    /// Data cannot be read in a build without its readers.
    #[cfg(not(feature = "learn"))]
    fn fitted(
        &self,
        _: &Texts,
        spec: String,
        recipe: String,
        _: &Path,
        _: &mut Ui,
    ) -> Result<(String, String), Failure> {
        Ok((spec, recipe))
    }
}

/// A path that the user gave, as a recipe in another folder names it: paths in a recipe are relative to the
/// recipe's folder.
fn named_from(data: &str, recipe: &Path) -> String {
    let folder = recipe.parent().unwrap_or(Path::new(""));
    if data.starts_with('@') || Path::new(data).is_absolute() || folder == Path::new("") {
        return data.to_owned();
    }
    // Only then is the number of its parts also the number of steps back.
    let is_below = folder.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    let depth = folder.components().filter(|c| matches!(c, Component::Normal(_))).count();
    match is_below {
        true => format!("{}{data}", "../".repeat(depth)),
        // From there, the way back would need the path of the working folder, which the absolute path has.
        false => {
            std::path::absolute(data).map_or_else(|_| data.to_owned(), |path| path.display().to_string())
        }
    }
}

/// A text as a scalar of YAML, in the quotes of `trafoc fmt` if YAML or a spec would take it for something else than a text.
fn as_yaml(name: &str) -> String {
    let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        // A digit, a dot or a dash could begin a number or a list.
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && !matches!(name, "true" | "false" | "null" | "none");
    if is_bare { name.to_owned() } else { print::yaml_quoted(name) }
}
