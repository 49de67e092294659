//! Dynamic tanh in the place of a norm: `weight * tanh(alpha * x) + bias` with one learned `alpha`
//! (Zhu et al. 2025, "Transformers without Normalization").

use super::{Site, without_weight};
use crate::field::Positive;
use crate::field::record::record;
use crate::ir::build::{Builder, Built};
use crate::ir::op::{Activation, Op};
use crate::ir::{Extent, Init, Part, Role, Slot, ValueId};

record! {
    /// A bounded curve in the place of a norm: `weight * tanh(alpha * x) + bias` (Zhu et al. 2025).
    pub struct DynamicTanh as "dynamic_tanh" {
        /// Where the learned `alpha` starts, one number for all features.
        alpha: Positive = value(Positive(0.5));
        /// Whether there is a learned weight for each feature.
        affine: bool = value(true);
        /// Whether there is a learned bias; the default is the value of `affine`.
        bias: Option<bool> = absent;
    } rules [without_weight("bias")];
}

impl DynamicTanh {
    /// Whether there is a bias.
    pub fn has_bias(&self) -> bool {
        self.affine && self.bias.unwrap_or(true)
    }

    /// Applies it as a module of that name: `x [.., dim]` to the same shape.
    pub fn lower(&self, b: &mut Builder, site: &Site<'_>, value: &str, dim: Extent, x: ValueId) -> Built {
        // A module of its own, so that pictures, costs and emitted code show its ops as one norm.
        let mut inner = Builder::new(b.arena(), "DynamicTanh", Role::Norm);
        inner.at(self.places.whole());
        inner.part(Part::new(Slot::Norm, "Dynamic tanh"));
        let formula = match (self.affine, self.has_bias()) {
            (true, true) => "`weight * tanh(alpha * x) + bias`",
            (true, false) => "`weight * tanh(alpha * x)`",
            (false, _) => "`tanh(alpha * x)`",
        };
        inner.doc(formula);
        let param = |name: &str, size: Extent, init: Init| {
            site.init.param(&format!("{}.{name}", site.path), vec![size], Some(init))
        };
        // The type of this value, because a norm may be applied to whole vectors or to the features of heads.
        let mut y = inner.argument("x", b.ty(x).clone());
        // One number, which the product broadcasts over all features.
        let alpha = inner.param("alpha", param("alpha", Extent::from(1), Init::Constant(*self.alpha)))?;
        y = inner.op("y", Op::Mul, &[y, alpha])?;
        y = inner.op("y", Op::Activate(Activation::Tanh), &[y])?;
        if self.affine {
            let weight = inner.param("weight", param("weight", dim, Init::Ones))?;
            y = inner.op("y", Op::Mul, &[y, weight])?;
        }
        if self.has_bias() {
            let bias = inner.param("bias", param("bias", dim, Init::Zeros))?;
            y = inner.op("y", Op::Add, &[y, bias])?;
        }
        let module = inner.finish(&[y]);
        let member = b.child(site.member, module);
        b.op(value, Op::Call { member }, &[x])
    }
}
