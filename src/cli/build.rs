//! `trafoc build`: the main job. Checks a spec, says what it is, and writes it as Rust.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::file;
use super::subject::SpecArgs;
use super::ui::{Failure, FormatArg, Output, Ui};
use crate::emit;
use crate::lower::Bug;
use crate::report::summary::summary;

/// Arguments of `build`.
#[derive(Debug, Args)]
pub struct Build {
    #[command(flatten)]
    spec: SpecArgs,
    /// File to write; `generated/<name>.rs` if not given, `-` for stdout
    #[arg(long, short, value_name = "FILE", conflicts_with = "krate")]
    out: Option<String>,
    /// Write a whole crate that runs on its own
    #[arg(long = "crate", value_name = "DIR")]
    krate: Option<PathBuf>,
    /// How to speak.
    #[command(flatten)]
    pub format: FormatArg,
}

impl Build {
    /// Prints the summary and writes the Rust; the last line is the path.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        let subject = self.spec.compile(ui)?;
        let bug = |Bug(what): Bug| Failure::bug(what);
        let summary = summary(&subject.graph);
        let shown = if ui.is_quiet() { String::new() } else { format!("{summary}\n") };
        if let Some(folder) = &self.krate {
            let files = emit::krate(&subject.graph, &subject.sources, &subject.name).map_err(bug)?;
            for (path, text) in &files {
                file::write(&folder.join(path), text)?;
            }
            let path = folder.display().to_string();
            let names: Vec<&String> = files.iter().map(|(path, _)| path).collect();
            ui.note(&format!("run it: cargo run --release --manifest-path {path}/Cargo.toml"));
            let data = json!({ "summary": summary, "path": path, "files": names });
            return Output::new(format!("{shown}{path}\n"), data);
        }
        let text = emit::rust(&subject.graph, &subject.sources, &subject.name).map_err(bug)?;
        if self.out.as_deref() == Some("-") {
            let data = json!({ "summary": summary, "text": text });
            return Output::new(text, data);
        }
        let path = match &self.out {
            Some(path) => PathBuf::from(path),
            None => Path::new("generated").join(format!("{}.rs", emit::name::file(&subject.spec.name))),
        };
        file::write(&path, &text)?;
        let path = path.display().to_string();
        let data = json!({ "summary": summary, "path": path });
        Output::new(format!("{shown}{path}\n"), data)
    }
}
