//! A trained model: its plan, weights and codebook, from the folder of a run, a Hugging Face model directory,
//! or a spec with weights.

use std::path::{Path, PathBuf};

use super::companions::codebook_of;
use super::execute::{choose_place, load, plan_of};
use super::packing::{fewer_bits, pack_as};
use super::run_folder::{pick, read_codebook, report_damage, run_failure};
use crate::cli::directory::config_of;
use crate::cli::file;
use crate::cli::model::ModelArgs;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::subject::{OverArgs, Subject};
use crate::cli::ui::Ui;
use crate::diag::suggest::suggest;
use crate::interp::device::Chosen;
use crate::interp::pack::{Packs, Placement, WeightType};
use crate::interp::{Captures, Plan, Weights};
use crate::learn::data::{Array, Codebook};
use crate::learn::run_dir::{self, AVERAGED, Checkpoint, RunDirError};
use crate::learn::session::files;

/// A trained model that has been opened.
pub struct Trained {
    /// The compiled spec of the model.
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
        Self::open_as(arguments, None, ui)
    }

    /// Opens a model for inference, with its weights packed in the type of the arguments.
    ///
    /// # Errors
    /// As [`Trained::open`], or there is no kernel for the type, or it would have no effect.
    pub fn open_packed(arguments: &ModelArgs, ui: &mut Ui) -> Result<Self, Failure> {
        let wanted = arguments.kept.weights_dtype;
        let of = fewer_bits(wanted).unwrap_or(WeightType::F32);
        let mut trained = Self::open_as(arguments, Some(of), ui)?;
        // In single precision these are the same numbers in the order in which products read them. Without a kernel for it,
        // the weights stay as they are, and results do not change.
        pack_as(wanted, ui, |of| trained.weights.pack(&trained.plan, of))?;
        Ok(trained)
    }

    /// Opens a model. Weights that can be packed in this type are packed as they are read.
    fn open_as(arguments: &ModelArgs, packed: Option<WeightType>, ui: &mut Ui) -> Result<Self, Failure> {
        let root = PathBuf::from(&arguments.model);
        let found = if run_dir::is_run(&root) {
            let found = chosen(&root, arguments.checkpoint.as_deref())?;
            report_damage(&found, ui);
            Some(found)
        } else {
            None
        };
        if found.is_none() && config_of(&root).is_some() {
            if arguments.checkpoint.is_some() {
                let message = format!("`--checkpoint` would have no effect: `{}` is no run", root.display());
                return Err(Failure::usage(message).help("it chooses among the checkpoints of a run"));
            }
            return Self::imported(arguments, &root, packed, ui);
        }
        let (spec, weights, codebook) = match (&found, &arguments.weights, &arguments.codebook) {
            // A codebook is given with weights alone, so the run's own applies.
            (Some(found), None, _) => (
                found.file(files::SPEC).display().to_string(),
                found.file(files::MODEL),
                found.file(files::CODEBOOK),
            ),
            (Some(_), Some(_), _) => {
                return Err(Failure::usage("a run has its own weights, but --weights gives others")
                    .help("name the spec instead of the run"));
            }
            // A spec says nothing of the meaning of ids, so both are needed.
            (None, Some(weights), Some(codebook)) => {
                (arguments.model.clone(), weights.clone(), codebook.clone())
            }
            (None, _, _) => {
                // A misspelled path is the likelier mistake than a spec without weights.
                if !root.exists() && !arguments.model.starts_with('@') && arguments.model != "-" {
                    let message = format!("cannot read `{}`: there is no such file", arguments.model);
                    let near =
                        "the model is the folder of a run or of a downloaded model: trafoc downloads nothing";
                    let advice = file::elsewhere(&arguments.model).unwrap_or_else(|| near.to_owned());
                    return Err(Failure::new(Exit::File, message).help(advice));
                }
                let (message, help) = match arguments.weights.is_some() {
                    true => (
                        "a spec with --weights needs --codebook, too".to_owned(),
                        "--codebook FILE says what the ids mean: each checkpoint of a run has a codebook.json",
                    ),
                    false => (
                        format!("`{}` is not the folder of a run", arguments.model),
                        "a spec needs --weights FILE and --codebook FILE",
                    ),
                };
                return Err(Failure::usage(message).help(help));
            }
        };
        let subject = arguments.over.compile(&spec, ui)?;
        let device = choose_place(&arguments.place, ui)?;
        let (plan, weights) = planned(&subject, &weights, &device, packed, ui)?;
        let codebook = read_codebook(&codebook)?;
        let over = arguments.over.clone();
        Ok(Self { subject, plan, weights, codebook, device, found, over })
    }
}

impl Trained {
    /// Opens a Hugging Face model by its directory: weights, `tokenizer.json`, names of classes.
    fn imported(
        arguments: &ModelArgs,
        root: &Path,
        packed: Option<WeightType>,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        let subject = arguments.over.compile(&arguments.model, ui)?;
        let Some(model) = &subject.model else {
            return Err(Failure::usage(format!("`{}` is not a model's directory", arguments.model)));
        };
        let device = choose_place(&arguments.place, ui)?;
        // Weights of one's own, with the tokenizer and the classes of the directory.
        let path = arguments.weights.as_deref().unwrap_or(&model.folder);
        let (plan, weights) = planned(&subject, path, &device, packed, ui)?;
        let codebook = match &arguments.codebook {
            Some(path) => read_codebook(path)?,
            None => {
                let codebook = codebook_of(&subject, &model.folder, root, ui)?;
                // A model of images alone has no vocabulary and needs no tokenizer.
                if codebook.tokenizer.is_none() && subject.spec.vocab.is_some() {
                    let message = format!(
                        "`{}` has no tokenizer.json and no vocabulary, so the meaning of its tokens is unknown",
                        root.display()
                    );
                    return Err(Failure::new(Exit::File, message).help("`trafoc run` takes ids"));
                }
                codebook
            }
        };
        let over = arguments.over.clone();
        Ok(Self { subject, plan, weights, codebook, device, found: None, over })
    }
}

/// The plan of a model, and its weights from a file or directory. Those that can be packed in this type are packed as they
/// are read.
fn planned(
    subject: &Subject,
    path: &Path,
    device: &Chosen,
    packed: Option<WeightType>,
    ui: &Ui,
) -> Result<(Plan, Weights), Failure> {
    let plan = plan_of(&subject.graph, &Captures::none(), &device.device)?;
    let packs = packed.map(|of| Packs::new(&plan, of));
    let placement = Placement { device: &device.device, packs: packs.as_ref() };
    let weights = load(subject, path, placement, ui)?;
    Ok((plan, weights))
}

/// The checkpoint with this name. If there is none, the error lists those that exist.
fn chosen(root: &Path, name: Option<&str>) -> Result<Checkpoint, Failure> {
    pick(root, name).map_err(|error| {
        let (Some(name), Ok(last)) = (name, run_dir::last(root, usize::MAX)) else {
            return run_failure(error);
        };
        let mut there: Vec<String> = last.iter().map(|found| found.state.step.to_string()).collect();
        // A checkpoint that exists but cannot be used has a reason of its own.
        let is_there = match &error {
            RunDirError::NoCheckpoint { path, found } => {
                found.iter().any(|damaged| run_dir::exists(path, &damaged.name))
            }
            RunDirError::Io(..)
            | RunDirError::Foreign(_)
            | RunDirError::Exists(_)
            | RunDirError::Locked { .. }
            | RunDirError::Unreadable { .. } => false,
        };
        if is_there || there.is_empty() {
            return run_failure(error);
        }
        // `last` gives the newest first, and people count upwards.
        there.reverse();
        if run_dir::named(root, AVERAGED).is_ok() {
            there.push(AVERAGED.to_owned());
        }
        let message = format!("`{}` has no complete checkpoint `{name}`", root.display());
        let failure = Failure::new(Exit::File, message);
        let words = ["last", "best", AVERAGED];
        let failure = match suggest(name, &words) {
            Some(near) => failure.help(format!("did you mean `{near}`?")),
            None => failure,
        };
        failure.help(format!("there are `last`, `best` and, by step, {}", there.join(", ")))
    })
}
