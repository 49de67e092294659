//! Which variant of a spec a recipe is for, if it does not fit the spec itself.

use super::subject::Subject;
use crate::compile::compile_tree;
use crate::diag::{Diagnostic, Severity, Sink};
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

/// Adds to the first error that a recipe does not fit a spec, or its data does not, which variant of the spec they fit. `has_data`
/// says whether the data fits one.
pub fn with_variant(
    mut found: Vec<Diagnostic>,
    subject: &Subject,
    recipe: &Recipe,
    body: agree::Body<'_>,
    has_data: &dyn Fn(&ModelSpec) -> bool,
) -> Vec<Diagnostic> {
    let is_error = |d: &Diagnostic| d.severity == Severity::Error;
    if !found.iter().any(is_error) {
        return found;
    }
    // Their own errors have been reported with those of the spec.
    let variants = sweep::variants(&subject.tree, &mut Context::new(&subject.sources, &mut Sink::new()));
    let fitting = variants.into_iter().take(MOST_TRIED).find(|variant| {
        let compiled = compile_tree(&subject.sources, Some(variant.tree.clone()), Sink::new());
        let Ok((Some(spec), Some(graph))) = compiled.map(|found| (found.spec, found.graph)) else {
            return false;
        };
        let mut sink = Sink::new();
        agree::check(recipe, &spec, &graph, body, &mut sink);
        !sink.has_errors() && has_data(&spec)
    });
    if let (Some(variant), Some(first)) = (fitting, found.iter_mut().find(|d| is_error(d))) {
        first.help.insert(0, format!("with `--variant {}` there is no such error", variant.name));
    }
    found
}

/// Whether the data of a recipe has no errors for a spec.
#[cfg(feature = "learn")]
pub fn fits(recipe: &Recipe, spec: &ModelSpec, inherited: &Inherited, sources: &SourceMap) -> bool {
    let mut sink = Sink::new();
    prepare(recipe, spec, inherited, sources, &mut sink).is_ok() && !sink.has_errors()
}
