//! From the spec to the graph.
//!
//! Parts lower themselves; this module combines embeddings, stacks of blocks and a head. A decoded spec has
//! passed every check, so an author's mistake can no longer cause a failure, with two exceptions: whether a
//! rule of `init` matches a parameter, and whether a size that follows from others, or all tensors together,
//! are too large, is known only when the graph is built.

mod block;
mod bug;
mod root;
mod stack;

use crate::diag::{Code, Diagnostic, Sink};
use crate::field::value::MAX_ELEMENTS;
use crate::ir::build::{Arena, TooLarge};
use crate::ir::paths;
use crate::ir::verify::{Verified, verify};
use crate::spec::ModelSpec;

pub use bug::Bug;

/// Lowers and verifies a spec. Returns `Ok(None)` after reporting errors of the spec.
///
/// # Errors
/// A bug in trafoc.
pub fn lower(spec: &ModelSpec, sink: &mut Sink) -> Result<Option<Verified>, Bug> {
    let arena = Arena::new();
    let lowered = root::lower(spec, &arena);
    // A size that is too large may be why lowering failed, and then it is what the author must change.
    if let Some(found) = arena.too_large() {
        sink.push(too_large(&found, spec));
        return Ok(None);
    }
    let (graph, found) = lowered?;
    found.into_iter().for_each(|d| sink.push(d));
    if paths::total_elements(&graph) > MAX_ELEMENTS {
        let message = "the tensors of this model would have more than 2^80 numbers together";
        let diagnostic = Diagnostic::error(Code::OutOfRange, spec.places.whole(), message);
        sink.push(
            diagnostic.help("no machine has room for that many; make a size or the number of layers smaller"),
        );
    }
    // A graph of a valid spec that does not verify is a bug of trafoc, not a mistake of its author.
    if sink.has_errors() { Ok(None) } else { Ok(Some(verify(graph)?)) }
}

/// The error that a size which follows from those of the spec is larger than a spec may give any size.
fn too_large(found: &TooLarge, spec: &ModelSpec) -> Diagnostic {
    let size = match found.size {
        n if n >= u128::from(u64::MAX) => "more than 2^64".to_owned(),
        n => n.to_string(),
    };
    let message = format!("a size of `{}` would be {size}, and none may be above 2^40", found.of);
    Diagnostic::error(Code::OutOfRange, found.place.unwrap_or(spec.places.whole()), message)
        .help("it follows from the sizes given here: make one of them smaller")
}
