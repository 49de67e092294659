//! Two projections with a nonlinearity between: `down(activation(up(x)))` (Vaswani et al. 2017).

use super::{Site, expansion, sizes, widths};
use crate::field::record::record;
use crate::field::{Context, Positive, Probability, Size};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::{Extent, ModuleId, Part, Role};
use crate::parts::activation::Activation;

record! {
    /// Two projections with a nonlinearity between (Vaswani et al. 2017).
    pub struct Mlp as "mlp" {
        /// The inner width as a multiple of `d_model`.
        expansion: Positive = value(Positive(4.0));
        /// The inner width, between the projections.
        hidden: Size = formula("expansion * d_model");
        /// The nonlinearity after the first projection.
        activation: Activation = value(Activation::Gelu);
        /// Whether the projections have a bias.
        bias: bool = value(true);
        /// Dropout after the nonlinearity.
        inner_dropout: Probability = value(Probability(0.0));
        /// Dropout of the output.
        dropout: Probability = value(Probability(0.0));
    } pairs widths; then Self::settled;
}

impl Mlp {
    /// The module, `[.., D] → [.., D]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<ModuleId, Mismatch> {
        let scope = site.scope;
        let mut b = Builder::new(&scope.arena, site.module.clone(), Role::Ffn);
        b.at(self.places.whole());
        b.part(self.described(scope.d_model));
        b.doc(format!("`down({}(up(x)))`", self.activation.word()));
        let x = b.argument("x", site.input());
        let hidden = Extent::new("hidden", *self.hidden);
        let up = scope.linear(&format!("{}.up", site.path), scope.d_model, hidden, self.bias);
        let down = scope.branch_output(&format!("{}.down", site.path), hidden, scope.d_model, self.bias);
        let h = b.apply("up", up, x)?;
        let h = self.activation.lower(&mut b, h)?;
        let h = b.dropout(*self.inner_dropout, h)?;
        let y = b.apply("down", down, h)?;
        let y = b.dropout(*self.dropout, y)?;
        Ok(b.finish(&[y]))
    }

    /// What it is, in a few words.
    pub(super) fn described(&self, d_model: Extent) -> Part {
        let activation = Some(self.activation).filter(|a| *a != Activation::None);
        let activation = activation.map(|a| a.word().to_owned());
        sizes("Feed-forward", activation, d_model, *self.hidden)
    }

    /// An expanded spec has both fields; `expansion` follows from `hidden`, so that they agree.
    fn settled(self, cx: &Context<'_>) -> Self {
        Self { expansion: expansion(*self.hidden, cx).unwrap_or(self.expansion), ..self }
    }
}
