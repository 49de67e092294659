//! Extractive question answering: scores for the start and the end of the answer (Devlin et al. 2018).

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
    /// The start and the end of an answer in the text.
    pub struct SpanHead as "span" {
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
        let (x, width) = layers.lower(&mut b, site, x, site.d_model)?;
        let x = b.dropout(*self.dropout, x)?;
        let member = b.layer("output", site.linear("output", width, Extent::from(2), self.bias));
        let both = b.op("logits", Op::Layer { member }, &[x])?;
        let mut scores = Vec::new();
        for (name, start) in [("start_logits", Extent::from(0)), ("end_logits", Extent::from(1))] {
            let column = b.op(name, Op::Slice { axis_from_last: 0, start, len: Extent::from(1) }, &[both])?;
            scores.push(b.op(name, Op::Squeeze, &[column])?);
        }
        Ok(Lowered { module: b.finish(&scores), takes_table: false, takes_mask: false })
    }
}
