//! `trafoc inspect`: pictures of what a model does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::amount;
use super::format::FormatArg;
use super::outcome::Failure;
use super::overwrite::{ForceArg, Mark};
use super::setting::DEVICE;
use super::subject::{OverArgs, SpecArgs};
use crate::inspect::sites;
use crate::learn::marker::is_run;

/// The command line of `inspect`.
#[derive(Debug, Args)]
pub struct Inspect {
    /// What is inspected.
    #[command(subcommand)]
    pub subject: Inspected,
}

/// What is inspected.
#[derive(Debug, Subcommand)]
pub enum Inspected {
    /// How the model represents positions, from specs or as trained
    #[command(before_help = "Example: trafoc inspect positions @transformer --out positions.html")]
    Positions(Positions),
    /// Initial values of parameters, and their effect on activations
    #[command(before_help = "Example: trafoc inspect init @gbt-mulm --out init.html")]
    Init(Observe),
    /// Attention weights of every head; without inputs, only the masks
    #[command(before_help = "Example: trafoc inspect attention @gbt-mulm --inputs in.json --out heads.html")]
    Attention(Observe),
    /// One head's attention step by step, with its numbers
    #[command(before_help = "Example: trafoc inspect steps names --text istanbul --layer 1 --out steps.html")]
    Steps(Observe),
    /// LayerNorm next to BatchNorm on one batch
    #[command(before_help = "Example: trafoc inspect norms names --layer 1 --out norms.html")]
    Norms(Observe),
    /// How attention over all layers reaches one position
    #[command(before_help = "Example: trafoc inspect flow @gbt-mulm --inputs in.json --out flow.svg")]
    Flow(Observe),
    /// The contents of a recipe's data: counts, lengths, vocabulary, an example and a batch
    #[command(before_help = "Example: trafoc inspect data @gbt-mulm --recipe @gbt-mulm --out data.html")]
    Data(DataArgs),
    /// The learning curve of a run, which may still be training
    #[command(before_help = "Example: trafoc inspect training names --out curve.html")]
    Training(Training),
    /// How far training moved every parameter from where it started
    #[command(before_help = "Example: trafoc inspect changes news --out changes.html")]
    Changes(Changes),
    /// Outputs of every layer in two dimensions
    #[command(before_help = "Example: trafoc inspect layers @gbt-mulm --inputs in.json --out layers.svg")]
    Layers(Observe),
}

/// Where a report is written.
#[derive(Clone, Debug, Args)]
pub struct Destination {
    /// The file to write: .svg, .html or .png; if not given, only numbers are printed
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Whether a file is overwritten that trafoc did not write.
    #[command(flatten)]
    pub force: ForceArg,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The command line of `inspect positions`.
#[derive(Debug, Args)]
pub struct Positions {
    /// A spec file, `-` for stdin, a shipped spec, the folder of a run or of a Hugging Face model; may be
    /// repeated
    #[arg(value_name = "SPEC", required = true, num_args = 1..=4)]
    pub specs: Vec<String>,
    /// Which features of a table to draw along the positions; the first four if not given
    #[arg(long, value_name = "N,N,..", value_delimiter = ',')]
    pub features: Vec<u64>,
    /// Changes to the specs.
    #[command(flatten)]
    pub over: OverArgs,
    /// Where it is written.
    #[command(flatten)]
    pub to: Destination,
}

/// The command line of `inspect data`.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// The spec, or a run.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// The recipe that names the data; a run's own if not given
    #[arg(long, short, value_name = "RECIPE")]
    pub recipe: Option<PathBuf>,
    /// Change a value of the recipe, such as `data.limit=1000`; may be repeated
    #[arg(long = "with", value_name = "PATH=VALUE")]
    pub with: Vec<String>,
    /// Which example of the training data to show, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = amount::at_least(0_usize))]
    pub example: usize,
    /// Where it is written.
    #[command(flatten)]
    pub to: Destination,
}

/// The command line of `inspect training`.
#[derive(Debug, Args)]
pub struct Training {
    /// The folder of a run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Where it is written.
    #[command(flatten)]
    pub to: Destination,
}

/// The arguments of `inspect changes`.
#[derive(Debug, Args)]
pub struct Changes {
    /// The model after training: a run, or a Hugging Face model directory.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// The model to compare with: a run, a Hugging Face model directory or a file of weights; if not given,
    /// the one from which the run started
    #[arg(long, value_name = "MODEL")]
    pub against: Option<PathBuf>,
    /// Where it is written.
    #[command(flatten)]
    pub to: Destination,
}

/// The arguments of everything that needs a run.
#[derive(Clone, Debug, Args)]
pub struct Observe {
    /// The spec and its settings.
    #[command(flatten)]
    pub spec: SpecArgs,
    /// Inputs by name as nested lists, such as {"tokens": [[1, 2, 3]]}, or a file of these; `-` for stdin
    #[arg(long, short, value_name = "JSON|FILE")]
    pub inputs: Option<PathBuf>,
    /// A text as input, for a run or a model directory with a tokenizer; without it and without --inputs,
    /// an example of a run's own data
    #[arg(long, value_name = "TEXT", conflicts_with = "inputs")]
    pub text: Option<String>,
    /// The language of the translation of --text, if the model has several
    #[arg(long, value_name = "NAME", requires = "text", conflicts_with = "inputs")]
    pub language: Option<String>,
    /// Weights in safetensors, named by the paths of parameters; random ones if not given
    #[arg(long, short, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// The `codebook.json` of a checkpoint, with the meaning of ids, for a spec with --weights
    #[arg(long, value_name = "FILE", requires = "weights", conflicts_with = "seed")]
    pub codebook: Option<PathBuf>,
    /// Seed of random weights; 0 if not given
    #[arg(long, value_name = "N", conflicts_with = "weights", value_parser = amount::at_least(0_u64))]
    pub seed: Option<u64>,
    /// Labels of the tokens, separated by spaces; their ids if not given
    #[arg(long, value_name = "WORDS")]
    pub labels: Option<String>,
    /// Labels of the source's tokens
    #[arg(long, value_name = "WORDS")]
    pub source_labels: Option<String>,
    /// Which layer, counted from 0; all of them if not given
    #[arg(long, value_name = "N", value_parser = amount::at_least(0_u64))]
    pub layer: Option<u64>,
    /// Which head, counted from 0; if not given, the first with `steps`, else all
    #[arg(long, value_name = "N", value_parser = amount::at_least(0_u64))]
    pub head: Option<u64>,
    /// encoder, decoder or cross; all if not given
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    pub kind: Option<Kind>,
    /// Which position, counted from 0; the last if not given
    #[arg(long, value_name = "N", value_parser = amount::at_least(0_usize))]
    pub target: Option<usize>,
    /// The device: flex, cuda:0, auto, ...; `trafoc doctor` lists them
    #[arg(long, value_name = "DEVICE", env = DEVICE.variable, hide_env_values = true)]
    pub device: Option<String>,
    /// Another model, shown after each part of this one for the same input, such as the one that training
    /// started from
    #[arg(long, value_name = "MODEL")]
    pub against: Option<String>,
    /// Where it is written.
    #[command(flatten)]
    pub to: Destination,
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

impl From<Kind> for sites::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Encoder => sites::Kind::Encoder,
            Kind::Decoder => sites::Kind::Decoder,
            Kind::Cross => sites::Kind::Cross,
        }
    }
}

/// Trained tables of positions in row-major order, by the paths of their parameters.
pub type Tables = BTreeMap<String, Vec<f32>>;

/// The data of `inspect` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The title of the report.
    pub title: String,
    /// The parts of the report, in the order of the page.
    pub parts: Vec<Part>,
    /// The picture or page that was written.
    pub path: Option<PathBuf>,
}

/// A part of a report.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Part {
    /// The heading of the part, such as `Learned positions`.
    pub title: String,
    /// Numbers by their names.
    pub facts: IndexMap<String, String>,
    /// The numbers of the pictures.
    pub table: Option<Table>,
}

/// A table with its cells as they are printed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Table {
    /// The names of the columns.
    pub header: Vec<String>,
    /// The rows, with one cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// What a model is run for, which decides what is captured and how it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The initial values of parameters.
    Init,
    /// The attention weights of every head.
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

/// Options of [`Observe`] that would have no effect on one report, and the reason. They are refused, and not in its help.
struct Unused {
    report: Wanted,
    options: &'static [&'static str],
    why: &'static str,
}

/// All of these. What an option lacks only for some models is refused where these are known.
const UNUSED: [Unused; 5] = [
    Unused {
        report: Wanted::Init,
        options: &[
            "inputs",
            "text",
            "language",
            "weights",
            "codebook",
            "labels",
            "source-labels",
            "layer",
            "head",
            "kind",
            "target",
            "against",
        ],
        why: "initial values depend only on the seed",
    },
    Unused { report: Wanted::Attention, options: &["target"], why: "all positions are shown" },
    Unused {
        report: Wanted::Norms,
        options: &["labels", "source-labels", "head", "target", "against"],
        why: "features are shown, and no words, heads or positions",
    },
    Unused { report: Wanted::Layers, options: &["target"], why: "all positions are shown" },
    // A reason of its own, because the one above would not explain it.
    Unused { report: Wanted::Layers, options: &["head"], why: "a layer's output is that of all its heads" },
];

impl Wanted {
    /// The name of the report on the command line.
    fn word(self) -> &'static str {
        match self {
            Wanted::Init => "init",
            Wanted::Attention => "attention",
            Wanted::Steps => "steps",
            Wanted::Norms => "norms",
            Wanted::Flow => "flow",
            Wanted::Layers => "layers",
        }
    }
}

/// The grammar, in which the help of each report has the options that it takes.
pub fn with_own_options(grammar: clap::Command) -> clap::Command {
    // `mut_subcommand` would move the command to the end of the list in the help.
    let of_reports = |command: clap::Command| match command.get_name() {
        NAME => command.mut_subcommands(of_report),
        _ => command,
    };
    grammar.mut_subcommands(of_reports)
}

/// The name of the command.
const NAME: &str = "inspect";

/// The grammar of one report.
fn of_report(report: clap::Command) -> clap::Command {
    let unused: Vec<&str> = UNUSED
        .iter()
        .filter(|unused| unused.report.word() == report.get_name())
        .flat_map(|unused| unused.options.iter().copied())
        .collect();
    report.mut_args(|argument| match argument.get_long() {
        // Hidden and not removed, so that it is refused for its reason.
        Some(option) if unused.contains(&option) => argument.hide(true),
        Some(_) | None => argument,
    })
}

impl Inspect {
    /// Where the report is written and in which format, an option that each of the reports has.
    pub fn to(&self) -> &Destination {
        match &self.subject {
            Inspected::Positions(p) => &p.to,
            Inspected::Training(t) => &t.to,
            Inspected::Data(d) => &d.to,
            Inspected::Changes(c) => &c.to,
            Inspected::Init(o)
            | Inspected::Attention(o)
            | Inspected::Steps(o)
            | Inspected::Norms(o)
            | Inspected::Flow(o)
            | Inspected::Layers(o) => &o.to,
        }
    }
}

impl Destination {
    /// Checks that the file may be written.
    ///
    /// # Errors
    /// The file exists, and trafoc did not write it.
    pub fn permit(&self) -> Result<(), Failure> {
        self.force.refuse_unused(self.out.is_some())?;
        match &self.out {
            Some(path) => self.force.permit(path, Mark::Drawn, "another `--out`"),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "interp")]
impl Wanted {
    /// How many examples of a run's own data are used.
    pub fn examples(self) -> u64 {
        match self {
            // Batch norm has statistics over a batch, which needs several examples.
            Wanted::Norms => 8,
            Wanted::Init | Wanted::Attention | Wanted::Steps | Wanted::Flow | Wanted::Layers => 1,
        }
    }
}

impl Observe {
    /// Whether the argument is the folder of a run.
    pub fn is_run(&self) -> bool {
        is_run(Path::new(&self.spec.spec))
    }

    /// The seed of random weights; 0 unless one is given.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Refuses arguments that would have no effect on a report, whatever the model is.
    ///
    /// # Errors
    /// One of these arguments is given.
    pub fn fits(&self, report: Wanted) -> Result<(), Failure> {
        let mut unused = UNUSED.iter().filter(|unused| unused.report == report);
        unused.try_for_each(|unused| self.refuse(unused.options, unused.why))
    }

    /// Refuses arguments that would have no effect, for the reason `why`.
    ///
    /// # Errors
    /// One of these arguments is given.
    pub fn refuse(&self, unused: &[&str], why: &str) -> Result<(), Failure> {
        let given = [
            ("inputs", self.inputs.is_some()),
            ("text", self.text.is_some()),
            ("language", self.language.is_some()),
            ("weights", self.weights.is_some()),
            ("codebook", self.codebook.is_some()),
            ("seed", self.seed.is_some()),
            ("labels", self.labels.is_some()),
            ("source-labels", self.source_labels.is_some()),
            ("layer", self.layer.is_some()),
            ("head", self.head.is_some()),
            ("kind", self.kind.is_some()),
            ("target", self.target.is_some()),
            ("against", self.against.is_some()),
        ];
        match given.iter().find(|(name, is_given)| *is_given && unused.contains(name)) {
            Some((name, _)) => Err(Failure::usage(format!("--{name} would have no effect: {why}"))),
            None => Ok(()),
        }
    }

    /// The same arguments for the model that it is compared with, if there is one.
    pub fn other(&self) -> Option<Self> {
        let against = self.against.as_ref()?;
        let spec = self.spec.of(against);
        // The weights and the codebook that are given belong to the first model.
        Some(Self { spec, weights: None, codebook: None, against: None, ..self.clone() })
    }

    /// The stack that is selected by the kind of its attention.
    ///
    /// # Errors
    /// The kind is that of cross attention, which is no stack.
    pub fn stack(&self) -> Result<Option<sites::Stack>, Failure> {
        match self.kind {
            None => Ok(None),
            Some(Kind::Encoder) => Ok(Some(sites::Stack::Encoder)),
            Some(Kind::Decoder) => Ok(Some(sites::Stack::Decoder)),
            Some(Kind::Cross) => {
                let message = "`--kind cross` selects no layers: cross attention is in those of the decoder";
                Err(Failure::usage(message).help("`--kind encoder` or `--kind decoder`"))
            }
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

    /// The failure of a selection that no attention of the model is in, with the layers that have one.
    pub fn chooses_none(&self, all: &sites::Sites) -> Failure {
        let kind = self.kind.map(sites::Kind::from);
        let of = |kind: sites::Kind| {
            let layers = all.attention.iter().filter(|site| site.kind == kind).map(|site| site.layer);
            let layers: std::collections::BTreeSet<u64> = layers.collect();
            Some((kind, *layers.first()?, *layers.last()?))
        };
        let kinds = [sites::Kind::Encoder, sites::Kind::Decoder, sites::Kind::Cross];
        let has: Vec<String> = kinds
            .into_iter()
            .filter_map(of)
            .map(|(kind, first, last)| {
                let layers = if first == last {
                    format!("layer {first}")
                } else {
                    format!("layers {first} to {last}")
                };
                format!("`--kind {}` at {layers}", kind.word())
            })
            .collect();
        if all.attention.is_empty() && all.weighs_otherwise {
            let message =
                "the weights of the model's attention are no softmax over keys, and only such are shown";
            return Failure::usage(message)
                .help("shown are the weights of `attend(q, k, v)` and of `weigh(softmax(s), v)`");
        }
        let named = kind.map_or_else(String::new, |kind| format!(" of the kind `{}`", kind.word()));
        let place = self.layer.map_or_else(String::new, |layer| format!(" at layer {layer}"));
        let failure = Failure::usage(format!("the model has no attention{named}{place}"));
        if has.is_empty() { failure } else { failure.help(format!("it has {}", has.join(", "))) }
    }
}
