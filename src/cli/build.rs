//! `trafoc build`: checks and describes a spec, and writes it as Rust or Python.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::file;
use super::format::{Format, FormatArg};
use super::new_head::StartArgs;
use super::next_step::{after_build, is_device, is_lasting, quoted};
use super::outcome::{Exit, Failure, Output};
use super::overwrite::{self, ForceArg, Mark};
use super::stale::{self, Swept};
use super::subject::{SpecArgs, Subject};
use super::ui::{Ui, path_line};
use super::watch::WatchArg;
use crate::emit::pytorch;
use crate::emit::rust::{self, Form};
use crate::field::words::listed;
use crate::report::summary::{Summary, summary};

/// The command line of `build`.
#[derive(Debug, Args)]
pub struct Build {
    #[command(flatten)]
    spec: SpecArgs,
    /// The language: Rust for burn, or Python for PyTorch
    #[arg(long, value_enum, default_value_t = Target::Rust)]
    target: Target,
    /// The file to write, the folder to write `NAME.rs` or `NAME.py` to [default: generated], or `-` for
    /// stdout; with --recipe the folder of the project [default: generated/NAME]
    #[arg(long, short, value_name = "PATH", conflicts_with = "krate")]
    out: Option<PathBuf>,
    /// With `--target pytorch`: write a project that trains the model as this recipe says, on many processes
    #[arg(long, short, value_name = "RECIPE")]
    recipe: Option<PathBuf>,
    /// Change a value of the recipe, such as `steps=100`; may be repeated
    #[arg(long = "with", value_name = "PATH=VALUE", requires = "recipe")]
    with: Vec<String>,
    /// What training starts from.
    #[command(flatten)]
    start: StartArgs,
    /// Write a whole crate into this folder; `cargo run` in it runs the model
    #[arg(long = "crate", value_name = "DIR")]
    krate: Option<PathBuf>,
    /// Include what the model calls from the crate `trafoc-kernels` in the file, which then needs only burn;
    /// the numbers are the same up to rounding
    #[arg(long)]
    standalone: bool,
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    watch: WatchArg,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// What a model is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Rust that calls burn
    Rust,
    /// A Python file that needs only PyTorch
    Pytorch,
}

impl Target {
    /// The extension of the target's files, without the dot: `rs` or `py`.
    fn extension(self) -> &'static str {
        match self {
            Target::Rust => "rs",
            Target::Pytorch => "py",
        }
    }

    /// The name of the file for a spec.
    fn file(self, spec: &str) -> String {
        let name = match self {
            Target::Rust => rust::name::file(spec),
            Target::Pytorch => pytorch::name::file(spec),
        };
        format!("{name}.{}", self.extension())
    }
}

/// The folder into which models are written without `--out`, in the working folder.
const DEFAULT: &str = "generated";

/// Whether a path is meant for one file or for stdout.
fn is_file(path: &Path) -> bool {
    // Any other extension can be part of a folder's name, as in `model-1.5`.
    path == Path::new("-")
        || path.extension().is_some_and(|ending| ending == "py" || ending == "rs")
        || is_device(path)
}

/// Writes a project into a folder, and returns its files.
#[cfg(feature = "interp")]
fn project(
    arguments: &Build,
    subject: &mut Subject,
    (recipe, folder): (&Path, &Path),
    ui: &mut Ui,
) -> Result<Vec<PathBuf>, Failure> {
    let of_recipe = (recipe, arguments.with.as_slice());
    let files = super::compute::project::files(&arguments.spec, subject, of_recipe, &arguments.start, ui)?;
    let weights = files.started.is_some().then(|| folder.join(pytorch::project::START));
    let texts = files.texts.into_iter().map(|(name, text)| (folder.join(name), text));
    let texts: Vec<(PathBuf, String)> = texts.collect();
    let all: Vec<PathBuf> = texts.iter().map(|(path, _)| path.clone()).chain(weights.clone()).collect();
    // Before the first file is replaced, so that no project is half of another one.
    arguments.permit(Some(folder), all.iter().map(PathBuf::as_path))?;
    for (path, text) in &texts {
        overwrite::write(path, text)?;
    }
    if let (Some(mut started), Some(path)) = (files.started, weights) {
        started.say(false, ui);
        started.save(&path, &arguments.spec.as_written(&subject.name))?;
    }
    Ok(all)
}

#[cfg(not(feature = "interp"))]
fn project(_: &Build, _: &mut Subject, _: (&Path, &Path), _: &mut Ui) -> Result<Vec<PathBuf>, Failure> {
    Err(super::ui::without_interp("write projects that train"))
}

/// The data of `build` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// What the model is and what it costs.
    summary: Summary,
    /// The file that was written, or the folder of the crate or of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    /// All files that were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<PathBuf>>,
    /// The source, with `--out -`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Command for Build {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    fn watch(&self) -> WatchArg {
        self.watch
    }

    fn page(data: &Data) -> Option<&Summary> {
        Some(&data.summary)
    }

    /// Writes the model; the last line is its path.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let recipe = self.recipe.as_deref().and_then(Path::to_str);
        self.watch.agree(self.format.format, std::iter::once(self.spec.spec.as_str()).chain(recipe))?;
        // Before the spec is compiled, because the options alone decide.
        self.agree()?;
        // `--head` changes the spec, and with it the model that is written.
        let over = self.start.over(self.spec.over())?;
        let mut subject = over.compile(&self.spec.spec, ui)?;
        // What a target cannot express is refused before anything is written.
        let why = match self.target {
            Target::Rust => None,
            Target::Pytorch => pytorch::refusal(&subject.graph, &subject.sources),
        };
        if let Some(why) = why {
            return Err(Failure::new(Exit::Refused, why));
        }
        // A file for Python is for training elsewhere, too; one for Rust is not.
        if self.target == Target::Pytorch && self.recipe.is_none() && subject.graph.has_losses() {
            ui.note(&format!(
                "note: the model has its own losses ({}), which training with trafoc adds; the Python file \
                 computes none of them",
                listed(&subject.graph.loss_names())
            ));
        }
        let summary = summary(&subject.graph);
        let named = self.spec.as_written(&subject.name);
        let form = if self.standalone { Form::Standalone } else { Form::Kernels };
        if let Some(recipe) = &self.recipe {
            let usual = || Path::new(DEFAULT).join(pytorch::name::file(&subject.graph.name));
            let folder = self.out.clone().unwrap_or_else(usual);
            let files = project(self, &mut subject, (recipe, &folder), ui)?;
            // How training is started depends on the machine, as the project's README says.
            ui.next(&format!("less {}", quoted(&folder.join("README.md").display().to_string())));
            // With `--quiet` only the path is left, which a script can read.
            let page = if ui.is_quiet() { String::new() } else { ui.summary(&summary) + "\n" };
            let text = page + &path_line(&folder);
            return Ok(Output::new(
                text,
                Data { summary, path: Some(folder), files: Some(files), text: None },
            ));
        }
        let out = self.out.as_deref().unwrap_or(Path::new(DEFAULT));
        let emit = || match self.target {
            Target::Rust => rust::source(&subject.graph, &subject.sources, &named, form),
            Target::Pytorch => pytorch::source(&subject.graph, &subject.sources, &named),
        };
        // Everything is emitted before the first file is written, so that a failure changes no file.
        let (path, files) = match &self.krate {
            Some(folder) => {
                let files = rust::krate(&subject.graph, &subject.sources, &named, form)?;
                (folder.clone(), files.into_iter().map(|(path, text)| (folder.join(path), text)).collect())
            }
            None if out == Path::new("-") => {
                // Stdout overwrites nothing.
                self.force.refuse_unused(false)?;
                let text = emit()?;
                let data = Data { summary, path: None, files: None, text: Some(text.clone()) };
                return Ok(Output::new(text, data));
            }
            None => {
                // A path with the target's ending is the file, any other one the folder for it.
                let path = if out.extension().is_some_and(|e| e == self.target.extension()) || is_device(out)
                {
                    out.to_owned()
                } else {
                    out.join(self.target.file(&subject.graph.name))
                };
                let text = emit()?;
                (path.clone(), vec![(path, text)])
            }
        };
        // All files are permitted before the first is replaced, so that no crate is half of another one.
        let was_ours = self.is_ours(None);
        self.permit(None, files.iter().map(|(path, _)| path.as_path()))?;
        for (path, text) in &files {
            overwrite::write(path, text)?;
        }
        let files: Vec<PathBuf> = files.into_iter().map(|(path, _)| path).collect();
        if let Some(folder) = self.krate.as_ref().filter(|_| was_ours) {
            tidy(&folder.join(rust::KERNELS_AT), &files, ui)?;
        }
        if let Some(folder) = &self.krate {
            let manifest = folder.join("Cargo.toml").display().to_string();
            ui.next(&format!("cargo run --release --manifest-path {}", quoted(&manifest)));
        // No command of trafoc follows a Python file, and a spec from stdin cannot be read again.
        } else if self.target == Target::Rust && is_lasting(&self.spec.spec) {
            let changes = self.spec.over().as_options();
            ui.next(&after_build(&self.spec.spec, &changes, &subject.spec.head));
        }
        let page = if ui.is_quiet() { String::new() } else { ui.summary(&summary) + "\n" };
        let text = page + &path_line(&path);
        Ok(Output::new(text, Data { summary, path: Some(path), files: Some(files), text: None }))
    }
}

/// Deletes what an earlier crate in the same place had in the folder of its kernels, and the one that has been written has
/// not.
fn tidy(kernels: &Path, files: &[PathBuf], ui: &Ui) -> Result<(), Failure> {
    let name = kernels.display();
    let swept = stale::sweep(kernels, files).map_err(|error| {
        Failure::new(Exit::File, format!("cannot delete what is left in `{name}`: {}", file::reason(&error)))
    })?;
    match swept {
        // In a crate with kernels, other files are next to those that it uses.
        Swept { leaves: true, .. } if !files.iter().any(|file| file.starts_with(kernels)) => {
            ui.note(&format!(
                "note: `{name}` has files that the crate does not use, and that trafoc did not write"
            ));
        }
        Swept { deletes: true, .. } => {
            ui.note(&format!("note: deleted what the crate no longer uses of `{name}`"))
        }
        Swept { .. } => {}
    }
    Ok(())
}

impl Build {
    /// Checks that the options are of the target, and that the file's name is not that of another one.
    fn agree(&self) -> Result<(), Failure> {
        let is_python = self.target == Target::Pytorch;
        let only_rust = [("--crate", self.krate.is_some()), ("--standalone", self.standalone)];
        if let Some((option, _)) = only_rust.into_iter().find(|(_, is_given)| is_python && *is_given) {
            let why = format!("`{option}` is for Rust, but the target is PyTorch");
            return Err(Failure::usage(why).help("the Python file needs only torch, without any option"));
        }
        if self.recipe.is_some() && !is_python {
            return Err(Failure::usage("`--recipe` writes a project for PyTorch, but the target is Rust")
                .help("add `--target pytorch`; `trafoc train` trains without a project"));
        }
        if self.start.from_scratch && self.recipe.is_none() {
            return Err(Failure::usage("`--from-scratch` is for training, but there is no recipe")
                .help("add `--target pytorch --recipe RECIPE`"));
        }
        let out = self.out.as_deref();
        if let Some(out) = out.filter(|out| self.recipe.is_some() && is_file(out)) {
            let why = format!("a project is several files, but `{}` is not a folder", out.display());
            return Err(Failure::usage(why).help("write `--out DIR`"));
        }
        let ending = out.and_then(Path::extension).and_then(|ending| ending.to_str());
        match (self.target, ending) {
            // Otherwise it would be taken for a folder, and `model.py/model.rs` is never what was meant.
            (Target::Rust, Some("py")) => Err(Failure::usage("a `.py` file is not for the target `rust`")
                .help("add `--target pytorch`, or write a `.rs` file")),
            (Target::Pytorch, Some("rs")) => {
                Err(Failure::usage("a `.rs` file is not for the target `pytorch`")
                    .help("leave out `--target pytorch`, or write a `.py` file"))
            }
            _ => Ok(()),
        }
    }

    /// Whether there is a crate or a project of trafoc where one is to be written.
    fn is_ours(&self, project: Option<&Path>) -> bool {
        let of_project = project.map(|folder| folder.join(pytorch::project::MANIFEST));
        let manifest = self.krate.as_ref().map(|folder| folder.join("Cargo.toml")).or(of_project);
        manifest.is_some_and(|manifest| Mark::Emitted.is_in(&manifest))
    }

    /// Checks that the files may be written. If the manifest of a crate or of a project is trafoc's, so is
    /// all of it, but for files that were changed since.
    fn permit<'p>(
        &self,
        project: Option<&Path>,
        files: impl Iterator<Item = &'p Path>,
    ) -> Result<(), Failure> {
        let is_ours = self.is_ours(project);
        let another = if self.krate.is_some() { "another folder for `--crate`" } else { "another `--out`" };
        // The user has named the file of `--out`, which may be a link, but not those of a folder.
        let mut checked = Vec::new();
        for path in files {
            if self.out.as_deref() != Some(path) {
                overwrite::permit_own(path)?;
            }
            checked.push(path);
        }
        // A file that was changed since is checked by itself, so that only it is refused.
        let mut files = checked.into_iter().filter(|path| !is_ours || overwrite::is_changed(path));
        files.try_for_each(|path| self.force.permit(path, Mark::Emitted, another))
    }
}
