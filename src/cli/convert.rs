//! `trafoc convert`: writes a spec in the other notation, with every comment.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::file;
use super::format::{Format, FormatArg};
use super::next_step::quoted;
use super::outcome::{Exit, Failure, Output};
use super::overwrite::{self, ForceArg, Mark};
use super::subject::{Lang, LangArg, open};
use super::ui::{Ui, counted, path_line};
use crate::diag::Sink;
use crate::spec::{is_part, load, version};
use crate::syntax::{Notation, fmt, parse};

/// The command line of `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// A spec file, `-` for stdin, or a shipped spec such as `@gpt1`
    #[arg(value_name = "SPEC")]
    spec: String,
    /// The notation to write, yaml or trafo; the other one if not given
    #[arg(long, value_enum, value_name = "LANG", hide_possible_values = true)]
    to: Option<Lang>,
    /// The file to write; stdout if not given, or for `-`
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    lang: LangArg,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `convert` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The notation: `yaml` or `trafo`.
    lang: &'static str,
    /// The spec, if no file is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The file that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
}

impl Command for Convert {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the spec in the notation of `--to` or of the file's extension, else in the other one.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let out = overwrite::named(self.out.as_ref());
        self.force.refuse_unused(out.is_some())?;
        let opened = open(&self.spec, self.lang.lang(), self.lang.families(), ui)?;
        // Without `--to` the extension of the new file says enough.
        let named = out.and_then(|p| Notation::from_path(&p.to_string_lossy()));
        let to = match (self.to.map(Notation::from), named) {
            // A file is later read in the notation of its extension, so this one would have errors.
            (Some(to), Some(named)) if to != named => {
                let message =
                    format!("`--to` says {}, but `--out` says {}", to.extension(), named.extension());
                return Err(Failure::usage(message));
            }
            (Some(to), _) | (None, Some(to)) => to,
            (None, None) => match opened.notation {
                Notation::Yaml => Notation::Dsl,
                Notation::Dsl => Notation::Yaml,
            },
        };
        let mut sink = Sink::new();
        let mut opened = opened;
        // Written to a file, the text would look for its base in that file's folder.
        opened.name_shipped_base();
        let later = version::later(&opened.sources, opened.id, opened.notation);
        let converted = fmt::convert(&opened.sources, opened.id, opened.notation, to, &is_part, &mut sink);
        let tree = parse(&opened.sources, opened.id, opened.notation, &mut Sink::new());
        // Recipes have one notation, so no command would read the text.
        let recipe = tree.filter(|_| later.is_none()).and_then(|tree| load::recipe_for_spec(&tree));
        let converted = converted.filter(|_| later.is_none() && recipe.is_none());
        later.into_iter().chain(recipe).for_each(|wrong| sink.push(wrong));
        let found = sink.into_sorted();
        ui.diagnose(&found, &opened.sources);
        let Some(text) = converted else {
            return Err(Failure::new(Exit::Failed, format!("`{}` has {}", opened.name, counted(&found))));
        };
        let Some(path) = out else {
            let data = Data { lang: to.extension(), text: Some(text.clone()), path: None };
            return Ok(Output::new(text, data));
        };
        self.force.permit(path, Mark::Unmarked, "another `--out`")?;
        file::write(path, &text)?;
        ui.next(&format!("trafoc check {}", quoted(&path.display().to_string())));
        let data = Data { lang: to.extension(), text: None, path: Some(path.clone()) };
        Ok(Output::new(path_line(path), data))
    }
}
