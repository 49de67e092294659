//! Attention over queries, keys and values that have heads, and the mask that it is given.

use super::scope::{Ambient, AmbientId, Masks, Padding, Scope};
use crate::ir::build::{Builder, Built};
use crate::ir::infer::Mismatch;
use crate::ir::op::{self, MaskRule, Op, Sequence};
use crate::ir::{self, Dim, Sym, Type, ValueId};

/// Attention with its optional inputs, `[B, H, T, V]`.
#[derive(Clone, Copy, Debug)]
pub struct Scores {
    /// Queries `[B, H, T, D]`, keys `[B, H, K, D]` and values `[B, H, K, V]`.
    pub qkv: (ValueId, ValueId, ValueId),
    /// The mask, true = hidden.
    pub mask: Option<ValueId>,
    /// The bias that is added to the scores.
    pub bias: Option<ValueId>,
    /// Attention sinks, one score for each head, `[H]`.
    pub sinks: Option<ValueId>,
    /// The weights of additive scores, `[H, D]`; scores are dot products without them.
    pub score: Option<ValueId>,
    /// Factor on the scores before the softmax, usually `1/sqrt(head_dim)`.
    pub scale: ir::Factor,
    /// Bound on the scores: `c tanh(score / c)`.
    pub softcap: Option<f64>,
    /// Whether keys after the query are hidden.
    pub causal: bool,
    /// Dropout on the weights: the probability that one is set to 0.
    pub dropout: f64,
}

impl Scores {
    /// Adds the op. The attention weights are a separate value, which can be captured.
    pub fn lower(&self, b: &mut Builder, name: &str) -> Built {
        let (q, k, v) = self.qkv;
        let mut inputs = vec![q, k, v];
        // In the order in which the op counts the optional inputs that it has.
        inputs.extend([self.mask, self.bias, self.sinks, self.score].into_iter().flatten());
        // Inputs have no names, so the op says which of the optional ones there are.
        let attention = op::Attention {
            score: if self.score.is_some() { op::Score::Additive } else { op::Score::Dot },
            scale: self.scale,
            softcap: self.softcap,
            causal: self.causal,
            dropout: self.dropout,
            has_mask: self.mask.is_some(),
            has_bias: self.bias.is_some(),
            has_sinks: self.sinks.is_some(),
        };
        let outputs = b.ops(&[name, "weights"], Op::Attention(attention), &inputs)?;
        outputs.first().copied().ok_or(Mismatch("attention without a result".into()))
    }
}

/// A mask that is computed once in the stack: what the rule hides in addition to `causal`, and padding.
/// `None` if that hides nothing.
pub fn mask(
    scope: &Scope,
    queries: Sequence,
    keys: Sequence,
    rule: MaskRule,
    padding: Padding,
) -> Option<AmbientId> {
    let one = Dim::of(1u64);
    let batch = Dim::sym(Sym::Batch);
    // Most attention hides nothing more than causality does, and then needs no mask.
    let has_rule = !rule.is_empty();
    let of_rule = Type::bool([one.clone(), one.clone(), queries.queries(), keys.keys()]);
    // Callers may leave the padding mask out. A mask of padding alone is then absent, too; one with a rule is
    // not.
    let of_padding = Type::bool([batch.clone(), one.clone(), one.clone(), keys.keys()]).or_absent();
    let (ty, padded) = match (has_rule, padding) {
        (false, Padding::None) => return None,
        (true, Padding::None) => (of_rule, false),
        (false, _) => (of_padding, true),
        (true, _) => (Type::bool([batch, one, queries.queries(), keys.keys()]), true),
    };
    let ambient = Ambient::Mask { queries, keys, rule, padding };
    Some(scope.ambient(ambient, vec![("mask", ty)], move |b, masks: &Masks| {
        let given = match padding {
            Padding::None => None,
            Padding::Own => masks.own,
            Padding::Memory => masks.memory,
        };
        let hidden = match given {
            Some(mask) if padded => Some(b.op("padding", Op::PaddingMask, &[mask])?),
            Some(_) | None => None,
        };
        let ruled = has_rule.then(|| b.op("mask", Op::Mask { queries, keys, rule }, &[])).transpose()?;
        match (ruled, hidden) {
            (Some(ruled), Some(hidden)) => Ok(vec![b.op("mask", Op::EitherMask, &[ruled, hidden])?]),
            (Some(one), None) | (None, Some(one)) => Ok(vec![one]),
            (None, None) => Err(Mismatch("a padding mask is missing".into())),
        }
    }))
}
