//! Multi-head latent attention: keys and values are computed from one small vector per position, and one
//! rotated key is shared by all heads; the cache contains only these two (DeepSeek-V2, 2024).
//!
//! `c = norm(x W_down)`, per head `k = [c W_k, rotate(x W_r)]`, `v = c W_v`. Queries are computed likewise,
//! through a latent vector of their own if `query_rank` is given.

use super::Site;
use super::core::{self, Dropout};
use crate::diag::Diagnostic;
use crate::field::record::record;
use crate::field::{Factor, Positive, Size};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::{Op, Sequence};
use crate::ir::{self, Extent, Part, Role, Slot, ValueId};
use crate::parts::mask::Mask;
use crate::parts::norm::{self, Norm, RmsNorm};
use crate::parts::position::Position;
use crate::parts::scope::{Lowered, Padding};
use crate::parts::scores::{self, Scores};

fn rms_norm() -> Norm {
    // The `eps` of DeepSeek's configs.
    Norm::RmsNorm(RmsNorm {
        eps: Positive(1e-6),
        affine: true,
        unit_offset: false,
        places: Default::default(),
    })
}

record! {
    /// Multi-head latent attention (DeepSeek-V2, 2024).
    pub struct Latent as "latent" {
        /// The number of heads.
        heads: Size = required;
        /// Features of the latent vector that keys and values come from.
        kv_rank: Size = required;
        /// Features of the queries' latent vector; if absent, queries are computed from `x` itself.
        query_rank: Option<Size> = absent;
        /// Features of each query and key head that are not rotated.
        content_dim: Size = formula("d_model / heads");
        /// Features of each query and key head that are rotated; all heads share the rotated key.
        rotary_dim: Size = formula("content_dim / 2");
        /// Features of each value head.
        value_dim: Size = formula("content_dim");
        /// Whether the projections have a bias.
        bias: bool = value(false);
        /// Norm of the latent vectors.
        norm: Norm = value(rms_norm());
        /// Factor on the scores.
        scale: Factor = formula("1/sqrt(content_dim + rotary_dim)");
        /// Dropout of the weights and of the output.
        dropout: Dropout = value(Dropout::none());
        /// Which keys a query may see: one rule, or a list of rules that must all allow a key.
        mask: Mask = value(Mask::of_stack());
    }
}

impl Latent {
    /// Checks the fields, for a stack that is causal or not and for its positional scheme, if that is
    /// known.
    pub fn check(&self, position: Option<&Position>, is_causal: bool) -> Vec<Diagnostic> {
        let rotated = (*self.rotary_dim, self.places.of("rotary_dim"));
        core::check(position, rotated, &self.mask, is_causal)
    }

    /// What it is, in a few words. Every head has keys and values of its own, computed from the latent
    /// vector.
    fn described(&self) -> Part {
        let width = self.content_dim.saturating_add(*self.rotary_dim);
        let sizes = core::sizes(*self.heads, *self.heads, width);
        Part::new(Slot::Attention, "Latent attention").note(sizes)
    }

    /// The module of this attention: `x [B, T, D] → [B, T, D]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let scope = site.scope;
        let rotary = Extent::new("rotary_dim", *self.rotary_dim);
        // Positions act on the rotary features alone.
        let geometry = core::geometry(site, Extent::new("heads", *self.heads), rotary, &self.mask);
        let scheme = site.position.scheme();
        let rule = self.mask.rule(scope.is_causal);
        let (in_op, of_mask) = rule.split();
        let padding = if scope.is_padded { Padding::Own } else { Padding::None };
        let of_position = scheme.needs(scope, geometry);
        let mask = scores::mask(scope, scope.sequence, scope.sequence, of_mask, padding);
        let needs: Vec<_> = of_position.iter().copied().chain(mask).collect();

        let mut b = Builder::new(&scope.arena, format!("{}LatentAttention", scope.prefix), Role::Attention);
        b.at(self.places.whole());
        b.part(self.described());
        b.doc("Multi-head latent attention: keys and values of all heads come from one latent vector.");
        let x = b.argument("x", scope.activations(scope.d_model));
        // The arguments come in the order of `needs`: those of the positions, then the mask.
        let given = scope.arguments(&mut b, &needs);
        let (given_position, given_mask) = given.split_at(of_position.len());
        let given_position: Vec<ValueId> = given_position.concat();
        let given_mask = given_mask.concat().first().copied();
        let heads = Extent::new("heads", *self.heads);
        let content = Extent::new("content_dim", *self.content_dim);
        let value = Extent::new("value_dim", *self.value_dim);
        let kv_rank = Extent::new("kv_rank", *self.kv_rank);
        let width = heads * (content + rotary);
        let linear = |member: &str, input: Extent, output: Extent| {
            scope.linear(&site.path(member), input, output, self.bias)
        };
        let features = |start: Extent, len: Extent| Op::Slice { axis_from_last: 0, start, len };

        let normed = |member: &'static str| norm::Site {
            init: &scope.init,
            path: format!("{}.{}", scope.path, site.path(member)),
            member,
        };

        let q = match self.query_rank {
            Some(rank) => {
                let rank = Extent::new("query_rank", *rank);
                let latent = b.apply("query_down", linear("query_down", scope.d_model, rank), x)?;
                let latent = self.norm.lower(&mut b, &normed("query_norm"), "query_norm", rank, latent)?;
                b.apply("query_up", linear("query_up", rank, width), latent)?
            }
            None => b.apply("query", linear("query", scope.d_model, width), x)?,
        };
        let q = b.op("q", Op::SplitHeads { heads }, &[q])?;
        // Content before rotary features: the order of DeepSeek's checkpoints.
        let q_content = b.op("q_content", features(Extent::from(0), content), &[q])?;
        let q_rotary = b.op("q_rotary", features(content, rotary), &[q])?;
        // One projection gives the latent vector and the rotated key, as `kv_a_proj_with_mqa` of DeepSeek
        // does.
        let down = linear("kv_down", scope.d_model, kv_rank + rotary);
        let down = b.apply("kv_down", down, x)?;
        let latent = b.op("latent", features(Extent::from(0), kv_rank), &[down])?;
        // The rotated key, which comes from the same projection, has no norm, as in DeepSeek's models.
        let latent = self.norm.lower(&mut b, &normed("kv_norm"), "kv_norm", kv_rank, latent)?;
        let k_rotary = b.op("k_rotary", features(kv_rank, rotary), &[down])?;
        // One key of `[B, 1, T, R]` for all heads.
        let k_rotary = b.op("k_rotary", Op::SplitHeads { heads: Extent::from(1) }, &[k_rotary])?;
        // The key is rotated before it is cached, since its position does not change.
        let q_rotary = scheme.on_heads(&mut b, &given_position, "q", q_rotary)?;
        let k_rotary = scheme.on_heads(&mut b, &given_position, "k", k_rotary)?;
        // Keys and values of all heads are computed anew from the cached vectors, so the cache is much
        // smaller than they are.
        let (latent, k_rotary) = if scope.sequence == Sequence::Cached {
            (b.op("latent", Op::Cache, &[latent])?, b.op("k_rotary", Op::Cache, &[k_rotary])?)
        } else {
            (latent, k_rotary)
        };
        let up = linear("kv_up", kv_rank, heads * (content + value));
        // In every head the key's content comes before the value: the order of `kv_b_proj` of DeepSeek.
        let kv = b.apply("kv_up", up, latent)?;
        let kv = b.op("kv", Op::SplitHeads { heads }, &[kv])?;
        let k_content = b.op("k_content", features(Extent::from(0), content), &[kv])?;
        let v = b.op("v", features(content, value), &[kv])?;
        // Repeated after the cache and not before it, so that the cache contains this key once for all heads.
        let k_rotary = b.op("k_rotary", Op::RepeatHeads { times: heads }, &[k_rotary])?;
        let q = b.op("q", Op::Concat { axis_from_last: 0 }, &[q_content, q_rotary])?;
        let k = b.op("k", Op::Concat { axis_from_last: 0 }, &[k_content, k_rotary])?;
        let path = format!("{}.blocks.*.{}", scope.path, site.name);
        // Schemes of distances, which rotate nothing, work on the scores of whole heads as in other
        // attention.
        let bias = scheme.on_scores(&mut b, scope, &path, geometry, &given_position)?;
        let y = Scores {
            qkv: (q, k, v),
            mask: given_mask,
            bias,
            sinks: None,
            score: None,
            scale: ir::Factor::of(
                &self.scale,
                &[("content_dim", content), ("rotary_dim", rotary), ("d_model", scope.d_model)],
            ),
            softcap: None,
            causal: in_op,
            dropout: *self.dropout.0.weights,
        }
        .lower(&mut b, "y")?;
        let y = b.op("y", Op::MergeHeads, &[y])?;
        let output = scope.branch_output(&site.path("output"), heads * value, scope.d_model, self.bias);
        let y = b.apply("output", output, y)?;
        let y = b.dropout(*self.dropout.0.out, y)?;
        Ok(Lowered { module: b.finish(&[y]), needs })
    }
}
