//! Sinusoidal positions: `P[t, 2i] = sin(t / base^(2i/d))`, `P[t, 2i+1] = cos(t / base^(2i/d))`
//! (Vaswani et al. 2017).

use super::{EmbedSite, Scheme};
use crate::field::record::{choice, record};
use crate::field::{Count, Positive};
use crate::ir::ValueId;
use crate::ir::build::{Builder, Built};
use crate::ir::op::{Op, SinusoidLayout};

choice! {
    /// The order of sines and cosines.
    pub enum Layout {
        /// sin, cos, sin, cos, ...: the paper and d2l
        "interleaved" => Interleaved,
        /// all sines, then all cosines: Marian and M2M-100
        "concat" => Concat,
    }
}

record! {
    /// Fixed sines and cosines of the position, added to the embeddings (Vaswani et al. 2017).
    pub struct Sinusoidal as "sinusoidal" {
        /// The base of the wavelengths.
        base: Positive = value(Positive(10_000.0));
        /// The order of sines and cosines.
        layout: Layout = value(Layout::Interleaved);
        /// A number that is added to every position (2 in M2M-100).
        offset: Count = value(Count(0));
    }
}

impl Scheme for Sinusoidal {
    fn on_embedding(&self, b: &mut Builder, site: &EmbedSite<'_>, x: ValueId) -> Built {
        let op = Op::Positions { along: site.sequence, offset: *self.offset };
        let positions = b.op("position", op, &[])?;
        let layout = match self.layout {
            Layout::Interleaved => SinusoidLayout::Interleaved,
            Layout::Concat => SinusoidLayout::Concat,
        };
        // Computed from positions by an op and no layer: there is nothing to learn or to store.
        let table = b.op("p", Op::Sinusoid { dim: site.dim, base: *self.base, layout }, &[positions])?;
        b.op("x", Op::Add, &[x, table])
    }
}
