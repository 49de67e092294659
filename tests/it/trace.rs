//! What the program asks of the system, by `strace`: each of these calls may fail or be the last one, files are flushed
//! before they get their names, no file is opened that a hostile one names, and nothing uses a network.
//!
//! The tests need Linux, `strace`, and `script` for a terminal, so an ordinary `cargo test` leaves them out;
//! `.ci/run trace` installs what is missing and runs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod names;
mod network;
mod save;
mod terminal;

/// One call of a thread, as `strace -y` writes it: `openat(AT_FDCWD</runs>, "a", O_RDONLY) = 3</runs/a>`.
#[derive(Clone, Debug)]
struct Call {
    name: String,
    arguments: String,
    result: String,
}

/// The calls that name a file by its path, possibly in an open folder.
const NAMING: &[&str] =
    &["open", "openat", "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2"];

impl Call {
    /// A line of `strace`; the last ones of a thread are no calls.
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(" = ")?;
        let arguments = arguments.trim_end().strip_suffix(')')?;
        Some(Self { name: name.to_owned(), arguments: arguments.to_owned(), result: result.to_owned() })
    }

    fn succeeded(&self) -> bool {
        !self.result.starts_with('-') && self.result != "?"
    }

    /// The paths of the files that it is about, in the order of its arguments: those it names if it names files, else
    /// those of its open files.
    fn paths(&self, at: &Path) -> Vec<PathBuf> {
        let is_naming = NAMING.contains(&self.name.as_str());
        let mut found = Vec::new();
        let mut folder = at.to_owned();
        let mut rest = self.arguments.as_str();
        while let Some(start) = rest.find(['<', '"']) {
            let end = if rest[start..].starts_with('<') { '>' } else { '"' };
            let inner = &rest[start + 1..];
            let Some(length) = inner.find(end) else { break };
            let text = &inner[..length];
            rest = &inner[length + 1..];
            match (end, is_naming) {
                ('>', true) => folder = text.into(),
                ('>', false) => found.push(text.into()),
                // What is written is no path.
                (_, true) => found.push(folder.join(text)),
                (_, false) => {}
            }
        }
        found
    }

    /// The path of the file that it has opened, which is not that of a link.
    fn opened(&self) -> Option<PathBuf> {
        let is_open = self.succeeded() && self.name.starts_with("open");
        is_open.then(|| self.result.split_once('<')?.1.strip_suffix('>').map(PathBuf::from)).flatten()
    }
}

/// `command` under `strace`, which writes what each thread calls into a file of its own in `folder`.
fn traced(command: &Command, folder: &Path, options: &[String]) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-ff", "-y", "-q", "-s", "0", "-o"]).arg(folder.join("calls")).args(options);
    strace.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        strace.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    strace
}

/// The option with which calls of these names are traced; systems need not have all of them.
fn of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("?{name}")).collect();
    format!("--trace={}", names.join(","))
}

/// Runs a command and returns what it said and what its threads called, by the ids of threads.
fn calls(command: &Command, options: &[String]) -> (Output, BTreeMap<String, Vec<Call>>) {
    let folder = tempfile::tempdir().unwrap();
    let output = traced(command, folder.path(), options).output().expect("these tests need `strace`");
    let mut threads = BTreeMap::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        // Names of files are bytes.
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let thread = path.extension().unwrap().to_string_lossy().into_owned();
        threads.insert(thread, text.lines().filter_map(Call::parse).collect());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!threads.is_empty(), "strace traced nothing: {said}");
    (output, threads)
}
