//! What every command has in common: how it ends, and the JSON object it prints with `--format json`.

use std::io;
use std::process::ExitCode;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::file;
use super::format::Format;
use super::outcome::{Exit, Failure, Output};
use super::ui::{self, Ui, VERSION};
use super::watch::WatchArg;
use crate::diag::report::{self, Ending, Reason};
use crate::diag::{Severity, render};
use crate::report::summary::Summary;

/// The version of the envelope; it changes if a key changes its meaning or is removed.
pub const ENVELOPE: &str = "trafoc/1";

/// A command: its arguments, and what it does with them.
pub trait Command {
    /// The data it gives for `--format json`, whose schema `trafoc schema --output COMMAND` prints.
    type Data: Serialize + JsonSchema;

    /// In what form diagnostics and the result are printed.
    fn format(&self) -> Format;

    /// Whether it is carried out again when a file changes.
    fn watch(&self) -> WatchArg {
        WatchArg::default()
    }

    /// The page about a model in its data, whose costs are compared when it is carried out again.
    fn page(_: &Self::Data) -> Option<&Summary> {
        None
    }

    /// Carries the command out.
    ///
    /// # Errors
    /// The reason why there is no result, with the exit code.
    fn run(&self, ui: &mut Ui) -> Result<Output<Self::Data>, Failure>;
}

/// The one object of `--format json`, which is printed whatever happens.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Envelope<'a, D> {
    /// The version of this object.
    pub schema: &'static str,
    /// The command; empty if the command line names none.
    pub command: &'a str,
    /// How the command ended.
    pub status: Exit,
    /// Why there are no data, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    /// How to fix that, one suggestion each.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub help: &'a [String],
    /// The diagnostics of all specs and recipes.
    pub diagnostics: &'a [render::Data],
    /// The result; null if the command failed.
    pub data: Option<&'a D>,
}

/// A text that is printed and not written to a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Printed {
    /// The text, as it would be in the file.
    pub text: String,
}

/// The JSON schema (draft-07) of what a command with the data `D` prints with `--format json`.
pub fn schema<D: JsonSchema>(command: &str) -> Json {
    // The schema is that of what is written, where a field is always there even if a reader could do
    // without it.
    let settings = SchemaSettings::draft07().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Envelope<'_, D>>();
    RecursiveTransform(close).transform(&mut schema);
    let mut schema = schema.to_value();
    schema["title"] = json!(format!("trafoc {command} --format json"));
    // These two have a single value each, which the types do not say.
    schema["properties"]["schema"] = json!({ "const": ENVELOPE });
    schema["properties"]["command"] = json!({ "const": command });
    schema
}

/// Forbids other keys than those that the schema of an object names, so that a reader can rely on the schema.
fn close(schema: &mut Schema) {
    let has_all = schema.get("properties").is_some() && schema.get("additionalProperties").is_none();
    if has_all {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// Prints the result, or the reason why there is none, in the form that was asked for.
pub fn finish<D: Serialize>(ui: &Ui, result: Result<Output<D>, Failure>) -> ExitCode {
    // Removes a line of progress.
    ui.say("");
    // Before the result is moved into its text.
    let exit = result.as_ref().map_or_else(|failure| failure.exit, |output| output.exit);
    let (text, exit) = match (ui.format(), result) {
        (Format::Json, result) => envelope(ui, exit, result),
        (Format::Github, result) => {
            (report::github(ui.diagnostics(), ending(exit, &reasons(ui, &result))), exit)
        }
        (Format::Sarif, result) => {
            let log = report::sarif(ui.diagnostics(), ending(exit, &reasons(ui, &result)), VERSION);
            (format!("{log:#}\n"), exit)
        }
        // Diagnostics have been written to stderr as they were found, so that only the result is left.
        (Format::Text | Format::Short, Ok(output)) => (output.text, exit),
        // A text that a model has written may steer a terminal.
        (Format::Agent, Ok(output)) => (render::visible(&output.text).into_owned(), exit),
        (Format::Text | Format::Short | Format::Agent, Err(failure)) => {
            ui.say(&ui.failure(&failure));
            (String::new(), exit)
        }
    };
    let printed = ui::print(&text);
    ui.say_next();
    match printed {
        Ok(()) => ExitCode::from(exit.code()),
        // A reader such as `head` has read enough.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(exit.code()),
        Err(e) => ExitCode::from(not_written(ui, &e).code()),
    }
}

/// Says that the reader of stdout got only a part of the data, or nothing. The work is done, but the exit must
/// say it.
pub fn not_written(ui: &Ui, why: &io::Error) -> Exit {
    ui.say(&format!("error: cannot write to stdout: {}\n", file::reason(why)));
    Exit::File
}

/// The text of the envelope, with the exit. Data that cannot be serialised, such as a path that is not UTF-8,
/// are reported as a bug, because a program must get an envelope in any case.
fn envelope<D: Serialize>(ui: &Ui, exit: Exit, result: Result<Output<D>, Failure>) -> (String, Exit) {
    let (command, diagnostics) = (ui.command(), ui.diagnostics());
    let (data, failure) = match &result {
        Ok(output) => (Some(&output.data), None),
        Err(failure) => (None, Some(failure)),
    };
    // A failure without a message has been reported by its diagnostics.
    let error = failure.map(|f| f.message.as_str()).filter(|m| !m.is_empty());
    let help = failure.map_or(&[][..], |f| f.help.as_slice());
    let whole = Envelope { schema: ENVELOPE, command, status: exit, error, help, diagnostics, data };
    match serde_json::to_string_pretty(&whole) {
        Ok(text) => (text + "\n", exit),
        Err(why) => {
            let why = why.to_string();
            let data = None::<&()>;
            let bug = Envelope {
                schema: ENVELOPE,
                command,
                status: Exit::Bug,
                error: Some(&why),
                help: &[],
                diagnostics,
                data,
            };
            // This one has texts and numbers only, which can always be serialised.
            (serde_json::to_string_pretty(&bug).unwrap_or_default() + "\n", Exit::Bug)
        }
    }
}

/// The end of a command for reports, with the reasons that [`reasons`] gives.
fn ending<'r>(exit: Exit, reasons: &'r [Reason<'r>]) -> Ending<'r> {
    // With any other exit not everything was judged, so that a report without findings must not look like a
    // pass.
    Ending { code: exit.code(), is_examined: matches!(exit, Exit::Ok | Exit::Failed), reasons }
}

/// Why a command failed, of one spec or as a whole. That a spec has errors is not repeated if these are reported.
fn reasons<'r, D>(ui: &'r Ui, result: &'r Result<Output<D>, Failure>) -> Vec<Reason<'r>> {
    let is_reported = ui.diagnostics().iter().any(|d| d.severity == Severity::Error);
    let whole = result.as_ref().err().filter(|failure| !(failure.exit == Exit::Failed && is_reported));
    let all = ui.failures().iter().chain(whole).filter(|failure| !failure.message.is_empty());
    all.map(|failure| Reason { message: &failure.message, help: &failure.help }).collect()
}
