//! Layer normalisation: `(x - mean) / sqrt(var + eps) * weight + bias` over the features
//! (Ba, Kiros, Hinton 2016).

use super::without_weight;
use crate::field::Positive;
use crate::field::record::record;
use crate::ir::{Extent, Layer};

record! {
    /// Layer normalisation (Ba et al. 2016).
    pub struct LayerNorm as "layer_norm" {
        /// Added to the variance, so that nothing is divided by zero.
        eps: Positive = value(Positive(1e-5));
        /// Whether there is a learned weight.
        affine: bool = value(true);
        /// Whether there is a learned bias in addition to the weight; if absent, as `affine`.
        bias: Option<bool> = absent;
        /// Whether the factor is `1 + weight`, where the weight is initialised to 0 (Nemotron).
        unit_offset: bool = value(false);
    } rules [without_weight("bias"), without_weight("unit_offset")];
}

impl LayerNorm {
    /// The layer for `dim` features.
    pub fn layer(&self, dim: Extent) -> Layer {
        Layer::LayerNorm {
            dim,
            eps: *self.eps,
            affine: self.affine,
            bias: self.bias.unwrap_or(self.affine) && self.affine,
            unit_offset: self.unit_offset && self.affine,
        }
    }
}
