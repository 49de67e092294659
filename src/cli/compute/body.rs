//! The trained model from which training starts: its parameters by path, and what it brings along.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use burn::tensor::Device;

use super::companions::codebook_of;
use super::execute::refuse_what_does_not_fit;
use super::failures::weights_failure;
use super::run_folder::{pick, read_codebook, report_damage, run_failure};
use crate::cli::directory::config_of;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::subject::{OverArgs, Subject};
use crate::cli::tensors::tensors_failure;
use crate::cli::train::StartedFrom;
use crate::cli::ui::Ui;
use crate::diag::count::counted;
use crate::emit::MARK;
use crate::hub::checkpoint::Checkpoint;
use crate::hub::mapping::{Mapping, parameters};
use crate::hub::new_head::{NewHead, part_of};
use crate::hub::tensors::Tensors;
use crate::interp::Weights;
use crate::interp::weights::{WeightsError, fresh};
use crate::ir::Verified;
use crate::ir::paths::HEAD;
use crate::learn::data::Inherited;
use crate::learn::marker::is_run;
use crate::learn::session::files;
use crate::learn::start::{Origins, SCORES, Shapes, Wish};
use crate::parts::Head;
use crate::report::number;
use crate::tensor_file::{self, Saved, TensorFile};

/// The most paths that a note lists.
const SHOWN: usize = 6;

/// A trained model whose parameters another one may take over.
pub struct Body {
    /// Its path, followed by the checkpoint if it is a run.
    pub name: String,
    /// What it has in addition to weights: tokenizers, names of classes, the preprocessing of images.
    pub inherited: Inherited,
    /// The shapes of the parameters that can be taken over, by path.
    shapes: Shapes,
    /// The shapes of the parameters of its own head that mean nothing to another head, by path.
    old_head: Shapes,
    source: Source,
}

enum Source {
    /// A file that trafoc has written, whose names are paths.
    File(TensorFile),
    /// A checkpoint whose tensors have the names of a family or of the spec's own `weights`.
    Named(Box<Tensors>),
}

/// A trained model, and which of its parameters training starts with.
pub struct Started {
    /// The trained model, whose files are open.
    pub body: Body,
    /// Which parameters are taken over, which start fresh, and what of the trained model is not used.
    pub origins: Origins,
    /// The shapes of the parameters of the model that is trained.
    own: Shapes,
}

impl Body {
    /// Opens the trained model at a path for a model with another graph, which may have a new head.
    ///
    /// # Errors
    /// The path is not a trained model, or its weights are not those of its own config.
    pub fn open(
        from: &Path,
        (target, has_new_head): (&Subject, bool),
        families: Option<&Path>,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        if is_run(from) {
            return Self::of_run(from, target, ui);
        }
        if config_of(from).is_some() {
            return Self::of_directory(from, target, families, ui);
        }
        if from.is_file() {
            return Self::of_file(from, target, has_new_head);
        }
        let message = format!(
            "`{}` is neither a run nor a Hugging Face model directory nor a file of weights",
            from.display()
        );
        Err(Failure::new(Exit::File, message).help("training starts from one of these"))
    }

    fn of_run(from: &Path, target: &Subject, ui: &mut Ui) -> Result<Self, Failure> {
        // The checkpoint that the other commands use as well: averaged if there is one, else the best.
        let found = pick(from, None).map_err(run_failure)?;
        report_damage(&found, ui);
        let spec = found.file(files::SPEC).display().to_string();
        // The spec in a checkpoint has every change to it written out.
        let own = OverArgs::default().compile(&spec, ui)?;
        let file = TensorFile::open(&found.file(files::MODEL))
            .map_err(|error| Failure::new(Exit::File, error.to_string()))?;
        let mut shapes = shapes_of(&file);
        // The scores of another task mean something else, even if their shapes agree.
        let mut old_head = Shapes::new();
        if own.spec.head.part() != target.spec.head.part() {
            (old_head, shapes) = shapes.into_iter().partition(|(path, _)| path.starts_with(HEAD));
        }
        let inherited = Inherited::of(read_codebook(&found.file(files::CODEBOOK))?);
        let name = format!("{}, checkpoint {}", from.display(), found.name());
        Ok(Self { name, inherited, shapes, old_head, source: Source::File(file) })
    }

    fn of_file(from: &Path, target: &Subject, has_new_head: bool) -> Result<Self, Failure> {
        // A file of weights says nothing of tokens and classes.
        let (name, inherited) = (from.display().to_string(), Inherited::default());
        // The names of tensors are those of the model's family or of the spec's own `weights`.
        if target.model.is_some() || target.spec.weights.is_some() {
            let (checkpoint, mapping) = target.mapping(from)?;
            let (shapes, tensors) =
                fitting(target, checkpoint, mapping, |path| has_new_head && path.starts_with(HEAD))?;
            let (old_head, source) = (Shapes::new(), Source::Named(Box::new(tensors)));
            return Ok(Self { name, inherited, shapes, old_head, source });
        }
        let file = TensorFile::open(from).map_err(|error| {
            let failure = Failure::new(Exit::File, error.to_string());
            error.advice().into_iter().fold(failure, Failure::help)
        })?;
        let shapes = shapes_of(&file);
        Ok(Self { name, inherited, shapes, old_head: Shapes::new(), source: Source::File(file) })
    }

    fn of_directory(
        from: &Path,
        target: &Subject,
        families: Option<&Path>,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        let over = OverArgs::with_families(families);
        let name = from.display().to_string();
        let own = over.compile(&name, ui)?;
        let Some(model) = &own.model else {
            return Err(Failure::bug(format!("`{name}` has no config")));
        };
        let folder = model.folder.clone();
        let inherited = Inherited::of(codebook_of(&own, &folder, from, ui)?);
        let part = target.spec.head.part();
        let is_same = own.spec.head.part() == part;
        // The family may also have models with the new head. Their names of tensors then apply to the parts
        // of a head other than its scores, such as BERT's pooler.
        let other = match is_same {
            true => None,
            false => {
                let head =
                    NewHead { part: part.to_owned(), classes: classes_of(&target.spec.head), pooled: None };
                Some(over.with_head(head).compile(&name, ui)?).filter(|other| has_in_family(other, part))
            }
        };
        let has_head = is_same || other.is_some();
        let mut old_head = None;
        if !is_same {
            let (checkpoint, mapping) = own.mapping(&folder)?;
            old_head = Some(fitting(&own, checkpoint, mapping, |_| true)?);
        }
        let source = other.unwrap_or(own);
        let (checkpoint, mapping) = source.mapping(&folder)?;
        let is_other = |path: &str| !is_same && path.starts_with(HEAD);
        let (mut shapes, tensors) = fitting(&source, checkpoint, mapping, is_other)?;
        // Scores of another task mean something else; the parts of a head before them are as useful as the
        // body.
        shapes.retain(|path, _| is_same || !path.starts_with(if has_head { SCORES } else { HEAD }));
        // Where the new head has the same parts before its scores, they are taken over, maybe under other paths.
        let used: BTreeSet<String> =
            shapes.keys().filter(|path| path.starts_with(HEAD)).map(|path| tensors.origin(path)).collect();
        let unused = old_head.into_iter().flat_map(|(shapes, tensors)| {
            let is_unused = |path: &str| path.starts_with(HEAD) && !used.contains(&tensors.origin(path));
            shapes.into_iter().filter(|(path, _)| is_unused(path)).collect::<Vec<_>>()
        });
        let old_head: Shapes = unused.collect();
        Ok(Self { name, inherited, shapes, old_head, source: Source::Named(Box::new(tensors)) })
    }

    /// The numbers of a parameter, in the order of files; `None` if it has none with this path and shape.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn found(&mut self, path: &str, shape: &[usize]) -> Result<Option<Vec<f32>>, Failure> {
        // A part of a tensor, such as the first rows of a table, would not be the same parameter.
        if self.shapes.get(path).is_none_or(|own| own != shape) {
            return Ok(None);
        }
        self.values(path, shape.iter().product()).map(Some)
    }

    /// Decides which of its parameters a model starts with.
    ///
    /// # Errors
    /// The trained model lacks a parameter that the user did not ask to start fresh.
    pub fn start(self, target: &Subject, wish: Wish<'_>) -> Result<Started, Failure> {
        let own = parameters(&target.graph).map_err(|why| Failure::new(Exit::Refused, why))?;
        match Origins::of(&own, &self.shapes, wish) {
            Ok(mut origins) => {
                // They are not in `shapes`, so that nothing takes them, but a user wants to know that they
                // are left out.
                origins.unused.extend(self.old_head.keys().cloned());
                Ok(Started { body: self, origins, own })
            }
            Err(lines) => {
                let message = format!("`{}` does not have all parameters of the model", self.name);
                let failure = Failure::new(Exit::Failed, message);
                let failure = lines.iter().take(SHOWN).fold(failure, |f, line| f.help(line.clone()));
                let failure = match lines.len().saturating_sub(SHOWN) {
                    0 => failure,
                    more => failure.help(format!("and {more} more")),
                };
                let head = target.spec.head.part();
                // If only the head is missing, a new one is probably what is wanted.
                Err(match lines.iter().all(|line| line.starts_with(HEAD)) {
                    true => failure.help(format!("`--head {head}` starts with a new head")),
                    false => failure,
                }
                .help("`start: {except: [\"PATH\"]}` in the recipe lets parameters start fresh, and `--from-scratch` all of them"))
            }
        }
    }
}

impl Body {
    /// The numbers of a parameter, of which there are `count`, with a projection's outputs first.
    fn values(&mut self, path: &str, count: usize) -> Result<Vec<f32>, Failure> {
        match &mut self.source {
            Source::File(file) => file.floats(path).map_err(|error| weights_failure(error.into())),
            Source::Named(tensors) => tensors.sized(path, count).map_err(tensors_failure),
        }
    }
}

impl Started {
    /// The parameters on a device: those that are taken over, and fresh ones by the seed.
    ///
    /// # Errors
    /// The weights cannot be read, or are too large.
    pub fn weights(
        &mut self,
        graph: &Verified,
        device: &Device,
        seed: u64,
        ui: &Ui,
    ) -> Result<Weights, Failure> {
        refuse_what_does_not_fit(graph, device)?;
        let loaded: BTreeSet<&str> = self.origins.loaded.iter().map(String::as_str).collect();
        let body = &mut self.body;
        // `build` can return only its own errors, so the reason of a failed reading is kept here.
        let mut failure = None;
        let built = Weights::build(graph, device, |path, slot| {
            if !loaded.contains(path) {
                // By the path and the seed alone, so that it does not depend on what else is taken over.
                return Ok(fresh(path, slot, seed));
            }
            // Read tensor by tensor, so that no more than one is in memory twice.
            let values = body.values(path, slot.shape.iter().product()).map_err(|error| {
                let text = error.message.clone();
                failure = Some(error);
                WeightsError::Size(text)
            })?;
            let bad = values.iter().filter(|value| !value.is_finite()).count();
            if bad > 0 {
                ui.note(&format!("note: {bad} numbers of {path} are NaN or infinite"));
            }
            Ok(values)
        });
        built.map_err(|error| failure.unwrap_or_else(|| weights_failure(error)))
    }

    /// Writes what is taken over to a file of safetensors by the paths of the model that is trained; `named`
    /// is what it is written for.
    ///
    /// # Errors
    /// The weights cannot be read, or the file cannot be written.
    pub fn save(&mut self, path: &Path, named: &str) -> Result<(), Failure> {
        let Self { body, origins, own } = self;
        let shape = |name: &String| Some((name.clone(), "F32", own.get(name)?.clone()));
        let shapes: Vec<(String, &'static str, Vec<usize>)> =
            origins.loaded.iter().filter_map(shape).collect();
        // By this mark `build` recognises the file as its own when it writes the project again.
        let metadata = [("written".to_owned(), format!("@generated{MARK}{named}"))].into_iter().collect();
        let mut failure = None;
        let written = tensor_file::write(path, &shapes, &metadata, |i| {
            let (name, _, shape) = shapes.get(i).ok_or_else(|| io::Error::other("no such tensor"))?;
            let values = body.values(name, shape.iter().product()).map_err(|error| {
                let text = error.message.clone();
                failure = Some(error);
                io::Error::other(text)
            })?;
            Ok(Saved::floats(shape.clone(), values))
        });
        written.map_err(|error| failure.unwrap_or_else(|| Failure::new(Exit::File, error.to_string())))
    }

    /// What is taken over and what is fresh, in JSON.
    pub fn data(&self) -> StartedFrom {
        let Origins { loaded, fresh, unused } = self.origins.clone();
        StartedFrom { from: self.body.name.clone(), loaded, fresh, unused }
    }

    /// Says what is taken over and what is fresh, tensor by tensor if that is asked for.
    pub fn say(&self, is_verbose: bool, ui: &Ui) {
        let Self { body, origins, own } = self;
        let size = |paths: &[String], shapes: &Shapes| -> u128 {
            // In u128, because the product of sizes from a file could overflow.
            let elements = |path: &String| shapes.get(path)?.iter().map(|n| *n as u128).reduce(|a, b| a * b);
            paths.iter().filter_map(elements).sum()
        };
        let tensors = |paths: &[String]| counted(paths.len().to_string(), "tensor");
        let parameters = |n: u128| counted(number::exact(n), "parameter");
        let loaded = parameters(size(&origins.loaded, own));
        ui.note(&format!("starts from {}: {} with {loaded}", body.name, tensors(&origins.loaded)));
        // Only if asked for, because a model has hundreds of tensors.
        if is_verbose {
            origins.loaded.iter().for_each(|path| ui.note(&format!("  {path}  {}", self.origin(path))));
        }
        let mut there = body.shapes.clone();
        there.extend(body.old_head.iter().map(|(path, shape)| (path.clone(), shape.clone())));
        let lists = [("fresh", &origins.fresh, own), ("not used of it", &origins.unused, &there)];
        for (word, paths, shapes) in lists.into_iter().filter(|(_, paths, _)| !paths.is_empty()) {
            let all = parameters(size(paths, shapes));
            let shown = paths.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if paths.len() > SHOWN { ", ..." } else { "" };
            match is_verbose {
                true => {
                    ui.note(&format!("{word}: {} with {all}", tensors(paths)));
                    paths.iter().for_each(|path| ui.note(&format!("  {path}")));
                }
                false => ui.note(&format!("{word}: {shown}{more} ({all})")),
            }
        }
    }

    /// The tensor of the trained model that contains a parameter, if it has another name.
    fn origin(&self, path: &str) -> String {
        match &self.body.source {
            Source::File(_) => String::new(),
            Source::Named(tensors) => tensors.origin(path),
        }
    }
}

/// The number of classes that a head distinguishes.
fn classes_of(head: &Head) -> Option<u64> {
    match head {
        Head::Classify(classify) => Some(*classify.classes),
        Head::Tag(tag) => Some(*tag.classes),
        Head::Lm(_) | Head::Mlm(_) | Head::Translate(_) | Head::Span(_) | Head::Embed(_) => None,
    }
}

/// Whether the head of a model is one of its family.
fn has_in_family(subject: &Subject, part: &str) -> bool {
    let Some(model) = &subject.model else { return false };
    let imported = &model.imported;
    imported.family.heads.get(&imported.head).is_some_and(|head| part_of(&head.spec) == Some(part))
}

fn shapes_of(file: &TensorFile) -> Shapes {
    file.entries().iter().map(|(path, entry)| (path.clone(), entry.shape.clone())).collect()
}

/// The parameters that a checkpoint contains in the right shape. A parameter of another shape is left out if
/// it `may_differ`, and an error otherwise.
fn fitting(
    subject: &Subject,
    checkpoint: Checkpoint,
    mapping: Mapping,
    may_differ: impl Fn(&str) -> bool,
) -> Result<(Shapes, Tensors), Failure> {
    let unfit = mapping.unfit.iter().any(|path| !may_differ(path));
    if unfit {
        let failure = Failure::new(Exit::File, "the weights are not those of the config next to them");
        let lines =
            // Missing and extra tensors are not why it is refused: a body without its head has both.
            mapping.mismatches.iter().filter(|mismatch| !matches!(mismatch.kind, "missing" | "extra"));
        return Err(lines.take(SHOWN).fold(failure, |f, mismatch| f.help(mismatch.message.clone())));
    }
    let tensors = Tensors::of_those_that_fit(checkpoint, mapping).map_err(tensors_failure)?;
    let mut shapes = parameters(&subject.graph).map_err(|why| Failure::new(Exit::Refused, why))?;
    let there: BTreeSet<&str> = tensors.paths().collect();
    shapes.retain(|path, _| there.contains(path.as_str()));
    Ok((shapes, tensors))
}
