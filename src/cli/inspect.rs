//! `trafoc inspect`: pictures of what a model does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::subject::{OverArgs, SpecArgs, Subject};
use super::ui::{Failure, Format, FormatArg, Output, Ui};
use super::{course, file};
use crate::inspect::{Report, attention, positions, sites, training};

/// The arguments of `inspect`.
#[derive(Debug, Args)]
pub struct Inspect {
    #[command(subcommand)]
    what: What,
}

/// What is inspected.
#[derive(Debug, Subcommand)]
enum What {
    /// How the model represents positions, from specs or as trained
    #[command(before_help = "Example: trafoc inspect positions @transformer --out positions.html")]
    Positions(Positions),
    /// Initial values of parameters, and their effect on activations
    #[command(before_help = "Example: trafoc inspect init @gbt-mulm --out init.html")]
    Init(Observe),
    /// Attention weights of every head; the masks alone without inputs
    #[command(
        before_help = "Example: trafoc inspect attention @gbt-mulm --inputs in.json --out attention.html"
    )]
    Attention(Observe),
    /// One head's attention step by step, with its numbers
    #[command(
        before_help = "Example: trafoc inspect steps names --text istanbul --layer 1 --head 2 --out steps.html"
    )]
    Steps(Observe),
    /// LayerNorm next to BatchNorm on one batch
    #[command(before_help = "Example: trafoc inspect norms names --layer 1 --out norms.html")]
    Norms(Observe),
    /// How attention over all layers reaches one position
    #[command(before_help = "Example: trafoc inspect flow @gbt-mulm --inputs in.json --out flow.svg")]
    Flow(Observe),
    /// The contents of a recipe's data: counts, lengths, vocabulary, an example, a batch
    #[command(before_help = "Example: trafoc inspect data @gbt-mulm --recipe gbt-mulm.yaml --out data.html")]
    Data(DataArgs),
    /// The learning curve of a run, which may still be training
    #[command(before_help = "Example: trafoc inspect training names --out curve.html")]
    Training(Training),
    /// Outputs of every layer in two dimensions
    #[command(before_help = "Example: trafoc inspect layers @gbt-mulm --inputs in.json --out layers.svg")]
    Layers(Observe),
}

/// Where a report is written.
#[derive(Debug, Args)]
pub struct Destination {
    /// The file to write, .svg, .html or .png; only numbers on stdout if not given
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The output format.
    #[command(flatten)]
    format: FormatArg,
}

/// The arguments of `inspect positions`.
#[derive(Debug, Args)]
struct Positions {
    /// A spec file, `-` for stdin, a shipped spec, the folder of a run or of a Hugging Face model; may be
    /// repeated
    #[arg(value_name = "SPEC", required = true, num_args = 1..=4)]
    specs: Vec<String>,
    /// Which features of a table are drawn along the positions; the first four if not given
    #[arg(long, value_name = "N,N,..", value_delimiter = ',')]
    features: Vec<u64>,
    #[command(flatten)]
    over: OverArgs,
    #[command(flatten)]
    to: Destination,
}

/// The arguments of `inspect data`.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// The spec, or a run.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// The recipe that names the data; a run's own if not given
    #[arg(long, short, value_name = "FILE")]
    pub recipe: Option<PathBuf>,
    /// Change a value of the recipe, such as `data.limit=1000`; may be repeated
    #[arg(long = "with", value_name = "PATH=VALUE")]
    pub with: Vec<String>,
    /// Which example of the training data is shown, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub example: usize,
    #[command(flatten)]
    to: Destination,
}

/// The arguments of `inspect training`.
#[derive(Debug, Args)]
struct Training {
    /// The folder of a run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    to: Destination,
}

/// The arguments of everything that needs a run.
#[derive(Debug, Args)]
pub struct Observe {
    /// The spec and its settings.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// Inputs by name as nested lists, such as {"tokens": [[1, 2, 3]]}; `-` for stdin
    #[arg(long, short, value_name = "JSON")]
    pub inputs: Option<PathBuf>,
    /// A text as input, for a run or a model directory with a tokenizer; without it and without --inputs,
    /// an example of a run's own data
    #[arg(long, value_name = "TEXT", conflicts_with = "inputs")]
    pub text: Option<String>,
    /// The language of the translation of --text, if the model has several
    #[arg(long, value_name = "NAME", requires = "text")]
    pub language: Option<String>,
    /// Weights in safetensors, named by the paths of parameters; random ones if not given
    #[arg(long, short, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// The `codebook.json` of a checkpoint, with the meaning of ids, for a spec with --weights
    #[arg(long, value_name = "FILE", requires = "weights")]
    pub codebook: Option<PathBuf>,
    /// Seed of random weights
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "weights")]
    pub seed: u64,
    /// Labels of the tokens, separated by spaces; their ids if not given
    #[arg(long, value_name = "WORDS")]
    pub labels: Option<String>,
    /// Labels of the source's tokens
    #[arg(long, value_name = "WORDS")]
    pub source_labels: Option<String>,
    /// Which layer, counted from 0; all of them if not given
    #[arg(long, value_name = "N")]
    pub layer: Option<u64>,
    /// Which head, counted from 0; if not given, the first with `steps`, else all
    #[arg(long, value_name = "N")]
    pub head: Option<u64>,
    /// encoder, decoder or cross; all if not given
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    pub kind: Option<Kind>,
    /// Which position, counted from 0; the last if not given
    #[arg(long, value_name = "N")]
    pub target: Option<usize>,
    /// The device: flex, cuda:0, auto, ...; `trafoc doctor` lists them
    #[arg(long, value_name = "DEVICE", env = "TRAFOC_DEVICE", hide_env_values = true)]
    pub device: Option<String>,
    #[command(flatten)]
    to: Destination,
}

/// The sequence of the keys that queries see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The whole input
    Encoder,
    /// The positions so far
    Decoder,
    /// The encoder's output
    Cross,
}

impl Kind {
    /// The stack of the layers.
    pub fn stack(self) -> sites::Stack {
        match self {
            Kind::Encoder => sites::Stack::Encoder,
            Kind::Decoder | Kind::Cross => sites::Stack::Decoder,
        }
    }
}

impl From<Kind> for sites::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Encoder => sites::Kind::Encoder,
            Kind::Decoder => sites::Kind::Decoder,
            Kind::Cross => sites::Kind::Cross,
        }
    }
}

/// Trained tables of positions, by path.
pub type Tables = BTreeMap<String, Vec<f32>>;

impl Inspect {
    /// The format in which diagnostics are printed.
    pub fn spoken(&self) -> Format {
        let to = match &self.what {
            What::Positions(p) => &p.to,
            What::Training(t) => &t.to,
            What::Data(d) => &d.to,
            What::Init(o)
            | What::Attention(o)
            | What::Steps(o)
            | What::Norms(o)
            | What::Flow(o)
            | What::Layers(o) => &o.to,
        };
        to.format.format
    }

    /// Inspects; the last line of output is the path of the file, if there is one.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        match &self.what {
            What::Positions(one) => {
                let subjects = one.specs.iter().map(|spec| one.over.compile(spec, ui));
                let subjects = subjects.collect::<Result<Vec<_>, _>>()?;
                let mut tables = Vec::new();
                for (subject, spec) in subjects.iter().zip(&one.specs) {
                    tables.push(trained_tables(subject, Path::new(spec), ui)?);
                }
                let models = subjects.iter().zip(&tables);
                let models = models.map(|(s, tables)| positions::Model { graph: &s.graph, tables });
                let models: Vec<_> = models.collect();
                let features = one.features(&models)?;
                one.to.write(&positions::positions(&models, features), ui)
            }
            What::Data(one) => one.to.write(&contents(one, ui)?, ui),
            What::Training(one) => {
                if !super::subject::is_run(&one.run) {
                    let message = format!("`{}` is not the folder of a run", one.run.display());
                    return Err(Failure::usage(message).help("`trafoc train` creates one"));
                }
                let course = course::course(&course::record(&one.run)?, planned(&one.run));
                if course.steps.is_empty() {
                    let message = format!("`{}` has not made a step yet", one.run.display());
                    return Err(Failure::new(super::ui::Exit::Failed, message));
                }
                one.to.write(&training::training(&course::name(&one.run), &course), ui)
            }
            What::Attention(one) if one.inputs.is_none() && one.text.is_none() && !one.is_run() => {
                let unused = ["weights", "seed", "labels", "source-labels", "head", "target"];
                one.refuse(&unused, "without inputs only masks can be shown")?;
                let subject = one.spec.compile(ui)?;
                let found = one.chosen(&sites::sites(&subject.graph));
                if found.is_empty() {
                    return Err(Failure::usage("the model has no attention of this kind at this layer"));
                }
                ui.note("note: no inputs are given, so only masks are shown; `--inputs FILE` runs the model");
                one.to.write(&attention::masks(&subject.graph.name, &found, subject.graph.context), ui)
            }
            What::Init(one) => {
                let unused = [
                    "inputs",
                    "text",
                    "weights",
                    "labels",
                    "source-labels",
                    "layer",
                    "head",
                    "kind",
                    "target",
                ];
                one.refuse(&unused, "initial values depend only on the seed")?;
                one.to.write(&observe(one, ui, Wanted::Init)?, ui)
            }
            What::Attention(one) => {
                one.refuse(&["target"], "all positions are shown")?;
                one.to.write(&observe(one, ui, Wanted::Attention)?, ui)
            }
            What::Steps(one) => one.to.write(&observe(one, ui, Wanted::Steps)?, ui),
            What::Norms(one) => {
                let unused = ["labels", "source-labels", "head", "target"];
                one.refuse(&unused, "every token of the batch is shown")?;
                one.to.write(&observe(one, ui, Wanted::Norms)?, ui)
            }
            What::Flow(one) => one.to.write(&observe(one, ui, Wanted::Flow)?, ui),
            What::Layers(one) => {
                one.refuse(&["target"], "all positions are shown")?;
                one.refuse(&["head"], "a layer's output is that of all its heads")?;
                one.to.write(&observe(one, ui, Wanted::Layers)?, ui)
            }
        }
    }
}

/// What a run is inspected for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The initial values of parameters.
    Init,
    /// Attention weights.
    Attention,
    /// The steps of one head.
    Steps,
    /// The input of a norm for a batch.
    Norms,
    /// The attention that reaches one position.
    Flow,
    /// The outputs of the layers.
    Layers,
}

#[cfg(feature = "interp")]
impl Wanted {
    /// How many examples of a run's own data are used.
    pub fn examples(self) -> u64 {
        match self {
            Wanted::Norms => 8,
            Wanted::Init | Wanted::Attention | Wanted::Steps | Wanted::Flow | Wanted::Layers => 1,
        }
    }
}

#[cfg(feature = "interp")]
fn observe(one: &Observe, ui: &mut Ui, wanted: Wanted) -> Result<Report, Failure> {
    super::observe::observe(one, ui, wanted)
}

#[cfg(feature = "interp")]
fn trained_tables(subject: &Subject, path: &Path, ui: &mut Ui) -> Result<Tables, Failure> {
    super::observe::trained_tables(subject, path, ui)
}

/// The planned number of steps of a run.
#[cfg(feature = "interp")]
fn planned(root: &Path) -> Option<u64> {
    crate::learn::run_dir::planned(root)
}

/// This is known only if checkpoints can be read.
#[cfg(not(feature = "interp"))]
fn planned(_: &Path) -> Option<u64> {
    None
}

#[cfg(feature = "interp")]
fn contents(one: &DataArgs, ui: &mut Ui) -> Result<Report, Failure> {
    super::contents::contents(one, ui)
}

/// Reports the missing feature.
#[cfg(not(feature = "interp"))]
fn contents(_: &DataArgs, _: &mut Ui) -> Result<Report, Failure> {
    Err(super::ui::without_interp("read data"))
}

/// Without the interpreter, only the spec itself is known.
#[cfg(not(feature = "interp"))]
fn trained_tables(_: &Subject, _: &Path, _: &mut Ui) -> Result<Tables, Failure> {
    Ok(Tables::new())
}

/// Reports the missing feature after checking the spec; what needs no interpreter is shown.
#[cfg(not(feature = "interp"))]
fn observe(one: &Observe, ui: &mut Ui, wanted: Wanted) -> Result<Report, Failure> {
    let subject = one.spec.compile(ui)?;
    if wanted == Wanted::Init {
        let started = crate::inspect::start::started(&subject.graph);
        return Ok(crate::inspect::start::report(&subject.graph.name, &started, &[], &[]));
    }
    let message = "this trafoc was built without the feature `interp`, so it cannot run models";
    Err(Failure::new(super::ui::Exit::Device, message).help("build it with `--features flex`, its default"))
}

impl Observe {
    /// Whether the argument is the folder of a run.
    fn is_run(&self) -> bool {
        super::subject::is_run(Path::new(&self.spec.spec))
    }

    /// Refuses arguments that would have no effect.
    fn refuse(&self, unused: &[&str], why: &str) -> Result<(), Failure> {
        let given = [
            ("inputs", self.inputs.is_some()),
            ("text", self.text.is_some()),
            ("weights", self.weights.is_some()),
            ("codebook", self.codebook.is_some()),
            ("seed", self.seed != 0),
            ("labels", self.labels.is_some()),
            ("source-labels", self.source_labels.is_some()),
            ("layer", self.layer.is_some()),
            ("head", self.head.is_some()),
            ("kind", self.kind.is_some()),
            ("target", self.target.is_some()),
        ];
        match given.iter().find(|(name, is_given)| *is_given && unused.contains(name)) {
            Some((name, _)) => Err(Failure::usage(format!("--{name} would have no effect: {why}"))),
            None => Ok(()),
        }
    }

    /// The attention of the selected kind and layer.
    pub fn chosen(&self, all: &sites::Sites) -> Vec<sites::Site> {
        let kind = self.kind.map(sites::Kind::from);
        let fits = |s: &&sites::Site| {
            kind.is_none_or(|k| s.kind == k) && self.layer.is_none_or(|layer| s.layer == layer)
        };
        all.attention.iter().filter(fits).cloned().collect()
    }
}

impl Positions {
    /// The features that are drawn, which every table must have.
    fn features(&self, models: &[positions::Model<'_>]) -> Result<&[u64], Failure> {
        if self.features.is_empty() {
            return Ok(&positions::FIRST);
        }
        let Some(width) = models.iter().filter_map(positions::features).min() else {
            return Err(Failure::usage(
                "--features would have no effect: none of these positions is a vector of features",
            )
            .help("sinusoidal positions are, and learned ones once they are trained"));
        };
        match self.features.iter().find(|feature| **feature >= width) {
            Some(feature) => Err(Failure::usage(format!(
                "there is no feature {feature}: a position has {width}, \
                    counted from 0"
            ))),
            None => Ok(&self.features),
        }
    }
}

impl Destination {
    fn write(&self, report: &Report, ui: &Ui) -> Result<Output, Failure> {
        let ending = self.out.as_ref().map(|p| p.extension().and_then(|e| e.to_str()).unwrap_or_default());
        let written = match ending {
            None => None,
            Some("png") => None,
            Some("svg") => Some(report.figure().svg()),
            Some("html" | "htm") => Some(report.page().html()),
            Some(other) => {
                return Err(Failure::usage(format!(
                    "pictures are written as .svg, .html or .png, not as `.{other}`"
                )));
            }
        };
        let mut text = String::new();
        if self.out.is_none() || !ui.is_quiet() {
            text = report.text(ui.width());
        }
        if let Some(path) = &self.out {
            match written {
                Some(written) => file::write(path, &written)?,
                None => file::write_png(path, &report.figure())?,
            }
            text += &format!("{}\n", path.display());
        }
        let parts: Vec<_> = report
            .parts
            .iter()
            .map(|part| {
                let facts: serde_json::Map<_, _> =
                    part.facts.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                let table =
                    part.table.as_ref().map(|(header, rows)| json!({ "header": header, "rows": rows }));
                json!({ "title": part.title, "facts": facts, "table": table })
            })
            .collect();
        Output::new(text, json!({ "title": report.title, "parts": parts, "path": self.out }))
    }
}
