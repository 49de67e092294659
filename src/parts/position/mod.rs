//! Positional schemes. To add one, add a file here and a row below.
//!
//! A scheme can act on embeddings, on queries and keys, and on scores. Each is a hook that does nothing by
//! default. Attention calls the hooks without knowing the scheme.

pub mod alibi;
pub mod learned;
pub mod none;
pub mod rotary;
pub mod scaling;
pub mod sinusoidal;
pub mod t5;

pub use alibi::Alibi;
pub use learned::Learned;
pub use none::NoPosition;
pub use rotary::Rotary;
pub use sinusoidal::Sinusoidal;
pub use t5::T5;

use super::init::InitPlan;
use super::scope::{AmbientId, Scope};
use crate::diag::Diagnostic;
use crate::field::record::slot;
use crate::ir::build::{Builder, Built};
use crate::ir::infer::Mismatch;
use crate::ir::op::Sequence;
use crate::ir::{Extent, ValueId};
use crate::source::Span;

slot! {
    /// How the order of positions enters the model.
    pub enum Position as "position" {
        /// No positions: only masks tell the order of tokens.
        "none" => None(NoPosition),
        /// A learned vector for each position, added to the embeddings (GPT, BERT).
        "learned" => Learned(Learned),
        /// Fixed sines and cosines, added to the embeddings (Vaswani et al. 2017).
        "sinusoidal" => Sinusoidal(Sinusoidal),
        /// Queries and keys rotated by their position (Su et al. 2021).
        "rotary" => Rotary(Rotary),
        /// Scores are lowered with the distance (Press et al. 2021).
        "alibi" => Alibi(Alibi),
        /// A learned bias for each bucket of distances, added to the scores (Raffel et al. 2020).
        "t5" => T5(T5),
    }
}

/// The attention on which a scheme acts.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// The number of query heads, `H`.
    pub heads: Extent,
    /// Features of each head that may be rotated.
    pub head_dim: Extent,
    /// The sequence of the queries and keys.
    pub sequence: Sequence,
    /// Whether a query sees no key after it.
    pub is_causal: bool,
    /// The longest sequence of the model, in positions.
    pub context: u64,
}

/// The embedding to which positions are added.
pub struct EmbedSite<'a> {
    /// The initial values of parameters.
    pub init: &'a InitPlan,
    /// The path of the embedding: `embed`.
    pub path: &'a str,
    /// The width of the embedding.
    pub dim: Extent,
    /// The sequence that is embedded.
    pub sequence: Sequence,
    /// The longest sequence of the model, in positions; the number of learned positions.
    pub context: Extent,
}

/// What a scheme does; every hook does nothing by default.
pub trait Scheme {
    /// Adds positions to embeddings `[B, T, D]`.
    fn on_embedding(&self, _b: &mut Builder, _site: &EmbedSite<'_>, x: ValueId) -> Built {
        Ok(x)
    }

    /// The values that the stack computes once for the scheme.
    fn needs(&self, _scope: &Scope, _at: Geometry) -> Vec<AmbientId> {
        Vec::new()
    }

    /// Changes queries or keys, `[B, H, T, D]`, into a value of this name; `given` are the values of `needs`.
    /// Both are changed, so that a score depends only on the distance of their positions.
    fn on_heads(&self, _b: &mut Builder, _given: &[ValueId], _name: &str, x: ValueId) -> Built {
        Ok(x)
    }

    /// A bias `[1, H, T, K]` on the scores; `path` is the attention's.
    fn on_scores(
        &self,
        _b: &mut Builder,
        _scope: &Scope,
        _path: &str,
        _at: Geometry,
        _given: &[ValueId],
    ) -> Result<Option<ValueId>, Mismatch> {
        Ok(None)
    }

    /// Whether the scheme rotates queries and keys.
    fn rotates(&self) -> bool {
        false
    }

    /// Checks the scheme for an attention whose heads have this number of features, which is given at this
    /// place.
    fn check(&self, _features: (u64, Span), _is_causal: bool) -> Vec<Diagnostic> {
        Vec::new()
    }
}

impl Position {
    /// The absence of a scheme, which is the default.
    pub fn nowhere() -> Self {
        Position::None(NoPosition { places: Default::default() })
    }

    /// The scheme with its hooks.
    pub fn scheme(&self) -> &dyn Scheme {
        match self {
            Position::None(p) => p,
            Position::Learned(p) => p,
            Position::Sinusoidal(p) => p,
            Position::Rotary(p) => p,
            Position::Alibi(p) => p,
            Position::T5(p) => p,
        }
    }
}
