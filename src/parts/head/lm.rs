//! Language model head: a score for every token, `logits = softcap((scale * x) E^T + b)`, where `E` is the
//! token table if tied, and otherwise a projection of its own.

use super::{Lowered, Site};
use crate::field::record::record;
use crate::field::{Factor, Positive};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{self, Init, Layer, Part, Role, Slot, ValueId};

record! {
    /// A score for every token of the vocabulary.
    pub struct Lm as "lm" {
        /// Whether the token embedding is also the output projection.
        tied: bool = value(false);
        /// Whether a learned bias is added.
        bias: bool = value(false);
        /// Whether a bias that is not trained is added (`final_logits_bias` of Marian and BART).
        fixed_bias: bool = value(false);
        /// Factor on the hidden states (T5: `1/sqrt(d_model)`) and therefore on the logits, except the
        /// bias.
        scale: Factor = value(Factor::plain(1.0));
        /// Bound on the logits: `c tanh(logit / c)` (Gemma 2).
        softcap: Option<Positive> = absent;
    }
}

impl Lm {
    /// The module of the head, `[B, T, D] → [B, T, V]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, "LmHead", Role::Head);
        b.at(self.places.whole());
        b.part(Part::new(Slot::Head, "Head"));
        b.doc(if self.tied { "`x Eᵀ` with the token table `E`" } else { "A score for every word." });
        let mut x = b.argument("x", site.hidden());
        // A tied table belongs to the embedding, so the head gets it as an argument.
        let table = self.tied.then(|| b.argument("table", site.table()));
        // The hidden states are scaled and not the logits, of which there are far more.
        if *self.scale != 1.0 {
            x =
                b.op("x", Op::Scale { by: ir::Factor::of(&self.scale, &[("d_model", site.d_model)]) }, &[x])?;
        }
        let mut logits = match table {
            Some(table) => {
                // A tied table may be narrower than the hidden states (OPT).
                if site.table_width != site.d_model {
                    let project = site.linear("project", site.d_model, site.table_width, false);
                    let member = b.layer("project", project);
                    x = b.op("x", Op::Layer { member }, &[x])?;
                }
                tied(&mut b, site, x, table, self.bias)?
            }
            None => {
                // A narrower table does not matter here: the projection is the head's own.
                let output = site.linear("output", site.d_model, site.vocab, self.bias);
                let member = b.layer("output", output);
                b.op("logits", Op::Layer { member }, &[x])?
            }
        };
        if self.fixed_bias {
            let layer = Layer::Param { shape: vec![site.vocab], init: Init::Zeros, trained: false };
            let bias = b.param("fixed_bias", layer)?;
            logits = b.op("logits", Op::Add, &[logits, bias])?;
        }
        // After the biases, so that the bound holds for the logits as they are returned.
        if let Some(cap) = self.softcap {
            logits = b.op("logits", Op::Softcap { cap: *cap }, &[logits])?;
        }
        Ok(Lowered { module: b.finish(&[logits]), takes_table: self.tied, takes_mask: false })
    }
}

/// `x E^T`, plus a bias if there is one.
pub fn tied(
    b: &mut Builder,
    site: &Site<'_>,
    x: ValueId,
    table: ValueId,
    bias: bool,
) -> Result<ValueId, Mismatch> {
    let logits = b.op("logits", Op::Unembed, &[x, table])?;
    if !bias {
        return Ok(logits);
    }
    let bias = b.param("bias", site.init.param("head.bias", vec![site.vocab], Some(Init::Zeros)))?;
    b.op("logits", Op::Add, &[logits, bias])
}
