//! `trafoc import`: converts a Hugging Face model to a spec.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::directory::{HubModel, With, config_of, permit_families};
use super::file;
use super::format::{Format, FormatArg};
use super::next_step::quoted;
use super::outcome::{Exit, Failure, Output};
use super::overwrite::{self, ForceArg, Mark};
use super::subject::OverArgs;
use super::ui::{Ui, path_line};
use crate::field::record::entry;
use crate::hub::checkpoint::Checkpoint;
use crate::hub::mapping::{Mapping, TensorGroup};
use crate::hub::mismatch::Mismatch;
use crate::hub::own_names::weights;
use crate::hub::shelf::Families;
use crate::ir::Graph;
use crate::source::{Span, columns};
use crate::spec::expand::expand;
use crate::spec::explain::wrapped;
use crate::syntax::tree::Node;
use crate::syntax::{Notation, print};

/// Every `model_type` that a family reads, below the options of the help.
fn models() -> String {
    let all = Families::default().models().join(", ");
    let lines: Vec<String> = wrapped(&all, 78).into_iter().map(|line| format!("  {line}")).collect();
    format!("Models that can be imported, by the `model_type` of their config.json:\n{}", lines.join("\n"))
}

/// The command line of `import`.
#[derive(Debug, Args)]
#[command(after_help = models())]
pub struct Import {
    /// A directory with a config.json, or the file itself; with --dry-run and --weights a spec too
    #[arg(value_name = "DIR")]
    pub model: PathBuf,
    /// The spec to write; stdout if not given, or for `-`
    #[arg(long, short, value_name = "FILE", conflicts_with = "dry_run")]
    pub out: Option<PathBuf>,
    /// Whether an existing file is overwritten.
    #[command(flatten)]
    pub force: ForceArg,
    /// Write nothing: show which parameter each tensor of the directory belongs to, and what is missing
    #[arg(long)]
    pub dry_run: bool,
    /// The weights for --dry-run, if they are not in the directory; for a spec, its `weights` name the
    /// tensors
    #[arg(long, short, value_name = "FILE", requires = "dry_run", conflicts_with = "out")]
    pub weights: Option<PathBuf>,
    #[command(flatten)]
    over: OverArgs,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `import` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Data {
    /// The model as a spec.
    Spec {
        /// The family of the model.
        family: String,
        /// Its architecture, as the config names it.
        architecture: String,
        /// The keys of the config that do not change what the library computes.
        passed_over: Vec<String>,
        /// The spec in the notation of its file.
        text: String,
        /// The file that was written.
        path: Option<PathBuf>,
    },
    /// With `--dry-run`: the parameter of every tensor.
    Tensors {
        /// The tensors of the files.
        tensors: Vec<TensorGroup>,
        /// What does not fit.
        mismatches: Vec<Mismatch>,
    },
}

impl Command for Import {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the spec, or with `--dry-run` the table of tensors.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let out = overwrite::named(self.out.as_ref());
        self.force.refuse_unused(out.is_some())?;
        // A spec has no config.json; with weights, its tensors can be shown nevertheless.
        if self.dry_run && self.weights.is_some() {
            return self.tensors(ui);
        }
        permit_families(self.over.families())?;
        let Some(config) = config_of(&self.model) else {
            let message = format!("`{}` is not a directory with a config.json", self.model.display());
            let failure = Failure::new(Exit::File, message);
            let advice = file::elsewhere(&self.model.to_string_lossy()).filter(|_| !self.model.exists());
            return Err(if let Some(advice) = advice {
                failure.help(advice)
            } else if self.dry_run {
                failure.help("a spec needs `--weights FILE` together with `--dry-run`")
            } else {
                failure
            });
        };
        if self.dry_run {
            return self.tensors(ui);
        }
        let named = self.model.to_string_lossy();
        if let Some(path) = out {
            self.force.permit(path, Mark::Unmarked, "another `--out`")?;
        }
        let named_notation = out.and_then(|p| Notation::from_path(&p.to_string_lossy()));
        let notation = self.over.lang().map(Notation::from).or(named_notation).unwrap_or(Notation::Yaml);
        // It is compiled too, so that what is written is known to be valid.
        let subject = self.over.compile(&named, ui)?;
        let model = HubModel::open(&config, self.over.families(), With::Own, ui)?;
        let imported = &model.imported;
        // The text that import wrote leaves defaults out and is shorter; with changes there is only the
        // compiled spec.
        let spec =
            if self.over.changes() { expand(&subject.spec, Notation::Yaml) } else { imported.text.clone() };
        let text = match named_weights(&model, &subject.graph) {
            Some(weights) => spec + "\n" + &weights,
            None => spec,
        };
        let text = match notation {
            Notation::Yaml => text,
            // From the whole YAML, in which the rows of `weights` have been added.
            Notation::Dsl => converted(&text)?,
        };
        if !imported.passed.is_empty() {
            ui.note(&format!(
                "note: ignored, because they do not change what the library computes: {}",
                imported.passed.join(", ")
            ));
        }
        if has_named_classes(&model.config) {
            ui.note(&format!(
                "note: a spec has no names for classes; `trafoc export {} --to DIR` keeps those of this model",
                quoted(&named)
            ));
        }
        // As the classifiers of BART do, whose decoder reads the source as well.
        if let Some(target) = imported.target {
            let begin = target.begin.map_or("its own last one".to_owned(), |id| format!("token {id}"));
            ui.note(&format!(
                "note: if no target is given, this model's library uses the source, shifted by one \
                    position after {begin}, and reads the result at the last token {}; the spec has the \
                    inputs `target` and a `mask` up to that position",
                target.end
            ));
        }
        let data = Data::Spec {
            family: imported.family.name.clone(),
            architecture: imported.architecture.clone(),
            passed_over: imported.passed.clone(),
            text: text.clone(),
            path: out.cloned(),
        };
        match out {
            Some(path) => {
                file::write(path, &text)?;
                ui.next(&format!("trafoc check {}", quoted(&path.display().to_string())));
                Ok(Output::new(path_line(path), data))
            }
            None => Ok(Output::new(text, data)),
        }
    }
}

impl Import {
    /// Shows to which parameter every tensor belongs; the exit is 1 if any of them does not fit.
    fn tensors(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let subject = self.over.compile(&self.model.to_string_lossy(), ui)?;
        let own = subject.model.as_ref().map(|model| model.folder.as_path());
        let path = self.weights.as_deref().or(own);
        // A spec gets here only with `--weights`.
        let path = path.ok_or_else(|| Failure::bug("the directory has no model"))?;
        let (_, mapping) = subject.mapping(path)?;
        // The table is printed either way: what does not fit is why one looks at it.
        let exit = if mapping.mismatches.is_empty() { Exit::Ok } else { Exit::Failed };
        let text = ui.page(table(&mapping, ui.width()));
        let mismatches = mapping.mismatches.into_iter().collect();
        Ok(Output::new(text, Data::Tensors { tensors: mapping.tensors, mismatches }).with_exit(exit))
    }
}

/// The names of the directory's tensors as `weights` of the spec, with which the spec alone can read its
/// files. `None` if the tensors have the names of the parameters.
fn named_weights(model: &HubModel, graph: &Graph) -> Option<String> {
    // A directory may have its config alone, whose names then follow from the family.
    let checkpoint = Checkpoint::open(&model.folder).ok();
    // A config does not tell which of several names a file uses, such as with or without a prefix.
    let tensors: Option<Vec<&str>> = checkpoint.as_ref().map(|checkpoint| checkpoint.names().collect());
    let weights = weights(&model.imported, tensors.as_deref(), graph);
    let is_needed = weights.entries().is_some_and(|rows| !rows.is_empty());
    is_needed.then(|| print::yaml(&Node::map(vec![entry("weights", weights)], Span::default())))
}

/// Converts the spec that the import wrote in YAML to the DSL.
fn converted(text: &str) -> Result<String, Failure> {
    let mut sources = crate::source::SourceMap::new();
    let id = sources.add("<import>", text);
    let mut sink = crate::diag::Sink::new();
    let made = crate::syntax::fmt::convert(
        &sources,
        id,
        Notation::Yaml,
        Notation::Dsl,
        &crate::spec::is_part,
        &mut sink,
    );
    // The text is the import's own, so an error in it cannot be the user's.
    made.ok_or_else(|| Failure::bug("an imported spec cannot be converted"))
}

/// The tensors with the parameters that they become. Those are below a tensor if a line of `width` columns has no room for both.
fn table(mapping: &Mapping, width: usize) -> String {
    let shape = |line: &TensorGroup| format!("{} {:?}", line.dtype, line.shape);
    let name = |line: &TensorGroup| match line.count {
        1 => line.tensor.clone(),
        n => format!("{} ({n})", line.tensor),
    };
    let widest =
        |of: &dyn Fn(&TensorGroup) -> String| mapping.tensors.iter().map(|l| of(l).chars().count()).max();
    let (first, second) = (widest(&name).unwrap_or(0), widest(&shape).unwrap_or(0));
    let mut text = String::new();
    for line in &mapping.tensors {
        let tensor = format!("{:first$}  {:second$}", name(line), shape(line));
        let into = line.parameters.join(", ");
        let into = match (into.as_str(), line.how.as_str()) {
            ("", how) => how.to_owned(),
            (into, "") => into.to_owned(),
            (into, how) => format!("{into}  ({how})"),
        };
        if columns(&tensor).saturating_add(columns(&into)).saturating_add(2) <= width {
            let _ = writeln!(text, "{tensor}  {into}");
        } else {
            let _ = writeln!(text, "{}", tensor.trim_end());
            wrapped(&into, width.saturating_sub(4)).iter().for_each(|line| text += &format!("    {line}\n"));
        }
    }
    let _ = match mapping.mismatches.iter().map(|one| one.count).sum::<usize>() {
        0 => writeln!(text, "\nevery parameter has a tensor"),
        n => writeln!(text, "\n{n} do not match:"),
    };
    for mismatch in &mapping.mismatches {
        let _ = writeln!(text, "  {}: {}", mismatch.kind, mismatch.message);
    }
    text
}

/// Whether a config names the classes of its model, otherwise than by their numbers as the library transformers does.
fn has_named_classes(config: &serde_json::Value) -> bool {
    let names = config.get("id2label").and_then(serde_json::Value::as_object);
    names.is_some_and(|all| all.iter().any(|(id, name)| *name != format!("LABEL_{id}")))
}
