//! `trafoc export`: writes a spec and its weights as a directory that Hugging Face's library loads.

use std::path::{Path, PathBuf};

use clap::Args;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::directory::{HubModel, families};
#[cfg(feature = "interp")]
use super::exported_run::ExportedRun;
use super::file::{self, Staged};
use super::format::{Format, FormatArg};
use super::next_step::quoted;
use super::outcome::{Exit, Failure, Output};
use super::overwrite::{ForceArg, Mark};
use super::subject::SpecArgs;
use super::tensors::tensors_failure;
use super::ui::Ui;
use crate::diag::Sink;
use crate::hub::export::{Exported, Obstacles, export};
use crate::hub::mapping::{Parameters, parameters};
use crate::hub::written::{Written, keep, tensors};
use crate::source::SourceMap;
use crate::tensor_file::{self, Saved, TensorFile};

/// The arguments of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The spec and its settings.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// Weights in safetensors, named by the paths of parameters; a run and a model directory contain their
    /// own
    #[arg(long, short, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// The directory to write
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// The family to write; the first that can express the spec if not given
    #[arg(long, value_name = "NAME")]
    pub family: Option<String>,
    /// Whether existing files are overwritten.
    #[command(flatten)]
    pub force: ForceArg,
    /// The output format.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The file that makes a directory that of a Hugging Face model.
const CONFIG: &str = "config.json";
/// The file with the parameters of the model.
const WEIGHTS: &str = "model.safetensors";

/// The other files of a directory, which are copied unchanged.
const COPIED: &[&str] = &[
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "generation_config.json",
    "preprocessor_config.json",
];

/// The data of `export` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The directory that was written.
    path: PathBuf,
    /// The family of the model.
    family: String,
    /// Its architecture, as the config names it.
    architecture: String,
    /// The number of tensors.
    tensors: usize,
    /// The settings for training that the config has no key for.
    not_kept: Vec<String>,
    /// The other files that were written or copied.
    others: Vec<String>,
}

impl Command for Export {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the directory.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        self.permit([CONFIG, WEIGHTS].into_iter())?;
        let subject = self.spec.compile(ui)?;
        let own = subject.model.as_ref().map(|m| m.imported.family.name.clone());
        let families = families(self.spec.families())?;
        let mut sources = crate::spec::load::sources();
        let mut sink = Sink::new();
        let preferred = self.family.clone().or(own);
        if let Some(name) = self.family.as_deref().filter(|name| !families.names().contains(name)) {
            let message = format!("there is no family `{name}`");
            let help = format!("the families are {}", families.names().join(", "));
            return Err(Failure::usage(message).help(help));
        }
        let parameters = parameters(&subject.graph).map_err(|why| Failure::new(Exit::Refused, why))?;
        let found = export(&subject.spec, &families, preferred.as_deref(), &mut sources, &mut sink);
        let exported = found.map_err(|obstacles| refusal(&obstacles, ui, sink, &sources))?;
        let tensors = tensors(&parameters, &exported.names(), &exported).map_err(|misfits| {
            let failure =
                Failure::bug(format!("the family {} does not name every parameter", exported.family.name));
            misfits.into_iter().fold(failure, |f, m| f.help(m.message))
        })?;
        let run = self.run_of(ui)?;
        let own = run.as_ref().map(ExportedRun::weights);
        let mut weights = match (self.weights.as_ref().or(own), &subject.model) {
            (None, None) => {
                let message = "an export needs weights";
                return Err(
                    Failure::usage(message).help("give `--weights FILE`, as `trafoc train` writes it")
                );
            }
            (given, Some(model)) => {
                let path = given.unwrap_or(&model.folder);
                Weights::Named(Box::new(subject.tensors(path)?))
            }
            (Some(path), None) if subject.spec.weights.is_some() => {
                Weights::Named(Box::new(subject.tensors(path)?))
            }
            (Some(path), None) => Weights::File(open(path, &parameters)?),
        };
        let mut json = exported.config(&subject.spec.name);
        if let Some(model) = &subject.model {
            keep(&mut json, &model.config, &families);
        }
        if let Some(run) = &run {
            run.name_classes(&mut json);
        }
        let text = serde_json::to_string_pretty(&json).map_err(|e| Failure::bug(e.to_string()))?;
        let staged = Staged::begin(&self.to)?;
        let folder = staged.folder();
        file::write(&folder.join(CONFIG), &(text + "\n"))?;
        write(&folder.join(WEIGHTS), &tensors, &mut weights)?;
        let others = match (&subject.model, &run) {
            (Some(model), _) => copy_others(model, &self.to, folder)?,
            (None, Some(run)) => run.write(folder, ui)?,
            (None, None) => Vec::new(),
        };
        self.permit(others.iter().map(String::as_str))?;
        // A file that is overwritten may be the one the weights were read from.
        drop(weights);
        staged.finish(CONFIG)?;
        if !exported.lost.is_empty() {
            ui.note(
                "note: these concern only training and are not kept, because the family has no key \
                for them:",
            );
            exported.lost.iter().for_each(|line| ui.note(&format!("  {line}")));
        }
        ui.next(&format!("trafoc check {}", quoted(&self.to.display().to_string())));
        let Exported { family, architecture, lost, .. } = exported;
        let text = format!("{} ({architecture}, family {})\n", self.to.display(), family.name);
        let data = Data {
            path: self.to.clone(),
            family: family.name.clone(),
            architecture,
            tensors: tensors.len(),
            not_kept: lost,
            others,
        };
        Ok(Output::new(text, data))
    }
}

/// Without the interpreter, runs cannot be read, so this type has no values.
#[cfg(not(feature = "interp"))]
enum ExportedRun {}

#[cfg(not(feature = "interp"))]
impl ExportedRun {
    fn weights(&self) -> &PathBuf {
        match *self {}
    }

    fn name_classes(&self, _: &mut serde_json::Value) {
        match *self {}
    }

    fn write(&self, _: &Path, _: &Ui) -> Result<Vec<String>, Failure> {
        match *self {}
    }
}

impl Export {
    /// Checks that these files of the directory may be written.
    fn permit<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> Result<(), Failure> {
        names.try_for_each(|name| {
            self.force.permit(&self.to.join(name), Mark::Unmarked, "another directory for `--to`")
        })
    }

    /// The run that is exported with its weights, unless other weights are given.
    #[cfg(feature = "interp")]
    fn run_of(&self, ui: &mut Ui) -> Result<Option<ExportedRun>, Failure> {
        match &self.weights {
            Some(_) => Ok(None),
            None => ExportedRun::open(Path::new(&self.spec.spec), ui),
        }
    }

    #[cfg(not(feature = "interp"))]
    fn run_of(&self, _: &mut Ui) -> Result<Option<ExportedRun>, Failure> {
        Ok(None)
    }
}

/// The source of the parameters.
enum Weights {
    /// A file that trafoc has written.
    File(TensorFile),
    /// A checkpoint with other names.
    Named(Box<crate::hub::tensors::Tensors>),
}

impl Weights {
    fn floats(&mut self, path: &str, count: usize) -> Result<Vec<f32>, String> {
        match self {
            Weights::File(file) => file.floats(path).map_err(|e| e.to_string()),
            Weights::Named(tensors) => tensors.sized(path, count).map_err(|e| tensors_failure(e).message),
        }
    }
}

fn open(path: &Path, parameters: &Parameters) -> Result<TensorFile, Failure> {
    let file = TensorFile::open(path).map_err(|e| {
        let failure = Failure::new(Exit::File, e.to_string());
        e.advice().into_iter().fold(failure, Failure::help)
    })?;
    let mut lines = Vec::new();
    for (path, shape) in parameters {
        match file.entries().get(path) {
            None => lines.push(format!("missing: {path} {shape:?}")),
            Some(e) if e.shape != *shape => {
                lines.push(format!("{path} has the shape {:?}, the model's has {shape:?}", e.shape))
            }
            Some(_) => {}
        }
    }
    let extra = file.entries().keys().filter(|name| !parameters.contains_key(*name));
    lines.extend(extra.map(|name| format!("not in the model: {name}")));
    if lines.is_empty() {
        return Ok(file);
    }
    let failure =
        Failure::new(Exit::File, format!("{} does not hold this model's parameters", path.display()));
    Err(lines.into_iter().take(20).fold(failure, Failure::help))
}

fn write(path: &Path, tensors: &IndexMap<String, Written>, weights: &mut Weights) -> Result<(), Failure> {
    let shapes: Vec<_> = tensors.iter().map(|(name, t)| (name.clone(), "F32", t.shape.clone())).collect();
    let metadata = IndexMap::from([("format".to_owned(), "pt".to_owned())]);
    let fail = std::io::Error::other;
    tensor_file::write(path, &shapes, &metadata, |i| {
        let (_, tensor) = tensors.get_index(i).ok_or_else(|| fail("a tensor is gone".to_owned()))?;
        let mut values = vec![0.0; tensor.shape.iter().product()];
        for part in &tensor.parts {
            let numbers = weights.floats(&part.path, part.count()).map_err(fail)?;
            if !part.put(&numbers, &mut values) {
                return Err(fail(format!("{} does not fit its tensor", part.path)));
            }
        }
        Ok(Saved::floats(tensor.shape.clone(), values))
    })
    .map_err(|e| Failure::new(Exit::File, format!("cannot write weights: {e}")))
}

/// Copies a tokenizer and similar files, unless they are in the directory that is written already.
fn copy_others(model: &HubModel, to: &Path, folder: &Path) -> Result<Vec<String>, Failure> {
    let mut copied = Vec::new();
    for name in COPIED {
        let from = model.folder.join(name);
        if !from.is_file() || from.canonicalize().ok() == to.join(name).canonicalize().ok() {
            continue;
        }
        crate::read::copy(&from, &folder.join(name)).map_err(|e| {
            Failure::new(Exit::File, format!("cannot copy `{}`: {}", from.display(), file::reason(&e)))
        })?;
        copied.push((*name).to_owned());
    }
    Ok(copied)
}

fn refusal(obstacles: &Obstacles, ui: &mut Ui, sink: Sink, sources: &SourceMap) -> Failure {
    const SHOWN: usize = 12;
    ui.diagnose(&sink.into_sorted(), sources);
    let message = "no family can express this spec";
    let failure = Failure::new(Exit::Refused, message);
    let Some(family) = &obstacles.family else {
        return failure.help("no family has these stacks with this head");
    };
    let failure = failure.help(format!(
        "the closest family is {family}; these differ, the spec's value \
        first:"
    ));
    let failure = obstacles.knobs.iter().take(SHOWN).fold(failure, |f, knob| f.help(knob.clone()));
    match obstacles.knobs.len().checked_sub(SHOWN).filter(|n| *n > 0) {
        Some(more) => failure.help(format!("and {more} more")),
        None => failure,
    }
}
