//! Norms. Adding one: a file here and a row below.

pub mod layer_norm;
pub mod none;
pub mod rms_norm;

pub use layer_norm::LayerNorm;
pub use none::NoNorm;
pub use rms_norm::RmsNorm;

use crate::diag::{Code, Diagnostic};
use crate::field::Context;
use crate::field::record::{Places, slot};
use crate::ir::Layer;
use crate::ir::ValueId;
use crate::ir::build::{Builder, Built};

slot! {
    /// How a vector is brought to a common scale.
    pub enum Norm as "norm" {
        /// `(x - mean) / sqrt(var + eps) * weight + bias` (Ba et al. 2016)
        "layer_norm" => LayerNorm(LayerNorm),
        /// `x / sqrt(mean(x^2) + eps) * weight` (Zhang and Sennrich 2019)
        "rms_norm" => RmsNorm(RmsNorm),
        /// `x`
        "none" => None(NoNorm),
    }
}

impl Norm {
    /// The layer over that many features, or nothing.
    pub fn layer(&self, dim: u64) -> Option<Layer> {
        match self {
            Norm::LayerNorm(norm) => Some(norm.layer(dim)),
            Norm::RmsNorm(norm) => Some(norm.layer(dim)),
            Norm::None(_) => None,
        }
    }

    /// Applies the norm under a name.
    pub fn lower(&self, b: &mut Builder, name: &str, dim: u64, x: ValueId) -> Built {
        match self.layer(dim) {
            Some(layer) => b.apply(name, layer, x),
            None => Ok(x),
        }
    }
}

/// Reports what is said of a weight that is not there.
fn without_weight(
    places: &Places,
    affine: bool,
    said: &[(&'static str, bool)],
    cx: &mut Context<'_>,
) -> Option<()> {
    let Some((key, _)) = said.iter().find(|(_, given)| *given && !affine) else { return Some(()) };
    let message = format!("without a weight (`affine: false`) `{key}` does nothing");
    cx.report(
        Diagnostic::error(Code::KeysExclude, places.of(key), message)
            .label(places.of("affine"), "no weight here")
            .help("keep one of them"),
    );
    None
}
