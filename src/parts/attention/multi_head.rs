//! Multi-head attention: `softmax(scale * q k^T) v` in every head, heads joined and projected
//! (Vaswani et al. 2017). With fewer key/value heads, groups of query heads share them (Ainslie et al. 2023).

use super::Site;
use super::core::{self, Dropout, Gate, Normed, Over, QkNorm, When, heads_record};
use super::effect::{Effect, Lack};
use super::heads::{Heads, cached, repeated};
use crate::diag::Diagnostic;
use crate::field::{Context, Positive};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::{Activation, Op};
use crate::ir::{self, Extent, Init, Part, Role, Slot, ValueId};
use crate::parts::mask::Mask;
use crate::parts::position::Position;
use crate::parts::scope::{Lowered, Padding};
use crate::parts::scores::{self, Scores};

heads_record! {
    /// Multi-head attention (Vaswani et al. 2017), with shared keys and values where `kv_heads` is smaller.
    pub struct MultiHead as "multi_head" {
        /// Queries, keys and values are clamped to `±clip` (OLMo, MPT).
        clip: Option<Positive> = absent;
        /// Whether every head has an attention sink: a learned score that takes part in the softmax without
        /// a value (GPT-OSS).
        sinks: bool = value(false);
        /// Sigmoid gate on the output.
        gate: Gate = value(Gate::None);
        /// Dropout of the weights and of the output.
        dropout: Dropout = value(Dropout::none());
        /// Which keys a query may see: one rule, or a list of rules that must all allow a key.
        mask: Mask = value(Mask::of_stack());
    } rules [core::GROUPS]; then Self::settled;
}

impl MultiHead {
    fn settled(self, _: &Context<'_>) -> Self {
        // An expanded spec then shows the factor that is used.
        Self { scale: self.score.scale(self.scale.clone(), &self.places), ..self }
    }

    /// Checks the fields, for a stack that is causal or not and for its positional scheme, if that is
    /// known.
    pub fn check(&self, position: Option<&Position>, is_causal: bool) -> Vec<Diagnostic> {
        let rotated = (*self.head_dim, self.places.of("head_dim"));
        core::check(position, rotated, &self.mask, is_causal)
    }

    /// The given values that have an effect only with some positional schemes.
    pub fn effects(&self, position: &Position) -> Vec<Effect> {
        let after = self.qk_norm.as_ref().filter(|norm| norm.when == When::After && norm.places.has("when"));
        let lack = Lack {
            message: "`when: after_rotation` has no effect, because the positions here rotate nothing",
            help: "remove it, or give the attention rotary positions: `position: rotary`",
        };
        // Not a rule of the record: the same text may describe blocks with and without rotary positions.
        let lack = Some(lack).filter(|_| !position.scheme().rotates());
        after.into_iter().map(|norm| Effect { place: norm.places.of("when"), lack }).collect()
    }

    /// The attention in a block with these positions: a value that has no effect there is the default, so
    /// that the block written out does not give it.
    pub fn with_position(&self, position: &Position) -> Self {
        let mut own = self.clone();
        if let Some(norm) = own.qk_norm.as_mut().filter(|_| !position.scheme().rotates()) {
            norm.when = When::Before;
        }
        own
    }

    /// The sizes of its heads.
    fn sizes(&self) -> Heads {
        let head_dim = core::head_dim(*self.head_dim, &self.places);
        Heads::new(*self.heads, *self.kv_heads, head_dim, *self.value_dim)
    }

    /// What it is, in a few words.
    fn described(&self) -> Part {
        let title = match (*self.kv_heads, *self.heads) {
            // A single query head shares its key with no other, so that is ordinary attention.
            (1, heads) if heads > 1 => "Multi-query attention",
            (kv_heads, heads) if kv_heads < heads => "Grouped-query attention",
            (_, _) => "Multi-head attention",
        };
        let widths = (*self.head_dim, *self.value_dim);
        let choices = core::choices(widths, self.qk_norm.is_some(), self.gate, self.clip.map(|c| *c));
        let part = Part::new(Slot::Attention, title);
        let part = part.note(core::sizes(*self.heads, *self.kv_heads, *self.head_dim));
        choices.into_iter().fold(part, Part::note)
    }

    /// The module of this attention: `x [B, T, D] → [B, T, D]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let scope = site.scope;
        let sequence = scope.sequence;
        let geometry =
            core::geometry(site, Extent::new("heads", *self.heads), self.sizes().head_dim, &self.mask);
        let scheme = site.position.scheme();
        let rule = self.mask.rule(scope.is_causal);
        // Causality is a flag of the op: kernels can then skip the keys that are hidden, and no mask for all
        // pairs of positions has to be built.
        let (in_op, of_mask) = rule.split();
        let padding = if scope.is_padded { Padding::Own } else { Padding::None };
        let of_position = scheme.needs(scope, geometry);
        let mask = scores::mask(scope, sequence, sequence, of_mask, padding);
        let needs: Vec<_> = of_position.iter().copied().chain(mask).collect();

        let name = format!("{}Attention", scope.prefix);
        let mut b = Builder::new(&scope.arena, name, Role::Attention);
        b.at(self.places.whole());
        b.part(self.described());
        b.doc(format!(
            "Multi-head attention: `{}` in every head, joined and projected.",
            self.score.formula()
        ));
        let x = b.argument("x", scope.activations(scope.d_model));
        // The arguments come in the order of `needs`: those of the positions, then the mask.
        let given = scope.arguments(&mut b, &needs);
        let (given_position, given_mask) = given.split_at(of_position.len());
        let given_position: Vec<ValueId> = given_position.concat();
        let given_mask = given_mask.concat().first().copied();

        let sizes = self.sizes();
        let (heads, keys, values) = (sizes.queries(), sizes.keys(), sizes.values());
        let project = |b: &mut Builder, variable: &str, member: &str, width: Extent, bias: bool| {
            let layer = scope.linear(&site.path(member), scope.d_model, width, bias);
            let id = b.layer(member, layer);
            let y = b.op(variable, Op::Layer { member: id }, &[x])?;
            // Clipped right after the projection, as in OLMo.
            match self.clip {
                Some(clip) => b.op(variable, Op::Clamp { min: Some(-*clip), max: Some(*clip) }, &[y]),
                None => Ok(y),
            }
        };
        let bias = &self.bias.0;
        let q = project(&mut b, "q", "query", heads, bias.query)?;
        let k = project(&mut b, "k", "key", keys, bias.key)?;
        let v = project(&mut b, "v", "value", values, bias.value)?;
        // A norm over all heads needs their joined features, a norm over each head those of the split heads.
        let (q, k) = match &self.qk_norm {
            Some(norm) if norm.over == Over::Full => {
                self.normed(&mut b, site, norm, (q, heads), (k, keys))?
            }
            Some(_) | None => (q, k),
        };
        let q = b.op("q", Op::SplitHeads { heads: sizes.heads }, &[q])?;
        let k = b.op("k", Op::SplitHeads { heads: sizes.kv_heads }, &[k])?;
        let v = b.op("v", Op::SplitHeads { heads: sizes.kv_heads }, &[v])?;
        let by_head = |b: &mut Builder, q: ValueId, k: ValueId, when: When| match &self.qk_norm {
            Some(norm) if norm.over != Over::Full && norm.when == when => {
                self.normed(b, site, norm, (q, sizes.head_dim), (k, sizes.head_dim))
            }
            Some(_) | None => Ok((q, k)),
        };
        let (q, k) = by_head(&mut b, q, k, When::Before)?;
        let q = scheme.on_heads(&mut b, &given_position, "q", q)?;
        let k = scheme.on_heads(&mut b, &given_position, "k", k)?;
        let (q, k) = by_head(&mut b, q, k, When::After)?;
        // Keys are cached after their rotation, since their positions do not change, and before their heads
        // are repeated, so the cache has `kv_heads` heads only.
        let (k, v) = (cached(&mut b, scope, "k", k)?, cached(&mut b, scope, "v", v)?);
        let (k, v) = repeated(&mut b, sizes.repeats(), k, v)?;
        let path = format!("{}.blocks.*.{}", scope.path, site.name);
        let bias = scheme.on_scores(&mut b, scope, &path, geometry, &given_position)?;
        let sinks = self.sinks.then(|| {
            let layer = scope.init.param(&format!("{path}.sinks"), vec![sizes.heads], Some(Init::Zeros));
            b.param("sinks", layer)
        });
        let score = self.score.weights(&mut b, site, &sizes)?;
        let y = Scores {
            qkv: (q, k, v),
            mask: given_mask,
            bias,
            sinks: sinks.transpose()?,
            score,
            // With the sizes that it may be the root of, so that emitted code can name them.
            scale: ir::Factor::of(&self.scale, &[("head_dim", sizes.head_dim), ("d_model", scope.d_model)]),
            softcap: self.softcap.map(|c| *c),
            causal: in_op,
            dropout: *self.dropout.0.weights,
        }
        .lower(&mut b, "y")?;
        let y = self.gated(&mut b, site, &sizes, x, y)?;
        let output =
            scope.branch_output(&site.path("output"), sizes.joined(), scope.d_model, self.bias.0.out);
        let y = b.apply("output", output, y)?;
        let y = b.dropout(*self.dropout.0.out, y)?;
        Ok(Lowered { module: b.finish(&[y]), needs })
    }

    fn normed(
        &self,
        b: &mut Builder,
        site: &Site<'_>,
        norm: &QkNorm,
        (q, query_dim): (ValueId, Extent),
        (k, key_dim): (ValueId, Extent),
    ) -> Result<(ValueId, ValueId), Mismatch> {
        let sizes = self.sizes();
        let queries = Normed { name: "query", heads: sizes.heads, dim: query_dim };
        let keys = Normed { name: "key", heads: sizes.kv_heads, dim: key_dim };
        Ok((norm.lower(b, site, &queries, q)?, norm.lower(b, site, &keys, k)?))
    }

    /// Joins the heads, `[B, H, T, V] → [B, T, H*V]`, and applies the gate, which is computed from the
    /// attention's input.
    fn gated(
        &self,
        b: &mut Builder,
        site: &Site<'_>,
        sizes: &Heads,
        x: ValueId,
        y: ValueId,
    ) -> Result<ValueId, Mismatch> {
        let scope = site.scope;
        let width = match self.gate {
            Gate::None => return b.op("y", Op::MergeHeads, &[y]),
            Gate::Headwise => sizes.heads,
            Gate::Elementwise => sizes.joined(),
        };
        let layer = scope.linear(&site.path("gate"), scope.d_model, width, false);
        let gate = b.apply("gate", layer, x)?;
        let gate = b.op("gate", Op::Activate(Activation::Sigmoid), &[gate])?;
        // One gate for a whole head multiplies while the heads are apart.
        if self.gate == Gate::Headwise {
            let gate = b.op("gate", Op::SplitHeads { heads: sizes.heads }, &[gate])?;
            let y = b.op("y", Op::Mul, &[y, gate])?;
            return b.op("y", Op::MergeHeads, &[y]);
        }
        let y = b.op("y", Op::MergeHeads, &[y])?;
        b.op("y", Op::Mul, &[y, gate])
    }
}
