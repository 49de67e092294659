//! No positions.

use super::Scheme;
use crate::field::record::record;

record! {
    /// No positions.
    pub struct NoPosition as "none" {}
}

impl Scheme for NoPosition {}
