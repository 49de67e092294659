//! Tagging: scores of all classes for every token.

use super::hidden::{self, Hidden};
use super::{Lowered, Site};
use crate::field::record::record;
use crate::field::{Probability, Size};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Extent, Part, Role, Slot};
use crate::parts::activation::Activation;
use crate::parts::norm::Norm;

record! {
    /// A class for every token.
    pub struct Tag as "tag" {
        /// The number of classes.
        classes: Size = required;
        /// Widths of hidden layers before the scores.
        hidden: Vec<Size> = value(Vec::new());
        /// Nonlinearity after each hidden layer.
        activation: Activation = value(Activation::Tanh);
        /// Norm after each hidden layer's nonlinearity (ModernBERT).
        norm: Option<Norm> = absent;
        /// Whether the hidden layers have a bias; by default as `bias` says.
        hidden_bias: Option<bool> = absent;
        /// Dropout before the scores.
        dropout: Probability = value(Probability(0.0));
        /// Whether the projections have a bias.
        bias: bool = value(true);
    } rules [hidden::needed_by("norm"), hidden::needed_by("hidden_bias")];
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
        let (x, width) = layers.lower(&mut b, site, x, site.d_model)?;
        let x = b.dropout(*self.dropout, x)?;
        let member =
            b.layer("output", site.linear("output", width, Extent::new("classes", *self.classes), self.bias));
        let logits = b.op("logits", Op::Layer { member }, &[x])?;
        Ok(Lowered { module: b.finish(&[logits]), takes_table: false, takes_mask: false })
    }
}
