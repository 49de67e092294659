//! The primitive operations: all a consumer of the graph has to know.
//!
//! Each is of the size of one of burn's functional modules. An op owns no parameter: parameters are in
//! the [`Layer`](super::Layer)s of the module around it.
//!
//! What merely follows from an op (types, cost, printed text, explanation, picture, ..) is its
//! [`Meaning`], in the file of its family here; consumers ask for that through [`Op::meaning`]. Only what
//! executes ops matches on [`Op`], without a wildcard arm, so that the compiler names the code that must handle a
//! new one: the interpreter (`interp::eval`) and each emission target.

mod arithmetic;
mod attention;
mod heads;
mod layer;
mod lookup;
mod mask;
pub mod meaning;
mod members;
mod position;
pub mod quantity;
mod route;
mod shape;
mod table;
pub mod training;

pub use arithmetic::Activation;
pub use attention::{Attention, Score};
pub use lookup::Pool;
pub use mask::{Hidden, MaskRule, Window, reach, visible_pairs};
pub use meaning::Meaning;
pub use members::{Callee, Runs};
pub use position::Pairing;
pub use route::{Router, RouterGroups, RouterScore};
pub use table::{FrequencyRule, LongRotary, LongRule, RotaryTable, Slopes};

use super::{Extent, MemberId, dim::Sym};

/// One operation of a module's body. Shapes: `B` batch, `T` queries, `K` keys (`P + T` in a causal
/// decoder, `S` in cross attention), `H` heads, `D` features.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Applies a layer of this module: `[x] → [y]`; a [`Layer::Param`](super::Layer::Param) takes no input.
    Layer {
        /// Which member.
        member: MemberId,
    },
    /// The weight of an embedding somewhere below this module, for ties: `[] → [rows, dim]`.
    Weight {
        /// Members from this module down to the layer.
        path: Vec<MemberId>,
    },
    /// Calls a child module: `[args] → [results]`.
    Call {
        /// Which member.
        member: MemberId,
    },
    /// Folds a value through the blocks of a stack: `[x, pool..] → [x]`.
    Scan {
        /// Which member.
        member: MemberId,
        /// How many times in a row each physical block is applied (1 unless layers are shared).
        each: u64,
        /// For each run and each position of its cycle: which inputs of this node follow `x` as
        /// arguments of the block.
        args: Vec<Vec<Vec<usize>>>,
    },
    /// Routed sum over experts: `[x [B,T,D], weights [B,T,E]] → [B,T,D]`, each expert applied only to
    /// the tokens whose weight for it is not zero.
    Experts {
        /// A stack member with one block an expert.
        member: MemberId,
        /// Experts a token is sent to; costs only.
        active: u64,
    },

    /// `[] → Int [1,T]`: `offset + P, offset + P + 1, ...` along a length.
    Positions {
        /// Whose length.
        along: Sequence,
        /// Added to every position.
        offset: u64,
    },
    /// Sinusoidal table (Vaswani et al. 2017): `[positions [1,T]] → [1,T,dim]`.
    Sinusoid {
        /// Width.
        dim: Extent,
        /// Base of the wavelengths, 10000 in the paper.
        base: f64,
        /// Order of sines and cosines.
        layout: SinusoidLayout,
    },
    /// Rotary angles (Su et al. 2021): `[] → cos [T, dim/2], sin [T, dim/2]`.
    RotaryTable {
        /// Whose length.
        along: Sequence,
        /// Inverse frequencies and factors, as a rule.
        rotary: RotaryTable,
    },
    /// Which keys a query may not see: `[] → Bool [1,1,T,K]`, true = hidden.
    Mask {
        /// Length of queries.
        queries: Sequence,
        /// Length of keys.
        keys: Sequence,
        /// The rule.
        rule: MaskRule,
    },
    /// Padding: `[mask [B,K], 1 = keep] → Bool [B,1,1,K]`, true = hidden. Absent in, absent out.
    PaddingMask,
    /// Hidden in either: `[a, b] → Bool`, broadcast. An absent one is left out.
    EitherMask,
    /// ALiBi (Press et al. 2021): `[] → [1,H,T,K]`, `-slope * distance`.
    AlibiBias {
        /// Length of queries.
        queries: Sequence,
        /// Length of keys.
        keys: Sequence,
        /// One slope a head, as a rule.
        slopes: Slopes,
    },
    /// Bucket of `key - query` (Raffel et al. 2020): `[] → Int [T,K]`.
    RelativeBuckets {
        /// Length of queries.
        queries: Sequence,
        /// Length of keys.
        keys: Sequence,
        /// How many buckets.
        buckets: Extent,
        /// Distances from here on share the last bucket.
        max_distance: u64,
        /// Whether keys after the query have buckets of their own.
        bidirectional: bool,
    },

    /// `[B,T,H*D] → [B,H,T,D]`
    SplitHeads {
        /// `H`
        heads: Extent,
    },
    /// `[B,H,T,D] → [B,T,H*D]`
    MergeHeads,
    /// Each head `times` in a row: `[B,H,T,D] → [B,H*times,T,D]` (grouped queries).
    RepeatHeads {
        /// Copies of each head.
        times: Extent,
    },
    /// Rotates the first `2 * cos.dim` features: `[x [B,H,T,D], cos, sin] → [B,H,T,D]`.
    Rotate {
        /// Which features form a pair.
        pairing: Pairing,
    },
    /// Appends to the key/value cache along the axis before the last: `[.., T, D] → [.., P+T, D]`.
    /// The identity outside cached decoding.
    Cache,
    /// Attention: `[q [B,H,T,D], k [B,H,K,D], v [B,H,K,V], mask?, bias?, sinks?, score weights [H,D]?] →
    /// [B,H,T,V], weights [B,H,T,K]`. Order: score, scale, softcap, bias, mask, softmax, dropout.
    Attention(Attention),

    /// A nonlinearity, feature by feature.
    Activate(Activation),
    /// `a + b`, broadcast.
    Add,
    /// `a * b`, broadcast.
    Mul,
    /// `x * by`
    Scale {
        /// The factor.
        by: f64,
    },
    /// `x + by`
    Shift {
        /// The summand.
        by: f64,
    },
    /// `min(max(x, min), max)`
    Clamp {
        /// Lower bound.
        min: Option<f64>,
        /// Upper bound.
        max: Option<f64>,
    },
    /// `cap * tanh(x / cap)`
    Softcap {
        /// The bound.
        cap: f64,
    },
    /// In training, zeroes features with probability `p` and divides the others by `1 - p`.
    Dropout {
        /// Probability.
        p: f64,
    },

    /// A range of one axis.
    Slice {
        /// Counted from the last axis: 0 is the last.
        axis_from_last: usize,
        /// First index.
        start: Extent,
        /// How many.
        len: Extent,
    },
    /// Joins along an axis, `[a, b, ..]`.
    Concat {
        /// Counted from the last axis: 0 is the last.
        axis_from_last: usize,
    },
    /// Puts rows before every sequence: `[rows [n,D], x [B,T,D]] → [B,n+T,D]`.
    Prepend,
    /// A length-1 axis at the end: `[B] → [B,1]`.
    Unsqueeze,
    /// Drops the last axis, of length 1: `[B,T,1] → [B,T]`.
    Squeeze,
    /// Rows of a table owned elsewhere: `[table [V,D], indices [B,T]] → [B,T,D]`.
    Lookup,
    /// Table of biases to scores: `[T,K,H] → [1,H,T,K]`.
    BiasFromTable,
    /// The first input, or zeros like the second where the first is absent: `[a?, b] → b's shape`.
    OrZeros,

    /// `x w^T`: `[x [..,D], w [V,D]] → [..,V]`
    Unembed,
    /// Expert weights from router scores: `[scores [B,T,E], correction [E]?] → [B,T,E]`, zero for the
    /// experts a token is not sent to.
    Route(Router),
    /// Picks or averages over the sequence: `[x [B,T,D], mask [B,T]?] → [B,D]`.
    Pool(Pool),
    /// Unit length along the last axis: `x / max(|x|, 1e-12)`.
    Normalize,
}

impl Op {
    /// What follows from the op.
    pub fn meaning(&self) -> Box<dyn Meaning + '_> {
        match self {
            Op::Layer { member } => Box::new(members::Apply { member: *member }),
            Op::Weight { path } => Box::new(members::Weight { path }),
            Op::Call { member } => Box::new(members::Call { member: *member }),
            Op::Scan { member, each, args } => Box::new(members::Scan { member: *member, each: *each, args }),
            Op::Experts { member, active } => Box::new(members::Experts { member: *member, active: *active }),
            Op::Positions { along, offset } => {
                Box::new(position::Positions { along: *along, offset: *offset })
            }
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
            Op::Attention(attention) => Box::new(attention.clone()),
            Op::Activate(activation) => Box::new(*activation),
            Op::Add => Box::new(arithmetic::Add),
            Op::Mul => Box::new(arithmetic::Mul),
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
        }
    }
}

/// Which length an op runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sequence {
    /// `T`, starting at 0: an encoder without a decoder.
    Whole,
    /// `T`, starting at `P`; as keys `P + T`: a causal decoder.
    Cached,
    /// `S`: the source of an encoder-decoder.
    Source,
    /// A length the spec fixes (image patches).
    Fixed(Extent),
}

impl Sequence {
    /// The length as queries.
    pub fn queries(self) -> super::Dim {
        match self {
            Sequence::Whole | Sequence::Cached => Sym::Time.into(),
            Sequence::Source => Sym::Source.into(),
            Sequence::Fixed(n) => n.into(),
        }
    }

    /// The length as keys.
    pub fn keys(self) -> super::Dim {
        match self {
            Sequence::Cached => super::Dim::sym(Sym::Past) + super::Dim::sym(Sym::Time),
            Sequence::Whole | Sequence::Source | Sequence::Fixed(_) => self.queries(),
        }
    }
}

/// Order of sines and cosines in a sinusoidal table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinusoidLayout {
    /// sin, cos, sin, cos, ... (the paper, d2l)
    Interleaved,
    /// all sines, then all cosines (Marian, M2M-100)
    Concat,
}
