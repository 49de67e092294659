//! `trafoc build`: check, say what it is, write Rust.

use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::file;
use super::format::{Format, FormatArg};
use super::outcome::{Exit, Failure, Output};
use super::subject::SpecArgs;
use super::ui::Ui;
use crate::emit::rust::{self, Form};
use crate::read::{self, limit};
use crate::report::summary::{Summary, summary};

/// Arguments of `build`.
#[derive(Debug, Args)]
pub struct Build {
    #[command(flatten)]
    spec: SpecArgs,
    /// The file to write, the folder to write `NAME.rs` to, or `-` for stdout
    #[arg(long, short, value_name = "PATH", default_value = "generated", conflicts_with = "krate")]
    out: PathBuf,
    /// Write a whole crate into this folder; `cargo run` in it runs the model
    #[arg(long = "crate", value_name = "DIR")]
    krate: Option<PathBuf>,
    /// Write what the model calls of the crate `trafoc-kernels` into the file, which then needs burn alone; the
    /// numbers are the same up to rounding
    #[arg(long)]
    standalone: bool,
    /// Overwrite files that trafoc has not written
    #[arg(long)]
    force: bool,
    /// How to speak.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `build` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// What the model is and what it costs.
    summary: Summary,
    /// The file that was written, or the folder of the crate.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    /// All files that were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<PathBuf>>,
    /// The source, with `--out -`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Command for Build {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the model; the last line is its path.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let subject = self.spec.compile(ui)?;
        let summary = summary(&subject.graph);
        let named = self.spec.as_written(&subject.name);
        let form = if self.standalone { Form::Standalone } else { Form::Kernels };
        let emit = || rust::source(&subject.graph, &subject.sources, &named, form);
        let (path, files) = match &self.krate {
            Some(folder) => {
                let files = rust::krate(&subject.graph, &subject.sources, &named, form)?;
                (folder.clone(), files.into_iter().map(|(path, text)| (folder.join(path), text)).collect())
            }
            None if self.out == Path::new("-") => {
                let text = emit()?;
                let data = Data { summary, path: None, files: None, text: Some(text.clone()) };
                return Ok(Output::new(text, data));
            }
            None => {
                let path = match self.out.extension().is_some_and(|e| e == "rs") {
                    true => self.out.clone(),
                    false => self.out.join(format!("{}.rs", rust::name::file(&subject.graph.name))),
                };
                let text = emit()?;
                (path.clone(), vec![(path, text)])
            }
        };
        if !self.force {
            self.refuse_to_destroy(&files)?;
        }
        for (path, text) in &files {
            file::write(path, text)?;
        }
        if let Some(folder) = &self.krate {
            ui.note(&format!(
                "next: cargo run --release --manifest-path {}",
                folder.join("Cargo.toml").display()
            ));
        }
        let page = if ui.is_quiet() { String::new() } else { format!("{summary}\n") };
        let text = format!("{page}{}\n", path.display());
        let files: Vec<PathBuf> = files.into_iter().map(|(path, _)| path).collect();
        Ok(Output::new(text, Data { summary, path: Some(path), files: Some(files), text: None }))
    }
}

impl Build {
    /// A file is overwritten if trafoc wrote it, or if it holds what would be written.
    fn refuse_to_destroy(&self, files: &[(PathBuf, String)]) -> Result<(), Failure> {
        // A crate is trafoc's as a whole when its manifest is.
        let manifest = self.krate.as_ref().map(|folder| folder.join("Cargo.toml"));
        let marks =
            files.iter().filter(|(path, _)| manifest.as_ref().is_none_or(|manifest| path == manifest));
        let mut foreign = marks.filter(|(path, text)| match read::bounded(path, limit::SOURCE) {
            Ok(old) => {
                let head = old.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let is_ours = String::from_utf8_lossy(head).contains(" by trafoc from ");
                old != text.as_bytes() && !is_ours
            }
            // What cannot be read for another reason is missing, a device, or cannot be written either.
            Err(error) => error.kind() == std::io::ErrorKind::FileTooLarge,
        });
        match foreign.next() {
            Some((path, _)) => {
                let message = format!("`{}` is there already, and trafoc has not written it", path.display());
                Err(Failure::new(Exit::Refused, message)
                    .help("`--out` names another place; `--force` overwrites it"))
            }
            None => Ok(()),
        }
    }
}
