//! Gated linear unit: `down(activation(gate(x)) * up(x))` (Shazeer 2020). SwiGLU has `silu`, GeGLU `gelu`.

use super::{Site, expansion, sizes, widths};
use crate::field::record::record;
use crate::field::rule::{Is, Rule};
use crate::field::{Context, Positive, Probability, Real, Size};
use crate::ir::build::{Builder, Built};
use crate::ir::infer::Mismatch;
use crate::ir::op::{self, Op};
use crate::ir::{Extent, ModuleId, Part, Role, ValueId};
use crate::parts::activation::Activation;

record! {
    /// SwiGLU with bounds as in GPT-OSS: `gate' = min(gate, limit)`, `up' = clamp(up, ±limit)`, `gate'
    /// sigmoid(alpha gate') (up' + shift)`.
    pub struct Clamped as "clamped" {
        /// Steepness of the sigmoid.
        alpha: Positive = value(Positive(1.702));
        /// Bound on both projections.
        limit: Positive = value(Positive(7.0));
        /// Added to the second projection.
        shift: Real = value(Real(1.0));
    }
}

record! {
    /// Gated linear unit (Shazeer 2020).
    pub struct Glu as "glu" {
        /// The inner width as a multiple of `d_model`.
        expansion: Positive = value(Positive(4.0));
        /// The inner width, between the projections.
        hidden: Size = formula("expansion * d_model");
        /// The nonlinearity of the gate.
        activation: Activation = value(Activation::Silu);
        /// Bounds on gate and value, instead of `activation`.
        clamped: Option<Clamped> = absent;
        /// Whether the projections have a bias.
        bias: bool = value(true);
        /// Dropout after the product.
        inner_dropout: Probability = value(Probability(0.0));
        /// Dropout of the output.
        dropout: Probability = value(Probability(0.0));
    } rules [Rule::excludes(
        ("activation", Is::Not("silu")),
        ("clamped", Is::Given),
        "`clamped` has its own nonlinearity, so `activation` would have no effect",
    )]; pairs widths; then Self::settled;
}

impl Glu {
    /// The module, `[.., D] → [.., D]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<ModuleId, Mismatch> {
        let scope = site.scope;
        let mut b = Builder::new(&scope.arena, site.module.clone(), Role::Ffn);
        b.at(self.places.whole());
        b.part(self.described(scope.d_model));
        b.doc(match &self.clamped {
            Some(c) => format!(
                "`down(g sigmoid({} g) (u + {}))` with `g = min(gate(x), {})`, `u = clamp(up(x), ±{})`",
                *c.alpha, *c.shift, *c.limit, *c.limit
            ),
            None => format!("`down({}(gate(x)) * up(x))`", self.activation.word()),
        });
        let x = b.argument("x", site.input());
        let hidden = Extent::new("hidden", *self.hidden);
        let inner =
            |name: &str| scope.linear(&format!("{}.{name}", site.path), scope.d_model, hidden, self.bias);
        let gate = b.apply("gate", inner("gate"), x)?;
        let up = b.apply("up", inner("up"), x)?;
        let h = match &self.clamped {
            Some(clamped) => clamped.lower(&mut b, gate, up)?,
            None => {
                let gate = self.activation.lower(&mut b, gate)?;
                b.op("h", Op::Mul, &[gate, up])?
            }
        };
        let h = b.dropout(*self.inner_dropout, h)?;
        // The last projection before the residual stream is added to, which `init.residual` scales.
        let down = scope.branch_output(&format!("{}.down", site.path), hidden, scope.d_model, self.bias);
        let y = b.apply("down", down, h)?;
        let y = b.dropout(*self.dropout, y)?;
        Ok(b.finish(&[y]))
    }

    /// What it is, in a few words.
    pub(super) fn described(&self, d_model: Extent) -> Part {
        let activation = match (&self.clamped, self.activation) {
            // `g sigmoid(alpha g)` is SiLU with a steepness.
            (Some(_), _) => Some("clamped silu".to_owned()),
            (None, Activation::None) => None,
            (None, activation) => Some(activation.word().to_owned()),
        };
        sizes("Gated feed-forward", activation, d_model, *self.hidden)
    }

    /// An expanded spec has both fields; `expansion` follows from `hidden`, so that they agree.
    fn settled(self, cx: &Context<'_>) -> Self {
        Self { expansion: expansion(*self.hidden, cx).unwrap_or(self.expansion), ..self }
    }
}

impl Clamped {
    fn lower(&self, b: &mut Builder, gate: ValueId, up: ValueId) -> Built {
        let limit = *self.limit;
        // No lower bound: multiplied by its own sigmoid, a negative gate is close to 0 anyway.
        let gate = b.op("gate", Op::Clamp { min: None, max: Some(limit) }, &[gate])?;
        let up = b.op("up", Op::Clamp { min: Some(-limit), max: Some(limit) }, &[up])?;
        let steep = b.op("s", Op::Scale { by: (*self.alpha).into() }, &[gate])?;
        let open = b.op("s", Op::Activate(op::Activation::Sigmoid), &[steep])?;
        let gate = b.op("gate", Op::Mul, &[gate, open])?;
        let up = b.op("up", Op::Shift { by: *self.shift }, &[up])?;
        b.op("h", Op::Mul, &[up, gate])
    }
}
