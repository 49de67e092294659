//! The family files that are part of trafoc, and those of a folder of the user.

use std::path::{Path, PathBuf};

use super::family::{Family, Library, SHARED, read};
use crate::diag::Sink;
use crate::read::{self, limit};
use crate::source::SourceMap;
use crate::syntax::tree::Kind;
use crate::syntax::{Notation, parse};

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
    "t5" "mt5" "bart" "mbart" "pegasus" "m2m_100" "marian" "arcee" "helium" "lfm2" "glm" "glm4" "seed_oss" "ernie4_5"
    "olmoe" "granitemoe" "exaone4" "olmo3" "vaultgemma" "persimmon" "gpt_bigcode" "biogpt" "xglm" "ctrl"
    "megatron-bert" "ernie" "roformer" "rembert" "roberta-prelayernorm" "mpnet" "nomic_bert" "eurobert"
    "plbart" "mvp" "blenderbot" "umt5" "vit_msn" "ijepa" "dinov2_with_registers" "xlm-roberta-xl"
    "data2vec-text" "ministral" "cwm" "hunyuan_v1_dense" "jais2" "hyperclovax" "flex_olmo" "glm4_moe" "solar_open"
    "minimax_m2" "granitemoeshared" "ernie4_5_moe" "youtu" "glm4_moe_lite" "internlm3" "iquestcoder" "dots1"
    "bert-generation" "mamba" "mamba2" "falcon_mamba" "bamba" "granitemoehybrid" "recurrent_gemma" "qwen3_next"
    "apertus" "jamba" "nemotron_h" "diffllama" "nanochat" "fsmt" "rwkv" "deepseek_v2"
    "lfm2_moe" "gpt_neox_japanese" "hunyuan_v1_moe" "emu3_text" "aria_text" "bitnet" "minicpm3" "deberta"
    "deberta-v2" "minimax" "ministral3" "phimoe" "llama4_text" "switch_transformers" "beit" "esm"
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
        // A file without the list is read too if it has the word: its error may be in that of the family that
        // was meant.
        let may_read = |name: &&str| {
            let text = self.text(name).map(|(_, text)| text).unwrap_or_default();
            listed_models(&text)
                .map_or_else(|| text.contains(model), |models| models.iter().any(|m| m == model))
        };
        for name in self.names().into_iter().filter(may_read) {
            let family = self.read(name, sources, sink)?;
            if family.models.iter().any(|m| m == model) {
                return Some(Some(family));
            }
        }
        Some(None)
    }

    /// Every `model_type` that some family reads, in alphabetical order.
    pub fn models(&self) -> Vec<String> {
        let texts = self.names().into_iter().filter_map(|name| self.text(name));
        let mut models: Vec<String> = texts.filter_map(|(_, text)| listed_models(&text)).flatten().collect();
        models.sort();
        models
    }
}

/// The words of the entry `models` of a family's file; `None` if there is no such list. Only these lines are
/// parsed: to parse all families takes a tenth of a second.
fn listed_models(text: &str) -> Option<Vec<String>> {
    let is_entry = |line: &&str| line.starts_with("models:");
    let mut lines = text.lines().skip_while(|line| !is_entry(line));
    let first = lines.next()?;
    // What belongs to the entry is indented, or is an item of a list.
    let more = lines.take_while(|line| line.starts_with([' ', '-', ']', '#']) || line.is_empty());
    let entry: String = std::iter::once(first).chain(more).flat_map(|line| [line, "\n"]).collect();
    let mut sources = SourceMap::new();
    let id = sources.add("models", entry);
    let node = parse(&sources, id, Notation::Yaml, &mut Sink::new())?;
    match &node.get("models")?.kind {
        Kind::List(items) => Some(items.iter().filter_map(|i| i.text().map(str::to_owned)).collect()),
        Kind::Scalar(one) => Some(vec![one.text.clone()]),
        Kind::Null | Kind::Map(_) | Kind::Delete => None,
    }
}
