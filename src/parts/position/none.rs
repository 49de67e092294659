//! No positions: the model does not know the order of tokens, except through its masks.

use super::Scheme;
use crate::field::record::record;

record! {
    /// No positions: only masks tell the order of tokens.
    pub struct NoPosition as "none" {}
}

impl Scheme for NoPosition {}
