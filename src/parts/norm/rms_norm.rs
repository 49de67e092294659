//! Root mean square normalisation: `x / sqrt(mean(x^2) + eps) * weight` (Zhang and Sennrich 2019).

use super::without_weight;
use crate::field::Positive;
use crate::field::record::record;
use crate::ir::{Extent, Layer};

record! {
    /// Root mean square normalisation (Zhang and Sennrich 2019).
    pub struct RmsNorm as "rms_norm" {
        /// Added to the mean square, so that nothing is divided by zero.
        eps: Positive = value(Positive(1e-6));
        /// Whether there is a learned weight.
        affine: bool = value(true);
        /// Whether the factor is `1 + weight`, where the weight is initialised to 0 (Gemma).
        unit_offset: bool = value(false);
    } rules [without_weight("unit_offset")];
}

impl RmsNorm {
    /// The layer for `dim` features.
    pub fn layer(&self, dim: Extent) -> Layer {
        Layer::RmsNorm {
            dim,
            eps: *self.eps,
            affine: self.affine,
            unit_offset: self.unit_offset && self.affine,
        }
    }
}
