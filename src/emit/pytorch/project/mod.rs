//! A project that trains an emitted model on many processes.
//!
//! Its files are Python files of this folder, which Python's own tools check. A project has the parts of them
//! that its recipe needs: lines between `# only: a b` and `# end` are kept where one of the words holds (`!a`
//! where `a` does not), the fields of `Settings` get their values, and imports that nothing uses any more are
//! left out.

mod part;
mod value;

pub use value::Value;

use std::collections::BTreeSet;

use super::region;
use crate::emit::MARK;
use crate::emit::program::name::shown;
use crate::lower::Bug;

/// What a project is written for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Project {
    /// The words that hold: the task, the optimizer, the metrics, and so on.
    pub words: BTreeSet<&'static str>,
    /// The values of the fields of `Settings`. Those whose fields are left out are ignored.
    pub settings: Vec<(&'static str, Value)>,
    /// What the data must have been prepared for, by its names in `data.json`.
    pub needs: Vec<(&'static str, Value)>,
    /// The spec as the headers name it.
    pub spec: String,
}

/// A Python file of every project, or of those for which a word holds.
struct Source {
    name: &'static str,
    text: &'static str,
    only: Option<&'static str>,
}

const SOURCES: &[Source] = &[
    Source { name: "train.py", text: include_str!("train.py"), only: None },
    Source { name: "data.py", text: include_str!("data.py"), only: None },
    Source { name: "metrics.py", text: include_str!("metrics.py"), only: None },
    Source { name: "parallel.py", text: include_str!("parallel.py"), only: None },
    Source { name: "run_folder.py", text: include_str!("run_folder.py"), only: None },
    Source { name: "muon.py", text: include_str!("muon.py"), only: Some("muon") },
];

/// The name of the file that says what a project needs. Whether trafoc wrote a project is read from its first
/// line.
pub const MANIFEST: &str = "requirements.txt";

/// The file of the weights of a trained model with which a project begins.
pub const START: &str = "start.safetensors";

/// The files of a project by name, without the model's.
///
/// # Errors
/// A fault of trafoc: a file of this folder is not as it must be.
pub fn files(project: &Project) -> Result<Vec<(&'static str, String)>, Bug> {
    let mut files = vec![(MANIFEST, manifest(project)), ("README.md", readme(project))];
    for source in SOURCES.iter().filter(|s| s.only.is_none_or(|word| project.words.contains(word))) {
        let text = python(source, project).map_err(|why| Bug(format!("{}: {why}", source.name)))?;
        files.push((source.name, text));
    }
    Ok(files)
}

fn python(source: &Source, project: &Project) -> Result<String, String> {
    let mut text = region::chosen(source.text, &|word| project.words.contains(word))?;
    match source.name {
        "train.py" => text = part::with_fields(&text, &project.settings)?,
        "data.py" => text = part::with_constant(&text, "NEEDS", &Value::Map(project.needs.clone()))?,
        _ => {}
    }
    // The regions that were left out may have been the only users of an import.
    let text = part::without_unused_imports(&text);
    super::check::check(&text)?;
    // A seal is written after the text, and Python's style has two empty lines between code and such a
    // comment.
    Ok(format!("# @generated{MARK}{}.\n{text}\n\n", shown(&project.spec)))
}

fn manifest(project: &Project) -> String {
    let mut needs = vec!["torch>=2.6", "numpy>=1.24", "safetensors>=0.4"];
    let has = |word| project.words.contains(word);
    // Metrics are compared between runs, so they come from the program that defines them.
    needs.extend(Some("sacrebleu>=2.3").filter(|_| has("bleu") || has("word_bleu")));
    needs.extend(Some("tokenizers>=0.20").filter(|_| has("decodes") && has("subword")));
    format!("# @generated{MARK}{}.\n{}\n", shown(&project.spec), needs.join("\n"))
}

fn readme(project: &Project) -> String {
    include_str!("README.md").replace("SPEC", &shown(&project.spec))
}
