//! Attention. To add a kind, add a file here and a row below.

pub mod core;
pub mod cross;
pub mod effect;
pub mod heads;
pub mod latent;
pub mod multi_head;

pub use cross::Cross;
pub use latent::Latent;
pub use multi_head::MultiHead;

use super::own::{self, OwnPart};
use super::position::Position;
use super::scope::{Lowered, Scope};
use crate::diag::Diagnostic;
use crate::field::record::slot;
use crate::ir::Slot;
use crate::ir::infer::Mismatch;

slot! {
    /// How the positions of a sequence attend to each other.
    pub enum Attention as "attention" implied "multi_head" own OwnPart {
        /// Heads of queries, keys and values (Vaswani et al. 2017); fewer `kv_heads` share keys and values.
        "multi_head" => MultiHead(MultiHead),
        /// Keys and values from a small latent vector (DeepSeek-V2).
        "latent" => Latent(Latent),
    }
}

/// What an attention needs to know about its block.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The stack that contains the block.
    pub scope: &'a Scope,
    /// The name of the instance, such as `attention`.
    pub name: &'a str,
    /// The positional scheme of the stack.
    pub position: &'a Position,
    /// The longest sequence of the model, in positions.
    pub context: u64,
}

impl Site<'_> {
    /// The path of a member below the stack: `blocks.*.attention.query`.
    pub fn path(&self, member: &str) -> String {
        format!("blocks.*.{}.{member}", self.name)
    }
}

impl Attention {
    /// The module of the attention, `[B, T, D] → [B, T, D]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        match self {
            Attention::MultiHead(a) => a.lower(site),
            Attention::Latent(a) => a.lower(site),
            Attention::Own(a) => {
                let stack =
                    own::lower::Stack { scope: site.scope, position: site.position, context: site.context };
                // It takes the place of attention, whatever it computes, and is counted and drawn as such.
                let called = own::lower::Site::called(a, site.name, stack);
                a.lower(&own::lower::Site { slot: Some(Slot::Attention), ..called })
            }
        }
    }

    /// Checks the fields, for a stack that is causal or not and for its positional scheme, if that is
    /// known.
    pub fn check(&self, position: Option<&Position>, is_causal: bool) -> Vec<Diagnostic> {
        match self {
            Attention::MultiHead(a) => a.check(position, is_causal),
            Attention::Latent(a) => a.check(position, is_causal),
            // Checked with the values of its fields, where these are known.
            Attention::Own(_) => Vec::new(),
        }
    }

    /// The attention in a block with these positions: a value that has no effect there is the default.
    pub fn with_position(&self, position: &Position) -> Self {
        match self {
            Attention::MultiHead(a) => Attention::MultiHead(a.with_position(position)),
            Attention::Latent(a) => Attention::Latent(a.clone()),
            Attention::Own(a) => Attention::Own(a.clone()),
        }
    }

    /// The given values that have an effect only with some positional schemes.
    pub fn effects(&self, position: &Position) -> Vec<effect::Effect> {
        match self {
            Attention::MultiHead(a) => a.effects(position),
            Attention::Latent(_) | Attention::Own(_) => Vec::new(),
        }
    }
}
