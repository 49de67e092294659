//! Tagging: scores of all classes for every token.

use super::hidden::{Hidden, token_head};
use super::{Lowered, Site};
use crate::field::Size;
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::{Extent, Part, Role, Slot};

token_head! {
    /// A class for every token.
    pub struct Tag as "tag" {
        /// The number of classes.
        classes: Size = required;
    }
}

impl Tag {
    /// The module of the head.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, "TagHead", Role::Head);
        b.at(self.places.whole());
        b.part(Part::new(Slot::Head, "Head"));
        b.doc("Scores of every class for every token.");
        let x = b.argument("x", site.hidden());
        let bias = self.hidden_bias.unwrap_or(self.bias);
        let layers = Hidden { widths: &self.hidden, bias, activation: self.activation, norm: &self.norm };
        let scores = (Extent::new("classes", *self.classes), self.bias);
        let logits = layers.scores(&mut b, site, (x, site.d_model), self.dropout, scores)?;
        Ok(Lowered { module: b.finish(&[logits]), takes_table: false, takes_mask: false })
    }
}
