//! Arguments for the lengths and the element type for which costs are computed.

use clap::Args;

use super::amount;
use super::place::Dtype;
use crate::report::cost::Cost;
use crate::report::scene::{Element, Scene};

/// The lengths and the element type for which costs are computed.
#[derive(Clone, Debug, Args)]
pub struct SceneArgs {
    /// The number of sequences in the batch
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = amount::at_least(1_u64))]
    batch: u64,
    /// The number of tokens in each sequence; the shortest context if not given
    #[arg(long, short, value_name = "N", value_parser = amount::at_least(1_u64))]
    tokens: Option<u64>,
    /// The element type for bytes: bf16, f16 or f32
    #[arg(
        long,
        value_enum,
        value_name = "TYPE",
        default_value_t = Dtype::Bf16,
        hide_default_value = true,
        hide_possible_values = true
    )]
    dtype: Dtype,
}

impl SceneArgs {
    /// The scene for models with these costs.
    pub fn scene<'c>(&self, costs: impl Iterator<Item = &'c Cost>) -> Scene {
        // Models are compared at a length that all of them can read.
        let contexts = costs.filter(|c| c.has_time).map(|c| c.context);
        // Models of images alone have no time axis, and any length gives them the same costs.
        let tokens = self.tokens.or(contexts.min()).unwrap_or(1);
        let element = match self.dtype {
            Dtype::Bf16 => Element::Bf16,
            Dtype::F16 => Element::F16,
            Dtype::F32 => Element::F32,
        };
        Scene { batch: self.batch, tokens, element }
    }
}
