//! Cross attention: queries from the decoder, keys and values from the encoder's output
//! (Vaswani et al. 2017). It has no positions of its own.

use super::Site;
use super::core::{self, Dropout, Normed, Score, heads_record};
use super::heads::{Heads, repeated};
use crate::field::Context;
use crate::field::rule::{Is, Rule};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::{MaskRule, Op};
use crate::ir::{self, Dim, Part, Role, Slot, Sym, Type};
use crate::parts::scope::{Lowered, Padding};
use crate::parts::scores::{self, Scores};

heads_record! {
    /// Attention to the encoder's output. Fields that are not given are those of the block's `attention`.
    pub struct Cross as "cross" {
        /// Dropout of the weights and of the output.
        dropout: Dropout = value(Dropout::none());
    } rules [
        core::GROUPS,
        Rule::never(
            ("qk_norm.when", Is::Word("after_rotation")),
            "cross attention does not rotate queries and keys, so no norm can come after rotation",
        )
        .help("remove `when`"),
    ]; then Self::settled;
}

impl Cross {
    fn settled(self, _: &Context<'_>) -> Self {
        // An expanded spec then shows the factor that is used.
        Self { scale: self.score.scale(self.scale.clone(), &self.places), ..self }
    }

    /// The sizes of its heads.
    fn sizes(&self) -> Heads {
        let head_dim = core::head_dim(*self.head_dim, &self.places);
        Heads::new(*self.heads, *self.kv_heads, head_dim, *self.value_dim)
    }

    /// What it is, in a few words.
    fn described(&self) -> Part {
        let sizes = core::sizes(*self.heads, *self.kv_heads, *self.head_dim);
        let widths = (*self.head_dim, *self.value_dim);
        let choices = core::choices(widths, self.qk_norm.is_some(), core::Gate::None, None);
        choices.into_iter().fold(Part::new(Slot::Cross, "Cross attention").note(sizes), Part::note)
    }

    /// The module of this attention: `x [B, T, D], memory [B, S, M] → [B, T, D]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let scope = site.scope;
        // Decoding a spec refuses `cross` without an encoder, so that would be a bug.
        let memory = scope.memory.clone().ok_or(Mismatch("cross attention without a memory".into()))?;
        let padding = if memory.is_padded { Padding::Memory } else { Padding::None };
        // Of a source only padding is hidden.
        let mask = scores::mask(scope, scope.sequence, memory.sequence, MaskRule::default(), padding);
        // No values of positions: see `bias` below.
        let needs: Vec<_> = mask.into_iter().collect();
        // Only decoders have this attention, so no prefix has to tell stacks apart.
        let mut b = Builder::new(&scope.arena, "CrossAttention", Role::Attention);
        b.at(self.places.whole());
        b.part(self.described());
        b.doc(match self.score {
            Score::Dot => "Cross attention: queries from `x`, keys and values from `memory`.".to_owned(),
            Score::Additive => format!(
                "Cross attention, `{}`: queries from `x`, keys and values from `memory`.",
                self.score.formula()
            ),
        });
        let x = b.argument("x", scope.activations(scope.d_model));
        let source = Type::float([Dim::sym(Sym::Batch), memory.sequence.queries(), Dim::from(memory.width)]);
        let source = b.argument("memory", source);
        let given = scope.arguments(&mut b, &needs).concat();

        let sizes = self.sizes();
        let (heads, keys, values) = (sizes.queries(), sizes.keys(), sizes.values());
        let bias = &self.bias.0;
        let projections = [
            ("q", "query", x, scope.d_model, heads, bias.query),
            ("k", "key", source, memory.width, keys, bias.key),
            ("v", "value", source, memory.width, values, bias.value),
        ];
        let mut projected = Vec::new();
        for (variable, member, from, width, features, bias) in projections {
            let id = b.layer(member, scope.linear(&site.path(member), width, features, bias));
            projected.push(b.op(variable, Op::Layer { member: id }, &[from])?);
        }
        let [q, k, v] = projected.as_slice() else { return Err(Mismatch("three projections".into())) };
        let (mut q, mut k, v) = (*q, *k, *v);
        // A norm over all heads needs their joined features, a norm over each head those of the split heads.
        let full = self.qk_norm.as_ref().filter(|n| n.over == core::Over::Full);
        if let Some(norm) = full {
            q = norm.lower(&mut b, site, &Normed { name: "query", heads: sizes.heads, dim: heads }, q)?;
            k = norm.lower(&mut b, site, &Normed { name: "key", heads: sizes.kv_heads, dim: keys }, k)?;
        }
        let mut q = b.op("q", Op::SplitHeads { heads: sizes.heads }, &[q])?;
        let mut k = b.op("k", Op::SplitHeads { heads: sizes.kv_heads }, &[k])?;
        let v = b.op("v", Op::SplitHeads { heads: sizes.kv_heads }, &[v])?;
        if let Some(norm) = self.qk_norm.as_ref().filter(|n| n.over != core::Over::Full) {
            let dim = sizes.head_dim;
            q = norm.lower(&mut b, site, &Normed { name: "query", heads: sizes.heads, dim }, q)?;
            k = norm.lower(&mut b, site, &Normed { name: "key", heads: sizes.kv_heads, dim }, k)?;
        }
        // These depend on the memory alone, which stays the same while a target is decoded, so they need no
        // `Cache` op.
        let (k, v) = repeated(&mut b, sizes.repeats(), k, v)?;
        let score = self.score.weights(&mut b, site, &sizes)?;
        let y = Scores {
            qkv: (q, k, v),
            mask: given.first().copied(),
            // A position of the target has no distance to one of the source, so no scheme of distances acts
            // here; T5, too, has its bias in self-attention alone.
            bias: None,
            sinks: None,
            score,
            scale: ir::Factor::of(&self.scale, &[("head_dim", sizes.head_dim), ("d_model", scope.d_model)]),
            softcap: self.softcap.map(|c| *c),
            // Every token of the target may see the whole source.
            causal: false,
            dropout: *self.dropout.0.weights,
        }
        .lower(&mut b, "y")?;
        let y = b.op("y", Op::MergeHeads, &[y])?;
        let output =
            scope.branch_output(&site.path("output"), sizes.joined(), scope.d_model, self.bias.0.out);
        let y = b.apply("output", output, y)?;
        let y = b.dropout(*self.dropout.0.out, y)?;
        Ok(Lowered { module: b.finish(&[y]), needs })
    }
}
