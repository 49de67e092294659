//! `trafoc export`: writes a spec and its weights as a directory that Hugging Face's library loads.

use std::path::{Path, PathBuf};

use clap::Args;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
#[cfg(feature = "interp")]
use super::compute::exported_run::ExportedRun;
use super::directory::{HubModel, PREPROCESSOR, PROCESSOR, TARGET_TOKENIZER, TOKENIZER, With, families};
use super::exported::{Weights, note_not_written, open, write};
use super::file::{self, Staged};
use super::format::{Format, FormatArg};
use super::next_step::quoted;
use super::outcome::{Exit, Failure, Output};
use super::overwrite::{ForceArg, Mark};
use super::subject::{SpecArgs, Subject};
use super::tensors as files;
use super::ui::{Ui, path_line};
use crate::diag::Sink;
use crate::diag::suggest::suggest;
use crate::emit::pytorch;
use crate::hub::code::read::FAMILY;
use crate::hub::code::{self, Code};
use crate::hub::export::{Exported, Obstacles, Work, export};
use crate::hub::mapping::{Parameters, parameters};
use crate::hub::most_similar;
use crate::hub::peft;
use crate::hub::sentence;
use crate::hub::shelf::Families;
use crate::hub::written::{Written, keep, tensors};
use crate::names::Names;
use crate::names::check::Keys;
use crate::source::SourceMap;

/// The command line of `export`.
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
    /// Write a directory with its own Python code, which is the default if no family can express the spec
    #[arg(long, conflicts_with = "family")]
    pub code: bool,
    /// Write only what a run added to a trained body, in the format of the library peft
    #[arg(long, conflicts_with_all = ["code", "weights"])]
    pub adapter: bool,
    /// Whether existing files are overwritten.
    #[command(flatten)]
    pub force: ForceArg,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The file that makes a directory that of a Hugging Face model.
const CONFIG: &str = "config.json";
/// The file with the parameters of the model.
const WEIGHTS: &str = "model.safetensors";

/// The files of an adapter, as the library peft names them.
const ADAPTER_CONFIG: &str = "adapter_config.json";
const ADAPTER: &str = "adapter_model.safetensors";

/// The other files of a directory, which are copied unchanged.
const COPIED: &[&str] = &[
    TOKENIZER,
    TARGET_TOKENIZER,
    "tokenization.py",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "target_vocab.json",
    "merges.txt",
    "added_tokens.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "source.spm",
    "target.spm",
    "generation_config.json",
    "chat_template.jinja",
    PREPROCESSOR,
    PROCESSOR,
];

/// The data of `export` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The directory that was written.
    path: PathBuf,
    /// The family of the model; null if the directory has code of its own.
    family: Option<String>,
    /// Its architecture, as the config names it.
    architecture: String,
    /// The number of tensors.
    tensors: usize,
    /// The settings for training that the config has no key for.
    not_kept: Vec<String>,
    /// The tensors of the given directory that are in no parameter of the spec and are not written.
    not_written: Vec<String>,
    /// The files with code.
    code: Vec<String>,
    /// The other files that were written or copied.
    others: Vec<String>,
}

impl Command for Export {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the directory, in which no file appears before all of them are complete.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        // These two files are part of every export, so they can be checked before anything is compiled or
        // read.
        self.permit([CONFIG, WEIGHTS].into_iter(), Mark::Unmarked)?;
        if self.adapter {
            self.permit([ADAPTER_CONFIG, ADAPTER].into_iter(), Mark::Unmarked)?;
        }
        // What a directory of sentence-transformers makes of its body is in files of its own, which are copied.
        let subject = self.spec.over().of_class().compile(&self.spec.spec, ui)?;
        let families = families(self.spec.families())?;
        self.check_family(&families)?;
        // Before the weights are opened: what cannot be named cannot be written either.
        let parameters = parameters(&subject.graph).map_err(|why| Failure::new(Exit::Refused, why))?;
        let run = self.run_of(ui)?;
        // Before families are tried, which takes seconds. An adapter has only what its run has.
        let from = match (self.adapter, run.as_ref()) {
            (true, Some(run)) => Values::Run(run),
            (true, None) => {
                let message = "`--adapter` is for a run, which may have added something to a body";
                let help = "a run is a folder that `trafoc train` has written; without `--adapter` the whole model is exported";
                return Err(Failure::usage(message).help(help));
            }
            (false, run) => Values::Weights(self.weights(&subject, run, &parameters)?),
        };
        let body = match run.as_ref().and_then(ExportedRun::body) {
            Some(config) => {
                // Without the body's config the run can be exported all the same; only the preference for its
                // family is lost.
                HubModel::open(config, self.spec.families(), With::Class, ui)
                    .ok()
                    .map(|m| m.imported.family.name)
            }
            None => None,
        };
        let form = self.form(&subject, body.as_deref(), &families, ui)?;
        let tensors = form.tensors(&parameters)?;
        let mut weights = match from {
            Values::Weights(weights) => weights,
            Values::Run(run) => {
                if let Some(body) = body.filter(|body| form.family().as_deref() != Some(body.as_str())) {
                    let own = form.family().unwrap_or_else(|| "a model with code of its own".to_owned());
                    ui.note(&format!(
                    "note: the adapter has the names of {own} and not those of the body's family {body}, so it \
                     belongs to the directory that `trafoc export` writes of the run's start"
                ));
                }
                return self.write_adapter(run, &form, &tensors, subject.spec.head.part(), ui);
            }
        };
        let mut code = form.code().to_vec();
        // The code of a run's tokenizer, which a model of a family may need too.
        code.extend(run.as_ref().and_then(|run| run.code(&subject.name)));
        // Code has trafoc's mark, by which it is recognised; configs and weights cannot have it.
        self.permit(code.iter().map(|(name, _)| name.as_str()), Mark::Emitted)?;
        if let Some(model) = &subject.model {
            files::note_types(self.weights.as_deref().unwrap_or(&model.folder), ui);
        }
        let mut json = form.config(&subject, &families);
        if let Some(run) = &run {
            run.name_classes(&mut json);
            if let Form::Code(_) = form {
                run.name_tokens(&mut json);
            }
        }
        let text = serde_json::to_string_pretty(&json).map_err(|e| Failure::bug(e.to_string()))?;
        // What the `weights` of a spec leave out is left out by its author.
        let is_model = subject.model.is_some();
        let not_written = if is_model { weights.not_written(&tensors) } else { Vec::new() };
        // Only now, when everything that could be refused before it is written has been.
        let staged = Staged::begin(&self.to)?;
        let others = staged.fill(|folder| {
            file::write(&folder.join(CONFIG), &(text + "\n"))?;
            for (name, text) in &code {
                file::write(&folder.join(name), text)?;
            }
            write(&folder.join(WEIGHTS), &tensors, &mut weights)?;
            match (&subject.model, &run) {
                (Some(model), _) => copy_others(model, &self.to, folder),
                (None, Some(run)) => run.write(folder, &subject.graph, ui),
                // A spec with a file of weights has no tokenizer that could go with them.
                (None, None) => Ok(Vec::new()),
            }
        })?;
        // Which files these are depends on the model, and so far they are in a folder of their own.
        self.permit(others.iter().map(String::as_str), Mark::Unmarked)?;
        // A file that is overwritten may be the one the weights were read from.
        drop(weights);
        // With the config last, without which no reader takes the directory for a model.
        staged.finish(CONFIG)?;
        let lost = form.lost();
        if !lost.is_empty() {
            ui.note(
                "note: these concern only training and are not kept, because the family has no key \
                for them:",
            );
            lost.iter().for_each(|line| ui.note(&format!("  {line}")));
        }
        note_not_written(&not_written, ui);
        ui.next(&format!("trafoc check {}", quoted(&self.to.display().to_string())));
        let (family, architecture) = (form.family(), form.architecture().to_owned());
        let made = match &family {
            Some(family) => format!("family {family}"),
            None => "with code of its own".to_owned(),
        };
        ui.note(&format!("{architecture}, {made}"));
        let text = path_line(&self.to);
        let data = Data {
            path: self.to.clone(),
            family,
            architecture,
            tensors: tensors.len(),
            not_kept: lost.to_vec(),
            not_written,
            code: code.into_iter().map(|(name, _)| name).collect(),
            others,
        };
        Ok(Output::new(text, data))
    }
}

/// Where the values of the written tensors are from.
enum Values<'r> {
    /// All parameters, from this file or directory.
    Weights(Weights),
    /// What a run added to a trained body.
    Run(&'r ExportedRun),
}

/// What is written: a model of a family, or one with code of its own.
enum Form {
    Family(Box<Exported>),
    Code(Box<Code>),
}

impl Form {
    /// The names and texts of the files with code; none for a model of a family.
    fn code(&self) -> &[(String, String)] {
        match self {
            Form::Family(_) => &[],
            Form::Code(code) => &code.files,
        }
    }

    /// The family, if the model is one of a family.
    fn family(&self) -> Option<String> {
        match self {
            Form::Family(exported) => Some(exported.family.name.clone()),
            Form::Code(_) => None,
        }
    }

    fn architecture(&self) -> &str {
        match self {
            Form::Family(exported) => &exported.architecture,
            Form::Code(code) => &code.architecture,
        }
    }

    /// The settings for training that the directory does not keep.
    fn lost(&self) -> &[String] {
        match self {
            Form::Family(exported) => &exported.lost,
            Form::Code(_) => &[],
        }
    }

    /// The tensors of the directory and the parameters in them.
    fn tensors(&self, parameters: &Parameters) -> Result<IndexMap<String, Written>, Failure> {
        let (found, of) = match self {
            Form::Family(exported) => {
                let found = tensors(parameters, &exported.names(), &**exported);
                (found, format!("the family {}", exported.family.name))
            }
            Form::Code(_) => {
                // The code finds every parameter under its path.
                let names = Names { paths: Some(String::new()), ..Names::default() };
                (tensors(parameters, &names, &Keys::default()), "the spec".to_owned())
            }
        };
        found.map_err(|mismatches| {
            // A family is taken only if it can express the spec, and so has a name for every parameter.
            let failure = Failure::bug(format!("{of} does not name every parameter"));
            mismatches.into_iter().fold(failure, |f, m| f.help(m.message))
        })
    }

    /// The config, with what the config of an imported model says about its use.
    fn config(&self, subject: &Subject, families: &Families) -> serde_json::Value {
        let own = subject.model.as_ref().map(|model| &model.config);
        match self {
            Form::Family(exported) => {
                let mut json = exported.config(&subject.spec.name);
                if let Some(own) = own {
                    keep(&mut json, own, families);
                }
                json
            }
            Form::Code(code) => {
                let mut json = code.config.clone();
                if let Some(own) = own {
                    code::keep(&mut json, own);
                }
                json
            }
        }
    }
}

/// Without the interpreter, runs cannot be read, so this type has no values.
#[cfg(not(feature = "interp"))]
use crate::ir::Graph;

#[cfg(not(feature = "interp"))]
enum ExportedRun {}

#[cfg(not(feature = "interp"))]
impl ExportedRun {
    fn weights(&self) -> &PathBuf {
        match *self {}
    }

    fn body(&self) -> Option<&Path> {
        match *self {}
    }

    fn name_classes(&self, _: &mut serde_json::Value) {
        match *self {}
    }

    fn name_tokens(&self, _: &mut serde_json::Value) {
        match *self {}
    }

    fn write_adapter(&self, _: &IndexMap<String, Written>, _: &str, _: &Path) -> Result<usize, Failure> {
        match *self {}
    }

    fn code(&self, _: &str) -> Option<(String, String)> {
        match *self {}
    }

    fn write(&self, _: &Path, _: &Graph, _: &Ui) -> Result<Vec<String>, Failure> {
        match *self {}
    }
}

impl Export {
    /// Writes what a run added to a trained body.
    fn write_adapter(
        &self,
        run: &ExportedRun,
        form: &Form,
        tensors: &IndexMap<String, Written>,
        head: &str,
        ui: &Ui,
    ) -> Result<Output<Data>, Failure> {
        let staged = Staged::begin(&self.to)?;
        let count = staged.fill(|folder| run.write_adapter(tensors, head, folder))?;
        // As with a whole model, the config comes last.
        staged.finish(ADAPTER_CONFIG)?;
        let data = Data {
            path: self.to.clone(),
            family: form.family(),
            architecture: form.architecture().to_owned(),
            tensors: count,
            not_kept: Vec::new(),
            not_written: Vec::new(),
            code: Vec::new(),
            others: Vec::new(),
        };
        ui.note("an adapter");
        Ok(Output::new(path_line(&self.to), data))
    }

    /// Checks that these files of the directory may be written.
    fn permit<'n>(&self, mut names: impl Iterator<Item = &'n str>, mark: Mark) -> Result<(), Failure> {
        names
            .try_for_each(|name| self.force.permit(&self.to.join(name), mark, "another directory for `--to`"))
    }

    /// Checks that there is the family that is asked for.
    fn check_family(&self, families: &Families) -> Result<(), Failure> {
        let Some(name) = self.family.as_deref().filter(|name| !families.names().contains(name)) else {
            return Ok(());
        };
        let message = format!("there is no family `{name}`");
        let help = match suggest(name, &families.names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => most_similar(name, &families.names()),
        };
        Err(Failure::usage(message).help(help))
    }

    /// What is written: the family that is asked for, or the first that can express the spec, or code.
    /// A run whose body is of a family is preferably one of it too.
    fn form(
        &self,
        subject: &Subject,
        body: Option<&str>,
        families: &Families,
        ui: &mut Ui,
    ) -> Result<Form, Failure> {
        // Asked for, code is no fallback, so no family is tried.
        if self.code {
            return with_code(subject).map_err(|why| {
                Failure::new(Exit::Refused, format!("this spec cannot be exported as code: {why}"))
            });
        }
        // A model that was imported goes back to its own family, if that can still express it.
        let own = subject.model.as_ref().map(|m| m.imported.family.name.clone());
        // A directory that has code of its own belongs to no family.
        let preferred = self.family.clone().or(own.filter(|own| own != FAMILY));
        let mut sources = crate::spec::load::sources();
        let mut sink = Sink::new();
        // Replaced in any case by the second attempt, if the first is not made or fails.
        let mut found = Err(Obstacles { family: None, knobs: Vec::new(), work: Work::default() });
        if let Some(body) = body.filter(|body| preferred.is_none() && *body != FAMILY) {
            found = export(&subject.spec, families, Some(body), &mut sources, &mut sink);
        }
        // The body's family may not have the run's head.
        if found.is_err() {
            found = export(&subject.spec, families, preferred.as_deref(), &mut sources, &mut sink);
        }
        let obstacles = match found {
            Ok(exported) => return Ok(Form::Family(Box::new(exported))),
            Err(obstacles) => obstacles,
        };
        // A user who names a family wants that family or an error, and not a directory with its own code.
        if self.family.is_some() {
            return Err(refusal(&obstacles, ui, sink, &sources));
        }
        match with_code(subject) {
            Ok(code) => {
                let nearest = match (&obstacles.family, obstacles.knobs.as_slice()) {
                    (Some(family), [first, ..]) => {
                        format!("; the closest is {family}, which differs in {first}")
                    }
                    (_, _) => String::new(),
                };
                ui.note(&format!(
                    "note: no family can express this spec, so the directory has its own code, which needs \
                        `trust_remote_code=True`{nearest}"
                ));
                Ok(code)
            }
            Err(why) => {
                let failure = refusal(&obstacles, ui, sink, &sources);
                Err(failure.help(format!("it cannot be exported with code of its own either: {why}")))
            }
        }
    }

    /// The source of the parameters: the file that is given, the run, or the imported directory.
    fn weights(
        &self,
        subject: &Subject,
        run: Option<&ExportedRun>,
        parameters: &Parameters,
    ) -> Result<Weights, Failure> {
        let own = run.map(ExportedRun::weights);
        match (self.weights.as_ref().or(own), &subject.model) {
            (None, None) => {
                let message = "an export needs weights";
                Err(Failure::usage(message).help("give `--weights FILE`, as `trafoc train` writes it"))
            }
            // A file that is given has the names of the model's family too.
            (given, Some(model)) => {
                let path = given.unwrap_or(&model.folder);
                Ok(Weights::Named(Box::new(subject.tensors(path)?)))
            }
            (Some(path), None) if subject.spec.weights.is_some() => {
                Ok(Weights::Named(Box::new(subject.tensors(path)?)))
            }
            (Some(path), None) => Ok(Weights::File(open(path, parameters)?)),
        }
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

/// Copies a tokenizer and similar files, unless they are in the directory that is written already.
fn copy_others(model: &HubModel, to: &Path, folder: &Path) -> Result<Vec<String>, Failure> {
    // The directory of an adapter has no tokenizer; its body's has.
    let body = peft::body_of(&model.folder).map_err(|why| Failure::new(Exit::File, why))?;
    let mut copied = Vec::new();
    for name in COPIED.iter().map(PathBuf::from).chain(sentence::files(&body)) {
        let from = body.join(&name);
        // An export into the model's own directory must not replace a tokenizer by itself.
        if !crate::read::is_there(&from) || from.canonicalize().ok() == to.join(&name).canonicalize().ok() {
            continue;
        }
        let into = folder.join(&name);
        let copy = || {
            into.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            crate::read::copy(&from, &into, crate::read::limit::CODEBOOK)
        };
        copy().map_err(|e| {
            Failure::new(Exit::File, format!("cannot copy `{}`: {}", from.display(), file::reason(&e)))
        })?;
        copied.push(name.display().to_string());
    }
    Ok(copied)
}

/// The code of a spec, or why there is none: one sentence without a full stop.
fn with_code(subject: &Subject) -> Result<Form, String> {
    // The code is the emitted PyTorch with a class around it, and so has the same limits.
    if let Some(why) = pytorch::refusal(&subject.graph, &subject.sources) {
        return Err(why);
    }
    let made = code::code(&subject.graph, &subject.spec, &subject.sources, &subject.name);
    made.map(|code| Form::Code(Box::new(code))).map_err(|bug| bug.to_string())
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
