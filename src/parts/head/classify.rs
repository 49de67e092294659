//! Classification: pooling, hidden layers with a nonlinearity, dropout, and a score for every class.

use super::hidden::{self, Hidden};
use super::pool::Pool;
use super::{Lowered, Site};
use crate::field::record::record;
use crate::field::rule::{Is, Rule};
use crate::field::{Probability, Size};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::{self, Op};
use crate::ir::{Extent, Part, Role, Slot};
use crate::parts::activation::Activation;
use crate::parts::norm::Norm;

record! {
    /// A class for the whole sequence or image. The outputs are logits; the softmax over the classes, or
    /// with `multi_label` the sigmoid of each, is part of the loss.
    pub struct Classify as "classify" {
        /// How the sequence is pooled to one vector.
        pool: Pool = value(Pool::Cls);
        /// Norm of the pooled vector (BEiT).
        pooled_norm: Option<Norm> = absent;
        /// Widths of hidden layers before the scores.
        hidden: hidden::Widths = value(hidden::Widths::default());
        /// Nonlinearity after each hidden layer.
        activation: Activation = value(Activation::Tanh);
        /// Norm after each hidden layer's nonlinearity (ModernBERT).
        norm: Option<Norm> = absent;
        /// Whether the hidden layers have a bias; by default as `bias` says.
        hidden_bias: Option<bool> = absent;
        /// Dropout before the scores.
        dropout: Probability = value(Probability(0.0));
        /// The number of classes.
        classes: Size = required;
        /// Whether several classes may apply at once, with a sigmoid for each.
        multi_label: bool = value(false);
        /// Whether the projections have a bias.
        bias: bool = value(true);
        /// Whether the distillation token has its own projection; the scores are the mean of both (DeiT).
        distilled: bool = value(false);
    } rules [
        of_one_token(
            ("hidden", Is::NotEmpty),
            "a hidden layer here",
            "remove `hidden` or `distilled`",
        ),
        of_one_token(("pooled_norm", Is::Given), "a norm here", "remove `pooled_norm` or `distilled`"),
        of_one_token(("pool", Is::Not("cls")), "another pooling here", "remove `pool` or `distilled`"),
        hidden::NONLINEAR,
        hidden::needed_by("norm"),
        hidden::needed_by("hidden_bias"),
    ];
}

/// A field that a distilled head has no room for.
const fn of_one_token(field: (&'static str, Is), what: &'static str, help: &'static str) -> Rule {
    let message =
        "a distilled head computes its scores directly from the class token and the distillation token";
    Rule::excludes(("distilled", Is::True), field, message).label(what).help(help)
}

impl Classify {
    /// The module of the head.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, "ClassifyHead", Role::Head);
        b.at(self.places.whole());
        b.part(Part::new(Slot::Head, "Head"));
        b.doc(if self.multi_label {
            "Scores of every class; a sigmoid makes each a probability."
        } else {
            "Scores of every class; softmax makes them probabilities."
        });
        let x = b.argument("x", site.hidden());
        let takes_mask = self.pool.takes_mask(site);
        // An argument that nothing reads would be a part of the emitted interface.
        let mask = if takes_mask { site.mask(&mut b) } else { None };
        let h = self.pool.lower(&mut b, site, x, mask)?;
        let width = self.pool.width(site.d_model);
        let h = match &self.pooled_norm {
            Some(norm) => norm.lower(&mut b, &site.norm("pooled_norm"), "h", width, h)?,
            None => h,
        };
        let bias = self.hidden_bias.unwrap_or(self.bias);
        let layers = Hidden { widths: &self.hidden, bias, activation: self.activation, norm: &self.norm };
        let classes = Extent::new("classes", *self.classes);
        let mut logits = layers.scores(&mut b, site, (h, width), self.dropout, (classes, self.bias))?;
        if self.distilled {
            // The distillation token comes second, after the class token.
            let token = b.op(
                "token",
                Op::Slice { axis_from_last: 1, start: Extent::from(1), len: Extent::from(1) },
                &[x],
            )?;
            // A slice keeps the axis of positions; pooling its only position removes it.
            let token = b.op("token", Op::Pool(op::Pool::First), &[token])?;
            let token = b.dropout(*self.dropout, token)?;
            let layer = site.linear("distillation", site.d_model, classes, self.bias);
            let member = b.layer("distillation", layer);
            let second = b.op("second", Op::Layer { member }, &[token])?;
            logits = b.op("logits", Op::Add, &[logits, second])?;
            logits = b.op("logits", Op::Scale { by: 0.5.into() }, &[logits])?;
        }
        Ok(Lowered { module: b.finish(&[logits]), takes_table: false, takes_mask })
    }
}
