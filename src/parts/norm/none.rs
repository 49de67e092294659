//! No norm: the input is returned unchanged.

use crate::field::record::record;

record! {
    /// No norm.
    pub struct NoNorm as "none" {}
}
