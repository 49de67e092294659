//! Which variant of a spec a recipe is for, if it does not fit the spec itself.

use super::subject::Subject;
use crate::compile::compile_tree;
use crate::diag::{Code, Diagnostic, Severity, Sink};
use crate::field::Context;
#[cfg(feature = "learn")]
use crate::learn::data::{Inherited, prepare};
use crate::learn::recipe::{Recipe, agree};
#[cfg(feature = "learn")]
use crate::source::SourceMap;
use crate::spec::ModelSpec;
use crate::spec::sweep;

/// The most variants that are tried; each try reads the data.
const MOST_TRIED: usize = 4;

/// Whether a spec has a vocabulary of another size than the data, which no error is if it is larger.
fn has_other_size(d: &Diagnostic) -> bool {
    d.code == Code::VocabMismatch
}

/// Adds to the first error that a recipe does not fit a spec, or its data does not, which variant of the spec they fit; and to a
/// warning about the size of the vocabulary, if there is no error, which variant has the right one. `has_data` says
/// whether the data fits a spec, and reports what is doubtful.
pub fn with_variant(
    mut found: Vec<Diagnostic>,
    subject: &Subject,
    recipe: &Recipe,
    body: agree::Body<'_>,
    has_data: &dyn Fn(&ModelSpec, &mut Sink) -> bool,
) -> Vec<Diagnostic> {
    let is_error = |d: &Diagnostic| d.severity == Severity::Error;
    let has_error = found.iter().any(is_error);
    if !has_error && !found.iter().any(has_other_size) {
        return found;
    }
    // Their own errors have been reported with those of the spec.
    let variants = sweep::variants(&subject.tree, &mut Context::new(&subject.sources, &mut Sink::new()));
    let fitting = variants.into_iter().take(MOST_TRIED).find(|variant| {
        let compiled = compile_tree(&subject.sources, Some(variant.tree.clone()), Sink::new());
        let Ok((Some(spec), Some(graph))) = compiled.map(|found| (found.spec, found.graph)) else {
            return false;
        };
        // The data need not be read again for what is the same.
        if !has_error && spec.vocab == subject.spec.vocab {
            return false;
        }
        let mut sink = Sink::new();
        agree::check(recipe, &spec, &graph, body, &mut sink);
        let fits = !sink.has_errors() && has_data(&spec, &mut sink);
        fits && (has_error || !sink.iter().any(has_other_size))
    });
    let is_meant = |d: &Diagnostic| if has_error { is_error(d) } else { has_other_size(d) };
    if let (Some(variant), Some(first)) = (fitting, found.iter_mut().find(|d| is_meant(d))) {
        let what = if has_error { "error" } else { "warning" };
        first.help.insert(0, format!("with `--variant {}` there is no such {what}", variant.name));
    }
    found
}

/// Whether the data of a recipe has no errors for a spec; what is found is reported.
#[cfg(feature = "learn")]
pub fn fits(
    recipe: &Recipe,
    spec: &ModelSpec,
    inherited: &Inherited,
    sources: &SourceMap,
    sink: &mut Sink,
) -> bool {
    prepare(recipe, spec, inherited, sources, sink).is_ok() && !sink.has_errors()
}
