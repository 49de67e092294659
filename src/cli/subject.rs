//! The spec of a command: from an argument to a compiled spec.
//!
//! The argument is a file, `-`, `@name`, the folder of a run, or a Hugging Face model directory. The specs
//! that it `extends`, the `--variant` of its sweep and every `--set` are applied to it.

use std::path::{Path, PathBuf};

use clap::Args;

use super::directory::{HubModel, With, config_of, is_standing, permit_families};
use super::extends::Origin;
use super::file;
use super::misplaced;
use super::next_step::quoted;
use super::outcome::{Exit, Failure};
use super::setting::FAMILIES;
use super::shelf::{SHELF, is_recipe, shipped, shipped_for};
use super::ui::{Ui, counted};
use super::variant::{chosen, failed};
use crate::compile::{Compilation, compile_tree};
use crate::diag::suggest::{did_you_mean, suggest_several};
use crate::diag::{Diagnostic, Severity, Sink};
use crate::field::Context;
use crate::field::as_setting::in_quotes;
use crate::hub::new_head::{NewHead, part_of};
use crate::hub::peft;
use crate::ir::Verified;
use crate::ir::paths::HEAD;
use crate::learn::marker::is_run;
use crate::read;
use crate::source::{SourceId, SourceMap};
use crate::spec::load;
use crate::spec::{ModelSpec, Parts, advice, sweep, weights};
use crate::syntax::set::{self, Setting, parse_set, parse_setting};
use crate::syntax::text;
use crate::syntax::tree::{Entry, Node};
use crate::syntax::{Notation, parse};

/// A spec and changes to it.
#[derive(Clone, Debug, Args)]
pub struct SpecArgs {
    /// A spec file, `-` for stdin, a shipped spec such as `@gpt1`, a Hugging Face model directory, or a run
    #[arg(value_name = "SPEC")]
    pub spec: String,
    #[command(flatten)]
    over: OverArgs,
}

/// Changes to a spec.
#[derive(Clone, Debug, Default, Args)]
pub struct OverArgs {
    /// Change a value, such as `decoder.layers=24`; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<String>,
    /// Use this variant of the spec's sweep
    #[arg(long, value_name = "NAME")]
    pub(super) variant: Option<String>,
    /// How it is read.
    #[command(flatten)]
    lang: LangArg,
    /// A new head in place of the spec's.
    // Set by `StartArgs`, whose options only the commands have that begin training.
    #[arg(skip)]
    head: Option<NewHead>,
    /// Whether a Hugging Face model has the head of its class, whatever else its directory says.
    #[arg(skip)]
    is_of_class: bool,
}

/// How a spec is read, for the commands that read one.
#[derive(Clone, Debug, Default, Args)]
pub struct LangArg {
    /// The notation of the spec, if its name does not show it: yaml or trafo
    #[arg(long, value_enum, value_name = "LANG", hide_possible_values = true)]
    lang: Option<Lang>,
    /// A folder of family files of your own, for Hugging Face models
    #[arg(long, value_name = "DIR", env = FAMILIES.variable, hide_env_values = true)]
    families: Option<PathBuf>,
}

/// A notation on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lang {
    /// YAML
    Yaml,
    /// The DSL, `.trafo`
    Trafo,
}

impl From<Lang> for Notation {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Yaml => Notation::Yaml,
            Lang::Trafo => Notation::Dsl,
        }
    }
}

/// A spec that has been read, with its origin.
#[derive(Debug)]
pub struct Opened {
    /// The texts that have been read.
    pub sources: SourceMap,
    /// The text of the spec in `sources`.
    pub id: SourceId,
    /// The notation of that text.
    pub notation: Notation,
    /// The name of the spec as the user gave it.
    pub name: String,
    /// The Hugging Face model that it was imported from, if any.
    pub model: Option<HubModel>,
    pub(super) origin: Origin,
}

/// A compiled spec, which has no errors.
#[derive(Debug)]
pub struct Subject {
    /// The texts that have been read.
    pub sources: SourceMap,
    /// The notation of the spec.
    pub notation: Notation,
    /// The name of the spec as the user gave it.
    pub name: String,
    /// The merged tree, after `extends`, `--variant` and `--set`.
    pub tree: Node,
    /// The spec as typed values, with every default filled in.
    pub spec: ModelSpec,
    /// The graph of the spec.
    pub graph: Verified,
    /// The number of warnings, which have been reported; `check --strict` fails if there are any.
    pub warnings: usize,
    /// The Hugging Face model that it was imported from, if any.
    pub model: Option<HubModel>,
}

impl Opened {
    /// The diagnostics with suggestions as the spec and the settings are written.
    fn as_written_there(&self, found: Vec<Diagnostic>, tree: Option<&Node>) -> Vec<Diagnostic> {
        advice::as_written(found, &self.sources, (self.id, self.notation), tree)
    }
}

impl Opened {
    /// Writes `@` before the name of the shipped spec that this shipped spec extends, so that its text means
    /// the same in any folder.
    pub fn name_shipped_base(&mut self) {
        let Origin::Shelf = self.origin else { return };
        let tree = parse(&self.sources, self.id, self.notation, &mut Sink::new());
        let base = tree.as_ref().and_then(|tree| tree.get("extends"));
        let known = base.and_then(|base| Some((base.span, shipped(base.text()?)?)));
        let (Some((span, known)), Some(source)) = (known, self.sources.get(self.id)) else { return };
        let (name, mut text) = (source.name.clone(), source.text.clone());
        // `replace_range` panics at a place that is not in the text.
        if text.get(span.range()).is_some() {
            // In the text and not in the tree, which has neither the comments nor the layout.
            text.replace_range(span.range(), &format!("\"@{}\"", known.name));
            self.id = self.sources.add(name, text);
        }
    }
}

/// Reads a spec's text.
///
/// # Errors
/// The text cannot be read, or no shipped spec has this name.
pub fn open(spec: &str, lang: Option<Lang>, families: Option<&Path>, ui: &mut Ui) -> Result<Opened, Failure> {
    open_with(spec, lang, families, With::Own, ui)
}

/// As [`open`], with the head that a Hugging Face model gets.
fn open_with(
    spec: &str,
    lang: Option<Lang>,
    families: Option<&Path>,
    head: With<'_>,
    ui: &mut Ui,
) -> Result<Opened, Failure> {
    // A variable or a file that names no folder matters only where a family is needed, and not to every command in that shell.
    permit_families(families.filter(|folder| !is_standing(folder)))?;
    // Runs and model directories are recognised first; any other folder cannot be read as a text.
    if let Some(own) = spec_of_run(Path::new(spec))? {
        // The spec in a checkpoint is an ordinary file, but messages name the run.
        let opened = open(&own.display().to_string(), lang, families, ui)?;
        return Ok(Opened { name: spec.to_owned(), ..opened });
    }
    // It contains the prelude, into which a diagnostic about a named wiring points.
    let mut sources = load::sources();
    let mut sink = Sink::new();
    let folder = Path::new(spec);
    // Before `config_of`, which would drop the reason why the body of an adapter cannot be found.
    peft::body_of(folder).map_err(|why| Failure::new(Exit::File, why))?;
    if let Some(config) = config_of(folder).filter(|config| lang.is_none() || config != folder) {
        let model = HubModel::open_at(folder, &config, families, head, ui)?;
        // Diagnostics point into the text that the import wrote, and not into the config.
        let id = sources.add(format!("{} as a spec", config.display()), model.imported.text.clone());
        let (notation, origin, name) = (Notation::Yaml, Origin::Elsewhere, spec.to_owned());
        return Ok(Opened { sources, id, notation, name, model: Some(model), origin });
    }
    let (id, origin, name) = if spec == "-" {
        let bytes = read::spec(Path::new("-"))
            .map_err(|e| Failure::new(Exit::File, format!("cannot read stdin: {}", file::reason(&e))))?;
        let id = text::decode(&mut sources, "<stdin>", &bytes, &mut sink);
        (id, Origin::Elsewhere, "<stdin>".to_owned())
    } else if spec.starts_with('@') {
        let found = shipped(spec).ok_or_else(|| unknown_shipped(spec))?;
        let name = format!("@{}", found.name);
        (Some(sources.add(name.clone(), found.text)), Origin::Shelf, name)
    } else {
        let path = Path::new(spec);
        let bytes = read::spec(path).map_err(|e| unreadable(path, &e))?;
        let id = text::decode(&mut sources, spec, &bytes, &mut sink);
        (id, Origin::File, spec.to_owned())
    };
    let Some(id) = id else {
        ui.diagnose(&sink.into_sorted(), &sources);
        return Err(Failure::new(Exit::Failed, format!("`{name}` cannot be read as text")));
    };
    let notation = match (lang, &origin) {
        // What the user says comes before what the name suggests.
        (Some(lang), _) => lang.into(),
        // Every shipped spec is YAML.
        (None, Origin::Shelf) => Notation::Yaml,
        // Stdin has no extension to go by.
        (None, Origin::File | Origin::Elsewhere) => Notation::from_path(spec)
            .unwrap_or_else(|| Notation::guess(sources.get(id).map_or("", |s| s.text.as_str()))),
    };
    Ok(Opened { sources, id, notation, name, model: None, origin })
}

/// The spec in the newest whole checkpoint of a run, if the path is the folder of one.
#[cfg(feature = "interp")]
fn spec_of_run(path: &Path) -> Result<Option<PathBuf>, Failure> {
    use super::compute::run_folder::{begin_again, newest};
    use crate::learn::session::files;
    if !is_run(path) {
        return Ok(None);
    }
    let found = newest(path)?;
    let missing = || {
        let message = format!("the run `{}` has no checkpoint yet", path.display());
        Failure::new(Exit::File, message).help(begin_again(path))
    };
    Ok(Some(found.ok_or_else(missing)?.file(files::SPEC)))
}

/// Refuses the folder of a run, because reading runs needs the interpreter.
#[cfg(not(feature = "interp"))]
fn spec_of_run(path: &Path) -> Result<Option<PathBuf>, Failure> {
    if is_run(path) { Err(super::ui::without_interp("read the folder of a run")) } else { Ok(None) }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let name = path.display().to_string();
    let failure = Failure::new(Exit::File, format!("cannot read `{name}`: {}", file::reason(error)));
    if let Some(advice) = file::elsewhere(&name).filter(|_| error.kind() == std::io::ErrorKind::NotFound) {
        return failure.help(advice);
    }
    if let Some(advice) = misplaced::setting(&name).filter(|_| error.kind() == std::io::ErrorKind::NotFound) {
        return failure.help(advice);
    }
    // A name without its extension, or with that of the other notation, is a common slip.
    match (file::of_other_ending(path), shipped(&name)) {
        (Some(near), _) if error.kind() == std::io::ErrorKind::NotFound => {
            failure.help(format!("`{}` is a file", near.display()))
        }
        // To leave out the `@` is an easy slip.
        (_, Some(known)) => failure.help(format!("`@{}` is a spec that comes with trafoc", known.name)),
        (Some(_) | None, None) if error.kind() == std::io::ErrorKind::IsADirectory => failure.help(
            "a spec is a file; the folders that can take its place are those of a run and of a Hugging Face model, \
             which has a `config.json`",
        ),
        // A plain word is more likely a name than a file.
        (Some(_) | None, None) if !name.contains(['.', '/', '\\']) => {
            match suggest_several(&name, &shipped_names()).as_slice() {
                [] => failure,
                near => failure.help(did_you_mean("@", near)),
            }
        }
        (Some(_) | None, None) => match file::alike(path, |name| Notation::from_path(name).is_some()) {
            Some(near) if error.kind() == std::io::ErrorKind::NotFound => {
                failure.help(format!("did you mean `{}`?", near.display()))
            }
            Some(_) | None => failure,
        },
    }
}

fn shipped_names() -> Vec<&'static str> {
    SHELF.iter().map(|s| s.name).collect()
}

fn unknown_shipped(name: &str) -> Failure {
    let failure = Failure::usage(format!("no spec called `{name}` comes with trafoc"));
    if let Some(advice) = is_recipe(name) {
        return failure.help(advice);
    }
    match shipped_for(name.trim_start_matches('@')).as_slice() {
        [] => failure.help(format!("there are @{}", shipped_names().join(", @"))),
        near => failure.help(did_you_mean("@", near)),
    }
}

impl LangArg {
    /// The notation that is given for the spec.
    pub fn lang(&self) -> Option<Lang> {
        self.lang
    }

    /// The folder of the user's own family files.
    pub fn families(&self) -> Option<&Path> {
        self.families.as_deref()
    }
}

impl SpecArgs {
    /// The folder of the user's own family files.
    pub fn families(&self) -> Option<&Path> {
        self.over.families()
    }

    /// Compiles the spec and reports its diagnostics.
    ///
    /// # Errors
    /// The spec cannot be read, or has errors, which have been reported.
    pub fn compile(&self, ui: &mut Ui) -> Result<Subject, Failure> {
        self.over.compile(&self.spec, ui)
    }

    /// Another spec with the same changes.
    pub fn of(&self, spec: &str) -> Self {
        Self { spec: spec.to_owned(), ..self.clone() }
    }

    /// The changes to the spec.
    pub fn over(&self) -> &OverArgs {
        &self.over
    }

    /// The spec by its name with the changes, as they would be written on a command line. An absolute path is
    /// shortened to the name of the file, because the folders exist on this machine alone.
    pub fn as_written(&self, name: &str) -> String {
        let file = Path::new(name).file_name().and_then(|f| f.to_str()).unwrap_or(name);
        let shown = if Path::new(name).is_absolute() { file } else { name };
        format!("{shown}{}", self.over.as_options())
    }

    /// The merged tree alone, whose values may be wrong.
    ///
    /// # Errors
    /// The text cannot be read or parsed.
    pub fn tree(&self, ui: &mut Ui) -> Result<(SourceMap, Node), Failure> {
        let mut opened = open(&self.spec, self.over.lang.lang, self.over.families(), ui)?;
        let mut sink = Sink::new();
        let tree = self.over.tree(&mut opened, &mut sink, ui)?;
        let found = opened.as_written_there(sink.into_sorted(), tree.as_ref());
        ui.diagnose(&found, &opened.sources);
        match tree {
            // A tree may be there in spite of errors, such as one in a setting, which was left out.
            Some(tree) if !found.iter().any(|d| d.severity == Severity::Error) => Ok((opened.sources, tree)),
            Some(_) | None => Err(failed(&opened.name, &counted(&found))),
        }
    }
}

impl OverArgs {
    /// The folder of the user's own family files.
    pub fn families(&self) -> Option<&Path> {
        self.lang.families()
    }

    /// The notation that is given for the spec.
    pub fn lang(&self) -> Option<Lang> {
        self.lang.lang
    }

    /// The changes as options of a command line, each after a space.
    pub fn as_options(&self) -> String {
        let settings = self.set.iter().map(|setting| format!(" --set {}", quoted(setting)));
        let variant = self.variant.iter().map(|variant| format!(" --variant {}", quoted(variant)));
        settings.chain(variant).collect()
    }

    /// No changes, with a folder of family files.
    pub fn with_families(families: Option<&Path>) -> Self {
        let lang = LangArg { families: families.map(Path::to_owned), ..LangArg::default() };
        Self { lang, ..Self::default() }
    }

    /// The same changes with a new head, which is set before them.
    pub fn with_head(&self, head: NewHead) -> Self {
        Self { head: Some(head), ..self.clone() }
    }

    /// The same changes to a Hugging Face model with the head of its class.
    pub fn of_class(&self) -> Self {
        Self { is_of_class: true, ..self.clone() }
    }

    /// The new head, if there is one.
    pub fn head(&self) -> Option<&NewHead> {
        self.head.as_ref()
    }

    /// Whether there are any changes: a setting or a variant.
    pub fn changes(&self) -> bool {
        !self.set.is_empty() || self.variant.is_some()
    }

    /// Whether the command line says how a spec is read.
    pub fn reads(&self) -> bool {
        // `--families` may come from the environment or from a file, where it is meant for every command.
        self.lang.lang.is_some()
    }

    /// Compiles a spec with these changes.
    ///
    /// # Errors
    /// The spec cannot be read, or has errors, which have been reported.
    pub fn compile(&self, spec: &str, ui: &mut Ui) -> Result<Subject, Failure> {
        let with = match &self.head {
            Some(head) => With::New(head),
            None if self.is_of_class => With::Class,
            None => With::Own,
        };
        let mut opened = open_with(spec, self.lang.lang, self.families(), with, ui)?;
        let mut sink = Sink::new();
        let tree = self.tree(&mut opened, &mut sink, ui)?;
        let Compilation { diagnostics, tree, spec, graph } = compile_tree(&opened.sources, tree, sink)?;
        let diagnostics = opened.as_written_there(diagnostics, tree.as_ref());
        let warnings = ui.diagnose(&diagnostics, &opened.sources);
        let Opened { sources, notation, name, model, .. } = opened;
        match (tree, spec, graph) {
            (Some(tree), Some(spec), Some(graph)) => {
                // Errors would have left no graph.
                Ok(Subject { sources, notation, name, tree, spec, graph, warnings, model })
            }
            (_, _, _) if diagnostics.is_empty() => Err(Failure::bug("a spec without errors gave no graph")),
            (_, _, _) => Err(failed(&name, &counted(&diagnostics))),
        }
    }

    /// The merged tree. Settings are applied after the variant.
    fn tree(&self, opened: &mut Opened, sink: &mut Sink, ui: &mut Ui) -> Result<Option<Node>, Failure> {
        let Opened { sources, id, notation, name, origin, .. } = opened;
        // A setting with an error is left out, and everything else is checked nevertheless.
        let settings: Vec<Setting> = self
            .set
            .iter()
            .filter_map(|argument| {
                parse_set(sources, argument).map_err(|d| sink.push(in_quotes(d, "--set", argument))).ok()
            })
            .collect();
        let Some(variant) = &self.variant else {
            let Some(head) = &self.head else {
                return Ok(load::tree(sources, *id, *notation, &settings, origin, sink));
            };
            // Without the settings, which may be about the new head and so come after it.
            let tree = load::tree(sources, *id, *notation, &[], origin, sink);
            return Ok(tree.map(|tree| {
                let tree = with_head(tree, head, sources, sink, ui);
                let parts = Parts::of(&[&tree]);
                set::apply(tree, &settings, &parts, sink)
            }));
        };
        let tree = load::tree(sources, *id, *notation, &[], origin, sink);
        // A spec without what it extends may lack the variant.
        let Some(tree) = tree.filter(|tree| tree.get("extends").is_none()) else { return Ok(None) };
        // Before the settings, so that `--set` has the last word over what the variant sets.
        let tree = chosen(&tree, variant, name, sources, sink, ui)?;
        let tree = match &self.head {
            Some(head) => with_head(tree, head, sources, sink, ui),
            None => tree,
        };
        let parts = Parts::of(&[&tree]);
        Ok(Some(set::apply(tree, &settings, &parts, sink)))
    }
}

impl Subject {
    /// How many variants the spec's sweep has. They have been checked with the spec.
    pub fn variants(&self) -> usize {
        sweep::count(&self.tree)
    }

    /// Every variant of the spec's sweep by its name.
    ///
    /// # Errors
    /// A combination of its grid is not a valid spec.
    pub fn compile_variants(&self, ui: &mut Ui) -> Result<Vec<(String, Subject)>, Failure> {
        // Into a sink that is dropped, because the errors of a sweep would have been reported when it was
        // compiled.
        let variants = sweep::variants(&self.tree, &mut Context::new(&self.sources, &mut Sink::new()));
        let mut all = Vec::new();
        for variant in variants {
            let found = compile_tree(&self.sources, Some(variant.tree), Sink::new())?;
            ui.diagnose(&found.diagnostics, &self.sources);
            let (Some(tree), Some(spec), Some(graph)) = (found.tree, found.spec, found.graph) else {
                return Err(failed(
                    &format!("{} of {}", variant.name, self.name),
                    &counted(&found.diagnostics),
                ));
            };
            let (sources, name) = (self.sources.clone(), format!("{} {}", self.name, variant.name));
            let warnings = found.diagnostics.len();
            // An imported model has no sweep, so none of its variants gets here.
            let (notation, model) = (self.notation, None);
            let subject = Subject { sources, notation, name, tree, spec, graph, warnings, model };
            all.push((variant.name, subject));
        }
        Ok(all)
    }
}

/// A tree with a new head. One of the same part keeps its other fields, except for `embed`. Another one pools
/// what its stack gives for a whole sequence: the last position of a decoder, the only one that has seen all
/// others, and the mean of patches that have no class token.
fn with_head(tree: Node, head: &NewHead, sources: &mut SourceMap, sink: &mut Sink, ui: &Ui) -> Node {
    let NewHead { part, classes, pooled: _ } = head;
    let tree = match part_of(&tree) == Some(part) && part != "embed" {
        true => tree,
        false => without_head_tensors(tree, ui),
    };
    let mut fields: Vec<String> = classes.iter().map(|count| format!("classes: {count}")).collect();
    if part_of(&tree) != Some(part) && part == "classify" {
        let stack = tree.get("decoder").filter(|_| tree.get("encoder").is_none());
        // Embeddings are given for the stack, or for the whole spec.
        let embed = tree.get("encoder").and_then(|stack| stack.get("embed")).or(tree.get("embed"));
        // A class token is there unless the spec says no.
        let has_token = embed.and_then(|e| e.get("class_token")).and_then(Node::text) != Some("false");
        let has_patches = embed.is_some_and(|e| e.get("patches").is_some());
        if stack.is_some() {
            fields.push("pool: last".to_owned());
        } else if has_patches && !has_token {
            fields.push("pool: mean".to_owned());
        }
    }
    // Vectors of texts are means of their tokens' (Reimers and Gurevych 2019); a pooler was trained for
    // something else.
    let tree = match (part_of(&tree), tree.entries()) {
        (Some("embed"), Some(entries)) if part == "embed" => {
            let entries = entries.iter().filter(|entry| entry.key != "head").cloned().collect();
            Node::map(entries, tree.span)
        }
        (_, _) => tree,
    };
    // As a setting, whose text gets a place of its own, to which an error in the head can point.
    let argument = format!("head={{{part}: {{{}}}}}", fields.join(", "));
    match parse_setting(sources, ("--head", "classify"), &argument) {
        Ok(setting) => {
            let parts = Parts::of(&[&tree]);
            set::apply(tree, &[setting], &parts, sink)
        }
        Err(diagnostic) => {
            sink.push(diagnostic);
            tree
        }
    }
}

/// A tree whose `weights` lead no tensor to the head, which is replaced.
fn without_head_tensors(tree: Node, ui: &Ui) -> Node {
    let Some(rows) = tree.get("weights") else { return tree };
    let (rows, lost) = weights::without(rows, &|path| path.starts_with(HEAD));
    if !lost.is_empty() {
        let lost = lost.join(", ");
        ui.note(&format!("note: the head is replaced, so these tensors of `weights` are not used: {lost}"));
    }
    let entries = tree.entries().unwrap_or_default().iter().cloned();
    let own = |entry: Entry| match entry.key == "weights" {
        true => Entry { value: rows.clone(), ..entry },
        false => entry,
    };
    Node::map(entries.map(own).collect(), tree.span)
}
