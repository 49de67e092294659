//! A learned factor for each feature: `x * weight` (LayerScale, Touvron et al. 2021).

use super::scope::Scope;
use crate::field::Real;
use crate::field::record::record;
use crate::ir::build::{Builder, Built};
use crate::ir::op::Op;
use crate::ir::{Init, ValueId};

record! {
    /// A learned factor for every feature (LayerScale, Touvron et al. 2021).
    pub struct Gain as "gain" {
        /// The initial value of the factors.
        init: Real = value(Real(1e-5));
    }
}

impl Gain {
    /// Multiplies `x` by the factors, a parameter with this name.
    pub fn lower(&self, b: &mut Builder, scope: &Scope, name: &str, x: ValueId) -> Built {
        // The blocks of one kind are one module, so the same rules hold for them: `*` is any block's index.
        let path = format!("{}.blocks.*.{name}", scope.path);
        let layer = scope.init.param(&path, vec![scope.d_model], Some(Init::Constant(*self.init)));
        let weight = b.param(name, layer)?;
        b.op("scaled", Op::Mul, &[x, weight])
    }
}
