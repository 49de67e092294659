//! Extractive question answering: scores for the start and the end of the answer (Devlin et al. 2018).

use super::hidden::{Hidden, token_head};
use super::{Lowered, Site};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Extent, Part, Role, Slot};

token_head! {
    /// The start and the end of an answer in the text.
    pub struct SpanHead as "span" {}
}

impl SpanHead {
    /// The module of the head.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, "SpanHead", Role::Head);
        b.at(self.places.whole());
        b.part(Part::new(Slot::Head, "Head"));
        b.doc("Scores for every token as start and as end of the answer.");
        let x = b.argument("x", site.hidden());
        let bias = self.hidden_bias.unwrap_or(self.bias);
        let layers = Hidden { widths: &self.hidden, bias, activation: self.activation, norm: &self.norm };
        // One column for starts and one for ends.
        let scores = (Extent::from(2), self.bias);
        let both = layers.scores(&mut b, site, (x, site.d_model), self.dropout, scores)?;
        let mut scores = Vec::new();
        for (name, start) in [("start_logits", Extent::from(0)), ("end_logits", Extent::from(1))] {
            let column = b.op(name, Op::Slice { axis_from_last: 0, start, len: Extent::from(1) }, &[both])?;
            // A slice of one feature keeps its axis, `[B, T, 1]`.
            scores.push(b.op(name, Op::Squeeze, &[column])?);
        }
        Ok(Lowered { module: b.finish(&scores), takes_table: false, takes_mask: false })
    }
}
