//! A panic, which is always a bug of trafoc: the report on stderr, and the file that can be attached to it.

use std::backtrace::Backtrace;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{self, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::doctor::features;
use super::ui::{self, VERSION};
use crate::diag::render::visible;
use crate::learn::calls::time;
use crate::write;

/// Reports a panic as a bug of trafoc, in place of Rust's own message, and writes what is known of it to a file. The
/// `options` are those that were given, without their values.
pub fn report_panics(command: &'static str, options: Vec<String>) {
    panic::set_hook(Box::new(move |info| {
        let place = place(info);
        let at = place.as_ref().map_or(String::new(), |place| format!(" at {place}"));
        let report = ui::bug_report(&format!("{}{at}", said(info).0), command);
        // The text of a panic may quote a file, which must not steer the terminal.
        let _ = std::io::stderr().write_all(visible(&report).as_bytes());
        // Several threads may panic for the same reason, and the first of them says it.
        static IS_WRITTEN: AtomicBool = AtomicBool::new(false);
        if IS_WRITTEN.swap(true, Ordering::SeqCst) {
            return;
        }
        let text = text(command, &options, info, place.as_deref());
        let folders = [PathBuf::from("."), std::env::temp_dir()];
        if let Some(path) = folders.iter().find_map(|folder| put(folder, &text)) {
            let note = format!("please attach {}, which has nothing of the spec\n", path.display());
            let _ = std::io::stderr().write_all(visible(&note).as_bytes());
        }
    }));
}

/// The text of a panic, and whether it is a constant of the program.
fn said<'i>(info: &'i PanicHookInfo<'_>) -> (&'i str, bool) {
    let payload = info.payload();
    // A panic with a constant message carries a `&str`, one with a formatted message a `String`.
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (text, true),
        (None, Some(text)) => (text, false),
        (None, None) => ("it panicked", true),
    }
}

/// The file, the line and the column of the code that panicked.
fn place(info: &PanicHookInfo<'_>) -> Option<String> {
    info.location().map(|at| format!("{}:{}:{}", at.file(), at.line(), at.column()))
}

/// The content of the file. A message that was put together may quote a spec, so it is on stderr alone.
fn text(command: &str, options: &[String], info: &PanicHookInfo<'_>, place: Option<&str>) -> String {
    let message = match said(info) {
        (text, true) => text,
        (_, false) => "only on stderr, because it may quote a file",
    };
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let thread = std::thread::current();
    let mut text = String::from(
        "A crash of trafoc, which is a bug. This file has nothing of a spec, of data or of the values of options.\n\n",
    );
    for (label, value) in [
        ("time", time()),
        ("version", format!("trafoc {VERSION}")),
        ("command", format!("trafoc {command}")),
        ("options", if options.is_empty() { "none".to_owned() } else { options.join(" ") }),
        ("system", format!("{os} {arch}")),
        ("features", features().join(" ")),
        ("thread", thread.name().unwrap_or("without a name").to_owned()),
        ("place", place.unwrap_or("unknown").to_owned()),
        ("message", message.to_owned()),
    ] {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{label:9} {value}");
    }
    let _ = write!(text, "\n{}", Backtrace::force_capture());
    text
}

/// Writes a new file into a folder, never over another one. Returns its path, if it could be written.
fn put(folder: &Path, text: &str) -> Option<PathBuf> {
    // Without colons, which names of files on Windows cannot have.
    let time = time().replace(':', "");
    let name = format!("trafoc-crash-{time}-{}.txt", std::process::id());
    // A name alone is clearer than one that begins with `./`.
    let path = if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) };
    match write::create(&path, text.as_bytes()) {
        Ok(()) => Some(path),
        Err(error) => {
            // A file that was there before is left alone. One that a full disk has cut short is of no use.
            if error.kind() != std::io::ErrorKind::AlreadyExists {
                let _ = std::fs::remove_file(&path);
            }
            None
        }
    }
}

/// The names of the options and arguments that were given on the command line, such as `--set` and `SPEC`, without
/// their values, which may be secret.
pub fn given(grammar: &clap::Command, matches: &ArgMatches) -> Vec<String> {
    let is_given = |argument: &&clap::Arg| {
        let id = argument.get_id().as_str();
        matches.ids().any(|known| known.as_str() == id)
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let named = |argument: &clap::Arg| match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => argument
            .get_value_names()
            .and_then(|names| names.first())
            .map_or("", |name| name.as_str())
            .to_owned(),
    };
    let mut all: Vec<String> = grammar.get_arguments().filter(is_given).map(named).collect();
    if let Some((name, below)) = matches.subcommand()
        && let Some(grammar) = grammar.find_subcommand(name)
    {
        for option in given(grammar, below) {
            // One that may follow any command is known to both.
            if !all.contains(&option) {
                all.push(option);
            }
        }
    }
    all
}
