//! No norm: the input is returned unchanged.

use crate::field::record::record;

record! {
    /// The vector is returned unchanged.
    pub struct NoNorm as "none" {}
}
