//! Fields and lowering steps that several kinds of attention share.

use super::Site;
use super::heads::Heads;
use crate::diag::Diagnostic;
use crate::field::mend::mended;
use crate::field::record::{Places, choice, entry, record};
use crate::field::rule::{self, Is, Rule};
use crate::field::value::{Field, Shape, Value};
use crate::field::{Context, Factor, Probability};
use crate::ir::build::{Builder, Built};
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::text::thousands;
use crate::ir::{Extent, Init, ValueId};
use crate::parts::mask::Mask;
use crate::parts::norm::{self, Norm};
use crate::parts::position::{Geometry, Position};
use crate::source::Span;
use crate::syntax::tree::Node;

record! {
    /// Which projections have a bias.
    pub struct BiasFields as "bias" {
        /// The projection of queries.
        query: bool = value(true);
        /// The projection of keys.
        key: bool = value(true);
        /// The projection of values.
        value: bool = value(true);
        /// The projection of the joined heads to the output.
        out: bool = value(true);
    }
}

/// Which projections have a bias: all or none (`true`, `false`), or one by one; `qkv` is short for
/// the first three.
#[derive(Clone, Debug, PartialEq)]
pub struct Bias(pub BiasFields);

impl Bias {
    /// The same for all projections.
    pub fn all(on: bool) -> Self {
        Self(BiasFields { query: on, key: on, value: on, out: on, places: Default::default() })
    }
}

impl Value for Bias {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.text().is_some() {
            return bool::decode(node, cx).map(Self::all);
        }
        // Misspelled keys are corrected first, so that `qvk` is expanded as well.
        let mended = mended(node, "bias", &bias_fields(), &[], cx);
        // What is not a map is reported by the record itself.
        let Some(entries) = mended.entries() else { return BiasFields::decode(node, cx).map(Self) };
        // `BiasFields` does not have `qkv`, so rules about it are checked here.
        rule::check(BIAS_RULES, &mended, &mended, cx)?;
        let mut expanded = Vec::new();
        for e in entries {
            if e.key != "qkv" {
                expanded.push(e.clone());
                continue;
            }
            for name in ["query", "key", "value"] {
                // With the place of `qkv`, where an error in its value is shown.
                expanded.push(crate::syntax::tree::Entry { key: name.into(), ..e.clone() });
            }
        }
        BiasFields::decode(&Node::map(expanded, node.span), cx).map(Self)
    }
    fn encode(&self) -> Node {
        self.0.encode()
    }
    fn describe() -> Shape {
        Shape::Record("bias", bias_fields)
    }
}

const BIAS_RULES: &[Rule] = &[of_all_three("query"), of_all_three("key"), of_all_three("value")];

/// A field that `qkv` gives as well.
const fn of_all_three(field: &'static str) -> Rule {
    let message = "`qkv` and `{field}` both say whether there is a bias";
    Rule::excludes((field, Is::Given), ("qkv", Is::Given), message)
        .help("give `query`, `key` and `value` one by one")
}

/// The keys an author may use: those of [`BiasFields`], and `qkv`, which is short for three of them.
pub fn bias_fields() -> Vec<Field> {
    let mut fields = BiasFields::fields();
    fields.push(Field::new(
        "qkv",
        "Queries, keys and values at once.",
        bool::describe,
        crate::field::value::DefaultDoc::Absent,
    ));
    // As `record!` does: every field has the rules of all, among which it finds its own.
    fields.iter_mut().for_each(|f| f.rules = BIAS_RULES);
    fields
}

record! {
    /// Where dropout is applied.
    pub struct DropoutFields as "dropout" {
        /// On the attention weights, after the softmax.
        weights: Probability = value(Probability(0.0));
        /// On the output, after its projection.
        out: Probability = value(Probability(0.0));
    }
}

/// Dropout in two places, or one number for both.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout(pub DropoutFields);

impl Dropout {
    /// Dropout with probability 0 in both places.
    pub fn none() -> Self {
        let zero = Probability(0.0);
        Self(DropoutFields { weights: zero, out: zero, places: Default::default() })
    }
}

impl Value for Dropout {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.text().is_none() {
            return DropoutFields::decode(node, cx).map(Self);
        }
        // Both have the place of the number, so an error in it is reported once.
        let entries = ["weights", "out"].map(|name| entry(name, node.clone())).to_vec();
        DropoutFields::decode(&Node::map(entries, node.span), cx).map(Self)
    }
    fn encode(&self) -> Node {
        self.0.encode()
    }
    fn describe() -> Shape {
        DropoutFields::describe()
    }
}

choice! {
    /// Which features a norm of queries or keys is computed over.
    pub enum Over {
        /// Each head's features (Qwen3, Gemma 3)
        "head" => Head,
        /// Each head's features, with weights of its own for every head (StableLM 2, Command R+)
        "each_head" => EachHead,
        /// All features of the projection (OLMo 2)
        "full" => Full,
    }
}

choice! {
    /// Whether norms come before or after rotary positions are applied.
    pub enum When {
        /// Before queries and keys are rotated
        "before_rotation" => Before,
        /// After queries and keys are rotated
        "after_rotation" => After,
    }
}

record! {
    /// A norm on queries and one on keys.
    pub struct QkNorm as "qk_norm" {
        /// The kind of norm.
        norm: Norm = required;
        /// Over each head, over each head with its own weights, or over all heads together.
        over: Over = value(Over::Head);
        /// Before or after rotation; a norm over all heads is always before it.
        when: When = value(When::Before);
    } rules [
        of_each_head("norm", Is::Word("none")),
        of_each_head("norm.*.affine", Is::False),
        Rule::excludes(
            ("when", Is::Word("after_rotation")),
            ("over", Is::Word("full")),
            "a norm over all heads cannot come after rotation, which works head by head",
        )
        .label("over all heads here")
        .help("`when: before_rotation`, or `over: head`"),
    ];
}

/// `each_head` gives every head weights of its own, so it has no effect on a norm without weights.
const fn of_each_head(norm: &'static str, is: Is) -> Rule {
    let message = "a norm without a weight is the same for each head as over a head";
    Rule::excludes(("over", Is::Word("each_head")), (norm, is), message)
        .label("no weight here")
        .help("`over: head`, or a norm with a weight")
}

/// The queries or the keys, as the input of a norm.
pub struct Normed<'a> {
    /// `query` or `key`; parameters are named after it.
    pub name: &'a str,
    /// The number of heads that these features belong to.
    pub heads: Extent,
    /// The number of features that the norm is computed over.
    pub dim: Extent,
}

impl QkNorm {
    /// Applies the norm if it is one over the features of `x`: `[B, T, H*D]` for all heads, `[B, H, T, D]`
    /// for each head.
    pub fn lower(&self, b: &mut Builder, site: &Site<'_>, of: &Normed<'_>, x: ValueId) -> Built {
        let Normed { name, heads, dim } = of;
        let member = format!("{name}_norm");
        let path = format!("{}.{}", site.scope.path, site.path(&member));
        let normed = norm::Site { init: &site.scope.init, path, member: &member };
        if self.over != Over::EachHead {
            return self.norm.lower(b, &normed, &member, *dim, x);
        }
        // A norm layer has weights for `dim` features only. With weights `[H, 1, dim]`, the norm is computed
        // without any, and they are applied by ops.
        let (plain, weights) = self.norm.without_weights();
        let mut x = plain.lower(b, &normed, &member, *dim, x)?;
        let own = |b: &mut Builder, what: &str, start: Init| {
            let member = format!("{name}_{what}");
            let path = format!("{}.{}", site.scope.path, site.path(&member));
            b.param(&member, site.scope.init.param(&path, vec![*heads, Extent::from(1), *dim], Some(start)))
        };
        if weights.factor {
            // Either way every feature is multiplied by 1 at first.
            let mut gain = own(b, "gain", if weights.unit_offset { Init::Zeros } else { Init::Ones })?;
            if weights.unit_offset {
                gain = b.op("gain", Op::Shift { by: 1.0 }, &[gain])?;
            }
            x = b.op("scaled", Op::Mul, &[x, gain])?;
        }
        if weights.summand {
            let shift = own(b, "shift", Init::Zeros)?;
            x = b.op("shifted", Op::Add, &[x, shift])?;
        }
        Ok(x)
    }
}

choice! {
    /// A sigmoid gate on the output of attention, computed from its input.
    pub enum Gate {
        /// No gate: the output is projected as it is
        "none" => None,
        /// One gate per head
        "headwise" => Headwise,
        /// One gate per feature
        "elementwise" => Elementwise,
    }
}

choice! {
    /// How a query and a key give a score.
    pub enum Score {
        /// `q · k` (Vaswani et al. 2017)
        "dot" => Dot,
        /// `w · tanh(q + k)` with a learned vector `w` for each head (Bahdanau et al. 2015); it is computed
        /// for every pair of a query and a key, so it takes memory for `head_dim` numbers per pair
        "additive" => Additive,
    }
}

impl Score {
    /// The factor on the scores. Unless it is given, additive scores have none (1): their learned vector
    /// scales them already.
    pub fn scale(self, given: Factor, places: &Places) -> Factor {
        match self {
            // The record's default, `1/sqrt(head_dim)`, is meant for dot products, whose size grows with the
            // width.
            Score::Additive if !places.has("scale") => Factor::plain(1.0),
            Score::Additive | Score::Dot => given,
        }
    }

    /// The formula of the weights.
    pub fn formula(self) -> &'static str {
        match self {
            Score::Dot => "softmax(scale q kᵀ) v",
            Score::Additive => "softmax(scale w tanh(q + k)) v",
        }
    }

    /// The learned vectors of additive scores, `[H, D]`, as a member of the attention.
    pub fn weights(
        self,
        b: &mut Builder,
        site: &Site<'_>,
        sizes: &Heads,
    ) -> Result<Option<ValueId>, Mismatch> {
        match self {
            Score::Dot => Ok(None),
            Score::Additive => {
                let path = format!("{}.{}", site.scope.path, site.path("score"));
                let layer = site.scope.init.param(&path, vec![sizes.heads, sizes.head_dim], None);
                b.param("score", layer).map(Some)
            }
        }
    }
}

/// A record of an attention over heads: the sizes of the heads and how scores come about, then its own
/// fields.
macro_rules! heads_record {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident as $title:literal { $($own:tt)* } $($conditions:tt)*
    ) => {
        $crate::field::record::record! {
            $(#[doc = $doc])*
            pub struct $name as $title {
                /// The number of query heads.
                heads: $crate::field::Size = required;
                /// Key and value heads; each is shared by `heads / kv_heads` query heads.
                kv_heads: $crate::field::Size = formula("heads");
                /// Features of each query and key head.
                head_dim: $crate::field::Size = formula("d_model / heads");
                /// Features of each value head.
                value_dim: $crate::field::Size = formula("head_dim");
                /// Which projections have a bias.
                bias: $crate::parts::attention::core::Bias =
                    value($crate::parts::attention::core::Bias::all(true));
                /// How a query and a key give a score.
                score: $crate::parts::attention::core::Score = value($crate::parts::attention::core::Score::Dot);
                /// Factor on the scores; additive scores have none (1) unless it is given.
                scale: $crate::field::Factor = formula("1/sqrt(head_dim)");
                /// Bound on the scores: `c tanh(score / c)` (Gemma 2).
                softcap: Option<$crate::field::Positive> = absent;
                /// Norms on queries and keys, over each head or over all heads together.
                qk_norm: Option<$crate::parts::attention::core::QkNorm> = absent;
                $($own)*
            } $($conditions)*
        }
    };
}
pub(crate) use heads_record;

/// The features of each query and key head: those given, or by rule `d_model / heads`.
pub fn head_dim(n: u64, places: &Places) -> Extent {
    // Emitted code writes a size that follows by a rule as that rule, `D_MODEL / HEADS`.
    if places.has("head_dim") { Extent::new("head_dim", n) } else { Extent::by_rule("head_dim", n) }
}

/// What a positional scheme needs to know of attention whose `rotated` features carry the positions.
pub fn geometry(site: &Site<'_>, heads: Extent, rotated: Extent, mask: &Mask) -> Geometry {
    Geometry {
        heads,
        head_dim: rotated,
        sequence: site.scope.sequence,
        is_causal: !mask.rule(site.scope.is_causal).looks_ahead(),
        context: site.context,
    }
}

/// Checks the mask, and whether the positional scheme, if it is known, fits the features that carry the
/// positions: `rotated` is their number and the place that gives it.
pub fn check(
    position: Option<&Position>,
    rotated: (u64, Span),
    mask: &Mask,
    is_causal: bool,
) -> Vec<Diagnostic> {
    let sees_no_later = !mask.rule(is_causal).looks_ahead();
    let mut found = position.map(|p| p.scheme().check(rotated, sees_no_later)).unwrap_or_default();
    found.extend(mask.check(is_causal));
    found
}

/// The sizes of an attention for readers: `32 heads × 128, 8 kv`.
pub fn sizes(heads: u64, kv_heads: u64, head_dim: u64) -> String {
    let size = |n: u64| thousands(n.into());
    // As many key heads as query heads is the usual case, and needs no words.
    let shared = if kv_heads < heads { format!(", {} kv", size(kv_heads)) } else { String::new() };
    format!("{} × {}{shared}", crate::diag::count::counted(size(heads), "head"), size(head_dim))
}

/// What an attention does in addition to the usual, for readers: `values × 64 · QK norm · gated`; `None` if nothing.
/// `widths` are those of a head's keys and values.
pub fn choices(widths: (u64, u64), has_qk_norm: bool, gate: Gate, clip: Option<f64>) -> Option<String> {
    let (keys, values) = widths;
    let gate = match gate {
        Gate::None => None,
        Gate::Headwise => Some("gated by head".to_owned()),
        Gate::Elementwise => Some("gated".to_owned()),
    };
    let values = (keys != values).then(|| format!("values × {}", thousands(values.into())));
    let all = [
        values,
        has_qk_norm.then(|| "QK norm".to_owned()),
        clip.map(|clip| format!("clipped at ±{clip}")),
        gate,
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" · "))
}

/// Query heads share key and value heads in groups of equal size.
pub const GROUPS: Rule = Rule::divides("kv_heads", "heads");
