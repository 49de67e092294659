//! The command line: files, streams and exit codes.
//!
//! A command is a file with its arguments, the type of its data, and an implementation of [`Command`]. Where
//! tensors are needed, the implementation is in a file under `compute`, and `without` has the one for a
//! program without the interpreter. A new command is a file and a row in [`Commands`].
//!
//! The files depend on each other in one direction: [`outcome`] and [`mod@format`] first, then [`file`],
//! [`ui`], [`command`], then what several commands share, then the commands, then this file. A test checks
//! it.

use std::ffi::{OsStr, OsString};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::builder::{NonEmptyStringValueParser, Resettable, ValueParser};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde_json::Value as Json;

mod agreement;
pub mod amount;
mod arguments;
pub mod build;
pub mod check;
pub mod command;
pub mod compare;
pub mod completions;
#[cfg(feature = "interp")]
mod compute;
pub mod config;
pub mod convert;
mod course;
pub mod crash;
pub mod data;
pub mod directory;
pub mod doctor;
pub mod draw;
pub mod eval;
pub mod expand;
pub mod explain;
pub mod export;
mod exported;
mod extends;
mod family;
pub mod figure;
mod file;
pub mod fit;
#[cfg(feature = "learn")]
mod fitted;
pub mod fix;
pub mod fmt;
pub mod format;
pub mod generate;
pub mod import;
pub mod inspect;
mod inspection;
pub mod man;
mod mending;
mod misplaced;
pub mod model;
pub mod new;
pub mod new_head;
mod next_step;
mod other_values;
mod other_variant;
pub mod outcome;
pub mod overwrite;
pub mod place;
pub mod predict;
pub mod print;
pub mod reproduce;
pub mod run;
pub mod scene;
pub mod schema;
mod setting;
pub mod settings;
pub mod settings_file;
pub mod shelf;
pub mod show;
mod stale;
pub mod subject;
mod tensors;
pub mod train;
pub mod ui;
mod usage;
mod variant;
pub mod watch;
#[cfg(not(feature = "interp"))]
mod without;

use arguments::{value_of, with_help};
use command::{Command, finish, schema};
use crash::{given, report_panics};
use format::Format;
use outcome::{Exit, Failure, Output};
use settings::Wrong;
pub use ui::VERSION;
use ui::{Color, Program, Ui};
use usage::{color_of, refuse};
use watch::Seen;

/// A compiler for transformers: turns a short spec into a checked graph, exact counts, Rust and PyTorch.
#[derive(Debug, Parser)]
#[command(
    name = "trafoc",
    version = VERSION,
    // Longer texts of the help are divided by hand, at this width.
    max_term_width = 80,
    // Otherwise `help` would be a command among the others, in lists and in completions; `with_help`
    // understands it.
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
        env = setting::COLOR.variable,
        // Help and manual pages must not depend on the variables of the machine they were made on.
        hide_env_values = true,
        hide_possible_values = true
    )]
    color: Option<Color>,
    /// Leave out notes and summaries; only data and errors
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Read no configuration files
    #[arg(long, global = true)]
    no_config: bool,
    #[command(subcommand)]
    command: Commands,
}

const AFTER_HELP: &str = "\
SPEC is a spec file, `-` for stdin, a spec that comes with trafoc (`@gpt1`), a
Hugging Face model directory, or the folder of a run.
Data goes to stdout, everything else to stderr.

Exit codes: 0 ok, 1 the spec failed, 2 usage, 3 refused, 4 file,
5 device not available, 101 a bug in trafoc, 129, 130 and 143 interrupted";

macro_rules! commands {
    ($($(#[$attribute:meta])* $variant:ident($arguments:ty) = $name:literal, $example:literal;)*) => {
        /// The commands.
        #[derive(Debug, Subcommand)]
        pub enum Commands {
            $(
                $(#[$attribute])*
                #[command(before_help = concat!("Example: ", $example))]
                $variant($arguments)
            ),*
        }

        impl Commands {
            /// The names of all commands, in the order of the help.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            fn name(&self) -> &'static str {
                match self { $(Commands::$variant(_) => $name),* }
            }

            fn format(&self) -> Format {
                match self { $(Commands::$variant(command) => command.format()),* }
            }

            fn perform(&self, new: &dyn Fn() -> Ui) -> ExitCode {
                match self { $(Commands::$variant(command) => perform(command, new)),* }
            }
        }

        /// The JSON schema of what a command prints with `--format json`; `None` if there is no such command.
        pub fn output_schema(command: &str) -> Option<Json> {
            match command {
                $($name => Some(schema::<<$arguments as Command>::Data>($name)),)*
                // A command line that names no command fails without data.
                "" => Some(schema::<()>("")),
                _ => None,
            }
        }
    };
}

commands! {
    /// Write a spec to start from
    New(new::New) = "new", "trafoc new llama my-model.yaml";
    /// Check specs and summarise them
    #[command(visible_alias = "c")]
    Check(check::Check) = "check", "trafoc check gpt.yaml";
    /// Check a spec and write it as Rust or Python
    #[command(visible_alias = "b")]
    Build(build::Build) = "build", "trafoc build gpt.yaml";
    /// Print the spec with every default written out
    Expand(expand::Expand) = "expand", "trafoc expand @bert-qa";
    /// Print a stage of the compilation: tree, spec or graph
    Print(print::Print) = "print", "trafoc print graph @gpt1";
    /// Explain a diagnostic's code, a key, a part, or a whole spec
    Explain(explain::Explain) = "explain", "trafoc explain attention.kv_heads";
    /// Show the layers with shapes, parameters and operations
    Show(show::Show) = "show", "trafoc show @gpt1 --depth 2";
    /// Show how specs differ, and what each difference costs
    Compare(compare::Compare) = "compare", "trafoc compare @gpt1 @gpt2-small";
    /// Find sizes that give a spec a target cost
    Fit(fit::Fitting) = "fit", "trafoc fit @gpt2-small --params 350e6 --over d_model,layers";
    /// Draw the architecture
    Draw(draw::Draw) = "draw", "trafoc draw @gpt1 --out gpt1.svg";
    /// Show what a model does and what it has learned: positions, attention, layers, training
    Inspect(inspect::Inspect) = "inspect", "trafoc inspect positions @transformer --out positions.html";
    /// Run a spec on inputs, with given or random weights
    #[command(visible_alias = "r")]
    Run(run::Run) = "run", "trafoc run gpt.yaml --weights gpt.safetensors --inputs in.json";
    /// Prepare the data of a recipe as arrays, for trafoc and other programs
    Data(data::Prepare) = "data", "trafoc data gpt.yaml --recipe recipe.yaml --out data";
    /// Train a spec with a recipe, in a folder that survives interruptions
    #[command(visible_alias = "t")]
    Train(train::Train) = "train", "trafoc train gpt.yaml --recipe recipe.yaml --out run";
    /// Train a run again, and compare the two bit by bit
    Reproduce(reproduce::Reproduce) = "reproduce", "trafoc reproduce run";
    /// Measure a trained model on a part of its data
    Eval(eval::Eval) = "eval", "trafoc eval run --split validation";
    /// Continue or translate a text with a trained model
    #[command(visible_alias = "g")]
    Generate(generate::Generate) = "generate", "trafoc generate run --count 5 --temperature 0.8";
    /// Classify texts and images, tag words, answer questions or embed texts with a trained model
    #[command(visible_alias = "p")]
    Predict(predict::Predict) = "predict", "trafoc predict run --text 'shares rose by two cents'";
    /// Write the spec of a Hugging Face model
    Import(import::Import) = "import", "trafoc import models/tiny-llama --out tiny-llama.yaml";
    /// Write a spec and its weights as a Hugging Face model directory
    Export(export::Export) = "export", "trafoc export my.yaml --weights my.safetensors --to my-model";
    /// Format specs
    Fmt(fmt::Fmt) = "fmt", "trafoc fmt --write gpt.yaml";
    /// Write a spec in the other notation
    Convert(convert::Convert) = "convert", "trafoc convert gpt.yaml --out gpt.trafo";
    /// Print the JSON schema of specs, for editors
    Schema(schema::Schema) = "schema", "trafoc schema > trafo.schema.json";
    /// Show the settings and where each comes from
    #[command(after_help = config::files())]
    Config(config::Config) = "config", "trafoc config";
    /// Show what this program and this machine can do
    Doctor(doctor::Doctor) = "doctor", "trafoc doctor";
    /// Print a completion script for a shell
    #[command(visible_alias = "completion", after_help = completions::INSTALLATION)]
    Completions(completions::Completions) = "completions", "source <(trafoc completions bash)";
    /// Write manual pages
    Man(man::Man) = "man", "trafoc man --out ~/.local/share/man/man1";
}

/// Performs a command, again and again with `--watch`.
fn perform<C: Command>(command: &C, new: &dyn Fn() -> Ui) -> ExitCode {
    match command.watch().is_on() {
        true => watch::repeat(new, |ui| {
            let (mut is_done, mut page) = (false, None);
            let exit =
                perform_once(command, ui, &mut |data| (is_done, page) = (true, C::page(data).cloned()));
            Seen { exit, is_done, page }
        }),
        false => perform_once(command, new(), &mut |_| ()),
    }
}

/// Performs a command. `seen` is given its data. Even if it panics, a program that reads the envelope gets one.
fn perform_once<C: Command>(command: &C, mut ui: Ui, seen: &mut dyn FnMut(&C::Data)) -> ExitCode {
    // After a panic only the diagnostics are used that had been reported by then, and nothing half changed.
    match panic::catch_unwind(AssertUnwindSafe(|| command.run(&mut ui))) {
        Ok(result) => {
            result.iter().for_each(|output| seen(&output.data));
            finish(&ui, result)
        }
        // The hook of `report_panics` has written the report to stderr.
        Err(_) if is_for_people(ui.format()) => ExitCode::from(Exit::Bug.code()),
        Err(_) => finish(&ui, Err::<Output<C::Data>, _>(Failure::bug("it panicked"))),
    }
}

/// Whether a format is read by people, to whom a panic has been reported when it happened.
fn is_for_people(format: Format) -> bool {
    match format {
        Format::Text | Format::Short | Format::Agent => true,
        Format::Json | Format::Github | Format::Sarif => false,
    }
}

/// The command line itself, for the commands that describe it.
const PROGRAM: Program = Program { grammar: || grammar(&[]), schema: output_schema };

/// Runs the command that the process's arguments name, and returns its exit code.
pub fn main() -> ExitCode {
    let arguments = with_help(std::env::args_os().collect());
    let settings = settings::begin(&arguments);
    let mut grammar = grammar(&arguments);
    let parsed = grammar.try_get_matches_from_mut(&arguments);
    // `--help` and `--version` are errors to clap too; `refuse` tells them from wrong command lines.
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse(error, &arguments, PROGRAM),
    };
    let name = cli.command.name();
    // Only now, because the report names the command, which must have been parsed.
    report_panics(name, given(&grammar, &matches));
    #[cfg(feature = "interp")]
    compute::signals::survive_file_limit();
    let (format, color) = (cli.command.format(), cli.color.unwrap_or_default());
    let new = || Ui::new(name, format, color, cli.quiet, PROGRAM);
    // Only now, because help and a wrong command line need no settings.
    if let Err(wrong) = settings {
        let Wrong { sources, found, failure } = *wrong;
        let mut ui = new();
        ui.diagnose(&found, &sources);
        return finish::<()>(&ui, Err(failure));
    }
    cli.command.perform(&new)
}

/// The grammar of the command line, in the colours that the arguments ask for.
pub fn grammar(arguments: &[OsString]) -> clap::Command {
    // The colours of help and of errors are needed before the arguments are parsed.
    let color = match color_of(arguments) {
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
        Color::Auto => clap::ColorChoice::Auto,
    };
    // The last of several equal options counts, so that an alias of a shell can be overridden.
    let counts = |variable: &OsStr, option: &str| {
        // An empty variable counts as one that is not set, as for `NO_COLOR`. An option takes precedence over its
        // variable, whose value clap would check first if the option is global and follows the command.
        let is_given = || value_of(arguments, &format!("--{option}")).is_some();
        // A variable that is not set stays, because the help names it.
        std::env::var_os(variable).is_none_or(|value| !value.is_empty() && !is_given())
    };
    let all = inspect::with_own_options(Cli::command());
    let all = with_settings(all.color(color).args_override_self(true));
    accepting_minus(with_variables(all, &counts))
}

/// The grammar in which `--count -1` has a value that is too small, and not an option `-1`; and in which an empty
/// word is no name of a file.
fn accepting_minus(command: clap::Command) -> clap::Command {
    let is_text =
        |argument: &clap::Arg| argument.get_value_parser().type_id() == ValueParser::string().type_id();
    command
        .mut_args(|argument| match (argument.get_action().takes_values(), argument.is_positional()) {
            (true, false) => argument.allow_negative_numbers(true),
            (true, true) if is_text(&argument) => argument.value_parser(NonEmptyStringValueParser::new()),
            (_, _) => argument,
        })
        .mut_subcommands(accepting_minus)
}

/// The grammar in which an option that has a variable has the value that a file gives it, unless the variable or the
/// command line gives it one.
fn with_settings(command: clap::Command) -> clap::Command {
    command
        .mut_args(|argument| {
            let setting = argument.get_env().and_then(settings::of_variable);
            // A default, because clap refuses what excludes the option only if it is given. It is not in the help, which must
            // not depend on the machine.
            match setting.and_then(|setting| settings::get().of_files(setting)) {
                Some((value, _)) => argument.default_value(value).hide_default_value(true),
                None => argument,
            }
        })
        .mut_subcommands(with_settings)
}

/// The grammar with those variables of the environment that count, given their names and those of their options.
fn with_variables(command: clap::Command, counts: &dyn Fn(&OsStr, &str) -> bool) -> clap::Command {
    command
        .mut_args(|argument| match (argument.get_env(), argument.get_long()) {
            (Some(variable), Some(option)) if !counts(variable, option) => argument.env(Resettable::Reset),
            _ => argument,
        })
        .mut_subcommands(|below| with_variables(below, counts))
}
