//! No norm: `x`.

use crate::field::record::record;

record! {
    /// No norm.
    pub struct NoNorm as "none" {}
}
