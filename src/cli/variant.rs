//! `--variant`: one of the variants of a spec's sweep.

use super::outcome::{Exit, Failure};
use super::ui::{Ui, counted};
use crate::compile::compile_tree;
use crate::diag::suggest::{did_you_mean, suggest};
use crate::diag::{Severity, Sink};
use crate::field::Context;
use crate::source::SourceMap;
use crate::spec::sweep::{self, Meant};
use crate::syntax::tree::Node;

/// The most variants that a message names.
const MOST_LISTED: usize = 4;

/// The tree of a variant of the spec called `name`, whose tree with its sweep this is.
///
/// # Errors
/// The sweep has errors, or no variant of this name.
pub fn chosen(
    tree: &Node,
    variant: &str,
    name: &str,
    sources: &SourceMap,
    sink: &mut Sink,
    ui: &mut Ui,
) -> Result<Node, Failure> {
    let variants = sweep::variants(tree, &mut Context::new(sources, sink));
    if let Some(found) = variants.iter().find(|v| v.name == variant) {
        return Ok(found.tree.clone());
    }
    // The parts of a grid have no order that anybody would remember.
    let meant = match sweep::meant(&variants, variant) {
        Meant::Same(meant) => match meant.as_slice() {
            [only] => return Ok(only.tree.clone()),
            _ => meant,
        },
        Meant::Near(meant) => meant,
    };
    let mut found = std::mem::take(sink).into_sorted();
    // A sweep with errors has fewer variants than its author sees in it.
    if tree.get("sweep").is_some() {
        // Only compiling reports these errors: listing the variants leaves a wrong one out.
        let whole = compile_tree(sources, Some(tree.clone()), Sink::new())?.diagnostics;
        found.extend(whole.into_iter().filter(|d| d.severity == Severity::Error));
    }
    ui.diagnose(&found, sources);
    if found.iter().any(|d| d.severity == Severity::Error) {
        return Err(failed(name, &counted(&found)));
    }
    let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
    let failure = Failure::usage(format!("`{name}` has no variant `{variant}`"));
    if !meant.is_empty() {
        let near: Vec<String> = meant.iter().take(MOST_LISTED).map(|v| v.name.clone()).collect();
        return Err(failure.help(did_you_mean("", &near)));
    }
    Err(match suggest(variant, &names) {
        Some(near) => failure.help(format!("did you mean `{near}`?")),
        None if names.is_empty() => failure.help("the spec has no `sweep`, which would define variants"),
        None => failure.help(format!("there are {}", names.join(", "))),
    })
}

/// The failure of a spec whose diagnostics have been shown.
pub fn failed(name: &str, found: &str) -> Failure {
    Failure::new(Exit::Failed, format!("`{name}` has {found}"))
}
