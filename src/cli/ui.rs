//! What a command says, and where: data to stdout, everything else to stderr, an exit code at the end.
//!
//! Commands return an [`Output`] or a [`Failure`] and never print. A command prints nothing to stdout
//! but its data; with `--format json` that is one `Envelope`, whatever happens.

use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value as Json;

use crate::diag::{Diagnostic, Severity, render};
use crate::source::SourceMap;

/// Version of the envelope; it changes when a key changes its meaning or goes away.
pub const ENVELOPE: &str = "trafoc/1";

/// As many diagnostics are shown to a person; programs get all of them.
pub const MAX_SHOWN: usize = 50;

/// Columns of text where a terminal does not say how many it has.
pub const DEFAULT_WIDTH: usize = 80;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked.
    Ok,
    /// The spec, or whatever else was judged, did not pass.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// It would need more than there is, or would destroy something.
    Refused,
    /// A file cannot be read or written, or is not what it should be.
    File,
    /// The device is not there.
    Device,
    /// The user interrupted it (Ctrl-C), and everything is saved.
    Interrupted,
    /// The system ended it, and everything is saved.
    Terminated,
    /// A fault of trafoc.
    Bug,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::File => 4,
            Exit::Device => 5,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
            Exit::Bug => 101,
        }
    }

    /// The `status` of an envelope.
    pub fn word(self) -> &'static str {
        match self {
            Exit::Ok => "ok",
            Exit::Failed => "failed",
            Exit::Usage => "usage",
            Exit::Refused => "refused",
            Exit::File => "file",
            Exit::Device => "device",
            Exit::Interrupted => "interrupted",
            Exit::Terminated => "terminated",
            Exit::Bug => "bug",
        }
    }
}

/// What a command gives.
#[derive(Clone, Debug)]
pub struct Output {
    /// The text of stdout.
    pub text: String,
    /// The same as data.
    pub data: Json,
    /// Usually [`Exit::Ok`].
    pub exit: Exit,
}

impl Output {
    /// A text and the data it shows.
    pub fn new(text: impl Into<String>, data: impl Serialize) -> Result<Self, Failure> {
        let data = serde_json::to_value(data).map_err(|e| Failure::bug(e.to_string()))?;
        Ok(Self { text: text.into(), data, exit: Exit::Ok })
    }
}

/// Why a command gives nothing. What is wrong with a spec has been told by [`Ui::diagnose`] before.
#[derive(Clone, Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// Lower case, one sentence, no full stop.
    pub message: String,
    /// What would mend it.
    pub help: Vec<String>,
}

impl Failure {
    /// A failure of a kind.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), help: Vec::new() }
    }

    /// The command line makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A fault of trafoc.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(Exit::Bug, message)
    }

    /// Adds a line that would mend it.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }
}

impl From<crate::lower::Bug> for Failure {
    fn from(bug: crate::lower::Bug) -> Self {
        Self::bug(bug.0)
    }
}

/// In what form a command speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// Diagnostics a line each, for editors
    Short,
    /// One object on stdout, for programs
    Json,
}

/// `--format`, where there is no table.
#[derive(Clone, Debug, clap::Args)]
pub struct FormatArg {
    /// text, short (a line a diagnostic) or json
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub format: Format,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// The word of the command line or of `TRAFOC_COLOR`.
    pub fn from_word(word: &str) -> Option<Self> {
        <Self as clap::ValueEnum>::from_str(word, true).ok()
    }

    /// The decision for a stream: the flag, then NO_COLOR, then CLICOLOR_FORCE, then the terminal.
    pub fn on(self, is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
        let is_set = |name| variable(name).is_some_and(|v| !v.is_empty());
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if is_set("NO_COLOR") => false,
            Color::Auto if is_set("CLICOLOR_FORCE") => variable("CLICOLOR_FORCE").as_deref() != Some("0"),
            Color::Auto => is_terminal && variable("TERM").as_deref() != Some("dumb"),
        }
    }
}

/// The one object of `--format json`.
#[derive(Debug, Serialize)]
struct Envelope<'a> {
    schema: &'static str,
    command: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    help: &'a [String],
    diagnostics: &'a [render::Data],
    data: &'a Json,
}

/// The streams of one command.
#[derive(Debug)]
pub struct Ui {
    command: String,
    format: Format,
    is_quiet: bool,
    color: bool,
    diagnostics: Vec<render::Data>,
    /// Whether a line of progress stands on the terminal, which the next text replaces.
    has_status: std::cell::Cell<bool>,
}

impl Ui {
    /// For a command.
    pub fn new(command: &str, format: Format, color: Color, is_quiet: bool) -> Self {
        let color = color.on(io::stderr().is_terminal(), |name| std::env::var(name).ok());
        Self {
            command: command.to_owned(),
            format,
            is_quiet,
            color,
            diagnostics: Vec::new(),
            has_status: Default::default(),
        }
    }

    /// Whether only data is wanted.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Columns a text on stdout may have.
    pub fn width(&self) -> usize {
        terminal_size::terminal_size_of(io::stdout()).map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0))
    }

    /// Tells what was found in a spec.
    pub fn diagnose(&mut self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        let shown = diagnostics.get(..MAX_SHOWN).unwrap_or(diagnostics);
        let mut text = match self.format {
            Format::Json => {
                self.diagnostics.extend(diagnostics.iter().map(|d| render::data(d, sources)));
                return;
            }
            Format::Short => shown.iter().map(|d| render::short(d, sources) + "\n").collect(),
            Format::Text => {
                let width = terminal_size::terminal_size_of(io::stderr());
                let width = width.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
                let mut text = render::render(shown, sources, self.color, width);
                if !text.is_empty() {
                    text.push('\n');
                }
                text
            }
        };
        if diagnostics.len() > shown.len() {
            text += &format!("… and {} more\n", diagnostics.len() - shown.len());
        }
        self.say(&text);
    }

    /// Tells something that is neither data nor wrong, such as what to do next.
    pub fn note(&self, text: &str) {
        if !self.is_quiet && self.format != Format::Json {
            self.say(&format!("{}\n", render::visible(text)));
        }
    }

    /// Tells the command that usually comes next.
    pub fn next(&self, command: &str) {
        self.note(&format!("next: {command}"));
    }

    /// Shows how far something has come, in one line that the next one replaces. Where stderr is no
    /// terminal nothing is shown, and the answer is false.
    pub fn status(&self, text: &str) -> bool {
        if !io::stderr().is_terminal() || self.is_quiet || self.format == Format::Json {
            return false;
        }
        let width = terminal_size::terminal_size_of(io::stderr());
        let width = width.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
        let text: String = render::visible(text).chars().take(width.saturating_sub(1)).collect();
        self.say(&text);
        self.has_status.set(true);
        true
    }

    /// Whether a line of progress stands on the terminal.
    pub fn shows_status(&self) -> bool {
        self.has_status.get()
    }

    fn say(&self, text: &str) {
        if self.has_status.replace(false) {
            let _ = io::stderr().lock().write_all(b"\r\x1b[2K");
        }
        // Nobody is left to tell when stderr is closed.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Writes the data, or says why there is none, and gives the exit code.
    pub fn finish(self, result: Result<Output, Failure>) -> ExitCode {
        self.say("");
        let (exit, text) = match (&result, self.format) {
            (Ok(output), Format::Json) => (output.exit, self.envelope(output.exit, None, &output.data)),
            (Ok(output), Format::Text | Format::Short) => (output.exit, output.text.clone()),
            (Err(failure), Format::Json) => {
                (failure.exit, self.envelope(failure.exit, Some(failure), &Json::Null))
            }
            (Err(failure), Format::Text | Format::Short) => {
                self.say(&self.failure(failure));
                (failure.exit, String::new())
            }
        };
        match print(&text) {
            Ok(()) => ExitCode::from(exit.code()),
            // A reader such as `head` has seen enough.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(exit.code()),
            Err(e) => {
                self.say(&format!("error: cannot write to stdout: {}\n", super::file::reason(&e)));
                ExitCode::from(Exit::File.code())
            }
        }
    }

    fn envelope(&self, exit: Exit, failure: Option<&Failure>, data: &Json) -> String {
        let envelope = Envelope {
            schema: ENVELOPE,
            command: &self.command,
            status: exit.word(),
            error: failure.map(|f| f.message.as_str()).filter(|m| !m.is_empty()),
            help: failure.map_or(&[], |f| f.help.as_slice()),
            diagnostics: &self.diagnostics,
            data,
        };
        let text = serde_json::to_string_pretty(&envelope).unwrap_or_default();
        format!("{text}\n")
    }

    fn failure(&self, failure: &Failure) -> String {
        let (red, blue, plain) =
            if self.color { ("\x1b[1;91m", "\x1b[1;96m", "\x1b[0m") } else { ("", "", "") };
        if failure.exit == Exit::Bug {
            return render::visible(&bug_report(&failure.message, &self.command)).into_owned();
        }
        if failure.message.is_empty() {
            return String::new();
        }
        let mut text = format!("{red}error{plain}: {}\n", render::visible(&failure.message));
        for help in &failure.help {
            text += &format!("{blue}help{plain}: {}\n", render::visible(help));
        }
        text
    }
}

/// Why a command that needs tensors gives nothing in a program without them.
#[cfg(not(feature = "interp"))]
pub fn without_interp(what: &str) -> Failure {
    let message = format!("this trafoc was built without the feature `interp`, and cannot {what}");
    Failure::new(Exit::Device, message).help("build it with `--features flex`, its default")
}

/// Writes to stdout; a terminal is shown characters that steer it as what they are, files keep every byte.
///
/// # Errors
/// The reader has gone, or the disk behind it is full.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(render::visible(text).as_bytes())?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    out.flush()
}

/// What is said when trafoc is at fault: no word of the spec, which may be secret.
pub fn bug_report(what: &str, command: &str) -> String {
    format!(
        "error: this is a bug in trafoc: {what}\n  version  trafoc {}\n  command  trafoc {command}\n  system   {} {}\n\
         please report it with the spec that shows it, as small as you can make it\n",
        super::VERSION,
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

/// `1 error`, `3 errors and 1 warning`
pub fn counted(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let words = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    match (count(Severity::Error), count(Severity::Warning)) {
        (errors, 0) => words(errors, "error"),
        (0, warnings) => words(warnings, "warning"),
        (errors, warnings) => format!("{} and {}", words(errors, "error"), words(warnings, "warning")),
    }
}
