//! Imports models of Hugging Face as specs, and exports specs as such models.
//!
//! A model is a directory with a `config.json` and weights. The config's `model_type` selects a [`family`],
//! which is data: a YAML file with the meaning of every key, the spec with formulas, and the names of the
//! tensors.
//! [`config`] reads the config according to the family, [`import()`] writes the spec, [`mapping`] finds every
//! parameter of the spec's graph among the tensors of a [`checkpoint`], [`export`] goes the other way, and
//! [`written`] prepares the contents of the files.
//!
//! A spec that no family can express is exported with [`code`] of its own, and read from its config.
//!
//! Code in a directory is never run, and no file outside of it is opened. Nothing here needs burn:
//! parameters are handed one by one to the code that builds the model.

pub mod adapted;
pub mod arrange;
pub mod checkpoint;
pub mod code;
pub mod config;
pub mod export;
pub mod family;
pub mod import;
pub mod imported;
mod knobs;
pub mod mapping;
pub mod mismatch;
pub mod new_head;
pub mod own_names;
pub mod peft;
pub mod sentence;
pub mod shelf;
pub mod shorten;
pub mod target;
mod template;
pub mod tensors;
pub mod written;

pub use imported::Imported;

use serde_json::Value as Json;

use config::{Config, model_type};
use new_head::NewHead;
use shelf::Families;
use target::Target;

use crate::diag::ideas::idea;
use crate::diag::paths::least_unlike;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::words::listed;
use crate::names::json;
use crate::source::{SourceId, SourceMap};
use crate::syntax::parse_config;

/// Imports a config that is a source of `sources`. Returns `None` after reporting the errors.
pub fn import(
    families: &Families,
    name: &str,
    id: SourceId,
    sources: &mut SourceMap,
    sink: &mut Sink,
) -> Option<Imported> {
    import_with(families, name, id, None, sources, sink)
}

/// Whether a model's type says that it reads pictures: `qwen2_vl`, `vision-encoder-decoder`.
fn sees(model: &str) -> bool {
    let mut words = model.split(['_', '-']).map(str::to_lowercase);
    words.any(|word| word.ends_with("vl") || matches!(word.as_str(), "vlm" | "vision"))
}

/// As [`import()`], with another head if one is given and the family has a class of models with it.
pub fn import_with(
    families: &Families,
    name: &str,
    id: SourceId,
    head: Option<&NewHead>,
    sources: &mut SourceMap,
    sink: &mut Sink,
) -> Option<Imported> {
    // JSON is parsed as YAML, which gives the config's keys places.
    let node = parse_config(sources, id, sink)?;
    // Before the family: such a directory has a `model_type` that no family reads.
    if let Some(own) = code::read::model(&node, sources, sink) {
        return own;
    }
    let Some(model) = model_type(&node) else {
        let diagnostic = Diagnostic::error(Code::MissingKey, node.span, "the config has no `model_type`");
        sink.push(diagnostic.help("it says which family the model is of"));
        return None;
    };
    let Some(family) = families.of_model(model, sources, sink)? else {
        let span = node.get("model_type").map_or(node.span, |n| n.span);
        let models = families.models();
        let diagnostic =
            Diagnostic::error(Code::UnknownPart, span, format!("trafoc has no family for `{model}`"));
        // A word of the language may also be the name of a model, as `clip` is.
        let outside = idea(model).or_else(|| idea(&format!("{model}_model")));
        sink.push(match (outside, suggest(model, &models)) {
            (Some(idea), _) => diagnostic.help(idea.advice()),
            // The model of texts that is spelt like it reads no pictures.
            (None, _) if sees(model) => diagnostic.help(format!(
                "`{model}` is a model that reads pictures next to texts, or a part of one, and trafoc has no family of these"
            )),
            (None, Some(near)) => diagnostic.help(format!("`{near}` is supported")),
            (None, None) => diagnostic
                .help(most_similar(model, &models))
                .help("you can write a family file that explains its keys (`--families DIR`)"),
        });
        return None;
    };
    // A family without such a class keeps its own head here, and the new one is set in the spec.
    let changed = head.and_then(|head| head.in_config(&family, &node));
    let pooled = head.and_then(|head| head.pooled);
    if pooled.is_some() && changed.is_none() {
        let message = format!("the family {} has no class that gives the positions of its body", family.name);
        sink.push(Diagnostic::error(Code::UnknownPart, node.span, message));
        return None;
    }
    let node = changed.unwrap_or(node);
    let config = Config::read(&family, &node, sink)?;
    // An export keeps the name of the spec in the config, so that importing it gives the same name.
    let own = node.get("trafo_name").and_then(crate::syntax::tree::Node::text);
    let name = own.filter(|n| is_name(n)).unwrap_or(name);
    let tree = import::tree(&config, name, sink)?;
    let tree = match pooled {
        Some(pooled) => pooled.on(&tree),
        None => tree,
    };
    let text = import::clean(&tree, &config, sources, sink)?;
    let Config { architecture, head, values, mut passed, .. } = config;
    let target = family.heads.get(&head).and_then(|head| head.target.as_ref()).map(|made| {
        let mut id = |(key, usual): &(String, i64)| {
            // This key says how a model is run, but here it decides what the model is given.
            passed.retain(|name| name != key);
            node.get(key).and_then(|n| json::of(n).as_i64()).unwrap_or(*usual)
        };
        let padding = values.get("pad_token_id").and_then(Json::as_i64);
        Target { begin: made.begins.as_ref().map(&mut id), end: id(&made.ends), padding }
    });
    let is_pooled = pooled.is_some();
    Some(Imported { architecture, head, values, passed, text, target, is_pooled, family })
}

/// Which of the names of all models or families are most similar to one that none of them is.
pub fn most_similar<S: AsRef<str>>(name: &str, all: &[S]) -> String {
    let nearest = least_unlike(name, all.iter().map(AsRef::as_ref), 3);
    format!(
        "of the {} that are supported, {} are the most similar; `trafoc import --help` lists all",
        all.len(),
        listed(&nearest)
    )
}

/// Whether a text can be used as the name of a model as it is.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    // Anyone can write a config, and the name becomes that of files, types and functions.
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.len() <= 100 && text.chars().all(plain)
}
