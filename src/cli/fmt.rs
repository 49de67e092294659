//! `trafoc fmt`: formats specs, with every comment kept.

use std::path::Path;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::{Command, Printed};
use super::file;
use super::format::{Format, FormatArg};
use super::outcome::{Exit, Failure, Output};
use super::subject::{LangArg, open};
use super::ui::{Ui, counted};
use crate::diag::Sink;
use crate::spec::{is_part, version};
use crate::syntax::fmt;

/// The command line of `fmt`.
#[derive(Debug, Args)]
pub struct Fmt {
    /// Spec files, or `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Write nothing; fail if a file is not formatted
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Write the files back
    #[arg(long, short)]
    write: bool,
    #[command(flatten)]
    lang: LangArg,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `fmt` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Data {
    /// With `--write` and `--check`.
    Changed {
        /// The files that were not formatted.
        changed: Vec<String>,
    },
    /// The formatted text, without these options.
    Printed(Printed),
}

impl Command for Fmt {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Formats to stdout or in place, or only checks.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        if self.files.len() > 1 && !self.write && !self.check {
            return Err(Failure::usage("several files cannot be written to stdout")
                .help("`--write` writes them back"));
        }
        // Before the first file is written, so that a wrong command line changes none.
        // `-` is stdin and `@` a shipped spec: neither is a file that could be written.
        let is_file = |name: &String| name != "-" && !name.starts_with('@');
        if let Some(name) = self.files.iter().find(|name| self.write && !is_file(name)) {
            return Err(Failure::usage(format!("`{name}` cannot be written back")));
        }
        let mut text = String::new();
        let mut changed = Vec::new();
        let mut faulty = 0;
        for name in &self.files {
            // Not compiled: a spec that does not make sense yet can be formatted, as long as it can be
            // parsed.
            let opened = open(name, self.lang.lang(), self.lang.families(), ui)?;
            let mut sink = Sink::new();
            let later = version::later(&opened.sources, opened.id, opened.notation);
            let formatted = fmt::fmt(&opened.sources, opened.id, opened.notation, &is_part, &mut sink);
            let formatted = formatted.filter(|_| later.is_none());
            later.into_iter().for_each(|later| sink.push(later));
            let found = sink.into_sorted();
            ui.diagnose(&found, &opened.sources);
            let Some(formatted) = formatted else {
                // The files that follow are formatted nevertheless.
                ui.note(&format!("`{}` has {} and is not changed", opened.name, counted(&found)));
                faulty += 1;
                continue;
            };
            let is_same = opened.sources.get(opened.id).is_some_and(|s| s.text == formatted);
            if !is_same {
                changed.push(opened.name.clone());
            }
            // A file in its usual form keeps its time of change, by which build tools and editors notice one.
            if self.write && !is_same {
                file::write(Path::new(name), &formatted)?;
            }
            if !self.write && !self.check {
                text = formatted;
            }
        }
        // At the end, after every file that can be formatted was.
        if faulty > 0 {
            return Err(Failure::new(Exit::Failed, "a text with errors cannot be formatted"));
        }
        let is_failed = self.check && !changed.is_empty();
        let output = if self.write || self.check {
            let lines: String = changed.iter().map(|name| format!("{name}\n")).collect();
            Output::new(lines, Data::Changed { changed })
        } else {
            Output::new(text.clone(), Data::Printed(Printed { text }))
        };
        if is_failed {
            ui.note("not formatted; `trafoc fmt --write` formats it");
            return Ok(output.with_exit(Exit::Failed));
        }
        Ok(output)
    }
}
