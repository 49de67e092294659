//! One vector for a sequence or image: pooling, projection, normalisation.

use super::pool::Pool;
use super::{Lowered, Site};
use crate::field::Size;
use crate::field::record::record;
use crate::field::rule::{Is, Rule};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Extent, Part, Role, Slot};
use crate::parts::activation::Activation;
use crate::parts::norm::Norm;

record! {
    /// One vector for the whole sequence or image. BERT's pooler is
    /// `{pool: cls, project: d_model, activation: tanh}`.
    pub struct EmbedHead as "embed" {
        /// How the sequence is pooled to one vector.
        pool: Pool = value(Pool::Mean);
        /// Norm of the pooled vector (BEiT).
        pooled_norm: Option<Norm> = absent;
        /// The width of a projection after pooling.
        project: Option<Size> = absent;
        /// Nonlinearity after the projection.
        activation: Activation = value(Activation::None);
        /// Whether the projection has a bias.
        bias: bool = value(true);
        /// Whether the vector is scaled to unit length.
        normalize: bool = value(false);
    } rules [Rule::excludes(
        ("bias", Is::False),
        ("project", Is::Absent),
        "the head has no projection, so `bias` would have no effect",
    )
    .label("no projection here")
    .help("add `project: d_model`, or remove it")];
}

impl EmbedHead {
    /// The module of the head.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, "EmbedHead", Role::Head);
        b.at(self.places.whole());
        b.part(Part::new(Slot::Head, "Head"));
        b.doc("One vector for the whole sequence.");
        let x = b.argument("x", site.hidden());
        let takes_mask = self.pool.takes_mask(site);
        let mask = if takes_mask { site.mask(&mut b) } else { None };
        let mut h = self.pool.lower(&mut b, site, x, mask)?;
        if let Some(norm) = &self.pooled_norm {
            let width = self.pool.width(site.d_model);
            h = norm.lower(&mut b, &site.norm("pooled_norm"), "h", width, h)?;
        }
        if let Some(width) = self.project {
            let member = b.layer(
                "project",
                site.linear(
                    "project",
                    self.pool.width(site.d_model),
                    Extent::new("project", *width),
                    self.bias,
                ),
            );
            h = b.op("h", Op::Layer { member }, &[h])?;
        }
        h = self.activation.lower(&mut b, h)?;
        // Last, so that the product of two vectors is their cosine.
        if self.normalize {
            h = b.op("h", Op::Normalize, &[h])?;
        }
        Ok(Lowered { module: b.finish(&[h]), takes_table: false, takes_mask })
    }
}
