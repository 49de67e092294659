//! How a command ends: with a result, or with the reason why there is none.

use schemars::JsonSchema;
use serde::Serialize;

/// How a command ends: an exit code, and the `status` of the JSON envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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
    /// The terminal was closed, and everything is saved.
    HungUp,
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
            // 128 and the number of the signal, as shells report it.
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
            Exit::HungUp => 129,
            // The exit code of a Rust program that panics.
            Exit::Bug => 101,
        }
    }
}

/// The result of a command, in the two forms in which it can be printed.
#[derive(Clone, Debug)]
pub struct Output<D> {
    /// The text for stdout, unless a program reads it.
    pub text: String,
    /// The same as data, for `--format json`.
    pub data: D,
    /// How the process ends: [`Exit::Ok`], unless what was judged did not pass.
    pub exit: Exit,
}

impl<D> Output<D> {
    /// A text and the data it shows.
    pub fn new(text: impl Into<String>, data: D) -> Self {
        Self { text: text.into(), data, exit: Exit::Ok }
    }

    /// The same result with another exit, such as that of a check that found warnings.
    pub fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

/// Why a command has no result. The diagnostics of a spec have been shown before.
#[derive(Clone, Debug)]
pub struct Failure {
    /// How the process ends; never [`Exit::Ok`].
    pub exit: Exit,
    /// Lower case, one sentence, no full stop.
    pub message: String,
    /// How to fix it, one suggestion each.
    pub help: Vec<String>,
}

impl Failure {
    /// A failure of a kind.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), help: Vec::new() }
    }

    /// A failure of the command line itself: options that contradict each other or would have no effect.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A fault of trafoc, which is shown with a request to report it.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(Exit::Bug, message)
    }

    /// Adds a suggestion that would fix it.
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
