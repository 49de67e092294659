//! Hidden layers before the scores, `norm(activation(W x + b))`, shared by the heads that have them.

use super::Site;
use crate::field::Size;
use crate::field::rule::{Is, Rule};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Extent, ValueId};
use crate::parts::activation::Activation;
use crate::parts::norm::Norm;

/// A sequence of hidden layers.
#[derive(Clone, Copy, Debug)]
pub struct Hidden<'a> {
    /// The width of each layer.
    pub widths: &'a [Size],
    /// Whether the layers have a bias.
    pub bias: bool,
    /// The nonlinearity after each projection.
    pub activation: Activation,
    /// The norm after each nonlinearity.
    pub norm: &'a Option<Norm>,
}

impl Hidden<'_> {
    /// Adds the layers, `[.., width]` to the last layer's width, which is returned too.
    pub fn lower(
        &self,
        b: &mut Builder,
        site: &Site<'_>,
        x: ValueId,
        width: Extent,
    ) -> Result<(ValueId, Extent), Mismatch> {
        let (mut h, mut width) = (x, width);
        for size in self.widths {
            let size = Extent::new("hidden", **size);
            let member = b.layer("hidden", site.linear("hidden", width, size, self.bias));
            h = b.op("h", Op::Layer { member }, &[h])?;
            h = self.activation.lower(b, h)?;
            width = size;
            if let Some(norm) = self.norm {
                h = norm.lower(b, "norm", "h", width, h)?;
            }
        }
        Ok((h, width))
    }
}

/// A field about hidden layers, which has no effect without any.
pub const fn needed_by(field: &'static str) -> Rule {
    Rule::excludes(
        (field, Is::Given),
        ("hidden", Is::Empty),
        "the head has no hidden layer, so `{field}` would have no effect",
    )
    .label("no layer here")
    .help("add `hidden: [d_model]`, or remove it")
}
