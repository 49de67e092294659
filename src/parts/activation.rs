//! Nonlinearities, each by its exact name.

use crate::field::record::choice;
use crate::ir::ValueId;
use crate::ir::build::{Builder, Built};
use crate::ir::op::{self, Op};

choice! {
    /// A nonlinearity, applied to every element.
    pub enum Activation {
        /// `max(x, 0)`, the rectified linear unit
        "relu" => Relu,
        /// `max(x, 0)^2` (So et al. 2021; Nemotron)
        "relu2" => Relu2,
        /// `x Φ(x)`, with the error function (Hendrycks and Gimpel 2016)
        "gelu" => Gelu,
        /// `x/2 (1 + tanh(sqrt(2/π) (x + 0.044715 x^3)))` (GPT-2, Gemma)
        "gelu_tanh" => GeluTanh,
        /// `x sigmoid(1.702 x)` (CLIP)
        "quick_gelu" => QuickGelu,
        /// `x sigmoid(x)`, also called swish
        "silu" => Silu,
        /// `tanh(x)`, between -1 and 1
        "tanh" => Tanh,
        /// `1 / (1 + e^-x)`
        "sigmoid" => Sigmoid,
        /// `x`: no nonlinearity
        "none" => None,
    }
}

impl Activation {
    /// Adds the nodes that apply the nonlinearity to `x`.
    pub fn lower(self, b: &mut Builder, x: ValueId) -> Built {
        let activation = match self {
            Self::Relu => op::Activation::Relu,
            Self::Relu2 => op::Activation::Relu2,
            Self::Gelu => op::Activation::Gelu,
            Self::GeluTanh => op::Activation::GeluTanh,
            Self::QuickGelu => op::Activation::QuickGelu,
            Self::Silu => op::Activation::Silu,
            Self::Tanh => op::Activation::Tanh,
            Self::Sigmoid => op::Activation::Sigmoid,
            // What changes nothing is no op, so it costs nothing and is not drawn.
            Self::None => return Ok(x),
        };
        b.op("h", Op::Activate(activation), &[x])
    }

    /// The name in formulas of emitted documentation, which is that of the spec.
    // The words are in the order of the variants.
    pub fn word(self) -> &'static str {
        Self::WORDS.get(self as usize).map_or("", |w| w.name)
    }
}
