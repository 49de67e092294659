//! The sequences along which ops run.

use std::fmt;

use crate::ir::Extent;
use crate::ir::dim::{Dim, Sym};

/// The sequence along which an op runs, with its length and its first position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sequence {
    /// `T` positions, starting at 0: a stack that does not decode with a cache.
    Whole,
    /// `T` positions, starting at `P`; as keys `P + T` positions, starting at 0: a causal decoder.
    Cached,
    /// `S` positions: the source of an encoder-decoder.
    Source,
    /// A number of positions that the spec fixes: the patches of an image.
    Fixed(Extent),
}

impl Sequence {
    /// The number of queries: `T`, `S` or a fixed number.
    pub fn queries(self) -> Dim {
        match self {
            Sequence::Whole | Sequence::Cached => Sym::Time.into(),
            Sequence::Source => Sym::Source.into(),
            Sequence::Fixed(n) => n.into(),
        }
    }

    /// The number of keys: `P + T` in a causal decoder, otherwise the number of queries.
    pub fn keys(self) -> Dim {
        match self {
            Sequence::Cached => Dim::sym(Sym::Past) + Dim::sym(Sym::Time),
            Sequence::Whole | Sequence::Source | Sequence::Fixed(_) => self.queries(),
        }
    }
}

/// The positions of the queries in the letters of shapes: `T`, `P..P+T` from the first one after the cache on, `S`, or a
/// number.
impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sequence::Cached => write!(f, "{}..{}", Dim::sym(Sym::Past), self.keys()),
            Sequence::Whole | Sequence::Source | Sequence::Fixed(_) => write!(f, "{}", self.queries()),
        }
    }
}
