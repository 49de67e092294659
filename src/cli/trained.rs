//! A trained model: its plan, weights and codebook, from the folder of a run, a Hugging Face model directory,
//! or a spec with weights.

use std::path::{Path, PathBuf};

use super::directory::{PREPROCESSOR, config_of};
use super::execute::{choose_place, load};
use super::failures::plan_failure;
use super::file;
use super::model::ModelArgs;
use super::outcome::{Exit, Failure};
use super::run_folder::{pick, read_codebook, report_damage, run_failure};
use super::subject::{OverArgs, Subject};
use super::ui::Ui;
use crate::interp::device::Chosen;
use crate::interp::{Captures, Plan, Weights};
use crate::learn::data::picture::Preparation;
use crate::learn::data::{Array, Codebook, Form};
use crate::learn::recipe::agree::Task;
use crate::learn::run_dir::{self, AVERAGED, Checkpoint};
use crate::learn::session::files;
use crate::learn::token::{Fault, Tokenizer, from_files};
use crate::learn::writing::Writing;
use crate::parts::Head;
use crate::read::{self, limit};

/// A trained model that has been opened.
pub struct Trained {
    /// The model's spec.
    pub subject: Subject,
    /// The plan by which the interpreter runs the model.
    pub plan: Plan,
    /// The parameters, on the device without autodiff.
    pub weights: Weights,
    /// The meaning of the model's inputs and outputs.
    pub codebook: Codebook,
    /// The device on which the model runs.
    pub device: Chosen,
    /// The checkpoint, if the model comes from a run.
    pub found: Option<Checkpoint>,
    over: OverArgs,
}

impl Trained {
    /// Compiles a spec with the same changes as this model's, so that it can be checked against a recipe.
    ///
    /// # Errors
    /// The spec cannot be read, or has an error.
    pub fn again(&self, spec: &str, ui: &mut Ui) -> Result<Subject, Failure> {
        self.over.compile(spec, ui)
    }

    /// The graph's inputs for one example, whose `texts` form one sequence. If the model's library derives a
    /// target from the source, they include both.
    pub fn inputs(&self, texts: Vec<&[u32]>) -> Vec<(&'static str, Array)> {
        let has_types = self.plan.inputs().iter().any(|input| input.name == "token_types");
        let given = self.codebook.inputs(&[texts], has_types);
        let Some(made) = self.subject.model.as_ref().and_then(|model| model.imported.target) else {
            return given;
        };
        let both = |(name, array): (&'static str, Array)| match (name, array) {
            ("tokens", Array::Ints { shape, values }) => {
                let (target, mask) = made.of(&values);
                let ints = |values| Array::Ints { shape: shape.clone(), values };
                vec![("source", ints(values)), ("target", ints(target)), ("mask", ints(mask))]
            }
            other => vec![other],
        };
        given.into_iter().flat_map(both).collect()
    }

    /// Opens a model.
    ///
    /// # Errors
    /// A file is missing or damaged, or the parts of the model do not fit together.
    pub fn open(arguments: &ModelArgs, ui: &mut Ui) -> Result<Self, Failure> {
        let root = PathBuf::from(&arguments.model);
        let found = if run_dir::is_run(&root) {
            let found = chosen(&root, arguments.checkpoint.as_deref())?;
            report_damage(&found, ui);
            Some(found)
        } else {
            None
        };
        if found.is_none() && config_of(&root).is_some() {
            return Self::imported(arguments, &root, ui);
        }
        let (spec, weights, codebook) = match (&found, &arguments.weights, &arguments.codebook) {
            (Some(found), None, _) => (
                found.file(files::SPEC).display().to_string(),
                found.file(files::MODEL),
                found.file(files::CODEBOOK),
            ),
            (Some(_), Some(_), _) => {
                return Err(Failure::usage("a run has weights of its own, and --weights gives others")
                    .help("name the spec instead of the run"));
            }
            (None, Some(weights), Some(codebook)) => {
                (arguments.model.clone(), weights.clone(), codebook.clone())
            }
            (None, _, _) => {
                if !root.exists() && !arguments.model.starts_with('@') && arguments.model != "-" {
                    let message = format!("cannot read `{}`: there is no such file", arguments.model);
                    return Err(Failure::new(Exit::File, message));
                }
                let failure = Failure::usage(format!("`{}` is not the folder of a run", arguments.model));
                return Err(failure.help("a spec needs --weights FILE and --codebook FILE"));
            }
        };
        let subject = arguments.over.compile(&spec, ui)?;
        let device = choose_place(&arguments.place, ui)?;
        let weights = load(&subject, &weights, &device.device, ui)?;
        let plan = Plan::new(&subject.graph, &Captures::none()).map_err(plan_failure)?;
        let codebook = read_codebook(&codebook)?;
        let over = arguments.over.clone();
        Ok(Self { subject, plan, weights, codebook, device, found, over })
    }
}

impl Trained {
    /// Opens a Hugging Face model by its directory: weights, `tokenizer.json`, names of classes.
    fn imported(arguments: &ModelArgs, root: &Path, ui: &mut Ui) -> Result<Self, Failure> {
        let subject = arguments.over.compile(&arguments.model, ui)?;
        let Some(model) = &subject.model else {
            return Err(Failure::usage(format!("`{}` is not a model's directory", arguments.model)));
        };
        let device = choose_place(&arguments.place, ui)?;
        let path = arguments.weights.as_deref().unwrap_or(&model.folder);
        let weights = load(&subject, path, &device.device, ui)?;
        let plan = Plan::new(&subject.graph, &Captures::none()).map_err(plan_failure)?;
        let codebook = match &arguments.codebook {
            Some(path) => read_codebook(path)?,
            None => codebook_of(&subject, &model.folder, root, ui)?,
        };
        let over = arguments.over.clone();
        Ok(Self { subject, plan, weights, codebook, device, found: None, over })
    }
}

/// The meaning of ids and classes, from the files next to a Hugging Face model.
fn codebook_of(subject: &Subject, folder: &Path, root: &Path, ui: &Ui) -> Result<Codebook, Failure> {
    let path = folder.join("tokenizer.json");
    let tokenizer = match path.is_file() {
        true => {
            let read = from_files(&path, None).map_err(|fault| {
                let why = match fault {
                    Fault::Bad(why) => why,
                    Fault::Refused(_) => "it cannot be read".to_owned(),
                };
                Failure::new(Exit::File, format!("`{}`: {why}", path.display()))
            })?;
            Some(Tokenizer::Subword(Box::new(read)))
        }
        false if subject.spec.vocab.is_some() => {
            let message = format!(
                "`{}` has no tokenizer.json, so the meaning of its tokens is unknown",
                root.display()
            );
            return Err(Failure::new(Exit::File, message).help("`trafoc run` takes ids"));
        }
        false => None,
    };
    let config = config_of(root).and_then(|path| read::bounded(&path, limit::CODEBOOK).ok());
    let config: serde_json::Value = config.and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
    let mut classes: Vec<(usize, String)> = Vec::new();
    // A config has two names of classes even if the model has no classes.
    let has_classes = matches!(&subject.spec.head, Head::Classify(_) | Head::Tag(_));
    for (id, name) in config["id2label"].as_object().filter(|_| has_classes).into_iter().flatten() {
        if let (Ok(id), Some(name)) = (id.parse(), name.as_str()) {
            classes.push((id, name.to_owned()));
        }
    }
    classes.sort();
    let image = Form::of(&subject.spec);
    let task = Task::of(&subject.spec).unwrap_or(Task::ClassifyText);
    Ok(Codebook {
        task,
        tokenizer,
        source: None,
        classes: classes.into_iter().map(|(_, name)| name).collect(),
        languages: Vec::new(),
        several: matches!(&subject.spec.head, Head::Classify(head) if head.multi_label),
        image,
        preparation: match image {
            Some(_) => {
                let usual = subject.model.as_ref().and_then(|m| m.imported.family.processor.as_deref());
                preparation_of(folder, usual)?
            }
            None => None,
        },
        writing: match task {
            Task::NextToken | Task::Translate => {
                Some(writing_of(folder, &config, subject.spec.vocab.unwrap_or(0), ui)?)
            }
            Task::HiddenToken | Task::ClassifyText | Task::ClassifyImage | Task::Tag | Task::Span => None,
        },
        longest: usize::try_from(subject.graph.context).unwrap_or(usize::MAX),
    })
}

/// The tokens with which a text of a Hugging Face model begins and ends: those of its
/// `generation_config.json`, or of its config if it has none.
fn writing_of(folder: &Path, config: &serde_json::Value, vocab: u64, ui: &Ui) -> Result<Writing, Failure> {
    let path = folder.join("generation_config.json");
    let failed = |why: String| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
    let own: Option<serde_json::Value> = if path.is_file() {
        let bytes = read::bounded(&path, limit::CODEBOOK).map_err(|e| failed(file::reason(&e)))?;
        Some(read::json(&bytes).map_err(failed)?)
    } else {
        None
    };
    let aside = own.as_ref().map(Writing::left_aside).unwrap_or_default();
    if !aside.is_empty() {
        let aside = aside.join(", ");
        ui.note(&format!("note: generation_config.json sets {aside}, which is ignored: options choose how tokens are selected"));
    }
    Writing::of(own.as_ref().unwrap_or(config), vocab).map_err(|faults| match &own {
        Some(_) => first_of(faults, failed),
        None => first_of(faults, |why| Failure::new(Exit::File, format!("the config: {why}"))),
    })
}

/// A failure from several sentences: the first is its message, the others are its help.
fn first_of(faults: Vec<String>, failed: impl Fn(String) -> Failure) -> Failure {
    let mut faults = faults.into_iter();
    let first = failed(faults.next().unwrap_or_default());
    faults.fold(first, Failure::help)
}

/// How images become numbers for a Hugging Face model, if a file next to it describes that.
fn preparation_of(folder: &Path, usual: Option<&str>) -> Result<Option<Preparation>, Failure> {
    // The newer file holds the processors of all kinds of input, the older one that of images alone.
    for (name, inside) in [("processor_config.json", Some("image_processor")), (PREPROCESSOR, None)] {
        let path = folder.join(name);
        if !path.is_file() {
            continue;
        }
        let failed =
            |why: String| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
        let bytes = read::bounded(&path, limit::CODEBOOK).map_err(|e| failed(file::reason(&e)))?;
        let json: serde_json::Value = read::json(&bytes).map_err(failed)?;
        let own = match inside {
            Some(key) => json.get(key),
            None => Some(&json),
        };
        let Some(own) = own else { continue };
        return Preparation::of(own, usual).map(Some).map_err(|faults| first_of(faults, failed));
    }
    Ok(None)
}

/// The checkpoint with this name. If there is none, the error lists those that exist.
fn chosen(root: &Path, name: Option<&str>) -> Result<Checkpoint, Failure> {
    pick(root, name).map_err(|error| {
        let (Some(name), Ok(last)) = (name, run_dir::last(root, usize::MAX)) else {
            return run_failure(error);
        };
        let mut there: Vec<String> = last.iter().map(|found| found.state.step.to_string()).collect();
        if last.iter().any(|found| found.state.step.to_string() == name) || there.is_empty() {
            return run_failure(error);
        }
        there.reverse();
        if run_dir::named(root, AVERAGED).is_ok() {
            there.push(AVERAGED.to_owned());
        }
        let message = format!("`{}` has no whole checkpoint `{name}`", root.display());
        Failure::new(Exit::File, message).help(format!("there are {}", there.join(", ")))
    })
}
