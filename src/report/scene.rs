//! The lengths and the element type for which a model's costs are computed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ir::Lengths;

/// The element type of all tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// IEEE single precision, 4 bytes.
    F32,
    /// 2 bytes, with the range of `f32` and 8 significant bits.
    #[default]
    Bf16,
    /// IEEE half precision, 2 bytes.
    F16,
}

impl Element {
    /// The size of one element in bytes.
    pub fn bytes(self) -> u128 {
        match self {
            Element::F32 => 4,
            Element::Bf16 | Element::F16 => 2,
        }
    }

    /// `f32`, `bf16` or `f16`.
    pub fn word(self) -> &'static str {
        match self {
            Element::F32 => "f32",
            Element::Bf16 => "bf16",
            Element::F16 => "f16",
        }
    }
}

/// The lengths and the element type for which costs are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Scene {
    /// The number of sequences in a batch.
    pub batch: u64,
    /// The tokens of each sequence, and of each source.
    pub tokens: u64,
    /// The type of every element.
    pub element: Element,
}

impl Scene {
    /// The lengths of a forward pass over whole sequences.
    pub fn whole(&self) -> Lengths {
        Lengths { batch: self.batch, time: self.tokens, source: self.tokens, past: 0, rows: 0 }
    }

    /// The lengths of a step that decodes one more token of each sequence.
    pub fn last(&self) -> Lengths {
        Lengths { time: 1, past: self.tokens.saturating_sub(1), ..self.whole() }
    }
}
