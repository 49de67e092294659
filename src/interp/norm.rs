//! Norms, of a value or of a residual sum.

use burn::prelude::*;
use trafoc_kernels::{add_layer_norm_of, add_rms_norm_of, layer_norm_of, rms_norm_of};

use super::Fault;
use super::value::Ranked;

/// Which norm it is.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Layer,
    Rms,
}

/// A norm with its parameters.
pub(super) struct Norm {
    pub kind: Kind,
    pub weight: Option<Tensor<1>>,
    pub bias: Option<Tensor<1>>,
    pub eps: f64,
}

impl Norm {
    pub fn of<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self.kind {
            Kind::Layer => layer_norm_of(x, self.weight, self.bias, self.eps),
            Kind::Rms => rms_norm_of(x, self.weight, self.eps),
        }
    }

    /// The norm of `x + residual`, and this sum.
    fn of_sum<const D: usize>(
        self,
        x: Tensor<D>,
        residual: Tensor<D>,
        ranked: fn(Tensor<D>) -> Ranked<Float>,
    ) -> [Ranked<Float>; 2] {
        let (y, sum) = match self.kind {
            Kind::Layer => add_layer_norm_of(x, residual, self.weight, self.bias, self.eps),
            Kind::Rms => add_rms_norm_of(x, residual, self.weight, self.eps),
        };
        [ranked(y), ranked(sum)]
    }
}

/// The norm of a sum, and the sum.
pub(super) fn add_norm(norm: Norm, a: Ranked<Float>, b: Ranked<Float>) -> Result<[Ranked<Float>; 2], Fault> {
    Ok(match (a, b) {
        (Ranked::R1(a), Ranked::R1(b)) => norm.of_sum(a, b, Ranked::R1),
        (Ranked::R2(a), Ranked::R2(b)) => norm.of_sum(a, b, Ranked::R2),
        (Ranked::R3(a), Ranked::R3(b)) => norm.of_sum(a, b, Ranked::R3),
        (Ranked::R4(a), Ranked::R4(b)) => norm.of_sum(a, b, Ranked::R4),
        (a, _) => return Err(Fault::rank(a.rank())),
    })
}

/// The factor of a norm: `weight + 1.0` if the stored weight is the difference from one, otherwise the
/// weight.
pub(super) fn offset(weight: Tensor<1>, unit_offset: bool) -> Tensor<1> {
    if unit_offset { weight + 1.0 } else { weight }
}
