//! Tagging: a score of every class for every token.

use super::{Lowered, Site};
use crate::field::record::record;
use crate::field::{Probability, Size};
use crate::ir::Role;
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;

record! {
    /// A class for every token.
    pub struct Tag as "tag" {
        /// How many classes.
        classes: Size = required;
        /// Dropout before the scores.
        dropout: Probability = value(Probability(0.0));
        /// Whether the projection has a bias.
        bias: bool = value(true);
    }
}

impl Tag {
    /// Its module.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, "TagHead", Role::Head);
        b.at(self.places.whole());
        b.doc("Scores of every class for every token.");
        let x = b.argument("x", site.hidden());
        let x = b.dropout(*self.dropout, x)?;
        let member = b.layer("output", site.linear("output", site.d_model, *self.classes, self.bias));
        let logits = b.op("logits", Op::Layer { member }, &[x])?;
        Ok(Lowered { module: b.finish(&[logits]), takes_table: false, takes_mask: false })
    }
}
