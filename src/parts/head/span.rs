//! Extractive question answering: scores for the start and the end of the answer (Devlin et al. 2018).

use super::{Lowered, Site};
use crate::field::Probability;
use crate::field::record::record;
use crate::ir::Role;
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;

record! {
    /// Start and end of an answer in the text.
    pub struct SpanHead as "span" {
        /// Dropout before the scores.
        dropout: Probability = value(Probability(0.0));
        /// Whether the projection has a bias.
        bias: bool = value(true);
    }
}

impl SpanHead {
    /// Its module.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, "SpanHead", Role::Head);
        b.at(self.places.whole());
        b.doc("Scores for every token as start and as end of the answer.");
        let x = b.argument("x", site.hidden());
        let x = b.dropout(*self.dropout, x)?;
        let member = b.layer("output", site.linear("output", site.d_model, 2, self.bias));
        let both = b.op("logits", Op::Layer { member }, &[x])?;
        let mut scores = Vec::new();
        for (name, start) in [("start_logits", 0), ("end_logits", 1)] {
            let column = b.op(name, Op::Slice { axis_from_last: 0, start, len: 1 }, &[both])?;
            scores.push(b.op(name, Op::Squeeze, &[column])?);
        }
        Ok(Lowered { module: b.finish(&scores), takes_table: false, takes_mask: false })
    }
}
