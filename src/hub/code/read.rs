//! Reads a directory with code of its own: the spec is in its config, and the code is never run.
//!
//! The config has the sizes a second time, for Python. If they contradict the spec, one of the two was
//! changed by hand, and the weights may belong to either: that is an error with the place of the key.

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::{CLASSES, SPEC, config};
use crate::compile::compile_tree;
use crate::diag::{Code, Diagnostic, Sink};
use crate::emit::pytorch;
use crate::hub::family::Family;
use crate::hub::imported::Imported;
use crate::names::Names;
use crate::names::formula::same;
use crate::names::json;
use crate::source::SourceMap;
use crate::source::Span;
use crate::syntax::tree::Node;
use crate::syntax::{Notation, parse};

/// The name of the family of models whose directories have code of their own.
pub const FAMILY: &str = "code";
/// The prefix that the library puts before the names of weights when it saves a model.
const PREFIX: &str = "model.";

/// The model of a config with a spec: `None` if it has none, `Some(None)` after errors were reported.
pub fn model(node: &Node, sources: &mut SourceMap, sink: &mut Sink) -> Option<Option<Imported>> {
    let entry = node.entry(SPEC)?;
    let Some(text) = entry.value.text() else {
        let message = format!("`{SPEC}` is {}, not the text of a spec", entry.value.describe());
        sink.push(Diagnostic::error(Code::WrongKind, entry.value.span, message));
        return Some(None);
    };
    // The config is computed from the spec again, so that no list says which keys follow from it.
    let stated = expected(text, sources);
    let given: Vec<_> = node.entries().unwrap_or(&[]).iter().filter(|e| e.key != SPEC).collect();
    for e in &given {
        let (key, own) = stated_by(&e.key, json::of(&e.value));
        // What does not follow from the spec is about the model's use, such as the ids of special tokens.
        let Some(expected) = stated.as_ref().and_then(|all| all.get(key)) else { continue };
        // The library writes `null` for what a config leaves open, which contradicts nothing.
        if !own.is_null() && !same(&own, expected) {
            let message = format!("`{key}` is {own}, and the spec in `{SPEC}` gives {expected}");
            let diagnostic = Diagnostic::error(Code::OutOfRange, e.value.span, message);
            sink.push(
                diagnostic
                    .help("change the spec, export it again, and load the weights into the new directory"),
            );
        }
    }
    if sink.has_errors() {
        return Some(None);
    }
    let architecture =
        node.get("architectures").and_then(|n| json::of(n).get(0)?.as_str().map(str::to_owned));
    let passed = given.iter().map(|e| e.key.to_string());
    let passed = passed.filter(|key| stated.as_ref().is_none_or(|all| all.get(key).is_none())).collect();
    Some(Some(Imported {
        family: family(),
        architecture: architecture.unwrap_or_default(),
        // The spec has its head itself, so no family's head is merged into it.
        head: String::new(),
        values: IndexMap::new(),
        passed,
        text: text.to_owned(),
        target: None,
        is_pooled: false,
    }))
}

/// What the config of this spec says about the model; `None` if the spec has an error, which is reported
/// where it is compiled.
fn expected(text: &str, sources: &SourceMap) -> Option<Json> {
    // A copy, so that this attempt leaves no source behind; errors are reported when the spec is compiled.
    let mut sources = sources.clone();
    let id = sources.add(SPEC, text);
    let tree = parse(&sources, id, Notation::Yaml, &mut Sink::new())?;
    let found = compile_tree(&sources, Some(tree), Sink::new()).ok()?;
    let (spec, graph) = (found.spec?, found.graph?);
    // Such a spec cannot have been exported with code, so the config says nothing that could be computed.
    if pytorch::refusal(&graph, &sources).is_some() {
        return None;
    }
    let model = pytorch::model(&graph, &sources, SPEC).ok()?;
    Some(Json::Object(config(&spec, &model.sizes)))
}

/// A key and value in the form of [`config`], which has the number of classes and not their names.
fn stated_by(key: &str, value: Json) -> (&str, Json) {
    match (key, value.as_object()) {
        ("id2label" | "label2id", Some(names)) => (CLASSES, Json::from(names.len())),
        (_, _) => (key, value),
    }
}

/// Tensors are named by the paths of parameters, with a prefix if the library saved them.
fn family() -> Family {
    Family {
        name: FAMILY.to_owned(),
        models: Vec::new(),
        keys: IndexMap::new(),
        running: Vec::new(),
        tables: IndexMap::new(),
        spec: Node::map(Vec::new(), Span::default()),
        architectures: IndexMap::new(),
        heads: IndexMap::new(),
        prefix: PREFIX.to_owned(),
        names: Names { paths: Some(String::new()), ..Names::default() },
        older: Vec::new(),
        processor: None,
    }
}
