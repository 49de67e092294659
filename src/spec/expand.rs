//! `trafoc expand`: writes a spec with every default.

use super::ModelSpec;
use crate::syntax::Notation;
use crate::syntax::print;

/// The spec as text in a notation; parsing it gives an equal spec.
pub fn expand(spec: &ModelSpec, notation: Notation) -> String {
    let tree = spec.encode();
    match notation {
        Notation::Yaml => print::yaml(&tree),
        Notation::Dsl => print::dsl(&tree, &super::is_part),
    }
}
