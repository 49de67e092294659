//! The front end in one call: from texts to a verified graph, with all diagnostics.

use crate::diag::{Diagnostic, Severity, Sink};
use crate::ir::Verified;
use crate::lower::{Bug, lower};
use crate::source::{SourceId, SourceMap};
use crate::spec::ModelSpec;
use crate::spec::load::{self, Files};
use crate::spec::{advice, reach};
use crate::syntax::Notation;
use crate::syntax::set::Setting;
use crate::syntax::tree::Node;

/// The results of compiling a spec, as far as its errors allow.
#[derive(Clone, Debug)]
pub struct Compilation {
    /// Errors and warnings, ordered by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The merged tree, if the texts could be parsed.
    pub tree: Option<Node>,
    /// The decoded spec, if it has no error.
    pub spec: Option<ModelSpec>,
    /// The graph, if the spec has no error.
    pub graph: Option<Verified>,
}

/// Compiles one source of `sources` that [`load::sources`] has loaded.
///
/// # Errors
/// A bug in trafoc.
pub fn compile(
    sources: &mut SourceMap,
    id: SourceId,
    notation: Notation,
    settings: &[Setting],
    files: &mut dyn Files,
) -> Result<Compilation, Bug> {
    let mut sink = Sink::new();
    let tree = load::tree(sources, id, notation, settings, files, &mut sink);
    let mut found = compile_tree(sources, tree, sink)?;
    found.diagnostics = advice::as_written(found.diagnostics, sources, (id, notation), found.tree.as_ref());
    Ok(found)
}

/// Compiles a merged tree, such as a variant of a sweep.
///
/// # Errors
/// A bug in trafoc.
pub fn compile_tree(sources: &SourceMap, tree: Option<Node>, mut sink: Sink) -> Result<Compilation, Bug> {
    let spec = tree.as_ref().and_then(|tree| load::decode_as_far(sources, tree, &mut sink));
    if sink.has_errors() {
        spec.iter().for_each(|spec| check_names(spec, &mut sink));
    }
    let spec = spec.filter(|_| !sink.has_errors());
    let graph = match &spec {
        Some(spec) => lower(spec, &mut sink)?,
        None => None,
    };
    if let (Some(spec), Some(graph)) = (&spec, &graph) {
        spec.check_weights(graph, &mut sink);
        reach::check(spec, &mut sink);
    }
    // The graph exists after errors that only concern names of weights, but must not be used.
    let graph = graph.filter(|_| !sink.has_errors());
    Ok(Compilation { diagnostics: sink.into_sorted(), tree, spec, graph })
}

/// Reports what is wrong with the names of tensors in a spec with errors. If not all of these are in the names themselves, that
/// the model has no such parameter may follow from them, unless it has one of nearly the same name.
fn check_names(spec: &ModelSpec, sink: &mut Sink) {
    if spec.weights.is_none() {
        return;
    }
    let names = spec.places.of("weights");
    let has_others = sink.iter().any(|d| d.severity == Severity::Error && !names.contains(d.span()));
    let mut found = Sink::new();
    // That a spec with errors cannot be lowered is no bug.
    if let Some(graph) = lower(spec, &mut Sink::new()).ok().flatten() {
        spec.check_weights(&graph, &mut found);
    }
    let is_slip = |d: &Diagnostic| d.help.iter().any(|help| help.starts_with("did you mean"));
    found.into_sorted().into_iter().filter(|d| !has_others || is_slip(d)).for_each(|d| sink.push(d));
}
