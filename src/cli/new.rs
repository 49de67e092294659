//! `trafoc new`: a spec to begin with.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::file;
use super::ui::{Exit, Failure, FormatArg, Output, Ui};

/// Arguments of `new`.
#[derive(Debug, Args)]
pub struct New {
    /// gpt, llama, bert, t5, vit or moe
    #[arg(value_enum, value_name = "TEMPLATE", hide_possible_values = true)]
    template: Template,
    /// The file to write; its name becomes the model's (`TEMPLATE.yaml` if not given, `-` for stdout)
    #[arg(value_name = "FILE")]
    path: Option<PathBuf>,
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
    /// How to speak.
    #[command(flatten)]
    pub format: FormatArg,
}

/// An architecture to begin with.
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
}

impl Template {
    /// As the command line spells it.
    pub fn word(self) -> &'static str {
        match self {
            Template::Gpt => "gpt",
            Template::Llama => "llama",
            Template::Bert => "bert",
            Template::T5 => "t5",
            Template::Vit => "vit",
            Template::Moe => "moe",
        }
    }

    /// The text, with `NAME` where the model's name belongs.
    fn text(self) -> &'static str {
        match self {
            Template::Gpt => include_str!("templates/gpt.yaml"),
            Template::Llama => include_str!("templates/llama.yaml"),
            Template::Bert => include_str!("templates/bert.yaml"),
            Template::T5 => include_str!("templates/t5.yaml"),
            Template::Vit => include_str!("templates/vit.yaml"),
            Template::Moe => include_str!("templates/moe.yaml"),
        }
    }
}

impl New {
    /// Writes a template.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        let to_stdout = self.path.as_deref() == Some(Path::new("-"));
        let path = match &self.path {
            Some(path) if !to_stdout => path.clone(),
            Some(_) | None => PathBuf::from(format!("{}.yaml", self.template.word())),
        };
        if !matches!(path.extension().and_then(|e| e.to_str()), Some("yaml" | "yml")) {
            let message = format!("a template is YAML, and `{}` does not end in .yaml", path.display());
            return Err(Failure::usage(message).help("`trafoc convert` turns it into .trafo"));
        }
        let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or(self.template.word());
        let text = self.template.text().replace("NAME", &quoted(name));
        if to_stdout {
            let data = json!({ "text": text });
            return Output::new(text, data);
        }
        if !self.force && path.exists() {
            let message = format!("`{}` is there already", path.display());
            return Err(Failure::new(Exit::Refused, message).help("`--force` overwrites it"));
        }
        file::write(&path, &text)?;
        ui.note(&format!("next: trafoc check {}", path.display()));
        Output::new(format!("{}\n", path.display()), json!({ "path": path }))
    }
}

/// A name as YAML: bare where that is safe.
fn quoted(name: &str) -> String {
    let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !matches!(name, "true" | "false" | "null" | "none");
    if is_bare { name.to_owned() } else { format!("'{}'", name.replace('\'', "''")) }
}
