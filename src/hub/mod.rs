//! Imports models of Hugging Face as specs, and exports specs as such models.
//!
//! A directory holds a `config.json` and weights. The config's `model_type` selects a [`family`], which is
//! data: a YAML file with the meaning of every key, the spec with formulas, and the names of the tensors.
//! [`config`] reads the config according to the family, [`import()`] writes the spec, [`mapping`] finds every
//! parameter of the spec's graph among the tensors of a [`checkpoint`], [`export`] goes the other way, and
//! [`written`] prepares the contents of the files.
//!
//! Code in a directory is never run, and no file outside of it is opened. Nothing here needs burn:
//! parameters are handed one by one to the code that builds the model.

pub mod arrange;
pub mod checkpoint;
pub mod config;
pub mod export;
pub mod family;
pub mod import;
pub mod mapping;
pub mod own_names;
pub mod shelf;
pub mod target;
mod template;
pub mod tensors;
pub mod written;

use serde_json::{Map, Value as Json};

use config::{Config, model_type};
use family::Family;
use shelf::Families;
use target::Target;

use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, Sink};
use crate::names::Names;
use crate::names::formula::Scope;
use crate::names::json;
use crate::source::{SourceId, SourceMap};
use crate::syntax::{Notation, parse};

/// An imported model: its family, the values of its config, and the spec.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The family the model belongs to.
    pub family: Family,
    /// The class of model, such as `LlamaForCausalLM`.
    pub architecture: String,
    /// The head of that class.
    pub head: String,
    /// A value for every key of the family.
    pub values: indexmap::IndexMap<String, Json>,
    /// Keys that were ignored because they concern only how a model is run.
    pub passed: Vec<String>,
    /// The spec as text, without fields that equal their default.
    pub text: String,
    /// How a target is derived from the source if none is given.
    pub target: Option<Target>,
}

impl Scope for Imported {
    fn key(&self, name: &str) -> Option<&Json> {
        self.values.get(name)
    }
    fn table(&self, name: &str) -> Option<&Map<String, Json>> {
        self.family.tables.get(name)
    }
}

impl Imported {
    /// The names of the model's tensors, in the form that a file with these tensors uses.
    pub fn names<'a>(&self, tensors: impl IntoIterator<Item = &'a str>) -> Names {
        let prefix = self.family.prefix.as_str();
        let has_prefix = !prefix.is_empty() && tensors.into_iter().any(|name| name.starts_with(prefix));
        self.family.tensor_names(&self.head, has_prefix)
    }
}

impl Family {
    /// The names of all tensors of a model with this head, where the body's names may have the prefix.
    pub fn tensor_names(&self, head: &str, has_prefix: bool) -> Names {
        let body = if has_prefix { self.names.behind(&self.prefix) } else { self.names.clone() };
        let names = match self.heads.get(head) {
            Some(head) => body.and(&head.names),
            None => body,
        };
        Names { older: self.older.clone(), ..names }
    }
}

/// Imports a config that is a source of `sources`. Returns `None` after reporting the errors.
pub fn import(
    families: &Families,
    name: &str,
    id: SourceId,
    sources: &mut SourceMap,
    sink: &mut Sink,
) -> Option<Imported> {
    // JSON is parsed as YAML, which gives the config's keys places.
    let node = parse(sources, id, Notation::Yaml, sink)?;
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
        sink.push(match suggest(model, &models) {
            Some(near) => diagnostic.help(format!("`{near}` is supported")),
            None => diagnostic
                .help(format!("these are supported: {}", models.join(", ")))
                .help("you can write a family file that explains its keys (`--families DIR`)"),
        });
        return None;
    };
    let config = Config::read(&family, &node, sink)?;
    // An export of trafoc stores the model's name.
    let own = node.get("trafo_name").and_then(crate::syntax::tree::Node::text);
    let name = own.filter(|n| is_name(n)).unwrap_or(name);
    let tree = import::tree(&config, name, sink)?;
    let text = import::clean(&tree, &config, sources, sink)?;
    let Config { architecture, head, values, mut passed, .. } = config;
    let target = family.heads.get(&head).and_then(|head| head.target.as_ref()).map(|made| {
        let mut id = |(key, usual): &(String, i64)| {
            passed.retain(|name| name != key);
            node.get(key).and_then(|n| json::of(n).as_i64()).unwrap_or(*usual)
        };
        let padding = values.get("pad_token_id").and_then(Json::as_i64);
        Target { begin: made.begins.as_ref().map(&mut id), end: id(&made.ends), padding }
    });
    Some(Imported { architecture, head, values, passed, text, target, family })
}

/// Whether a text can be used as the name of a model as it is.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.len() <= 100 && text.chars().all(plain)
}
