//! The command line: the only place that touches files, streams and exit codes.
//!
//! A command is a file: its arguments, and a function from them to an [`ui::Output`] or a
//! [`ui::Failure`]. Nothing but [`ui`] prints. Adding one: a file, a row in [`Command`] and in its three
//! functions below.

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

#[cfg(feature = "interp")]
mod batch;
#[cfg(feature = "interp")]
mod beside;
pub mod build;
pub mod check;
pub mod compare;
pub mod completions;
#[cfg(feature = "interp")]
mod contents;
pub mod convert;
mod course;
pub mod directory;
pub mod doctor;
pub mod draw;
pub mod eval;
#[cfg(feature = "interp")]
mod example;
#[cfg(feature = "interp")]
mod execute;
pub mod expand;
pub mod explain;
pub mod export;
mod file;
pub mod fit;
pub mod fmt;
#[cfg(feature = "interp")]
mod forecast;
pub mod generate;
#[cfg(feature = "interp")]
mod generation;
#[cfg(feature = "interp")]
mod head;
pub mod import;
pub mod inspect;
#[cfg(feature = "interp")]
mod live;
pub mod man;
#[cfg(feature = "interp")]
mod measure;
pub mod model;
pub mod new;
#[cfg(feature = "interp")]
mod observe;
pub mod place;
pub mod predict;
#[cfg(feature = "interp")]
mod prediction;
pub mod print;
#[cfg(feature = "interp")]
mod rivals;
pub mod run;
pub mod schema;
pub mod shelf;
pub mod show;
pub mod subject;
#[cfg(feature = "interp")]
mod timing;
pub mod train;
#[cfg(feature = "interp")]
mod trained;
#[cfg(feature = "interp")]
mod training;
pub mod ui;

use crate::diag::ideas;
use crate::diag::suggest::suggest;
use ui::{Color, Exit, Failure, Format, Output, Ui};

/// A compiler for transformers: a short spec to a checked graph, to numbers, to Rust.
#[derive(Debug, Parser)]
#[command(
    name = "trafoc",
    version = VERSION,
    max_term_width = 80,
    disable_help_subcommand = true,
    before_help = "Example: trafoc build @gpt1",
    after_help = AFTER_HELP
)]
pub struct Cli {
    /// Colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        env = "TRAFOC_COLOR",
        hide_env_values = true,
        hide_possible_values = true
    )]
    color: Option<Color>,
    /// Leave out notes and summaries; only data and errors
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

/// The version, with the commit where the build knows it: `0.1.0 (1a2b3c4d5)`.
pub const VERSION: &str = env!("TRAFOC_VERSION");

const AFTER_HELP: &str = "\
SPEC is a spec file, `-` for stdin, a spec that comes with trafoc (`@gpt1`), a
Hugging Face model directory, or the folder of a run.
Data goes to stdout, everything else to stderr.

Exit codes: 0 ok, 1 the spec failed, 2 usage, 3 refused, 4 file,
5 device not available, 101 a bug in trafoc, 130 and 143 interrupted";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a spec to begin with
    #[command(before_help = "Example: trafoc new llama my-model.yaml")]
    New(new::New),
    /// Check specs and say what they are
    #[command(visible_alias = "c", before_help = "Example: trafoc check gpt.yaml")]
    Check(check::Check),
    /// Check a spec, say what it is, and write it as Rust
    #[command(visible_alias = "b", before_help = "Example: trafoc build gpt.yaml")]
    Build(build::Build),
    /// Print the spec with every default written out
    #[command(before_help = "Example: trafoc expand @bert-qa")]
    Expand(expand::Expand),
    /// Print what a spec becomes on its way: tree, spec or graph
    #[command(before_help = "Example: trafoc print graph @gpt1")]
    Print(print::Print),
    /// Explain a diagnostic's code, a key, a part, or a whole spec
    #[command(before_help = "Example: trafoc explain attention.kv_heads")]
    Explain(explain::Explain),
    /// Show the layers with shapes, parameters and operations
    #[command(before_help = "Example: trafoc show @gpt1 --depth 2")]
    Show(show::Show),
    /// Show what differs between specs, and what it costs
    #[command(before_help = "Example: trafoc compare @gpt1 @gpt2-small")]
    Compare(compare::Compare),
    /// Find sizes that give a spec a wanted cost
    #[command(before_help = "Example: trafoc fit @gpt2-small --params 350e6 --over d_model,layers")]
    Fit(fit::Fitting),
    /// Draw the architecture
    #[command(before_help = "Example: trafoc draw @gpt1 --out gpt1.svg")]
    Draw(draw::Draw),
    /// Show what a model does: positions, masks, attention, layers
    #[command(before_help = "Example: trafoc inspect positions @transformer --out positions.html")]
    Inspect(inspect::Inspect),
    /// Run a spec on inputs, with given or random weights
    #[command(
        visible_alias = "r",
        before_help = "Example: trafoc run gpt.yaml --weights gpt.safetensors --inputs in.json"
    )]
    Run(run::Run),
    /// Train a spec by a recipe, in a folder that survives interruptions
    #[command(
        visible_alias = "t",
        before_help = "Example: trafoc train gpt.yaml --recipe recipe.yaml --out run"
    )]
    Train(train::Train),
    /// Measure a trained model on a part of its data
    #[command(before_help = "Example: trafoc eval run --split test")]
    Eval(eval::Eval),
    /// Write on from a text, or translate, with a trained model
    #[command(
        visible_alias = "g",
        before_help = "Example: trafoc generate run --prompt 'Once upon' --temperature 0.8"
    )]
    Generate(generate::Generate),
    /// Classify texts and images, tag words, answer questions, embed, with a trained model
    #[command(
        visible_alias = "p",
        before_help = "Example: trafoc predict run --text 'shares rose by two cents'"
    )]
    Predict(predict::Predict),
    /// Make a spec of a Hugging Face model
    #[command(before_help = "Example: trafoc import models/tiny-llama --out tiny-llama.yaml")]
    Import(import::Import),
    /// Write a spec and its weights as a Hugging Face model directory
    #[command(before_help = "Example: trafoc export my.yaml --weights my.safetensors --to my-model")]
    Export(export::Export),
    /// Put specs into their usual form
    #[command(before_help = "Example: trafoc fmt --write gpt.yaml")]
    Fmt(fmt::Fmt),
    /// Write a spec in the other notation
    #[command(before_help = "Example: trafoc convert gpt.yaml --out gpt.trafo")]
    Convert(convert::Convert),
    /// Print the JSON schema of specs, for editors
    #[command(before_help = "Example: trafoc schema > trafo.schema.json")]
    Schema(schema::Schema),
    /// Say what this program and this machine can do
    #[command(before_help = "Example: trafoc doctor")]
    Doctor(doctor::Doctor),
    /// Print a completion script for a shell
    #[command(
        visible_alias = "completion",
        before_help = "Example: trafoc completions bash > ~/.local/share/bash-completion/completions/trafoc"
    )]
    Completions(completions::Completions),
    /// Write manual pages
    #[command(before_help = "Example: trafoc man --out ~/.local/share/man/man1")]
    Man(man::Man),
}

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Command::New(_) => "new",
            Command::Check(_) => "check",
            Command::Build(_) => "build",
            Command::Expand(_) => "expand",
            Command::Print(_) => "print",
            Command::Explain(_) => "explain",
            Command::Show(_) => "show",
            Command::Compare(_) => "compare",
            Command::Fit(_) => "fit",
            Command::Draw(_) => "draw",
            Command::Inspect(_) => "inspect",
            Command::Run(_) => "run",
            Command::Train(_) => "train",
            Command::Eval(_) => "eval",
            Command::Generate(_) => "generate",
            Command::Predict(_) => "predict",
            Command::Import(_) => "import",
            Command::Export(_) => "export",
            Command::Fmt(_) => "fmt",
            Command::Convert(_) => "convert",
            Command::Schema(_) => "schema",
            Command::Doctor(_) => "doctor",
            Command::Completions(_) => "completions",
            Command::Man(_) => "man",
        }
    }

    fn format(&self) -> Format {
        match self {
            Command::New(c) => c.format.format,
            Command::Check(c) => c.format.format,
            Command::Build(c) => c.format.format,
            Command::Expand(c) => c.format.format,
            Command::Print(c) => c.format.format,
            Command::Explain(c) => c.format.format,
            Command::Show(c) => c.spoken(),
            Command::Compare(c) => c.spoken(),
            Command::Fit(c) => c.spoken(),
            Command::Draw(c) => c.spoken(),
            Command::Inspect(c) => c.spoken(),
            Command::Run(c) => c.format.format,
            Command::Train(c) => c.format.format,
            Command::Eval(c) => c.format.format,
            Command::Generate(c) => c.format.format,
            Command::Predict(c) => c.format.format,
            Command::Import(c) => c.format.format,
            Command::Export(c) => c.format.format,
            Command::Fmt(c) => c.format.format,
            Command::Convert(c) => c.format.format,
            Command::Schema(c) => c.format.format,
            Command::Doctor(c) => c.format.format,
            Command::Completions(c) => c.format.format,
            Command::Man(c) => c.format.format,
        }
    }

    fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        match self {
            Command::New(c) => c.run(ui),
            Command::Check(c) => c.run(ui),
            Command::Build(c) => c.run(ui),
            Command::Expand(c) => c.run(ui),
            Command::Print(c) => c.run(ui),
            Command::Explain(c) => c.run(ui),
            Command::Show(c) => c.run(ui),
            Command::Compare(c) => c.run(ui),
            Command::Fit(c) => c.run(ui),
            Command::Draw(c) => c.run(ui),
            Command::Inspect(c) => c.run(ui),
            Command::Run(c) => c.run(ui),
            Command::Train(c) => c.run(ui),
            Command::Eval(c) => c.run(ui),
            Command::Generate(c) => c.run(ui),
            Command::Predict(c) => c.run(ui),
            Command::Import(c) => c.run(ui),
            Command::Export(c) => c.run(ui),
            Command::Fmt(c) => c.run(ui),
            Command::Convert(c) => c.run(ui),
            Command::Schema(c) => c.run(ui),
            Command::Doctor(c) => c.run(ui),
            Command::Completions(c) => c.run(ui),
            Command::Man(c) => c.run(ui),
        }
    }
}

/// The program.
pub fn main() -> ExitCode {
    let arguments = asked(std::env::args_os().collect());
    let matches = match command(&arguments).try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return refuse(error, &arguments),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return refuse(error, &arguments),
    };
    let command = cli.command.name();
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
        let said = info.payload();
        let said = said.downcast_ref::<&str>().copied().or(said.downcast_ref::<String>().map(String::as_str));
        let what = format!("{}{place}", said.unwrap_or("it panicked"));
        let report = ui::bug_report(&what, command);
        let report = crate::diag::render::visible(&report);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), report.as_bytes());
    }));
    let mut ui = Ui::new(command, cli.command.format(), cli.color.unwrap_or_default(), cli.quiet);
    match panic::catch_unwind(AssertUnwindSafe(|| cli.command.run(&mut ui))) {
        Ok(result) => ui.finish(result),
        // The hook has spoken; a program that reads the envelope still gets one.
        Err(_) => ui.finish(Err(Failure::bug("it panicked"))),
    }
}

/// `trafoc help train` is `trafoc train --help`.
fn asked(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|word| word == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}

/// The command line's grammar, in the colours the arguments ask for.
pub fn command(arguments: &[OsString]) -> clap::Command {
    let word = value_of(arguments, "--color").or_else(|| std::env::var("TRAFOC_COLOR").ok());
    let color = match word.as_deref().and_then(Color::from_word) {
        Some(Color::Always) => clap::ColorChoice::Always,
        Some(Color::Never) => clap::ColorChoice::Never,
        Some(Color::Auto) | None => clap::ColorChoice::Auto,
    };
    Cli::command().color(color)
}

/// What other tools call a command of trafoc, with what does it here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("init", "new"),
    ("create", "new"),
    ("version", "--version"),
    ("validate", "check"),
    ("lint", "check"),
    ("verify", "check"),
    ("compile", "build"),
    ("emit", "build"),
    ("codegen", "build"),
    ("summary", "show"),
    ("params", "show"),
    ("layers", "show"),
    ("list", "doctor"),
    ("info", "doctor"),
    ("env", "doctor"),
    ("devices", "doctor"),
    ("diff", "compare"),
    ("plot", "draw"),
    ("graph", "draw"),
    ("visualize", "draw"),
    ("infer", "run"),
    ("forward", "run"),
    ("pretrain", "train"),
    ("finetune", "train"),
    ("resume", "train"),
    ("test", "eval"),
    ("evaluate", "eval"),
    ("sample", "generate"),
    ("chat", "generate"),
    ("translate", "generate"),
    ("classify", "predict"),
    ("download", "import"),
    ("pull", "import"),
    ("save", "export"),
    ("format", "fmt"),
    ("docs", "explain"),
];

/// The command line's error with the suggestions of [`suggest`] in place of clap's.
fn with_suggestion(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let grammar = Cli::command();
    // The command may itself be below another one, as `inspect positions`.
    let mut command = &grammar;
    for word in arguments.iter().skip(1).filter_map(|a| a.to_str()) {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(word) = text(&error, ContextKind::InvalidSubcommand) else { return error };
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let others = if command.get_name() == grammar.get_name() { OTHER_NAMES } else { &[] };
            let ours = |word: &str| others.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours);
            let theirs: Vec<&str> = others.iter().map(|(theirs, _)| *theirs).collect();
            let near = ours(&word)
                .map(str::to_owned)
                .or_else(|| suggest(&word, &names))
                .or_else(|| suggest(&word, &theirs).and_then(|near| ours(&near)).map(str::to_owned));
            error.remove(ContextKind::SuggestedSubcommand);
            error.remove(ContextKind::Suggested);
            if let Some(near) = near {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
            }
        }
        ErrorKind::UnknownArgument => {
            let Some(word) = text(&error, ContextKind::InvalidArg).filter(|w| w.starts_with("--")) else {
                return error;
            };
            let flags: Vec<String> = command
                .get_arguments()
                .chain(grammar.get_arguments().filter(|a| a.is_global_set()))
                .filter_map(|a| a.get_long().map(|long| format!("--{long}")))
                .collect();
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Suggested);
            if let Some(near) = suggest(&word, &flags) {
                error.insert(ContextKind::SuggestedArg, ContextValue::String(near));
            }
        }
        ErrorKind::InvalidValue => {
            let Some(word) = text(&error, ContextKind::InvalidValue) else { return error };
            let Some(ContextValue::Strings(words)) = error.get(ContextKind::ValidValue) else { return error };
            let near = suggest(&word, words);
            error.remove(ContextKind::SuggestedValue);
            match (near, ideas::outside(&word)) {
                (Some(near), _) => {
                    error.insert(ContextKind::SuggestedValue, ContextValue::String(near));
                }
                (None, Some(idea)) => {
                    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![idea.into()]));
                }
                (None, None) => {}
            }
        }
        _ => {}
    }
    error
}

/// Help, the version, or what is wrong with the arguments.
fn refuse(error: clap::Error, arguments: &[OsString]) -> ExitCode {
    let error = with_suggestion(error, arguments);
    let is_asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !is_asked && value_of(arguments, "--format").as_deref() == Some("json") {
        let text = error.render().to_string();
        let lines = text.lines().take_while(|l| !l.is_empty()).map(str::trim);
        let said = lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned();
        let named = arguments.get(1).and_then(|a| a.to_str()).unwrap_or("");
        let grammar = Cli::command();
        let name = grammar.find_subcommand(named).map_or("", |c| c.get_name());
        return Ui::new(name, Format::Json, Color::Never, true).finish(Err(Failure::usage(said)));
    }
    // Nobody is left to tell when the stream is closed.
    let _ = error.print();
    ExitCode::from(if is_asked { Exit::Ok } else { Exit::Usage }.code())
}

/// The value of a flag in arguments that have not been parsed: `--flag value` or `--flag=value`.
fn value_of(arguments: &[OsString], flag: &str) -> Option<String> {
    let mut words = arguments.iter().filter_map(|a| a.to_str());
    while let Some(word) = words.next() {
        match word.strip_prefix(flag) {
            Some("") => return words.next().map(str::to_owned),
            Some(rest) if rest.starts_with('=') => return rest.strip_prefix('=').map(str::to_owned),
            Some(_) | None => {}
        }
    }
    None
}
