//! Masked language model head: `norm(activation(W x + c))`, followed by scores with the token table (Devlin
//! et al. 2018).

use super::lm::tied;
use super::{Lowered, Site};
use crate::field::Positive;
use crate::field::record::record;
use crate::field::rule::{Is, Rule};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Part, Role, Slot};
use crate::parts::activation::Activation;
use crate::parts::norm::{LayerNorm, Norm};

fn layer_norm() -> Norm {
    // BERT's `eps`, which is smaller than that of most models with layer norms.
    let places = Default::default();
    Norm::LayerNorm(LayerNorm { eps: Positive(1e-12), affine: true, bias: None, unit_offset: false, places })
}

record! {
    /// Scores for masked tokens (Devlin et al. 2018).
    pub struct Mlm as "mlm" {
        /// Whether a projection, nonlinearity and norm come before the scores.
        transform: bool = value(true);
        /// Whether that projection has a bias (ModernBERT has none).
        transform_bias: bool = value(true);
        /// Nonlinearity of the transform.
        activation: Activation = value(Activation::Gelu);
        /// Norm of the transform.
        norm: Norm = value(layer_norm());
        /// Whether the token embedding is also the output projection.
        tied: bool = value(true);
        /// Whether a learned bias is added to the scores.
        bias: bool = value(true);
    } rules [
        of_transform(("transform_bias", Is::False)),
        of_transform(("activation", Is::Not("gelu"))),
        of_transform(("norm", Is::Not("layer_norm"))),
    ];
}

/// A field of the transform, which has no effect without it.
const fn of_transform(field: (&'static str, Is)) -> Rule {
    let message = "the head has no transform, so `{field}` would have no effect";
    Rule::excludes(field, ("transform", Is::False), message).label("no transform").help("remove one of them")
}

impl Mlm {
    /// The module of the head, `[B, T, D] → [B, T, V]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, "MlmHead", Role::Head);
        b.at(self.places.whole());
        b.part(Part::new(Slot::Head, "Head"));
        b.doc("Transforms hidden states and scores every word.");
        let mut x = b.argument("x", site.hidden());
        let table = self.tied.then(|| b.argument("table", site.table()));
        // The transform ends in the width of the token table, which may be narrower than `d_model` (ALBERT).
        let width = site.table_width;
        if self.transform {
            let layer = site.linear("transform", site.d_model, width, self.transform_bias);
            let member = b.layer("transform", layer);
            x = b.op("x", Op::Layer { member }, &[x])?;
            x = self.activation.lower(&mut b, x)?;
            x = self.norm.lower(&mut b, &site.norm("norm"), "x", width, x)?;
        } else if width != site.d_model {
            // Without the transform, nothing else would bring hidden states to the width of the table.
            let member = b.layer("project", site.linear("project", site.d_model, width, false));
            x = b.op("x", Op::Layer { member }, &[x])?;
        }
        let logits = match table {
            Some(table) => tied(&mut b, site, x, table, self.bias)?,
            None => {
                let member = b.layer("output", site.linear("output", width, site.vocab, self.bias));
                b.op("logits", Op::Layer { member }, &[x])?
            }
        };
        Ok(Lowered { module: b.finish(&[logits]), takes_table: self.tied, takes_mask: false })
    }
}
