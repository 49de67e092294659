//! Everything a model costs, in one value: parameters, operations, activations, caches, bytes.
//!
//! [`Cost`] is computed from a graph alone and remains symbolic; [`Cost::forward`] and similar functions
//! insert lengths. The conventions are in [`super::work`] (what counts as an operation),
//! [`super::parameters`] (what counts once) and [`super::scores`] (which pairs masks leave).

use schemars::JsonSchema;
use serde::Serialize;

use super::parameters::{self, Parameters};
use super::scores::{self, Attended};
use super::work::{self, Work};
use super::{serialize_count, serialize_dim};
use crate::ir::{Dim, Graph, Lengths, ModelKind, Sym, Verified};

/// Whether an input of the model has this length.
pub(super) fn has_symbol(graph: &Graph, sym: Sym) -> bool {
    graph.root().arguments().iter().any(|v| v.ty.shape.contains(&Dim::sym(sym)))
}

/// The costs of a model, most of them as polynomials in the lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Whether it is a decoder, an encoder, or both.
    pub kind: ModelKind,
    /// The parameters by role, and the buffers.
    pub parameters: Parameters,
    /// The operations and activations of one forward pass.
    pub work: Work,
    /// The pairs of query and key that masks leave, and what decoding caches.
    pub attended: Attended,
    /// The longest sequence it is meant for, in tokens; for images, the number of patches and extra tokens.
    pub context: u64,
    /// Whether the length of a sequence can vary; it cannot for images.
    pub has_time: bool,
    /// Whether a source has a length of its own; not where the encoder reads images.
    pub has_source: bool,
}

/// Operations of one forward pass at given lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Operations {
    /// Products with weights, and attention over all pairs of query and key.
    #[serde(serialize_with = "serialize_count")]
    pub full: u128,
    /// As `full`, with only the pairs that masks leave (half of them under a causal mask).
    #[serde(serialize_with = "serialize_count")]
    pub visible: u128,
    /// The part of `full` that is attention.
    #[serde(serialize_with = "serialize_count")]
    pub attention: u128,
    /// Operations on single elements, which no other number here includes.
    #[serde(serialize_with = "serialize_count")]
    pub elementwise: u128,
    /// The operations of a training step: three times `full`, since the backward pass takes twice as many.
    #[serde(serialize_with = "serialize_count")]
    pub training: u128,
}

/// The formulas from which [`Operations`] and activations are computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Formulas {
    /// Operations of products with weights.
    #[serde(serialize_with = "serialize_dim")]
    #[schemars(with = "String")]
    pub matmul: Dim,
    /// Operations of attention over all pairs.
    #[serde(serialize_with = "serialize_dim")]
    #[schemars(with = "String")]
    pub attention: Dim,
    /// Operations on single elements.
    #[serde(serialize_with = "serialize_dim")]
    #[schemars(with = "String")]
    pub elementwise: Dim,
    /// Elements of activations, without attention weights.
    #[serde(serialize_with = "serialize_dim")]
    #[schemars(with = "String")]
    pub activations: Dim,
    /// Elements of attention weights.
    #[serde(serialize_with = "serialize_dim")]
    #[schemars(with = "String")]
    pub attention_weights: Dim,
}

/// Counts a model. The time it takes grows with the number of different modules, not with the number of
/// layers.
pub fn cost(graph: &Verified) -> Cost {
    // A verified graph has its root among its modules, so the empty default never occurs.
    let at_root = graph.root.0;
    let parameters = parameters::of_modules(graph).into_iter().nth(at_root).unwrap_or_default();
    let work = work::of_modules(graph).into_iter().nth(at_root).unwrap_or_default();
    Cost {
        kind: graph.kind,
        parameters,
        work,
        attended: scores::of_graph(graph),
        context: graph.context,
        has_time: has_symbol(graph, Sym::Time),
        has_source: has_symbol(graph, Sym::Source),
    }
}

impl Cost {
    /// One sequence as long as the context, with nothing cached; a source has the same length.
    pub fn whole_context(&self) -> Lengths {
        // No cost of a whole model depends on `rows`, which is replaced where experts are called.
        Lengths { batch: 1, time: self.context, source: self.context, past: 0, rows: 0 }
    }

    /// One new token at the end of the context, with the tokens before it cached.
    pub fn last_token(&self) -> Lengths {
        Lengths { time: 1, past: self.context.saturating_sub(1), ..self.whole_context() }
    }

    /// The operations of a forward pass at these lengths, of an encoder and a decoder together.
    pub fn forward(&self, lengths: &Lengths) -> Operations {
        let full = self.work.operations().eval(lengths);
        // Masks save nothing in products with weights, which run once for each token.
        let visible = self.attended.scores.iter().map(|s| s.visible(lengths));
        Operations {
            full,
            visible: visible.fold(self.work.matmul.eval(lengths), u128::saturating_add),
            attention: self.work.attention.eval(lengths),
            elementwise: self.work.elementwise.eval(lengths),
            training: self.work.training().eval(lengths),
        }
    }

    /// The operations of a decoding step: a forward pass without what depends on the source alone, such as the encoder and
    /// the keys and values of cross attention, which is computed once per source.
    pub fn decoding(&self, lengths: &Lengths) -> Operations {
        // At `T = 0` only the work on the source is left.
        let step = self.forward(lengths);
        let source = self.forward(&Lengths { time: 0, ..*lengths });
        Operations {
            full: step.full.saturating_sub(source.full),
            visible: step.visible.saturating_sub(source.visible),
            attention: step.attention.saturating_sub(source.attention),
            elementwise: step.elementwise.saturating_sub(source.elementwise),
            training: step.training.saturating_sub(source.training),
        }
    }

    /// The costs as polynomials in `B, T, S, P`, before lengths are inserted.
    pub fn formulas(&self) -> Formulas {
        Formulas {
            matmul: self.work.matmul.clone(),
            attention: self.work.attention.clone(),
            elementwise: self.work.elementwise.clone(),
            activations: self.work.activations.clone(),
            attention_weights: self.work.attention_weights.clone(),
        }
    }

    /// The elements that a decoded token adds to the key/value cache: keys and values of all key/value
    /// heads, or latents.
    pub fn cache_per_token(&self) -> u128 {
        self.attended.caches.iter().fold(0, |sum, c| sum.saturating_add(c.per_token))
    }

    /// The elements of the cache that a query at position `n` can see, where a window or a chunk limits how far
    /// it can look back, and those of the states.
    pub fn cache_at(&self, n: u64) -> u128 {
        self.attended.caches.iter().fold(self.attended.states, |sum, cached| {
            let kept = cached.reach.map_or(n, |reach| reach.min(n));
            sum.saturating_add(cached.per_token.saturating_mul(u128::from(kept)))
        })
    }
}
