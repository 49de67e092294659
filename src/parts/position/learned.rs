//! Learned positions: `x + P[t + offset]`, with a table of one row per position.

use super::{EmbedSite, Scheme};
use crate::field::Count;
use crate::field::record::record;
use crate::ir::build::{Builder, Built};
use crate::ir::op::Op;
use crate::ir::{Extent, Rows, ValueId};

record! {
    /// A learned vector for each position, added to the embeddings: `x + P[t + offset]`.
    pub struct Learned as "learned" {
        /// The number of rows of the table before the first position (2 in BART and OPT).
        offset: Count = value(Count(0));
    }
}

impl Scheme for Learned {
    fn on_embedding(&self, b: &mut Builder, site: &EmbedSite<'_>, x: ValueId) -> Built {
        let op = Op::Positions { along: site.sequence, offset: *self.offset };
        let positions = b.op("position", op, &[])?;
        // Position 0 has the row `offset`, so the table is longer by that many rows.
        let rows = site.context + Extent::from(*self.offset);
        let table =
            site.init.embedding(&format!("{}.positions", site.path), Rows::Positions, rows, site.dim, None);
        let p = b.apply("positions", table, positions)?;
        b.op("x", Op::Add, &[x, p])
    }
}
