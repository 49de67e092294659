//! Norms. To add one, add a file here and a row below.

pub mod dynamic_tanh;
pub mod layer_norm;
pub mod none;
pub mod rms_norm;

pub use dynamic_tanh::DynamicTanh;
pub use layer_norm::LayerNorm;
pub use none::NoNorm;
pub use rms_norm::RmsNorm;

use super::init::InitPlan;
use crate::field::record::slot;
use crate::field::rule::{Is, Rule};
use crate::ir::build::{Builder, Built};
use crate::ir::{Extent, Layer, Op, ValueId};

/// Where a norm is lowered.
pub struct Site<'a> {
    /// The initial values of parameters.
    pub init: &'a InitPlan,
    /// The path of its parameters, which the rules of `init` refer to: `decoder.blocks.*.norm1`.
    pub path: String,
    /// The name of the member, usually the end of the path.
    pub member: &'a str,
}

slot! {
    /// How a vector is normalised.
    pub enum Norm as "norm" {
        /// `(x - mean) / sqrt(var + eps) * weight + bias` (Ba et al. 2016)
        "layer_norm" => LayerNorm(LayerNorm),
        /// `x / sqrt(mean(x^2) + eps) * weight` (Zhang and Sennrich 2019)
        "rms_norm" => RmsNorm(RmsNorm),
        /// `weight * tanh(alpha * x) + bias` (Zhu et al. 2025)
        "dynamic_tanh" => DynamicTanh(DynamicTanh),
        /// `x`, unchanged
        "none" => None(NoNorm),
    }
}

/// Which learned weights a norm has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Whether there is a factor for each feature.
    pub factor: bool,
    /// Whether there is a summand for each feature.
    pub summand: bool,
    /// Whether the factor is `1 + weight`.
    pub unit_offset: bool,
}

impl Norm {
    /// Whether there is no norm.
    pub fn is_none(&self) -> bool {
        matches!(self, Norm::None(_))
    }

    /// The norm without its learned weights, and which weights it had.
    pub fn without_weights(&self) -> (Norm, Weights) {
        let plain = |factor, summand, unit_offset| Weights { factor, summand, unit_offset };
        match self {
            Norm::LayerNorm(norm) => {
                let has_bias = norm.affine && norm.bias.unwrap_or(true);
                let weights = plain(norm.affine, has_bias, norm.unit_offset);
                let alone = LayerNorm { affine: false, bias: None, unit_offset: false, ..norm.clone() };
                (Norm::LayerNorm(alone), weights)
            }
            Norm::RmsNorm(norm) => {
                let alone = RmsNorm { affine: false, unit_offset: false, ..norm.clone() };
                (Norm::RmsNorm(alone), plain(norm.affine, false, norm.unit_offset))
            }
            Norm::DynamicTanh(norm) => {
                let alone = DynamicTanh { affine: false, bias: None, ..norm.clone() };
                (Norm::DynamicTanh(alone), plain(norm.affine, norm.has_bias(), false))
            }
            Norm::None(_) => (self.clone(), plain(false, false, false)),
        }
    }

    /// Applies the norm for `dim` features as the member of that site, which is a layer or a module of ops.
    /// The result is called `value`.
    pub fn lower(&self, b: &mut Builder, site: &Site<'_>, value: &str, dim: Extent, x: ValueId) -> Built {
        let layer = |b: &mut Builder, layer: Layer| {
            let member = b.layer(site.member, layer);
            b.op(value, Op::Layer { member }, &[x])
        };
        match self {
            Norm::LayerNorm(norm) => layer(b, norm.layer(dim)),
            Norm::RmsNorm(norm) => layer(b, norm.layer(dim)),
            Norm::DynamicTanh(norm) => norm.lower(b, site, value, dim, x),
            // What changes nothing is neither a module nor an op.
            Norm::None(_) => Ok(x),
        }
    }
}

/// A field that describes a weight which the norm does not have.
const fn without_weight(field: &'static str) -> Rule {
    Rule::excludes(
        (field, Is::True),
        ("affine", Is::False),
        "without a weight (`affine: false`), `{field}` has no effect",
    )
    .label("no weight here")
}
