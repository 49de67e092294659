//! The family files that are part of trafoc, and those of a folder of the user.

use std::path::{Path, PathBuf};

use super::family::{Family, Library, SHARED, read};
use crate::diag::Sink;
use crate::read::{self, limit};
use crate::source::SourceMap;

// A macro, because `include_str!` takes a literal alone.
macro_rules! shelf {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("families/", $name, ".yaml")))),*]
    };
}

/// The files by name. A spec that several families can express is exported as the first of them.
pub const SHELF: &[(&str, &str)] = shelf! {
    "shared" "gpt2" "openai-gpt" "llama" "mistral" "mixtral" "qwen2" "qwen3" "qwen2_moe" "qwen3_moe" "gemma"
    "gemma2" "gemma3_text" "olmo" "olmo2" "phi" "phi3" "starcoder2" "stablelm" "granite" "nemotron" "cohere"
    "cohere2" "smollm3" "deepseek_v3" "gpt_oss" "gpt_neox" "gptj" "codegen" "gpt_neo" "falcon" "bloom" "mpt"
    "opt" "bert" "roberta" "xlm-roberta" "distilbert" "electra" "albert" "modernbert" "vit" "deit" "dinov2"
    "t5" "mt5" "bart" "mbart" "pegasus" "m2m_100" "marian"
};

/// All families: the user's own come before those of trafoc.
#[derive(Clone, Debug, Default)]
pub struct Families {
    own: Vec<(PathBuf, String, String)>,
}

impl Library for Families {
    fn text(&self, family: &str) -> Option<(String, String)> {
        // A user's file of the same name replaces trafoc's, so that a family can be mended without a new
        // version.
        let own = self.own.iter().find(|(_, name, _)| name == family);
        let own = own.map(|(path, _, text)| (path.display().to_string(), text.clone()));
        let shipped = SHELF.iter().find(|(name, _)| *name == family);
        own.or_else(|| shipped.map(|(name, text)| (format!("<family {name}>"), (*text).to_owned())))
    }
}

impl Families {
    /// The families of trafoc, and the files of a folder.
    ///
    /// # Errors
    /// A sentence that says what cannot be read.
    pub fn new(folder: Option<&Path>) -> Result<Self, String> {
        let Some(folder) = folder else { return Ok(Self::default()) };
        let fail = |path: &Path, e: std::io::Error| format!("cannot read `{}`: {e}", path.display());
        let mut own = Vec::new();
        for item in std::fs::read_dir(folder).map_err(|e| fail(folder, e))? {
            let path = item.map_err(|e| fail(folder, e))?.path();
            let is_yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
            let Some(name) = path.file_stem().and_then(|s| s.to_str()).filter(|_| is_yaml) else { continue };
            let bytes = read::bounded(&path, limit::SPEC).map_err(|e| fail(&path, e))?;
            let text = String::from_utf8(bytes).map_err(|e| fail(&path, std::io::Error::other(e)))?;
            own.push((path.clone(), name.to_owned(), text));
        }
        // The order of a folder's files is that of the file system, and the first family that fits is used.
        own.sort();
        Ok(Self { own })
    }

    /// The names of all families in the order in which they are tried, the user's own first.
    pub fn names(&self) -> Vec<&str> {
        let own = self.own.iter().map(|(_, name, _)| name.as_str());
        let shipped = SHELF.iter().map(|(name, _)| *name);
        let mut names: Vec<&str> = Vec::new();
        for name in own.chain(shipped).filter(|n| *n != SHARED) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// A family by its name. Returns `None` after reporting the errors.
    pub fn read(&self, name: &str, sources: &mut SourceMap, sink: &mut Sink) -> Option<Family> {
        read(name, self, sources, sink)
    }

    /// The family that reads a `model_type`; `Some(None)` if there is none, and `None` after reporting
    /// errors in a family's file.
    pub fn of_model(&self, model: &str, sources: &mut SourceMap, sink: &mut Sink) -> Option<Option<Family>> {
        // The file of a family names its `model_type`s, so files without the word need not be parsed.
        let mentions = |name: &&str| self.text(name).is_some_and(|(_, text)| text.contains(model));
        for name in self.names().into_iter().filter(mentions) {
            // An error in a file that mentions the model ends the search: it may be the one that was meant.
            let family = self.read(name, sources, sink)?;
            if family.models.iter().any(|m| m == model) {
                return Some(Some(family));
            }
        }
        Some(None)
    }

    /// Every `model_type` that some family reads, in alphabetical order. A family with errors is left out.
    pub fn models(&self) -> Vec<String> {
        let mut sources = SourceMap::new();
        let read = |name: &str| self.read(name, &mut sources, &mut Sink::new());
        let mut models: Vec<String> =
            self.names().into_iter().filter_map(read).flat_map(|f| f.models).collect();
        models.sort();
        models
    }
}
