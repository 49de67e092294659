//! The primitive operations, which are all that a consumer of the graph has to handle.
//!
//! An op does about as much as one of burn's functional modules. It owns no parameters: these are in the
//! [`Layer`](super::Layer)s of the module around it.
//!
//! Everything else about an op (types, cost, printed text, explanation, picture, ..) is its [`Meaning`], in
//! the file of its family here; consumers get it from [`Op::meaning`]. Only code that executes ops, the
//! interpreter (`interp::eval`) and each emission target, has a match with an arm for every [`Op`], without a
//! wildcard arm, so that the compiler names the code that must handle a new one.

mod activation;
mod arithmetic;
mod attention;
mod callee;
mod contract;
pub mod forward;
mod heads;
mod layer;
mod lookup;
mod loss;
mod mask;
mod mask_rule;
pub mod meaning;
mod members;
mod position;
pub mod quantity;
mod recurrence;
mod reduce;
mod route;
mod sequence;
mod shape;
mod table;
mod time;
pub mod training;

pub use activation::Activation;
pub use arithmetic::Elementary;
pub use attention::{Attention, Score};
pub use callee::{Callee, Runs};
pub use contract::{Axes, Distances, Fill, Neutral};
pub use lookup::Pool;
pub use loss::padded;
pub use mask_rule::{Hidden, MaskRule, Window, reach, visible_pairs};
pub use meaning::Meaning;
pub use position::Pairing;
pub use reduce::Reduction;
pub use route::{Router, RouterGroups, RouterScore};
pub use sequence::Sequence;
pub use table::{FrequencyRule, LongRotary, LongRule, RotaryTable, SinusoidLayout, Slopes};

use super::{Extent, Factor, MemberId, Module, Sym, Type};

/// One operation of a module's body. Shapes: `B` batch, `T` queries, `K` keys (`P + T` in a causal
/// decoder, `S` in cross attention), `H` heads, `D` features.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Applies a layer of this module: `[x] → [y]`; a [`Layer::Param`](super::Layer::Param) takes no input.
    Layer {
        /// A [`MemberKind::Layer`](super::MemberKind::Layer) of the module.
        member: MemberId,
    },
    /// Applies a projection and then a nonlinearity: `[x] → [f(x W + b)]`. Graphs that are run have it in the place of two
    /// ops ([`crate::ir::fuse`]).
    ActivatedLayer {
        /// A [`Layer::Linear`](super::Layer::Linear) of the module.
        member: MemberId,
        /// The nonlinearity.
        activation: Activation,
    },
    /// The weight of an embedding somewhere below this module, for tied weights: `[] → [rows, dim]`.
    Weight {
        /// The members on the path from this module down to the embedding.
        path: Vec<MemberId>,
    },
    /// Calls a child module: `[args] → [results]`.
    Call {
        /// A [`MemberKind::Module`](super::MemberKind::Module) of the module.
        member: MemberId,
    },
    /// Folds a value through the blocks of a stack: `[x, pool..] → [x]`.
    Scan {
        /// A [`MemberKind::Stack`](super::MemberKind::Stack) of the module.
        member: MemberId,
        /// The number of times in a row that each block is applied; 1 unless layers are shared.
        each: u64,
        /// For each run and each block of its cycle: the indices of the inputs of this node that are the
        /// block's arguments after `x`.
        args: Vec<Vec<Vec<usize>>>,
    },
    /// Routed sum over experts: `[x [B,T,D], weights [B,T,E]] → [B,T,D]`, each expert applied only to
    /// the tokens whose weight for it is not zero.
    Experts {
        /// The stack that has a block for each expert.
        member: MemberId,
        /// The number of experts to which a token is sent. It matters only for costs.
        active: u64,
    },

    /// The numbers of the positions of a sequence: `[] → Int [1,T]`, `offset + P, offset + P + 1, ...`.
    Positions {
        /// The sequence, which gives `T` and `P`.
        along: Sequence,
        /// Added to every position.
        offset: u64,
    },
    /// The numbers `0, 1, ...`: `[] → [len]`.
    Range {
        /// The number of them.
        len: Extent,
    },
    /// Sinusoidal table (Vaswani et al. 2017): `[positions [1,T]] → [1,T,dim]`.
    Sinusoid {
        /// The width of the table.
        dim: Extent,
        /// The base of the wavelengths, 10000 in the paper.
        base: f64,
        /// The order of sines and cosines.
        layout: SinusoidLayout,
    },
    /// Rotary angles (Su et al. 2021): `[] → cos [T, dim/2], sin [T, dim/2]`.
    RotaryTable {
        /// The sequence of the positions.
        along: Sequence,
        /// The rule that gives the inverse frequencies and the magnitude.
        rotary: RotaryTable,
    },
    /// Which keys a query may not see: `[] → Bool [1,1,T,K]`, true = hidden.
    Mask {
        /// The sequence of the queries.
        queries: Sequence,
        /// The sequence of the keys.
        keys: Sequence,
        /// The rule that hides keys.
        rule: MaskRule,
    },
    /// Hides padding: `[mask [B,K], 1 = keep] → Bool [B,1,1,K]`, true = hidden. The result is absent if the
    /// input is.
    PaddingMask,
    /// Hides what either mask hides: `[a, b] → Bool`, broadcast. An absent mask hides nothing.
    EitherMask,
    /// ALiBi (Press et al. 2021): `[] → [1,H,T,K]`, `-slope * distance`.
    AlibiBias {
        /// The sequence of the queries.
        queries: Sequence,
        /// The sequence of the keys.
        keys: Sequence,
        /// The rule that gives each head its slope.
        slopes: Slopes,
    },
    /// The buckets of the distances `key - query` (Raffel et al. 2020): `[] → Int [T,K]`.
    RelativeBuckets {
        /// The sequence of the queries.
        queries: Sequence,
        /// The sequence of the keys.
        keys: Sequence,
        /// The number of buckets.
        buckets: Extent,
        /// Distances from this one on share the last bucket.
        max_distance: u64,
        /// Whether keys after the query have other buckets than keys before it.
        bidirectional: bool,
    },

    /// Splits features into heads: `[B,T,H*D] → [B,H,T,D]`, rows, `[N,H*D] → [1,H,N,D]`, or a vector, `[H*D] → [1,H,1,D]`.
    SplitHeads {
        /// The number of heads, `H`.
        heads: Extent,
    },
    /// Joins the heads of each position: `[B,H,T,D] → [B,T,H*D]`.
    MergeHeads,
    /// Repeats each head `times` in a row, for grouped queries: `[B,H,T,D] → [B,H*times,T,D]`.
    RepeatHeads {
        /// The number of copies of each head.
        times: Extent,
    },
    /// Rotates the first `2 * cos.dim` features: `[x [B,H,T,D], cos, sin] → [B,H,T,D]`.
    Rotate {
        /// Which features form a pair.
        pairing: Pairing,
    },
    /// Appends to the key/value cache along the last axis but one: `[.., T, D] → [.., P+T, D]`. Outside of
    /// cached decoding, it is the identity.
    Cache,
    /// What was `by` positions earlier, or zeros: `[.., T, D] → [.., T, D]`.
    Earlier {
        /// The number of positions between a value and where it is given.
        by: Extent,
        /// Whether decoding continues from the positions before, which it keeps.
        decodes: bool,
    },
    /// Each feature convolved over the last `W` positions, with zeros before the first:
    /// `[x [B,T,D], w [D,1,W]] → [B,T,D]`.
    CausalConv {
        /// Whether decoding continues from the positions before, which it keeps.
        decodes: bool,
    },
    /// The sum of a feature over all positions so far: `[.., T, D] → [.., T, D]`.
    CumulativeSum {
        /// Whether decoding continues from the sum before, which it keeps.
        decodes: bool,
    },
    /// A state that fades, is added to and is read at every position, `S = decay * S + k vᵀ`, `y = Sᵀ q`:
    /// `[q [B,H,T,N], k [B,H,T,N], v [B,H,T,P], decay, beta?] → [B,H,T,P]`. Queries and keys may have one head, and a
    /// decay has the shape of keys, where every axis may be 1. With `beta [.., T, 1]`, what the key stood for is
    /// replaced: `S = D + beta k (v - Dᵀ k)ᵀ` with `D = decay * S`.
    Recurrence {
        /// Whether decoding continues from the state before, which it keeps.
        decodes: bool,
    },
    /// Attention: `[q [B,H,T,D], k [B,H,K,D], v [B,H,K,V], mask?, bias?, sinks?, score weights [H,D]?] →
    /// [B,H,T,V], weights [B,H,T,K]`. Order: score, scale, softcap, bias, mask, softmax, dropout.
    Attention(Attention),
    /// `a b` in every head, or `a bᵀ`: `[a [B,H,T,K], b [B,H,K,V]] → [B,H,T,V]`, and transposed
    /// `[a [B,H,T,D], b [B,H,K,D]] → [B,H,T,K]`.
    MatMul {
        /// Whether the second factor is transposed.
        transposed: bool,
    },
    /// The products of two tensors, added up over the axes that the result does not have.
    Einsum(Axes),
    /// The same for every example of a batch: `[x [1,..], like [B,..]] → [B,..]`.
    ForBatch,
    /// A number in the place of what a mask hides: `[x [B,H,T,K], mask] → [B,H,T,K]`.
    Hide {
        /// The number.
        fill: Fill,
    },
    /// 0 or 1 at positions that are padding: `[x [B,..,T,D], mask [B,1,1,T]] → x's shape`. A mask of a cache,
    /// `[B,1,1,P+T]`, ends with these positions.
    HidePadding {
        /// The number.
        neutral: Neutral,
    },
    /// For every query and key, the feature number `center + query - key`, or another number of this distance, where the
    /// first or the last feature stands for all beyond: `[x [B,H,T,R]] → [B,H,T,K]`, or of the features of keys, `[x [B,H,K,R]] → [B,H,T,K]`.
    ByDistance {
        /// The sequence of the queries.
        queries: Sequence,
        /// The sequence of the keys.
        keys: Sequence,
        /// The number of the feature of distance 0.
        center: Extent,
        /// The numbers of distances.
        distances: Distances,
        /// Whether the features are those of keys.
        of_keys: bool,
    },

    /// Applies a nonlinearity, feature by feature.
    Activate(Activation),
    /// `a + b`, broadcast.
    Add,
    /// `a * b`, broadcast.
    Mul,
    /// `a / b`, broadcast.
    Divide,
    /// A nonlinearity times a tensor of the same shape: `[gate, x] → f(gate) * x`. Graphs that are run have it in the place
    /// of two ops ([`crate::ir::fuse`]).
    Gate(Activation),
    /// Applies an elementary function, feature by feature.
    Elementary(Elementary),
    /// Reduces the features to one number: `[.., D] → [.., 1]`.
    Reduce(Reduction),
    /// `e^x / sum(e^x)` over the features.
    Softmax,
    /// 1 for the largest features, and 0 for the others.
    TopK {
        /// How many features are the largest.
        count: Extent,
    },
    /// Multiplies by a number: `x * by`.
    Scale {
        /// The number, and the size whose root it is if the author gave it as a root.
        by: Factor,
    },
    /// Adds a number: `x + by`.
    Shift {
        /// The number that is added to every element.
        by: f64,
    },
    /// Limits elements to a range: `min(max(x, min), max)`.
    Clamp {
        /// The smallest result, if there is a limit.
        min: Option<f64>,
        /// The largest result, if there is a limit.
        max: Option<f64>,
    },
    /// Limits elements smoothly: `cap * tanh(x / cap)`.
    Softcap {
        /// The positive number that no result exceeds in absolute value.
        cap: f64,
    },
    /// In training, zeroes features with probability `p` and divides the others by `1 - p`.
    Dropout {
        /// The probability that a feature is zeroed.
        p: f64,
    },

    /// A range of one axis.
    Slice {
        /// The axis, counted from the last one, which is 0.
        axis_from_last: usize,
        /// The first index of the range.
        start: Extent,
        /// The number of indices.
        len: Extent,
    },
    /// Joins its inputs `[a, b, ..]` along an axis.
    Concat {
        /// The axis, counted from the last one, which is 0.
        axis_from_last: usize,
    },
    /// Puts rows before every sequence: `[rows [n,D], x [B,T,D]] → [B,n+T,D]`.
    Prepend,
    /// Adds an axis of length 1 at the end: `[B] → [B,1]`.
    Unsqueeze,
    /// Drops the last axis, of length 1: `[B,T,1] → [B,T]`.
    Squeeze,
    /// Rows of a table that is an input: `[table [V,D], indices [B,T]] → [B,T,D]`.
    Lookup,
    /// Arranges biases from a table in the shape of scores: `[T,K,H] → [1,H,T,K]`.
    BiasFromTable,
    /// The first input, or zeros of the second's shape if the first is absent: `[a?, b] → b's shape`.
    OrZeros,

    /// `x w^T`: `[x [..,D], w [V,D]] → [..,V]`
    Unembed,
    /// Expert weights from router scores: `[scores [B,T,E], correction [E]?] → [B,T,E]`, zero for the
    /// experts a token is not sent to.
    Route(Router),
    /// Reduces a sequence to one vector: `[x [B,T,D], mask [B,T]?] → [B,D]`.
    Pool(Pool),
    /// Scales vectors along the last axis to unit length: `x / max(|x|, 1e-12)`.
    Normalize,
    /// The mean of each feature over all other axes, which stay with size 1: `[B,T,D] → [1,1,D]`. It sees the whole
    /// batch, so only losses are computed from it.
    BatchMean {
        /// The axis before the features, if its padding is left out.
        along: Option<Sym>,
    },
    /// The mean of all elements, which training adds to the loss of the outputs: `[x] → [1]`. Nothing reads the result,
    /// and graphs that are not for training do not have the op.
    ExtraLoss {
        /// The factor with which it is added.
        weight: f64,
        /// The last axis but one, if its padding is left out.
        along: Option<Sym>,
    },
}

impl Op {
    /// Everything about the op except how it is executed.
    // Most families are small structs, made here from the fields of a variant. Where an op has many fields,
    // its struct is the field of the variant and has the meaning itself.
    pub fn meaning(&self) -> Box<dyn Meaning + '_> {
        match self {
            Op::Layer { member } => Box::new(members::Apply { member: *member, activation: None }),
            Op::ActivatedLayer { member, activation } => {
                Box::new(members::Apply { member: *member, activation: Some(*activation) })
            }
            Op::Weight { path } => Box::new(members::Weight { path }),
            Op::Call { member } => Box::new(members::Call { member: *member }),
            Op::Scan { member, each, args } => Box::new(members::Scan { member: *member, each: *each, args }),
            Op::Experts { member, active } => Box::new(members::Experts { member: *member, active: *active }),
            Op::Positions { along, offset } => {
                Box::new(position::Positions { along: *along, offset: *offset })
            }
            Op::Range { len } => Box::new(position::Range { len: *len }),
            Op::Sinusoid { dim, base, layout } => {
                Box::new(position::Sinusoid { dim: *dim, base: *base, layout: *layout })
            }
            Op::RotaryTable { along, rotary } => Box::new(position::Angles { along: *along, rotary }),
            Op::Mask { queries, keys, rule } => {
                Box::new(mask::Mask { queries: *queries, keys: *keys, rule: *rule })
            }
            Op::PaddingMask => Box::new(mask::Padding),
            Op::EitherMask => Box::new(mask::Either),
            Op::AlibiBias { queries, keys, slopes } => {
                Box::new(position::Alibi { queries: *queries, keys: *keys, slopes })
            }
            Op::RelativeBuckets { queries, keys, buckets, max_distance, bidirectional } => {
                Box::new(position::Buckets {
                    queries: *queries,
                    keys: *keys,
                    buckets: *buckets,
                    max_distance: *max_distance,
                    bidirectional: *bidirectional,
                })
            }
            Op::SplitHeads { heads } => Box::new(heads::Split { heads: *heads }),
            Op::MergeHeads => Box::new(heads::Merge),
            Op::RepeatHeads { times } => Box::new(heads::Repeat { times: *times }),
            Op::Rotate { pairing } => Box::new(position::Rotate { pairing: *pairing }),
            Op::Cache => Box::new(attention::Cache),
            Op::Earlier { by, decodes } => Box::new(time::Earlier { by: *by, decodes: *decodes }),
            Op::CausalConv { decodes } => Box::new(time::CausalConv { decodes: *decodes }),
            Op::CumulativeSum { decodes } => Box::new(time::CumulativeSum { decodes: *decodes }),
            Op::Recurrence { decodes } => Box::new(recurrence::Recurrence { decodes: *decodes }),
            Op::Attention(attention) => Box::new(attention.clone()),
            Op::MatMul { transposed } => Box::new(contract::MatMul { transposed: *transposed }),
            Op::Einsum(axes) => Box::new(axes.clone()),
            Op::ForBatch => Box::new(contract::ForBatch),
            Op::Hide { fill } => Box::new(contract::Hide { fill: *fill }),
            Op::HidePadding { neutral } => Box::new(contract::HidePadding { neutral: *neutral }),
            Op::ByDistance { queries, keys, center, distances, of_keys } => Box::new(contract::ByDistance {
                distances: *distances,
                queries: *queries,
                keys: *keys,
                center: *center,
                of_keys: *of_keys,
            }),
            Op::Activate(activation) => Box::new(*activation),
            Op::Add => Box::new(arithmetic::Add),
            Op::Mul => Box::new(arithmetic::Mul),
            Op::Divide => Box::new(arithmetic::Divide),
            Op::Gate(activation) => Box::new(arithmetic::Gate { activation: *activation }),
            Op::Elementary(function) => Box::new(*function),
            Op::Reduce(reduction) => Box::new(*reduction),
            Op::Softmax => Box::new(reduce::Softmax),
            Op::TopK { count } => Box::new(reduce::TopK { count: *count }),
            Op::Scale { by } => Box::new(arithmetic::Scale { by: *by }),
            Op::Shift { by } => Box::new(arithmetic::Shift { by: *by }),
            Op::Clamp { min, max } => Box::new(arithmetic::Clamp { min: *min, max: *max }),
            Op::Softcap { cap } => Box::new(arithmetic::Softcap { cap: *cap }),
            Op::Dropout { p } => Box::new(arithmetic::Dropout { p: *p }),
            Op::Slice { axis_from_last, start, len } => {
                Box::new(shape::Slice { axis_from_last: *axis_from_last, start: *start, len: *len })
            }
            Op::Concat { axis_from_last } => Box::new(shape::Concat { axis_from_last: *axis_from_last }),
            Op::Prepend => Box::new(shape::Prepend),
            Op::Unsqueeze => Box::new(shape::Unsqueeze),
            Op::Squeeze => Box::new(shape::Squeeze),
            Op::Lookup => Box::new(lookup::Lookup),
            Op::BiasFromTable => Box::new(position::BiasFromTable),
            Op::OrZeros => Box::new(shape::OrZeros),
            Op::Unembed => Box::new(lookup::Unembed),
            Op::Route(router) => Box::new(router.clone()),
            Op::Pool(pool) => Box::new(*pool),
            Op::Normalize => Box::new(arithmetic::Normalize),
            Op::BatchMean { along: _ } => Box::new(loss::BatchMean),
            Op::ExtraLoss { weight, along: _ } => Box::new(loss::ExtraLoss { weight: *weight }),
        }
    }
}

impl Op {
    /// The types of its results. `module` owns the members that it refers to; `modules` are all modules so
    /// far, which include its children. Lowering builds nodes with these rules, and `verify` applies them
    /// again to the finished graph.
    ///
    /// # Errors
    /// It does not fit its inputs.
    pub fn infer(&self, inputs: &[&Type], module: &Module, modules: &[Module]) -> meaning::Types {
        self.meaning().infer(&meaning::Given { inputs, module, modules })
    }
}
