//! The streams: data to stdout, everything else to stderr.
//!
//! Commands return an output or a failure and do not print. Nothing but the data of a command is printed to
//! stdout; with `--format json` that is one object, whatever happens.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write as _};
use std::path::Path;

use serde_json::Value as Json;

use super::format::{self, Format};
use super::outcome::{Exit, Failure};
use crate::diag::{Certainty, Diagnostic, Severity, render};
use crate::report::summary::Summary;
use crate::source::{SourceMap, Span};
use crate::syntax::allow::allowances;
use crate::syntax::edit;
use crate::syntax::set::argument_at;

/// The version of trafoc, followed by the commit if it was known at build time: `0.1.0 (1a2b3c4d5)`.
pub const VERSION: &str = env!("TRAFOC_VERSION");

/// The suggestions that are tried, each of which takes a pass over the text, to say that a program can carry one out.
const MOST_TRIED: usize = 4;

/// The most diagnostics that are shown to a person; programs get all of them.
pub const MAX_SHOWN: usize = 50;

/// The width of a text if the terminal does not report one.
pub const DEFAULT_WIDTH: usize = 80;

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
        // By the convention of NO_COLOR an empty variable counts as absent.
        let is_set = |name| variable(name).is_some_and(|v| !v.is_empty());
        // `CLICOLOR_FORCE=0` forces nothing, so that the terminal decides.
        let is_forced = || is_set("CLICOLOR_FORCE") && variable("CLICOLOR_FORCE").as_deref() != Some("0");
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if is_set("NO_COLOR") => false,
            Color::Auto if is_forced() => true,
            // A terminal that calls itself dumb would show the escape sequences as text.
            Color::Auto => is_terminal && variable("TERM").as_deref() != Some("dumb"),
        }
    }
}

/// The command line, for the commands that describe it: `completions`, `man` and `schema`.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its grammar: commands, options, help.
    pub grammar: fn() -> clap::Command,
    /// The JSON schema of what a command prints with `--format json`; `None` if there is no such command.
    pub schema: fn(&str) -> Option<Json>,
}

/// The streams of one command: how it prints its notes, its diagnostics and its progress.
#[derive(Debug)]
pub struct Ui {
    command: String,
    format: Format,
    is_quiet: bool,
    color: bool,
    program: Program,
    diagnostics: Vec<render::Data>,
    /// Why some of several specs have no result, if a report is printed of all.
    failures: Vec<Failure>,
    /// Whether the terminal shows a line of progress, which the next text replaces.
    has_status: std::cell::Cell<bool>,
    /// The lines about the commands that usually come next.
    next: std::cell::RefCell<Vec<String>>,
    /// Whether these are said.
    says_next: bool,
    /// The places of comments that have allowed a warning.
    allowed: BTreeSet<Span>,
    /// The sources with a suggestion that a program can carry out.
    fixable: BTreeSet<String>,
}

impl Ui {
    /// The streams of a command; empty if the command line names none.
    pub fn new(command: &str, format: Format, color: Color, is_quiet: bool, program: Program) -> Self {
        let color = color.on(io::stderr().is_terminal(), |name| std::env::var(name).ok());
        let color = color && format != Format::Agent;
        Self {
            command: command.to_owned(),
            format,
            is_quiet,
            color,
            program,
            diagnostics: Vec::new(),
            failures: Vec::new(),
            has_status: Default::default(),
            next: Default::default(),
            says_next: true,
            allowed: BTreeSet::new(),
            fixable: BTreeSet::new(),
        }
    }

    /// The same streams, which do not say which command usually comes next.
    pub fn without_next(self) -> Self {
        Self { says_next: false, ..self }
    }

    /// The name of the command; empty if the command line names none.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The form in which the command prints its data.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The grammar of all commands and the schemas of their output.
    pub fn program(&self) -> Program {
        self.program
    }

    /// The diagnostics that were found, if they are printed together with the result.
    pub fn diagnostics(&self) -> &[render::Data] {
        &self.diagnostics
    }

    /// The failures of single specs that no diagnostic has reported, if they are printed with the result.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// The number of errors among the diagnostics that are kept for the result.
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// Says why one of several specs has no result; the command goes on with the others. `is_reported`: whether
    /// diagnostics have said it.
    pub fn fail(&mut self, failure: &Failure, is_reported: bool) {
        match self.format {
            Format::Text | Format::Short | Format::Agent => self.say(&self.failure(failure)),
            Format::Github | Format::Sarif if !is_reported => self.failures.push(failure.clone()),
            // The data has it, or the report has its diagnostics.
            Format::Json | Format::Github | Format::Sarif => {}
        }
    }

    /// Whether notes and progress are left out (`--quiet`).
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// The width of a text on stdout.
    pub fn width(&self) -> usize {
        let width = terminal_size::terminal_size_of(io::stdout());
        self.limit(width.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0)))
    }

    /// The width of a text that has `usual` columns for people, whatever their terminal.
    pub fn limit(&self, usual: usize) -> usize {
        format::limit(self.format, usual)
    }

    /// A page with a label and values in each line, for stdout. It is read by people, also out of a file it was
    /// written to, so that nothing it quotes from a file may steer a terminal.
    pub fn page(&self, text: String) -> String {
        let text = render::visible(&text).into_owned();
        if self.format == Format::Agent { format::unaligned(&text) } else { text }
    }

    /// The page about a model.
    pub fn summary(&self, summary: &Summary) -> String {
        self.page(format!("{summary:width$}", width = self.limit(DEFAULT_WIDTH)))
    }

    /// Reports what was found in a spec, except for warnings that a comment in it allows. Returns the number that is
    /// reported.
    pub fn diagnose(&mut self, diagnostics: &[Diagnostic], sources: &SourceMap) -> usize {
        let has_warnings = diagnostics.iter().any(|d| d.severity == Severity::Warning);
        let allowances = if has_warnings { allowances(sources) } else { Vec::new() };
        let mut kept: Vec<Diagnostic> = diagnostics.to_vec();
        for allowance in allowances {
            let before = kept.len();
            kept.retain(|diagnostic| !allowance.allows(diagnostic));
            if kept.len() < before {
                self.allowed.insert(allowance.place);
            }
        }
        let may_be_safe =
            |d: &&Diagnostic| d.fix.as_ref().is_some_and(|fix| fix.certainty() != Certainty::Guess);
        let with_fix: Vec<Diagnostic> = kept.iter().filter(may_be_safe).take(MOST_TRIED).cloned().collect();
        let fixes = edit::fixes(&with_fix, sources).into_iter();
        let safe = with_fix.iter().zip(fixes).filter(|(_, fix)| fix.as_ref().is_some_and(|fix| fix.safe));
        let names = safe.filter_map(|(d, _)| sources.get(d.span().source)).map(|source| source.name.clone());
        self.fixable.extend(names);
        self.show(&kept, sources);
        kept.len()
    }

    /// Whether a suggestion for this source has been reported that a program can carry out.
    pub fn has_fix(&self, source: &str) -> bool {
        self.fixable.contains(source)
    }

    /// Whether the comment at a place has allowed a warning.
    pub fn has_allowed(&self, place: Span) -> bool {
        self.allowed.contains(&place)
    }

    /// Shows diagnostics, or keeps them for a program.
    fn show(&mut self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        // They are ordered by place, so these are the first ones in the text.
        let shown = diagnostics.get(..MAX_SHOWN).unwrap_or(diagnostics);
        let mut text = match self.format {
            // Kept until the end, because stdout gets them together with the result as one text.
            Format::Json | Format::Github | Format::Sarif => {
                let fixes = edit::fixes(diagnostics, sources);
                let data = diagnostics.iter().zip(fixes);
                self.diagnostics
                    .extend(data.map(|(d, fix)| render::Data { fix, ..render::data(d, sources) }));
                return;
            }
            Format::Short => shown.iter().map(|d| render::short(d, sources) + "\n").collect(),
            // Its reader has asked for all there is.
            Format::Agent => {
                let lines = diagnostics.iter().map(|d| render::whole_line(d, sources) + "\n");
                self.say(&lines.collect::<String>());
                return;
            }
            Format::Text => {
                // The width of stderr, where they are shown: stdout may be a file at the same time.
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

    /// Says something that is neither data nor an error.
    pub fn note(&self, text: &str) {
        if !self.is_quiet && !self.format.is_for_programs() {
            // A note may quote a file, which must not steer the terminal.
            self.say(&format!("{}\n", render::visible(text)));
        }
    }

    /// Says on stderr which command usually comes next, as a whole command line that can be copied: after the
    /// data of this one, because a reader reads on from there.
    pub fn next(&self, command: &str) {
        if self.says_next && self.format != Format::Agent {
            self.next.borrow_mut().push(format!("next: {command}"));
        }
    }

    /// Says what [`Ui::next`] was given, once the data is printed.
    pub fn say_next(&self) {
        for line in self.next.take() {
            self.note(&line);
        }
    }

    /// Shows the progress in one line, which the next text replaces. Returns false, and shows nothing, if
    /// stderr is not a terminal.
    pub fn status(&self, text: &str) -> bool {
        // In a file the erased lines would all stay, and a terminal that calls itself dumb would show the sequences that erase
        // them.
        let erases = io::stderr().is_terminal() && std::env::var("TERM").as_deref() != Ok("dumb");
        if !erases || self.is_quiet || self.format.is_for_programs() || self.format == Format::Agent {
            return false;
        }
        let width = terminal_size::terminal_size_of(io::stderr());
        let width = width.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
        // A line as wide as the terminal would continue on the next one, which is not erased.
        let text: String = render::visible(text).chars().take(width.saturating_sub(1)).collect();
        self.say(&text);
        self.has_status.set(true);
        true
    }

    /// Whether the terminal shows a line of progress.
    pub fn shows_status(&self) -> bool {
        self.has_status.get()
    }

    /// Writes to stderr, over a line of progress if there is one.
    pub fn say(&self, text: &str) {
        if self.has_status.replace(false) {
            // To the beginning of the line, and erase it.
            let _ = io::stderr().lock().write_all(b"\r\x1b[2K");
        }
        // If stderr is closed, there is no other place for it.
        let _ = io::stderr().lock().write_all(for_stream(text, io::stderr().is_terminal()).as_bytes());
    }

    /// A failure as a text for people.
    pub fn failure(&self, failure: &Failure) -> String {
        // The colours in which diagnostics have these words.

        let (red, blue, plain) =
            if self.color { ("\x1b[1;91m", "\x1b[1;96m", "\x1b[0m") } else { ("", "", "") };
        // A bug has a report of its own, with what its reader needs to pass on.
        if failure.exit == Exit::Bug {
            return render::visible(&bug_report(&failure.message, &self.command)).into_owned();
        }
        // Its diagnostics have said everything.
        if failure.message.is_empty() {
            return String::new();
        }
        // A message is one line; a line feed can only be that of a name in it.
        let mut text = format!("{red}error{plain}: {}\n", render::visible_name(&failure.message));
        if self.format == Format::Agent {
            let parts = failure.help.iter().map(|help| format!("; help: {}", render::visible_name(help)));
            return format!("{}{}\n", text.trim_end(), parts.collect::<String>());
        }
        for help in &failure.help {
            text += &format!("{blue}help{plain}: {}\n", render::visible(help));
        }
        text
    }
}

/// Why a command that runs models cannot, in a program that was built without the interpreter.
#[cfg(not(feature = "interp"))]
pub fn without_interp(what: &str) -> Failure {
    let message = format!("this trafoc was built without the feature `interp`, so it cannot {what}");
    Failure::new(Exit::Device, message).help("build it with `--features flex`, its default")
}

/// The name of the locale for characters, if it is set: the first of its variables that is, as in POSIX.
fn locale() -> Option<String> {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set)
}

/// Whether the locale says that texts are in UTF-8.
pub fn is_utf8() -> bool {
    // `C.UTF-8` and `en_US.utf8` are both usual spellings.
    locale().is_some_and(|locale| locale.to_lowercase().replace('-', "").contains("utf8"))
}

/// A text for a stream. A terminal whose locale names another encoding gets ASCII in place of lines and signs;
/// one without a locale, as in a container, usually shows UTF-8.
fn for_stream(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal && locale().is_some() && !is_utf8() { render::ascii(text) } else { Cow::Borrowed(text) }
}

/// Writes a text that may have colours to stdout or stderr.
///
/// # Errors
/// The reader has closed the stream, or the disk is full.
pub fn write_styled(text: &str, to_stdout: bool) -> io::Result<()> {
    if to_stdout {
        let mut out = io::stdout().lock();
        out.write_all(for_stream(text, out.is_terminal()).as_bytes())?;
        return out.flush();
    }
    io::stderr().lock().write_all(for_stream(text, io::stderr().is_terminal()).as_bytes())
}

/// Writes to stdout. Control characters are made visible on a terminal; a file gets every byte.
///
/// # Errors
/// The reader has closed the stream, or the disk is full.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(for_stream(&render::visible(text), true).as_bytes())?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    // Otherwise a full disk would be noticed only when the process ends, and the exit code would say ok.
    out.flush()
}

/// Clears the terminal before a command is carried out again; elsewhere an empty line separates the two.
pub fn clear() {
    let is_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
    let is_dumb = std::env::var("TERM").as_deref() == Ok("dumb");
    // Erase everything, and to the upper left corner.
    let text = if is_terminal && !is_dumb { "\x1b[2J\x1b[H" } else { "\n" };
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The path of a file that was written, as a line of stdout: every byte for a program, and what cannot steer a
/// terminal or begin a line for its reader.
pub fn path_line(path: &Path) -> String {
    let name = path.display().to_string();
    if io::stdout().is_terminal() {
        format!("{}\n", render::visible_name(&name))
    } else {
        format!("{name}\n")
    }
}

/// The report of a bug in trafoc. It contains nothing of the spec, which may be secret.
pub fn bug_report(what: &str, command: &str) -> String {
    format!(
        "error: this is a bug in trafoc: {what}\n  version  trafoc {}\n  command  trafoc {command}\n  system   {} {}\n\
         please report it with the spec that shows it, as small as you can make it\n",
        VERSION,
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

/// `1 error`, `3 errors and 1 warning`
pub fn counted(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let words = |n: usize, word: &str| crate::diag::count::counted(n, word);
    match (count(Severity::Error), count(Severity::Warning)) {
        (errors, 0) => words(errors, "error"),
        (0, warnings) => words(warnings, "warning"),
        (errors, warnings) => format!("{} and {}", words(errors, "error"), words(warnings, "warning")),
    }
}

/// How many errors and warnings a recipe has, and how many the settings that change it: `` `a.yaml` has 1 error, and
/// `--with` has 2 errors ``.
pub fn counted_where(recipe: &str, diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    let (in_settings, own): (Vec<Diagnostic>, Vec<Diagnostic>) =
        diagnostics.iter().cloned().partition(|d| argument_at(sources, d.span()).is_some());
    let option =
        in_settings.first().and_then(|d| argument_at(sources, d.span())).map_or("", |(option, _)| option);
    let both = [(recipe, own), (option, in_settings)];
    let each = both.iter().filter(|(_, found)| !found.is_empty());
    each.map(|(place, found)| format!("`{place}` has {}", counted(found))).collect::<Vec<_>>().join(", and ")
}

/// A duration in its two largest units, rounded to seconds: `2h 05m`, `1m 20s`, `7s`.
pub fn shown_duration(seconds: f64) -> String {
    // `max` turns NaN into 0, and the conversion saturates, so that an estimate without a bound is printed
    // too.
    let all = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m {seconds:02}s"),
        _ => format!("{hours}h {minutes:02}m"),
    }
}
