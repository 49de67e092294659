//! Ops on positions: their numbers, sinusoidal and rotary tables, rotation, and biases from distances.

use super::meaning::{Given, Indices, Meaning, Note, Picture, Site, Types, rearranges, tabulates};
use super::quantity::{Named, Quantity};
use super::training::{Entry, Passing, Training};
use super::{LongRotary, LongRule, RotaryTable, Sequence, SinusoidLayout, Slopes};
use crate::ir::infer::fail;
use crate::ir::text::{optional, thousands};
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Extent, Module, Role, Type};

/// Which features rotary positions rotate as a pair, where `n` features are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// `i` with `i + n/2` (Llama, NeoX in the Hugging Face layout).
    Half,
    /// `2i` with `2i + 1` (RoFormer, GPT-J).
    Interleaved,
}

/// The meaning of [`Op::Positions`](super::Op::Positions).
pub(super) struct Positions {
    pub along: Sequence,
    pub offset: u64,
}

impl Meaning for Positions {
    fn text(&self, _: &Module) -> String {
        format!("positions {} offset={}", self.along, self.offset)
    }
    fn sentence(&self) -> &'static str {
        "the numbers of the positions: 0, 1, 2, ...; with a cache they go on from P"
    }
    fn infer(&self, _: &Given<'_>) -> Types {
        Ok(vec![Type::int([Dim::of(1u64), self.along.queries()])])
    }
    tabulates!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::notes([])
    }
    fn along(&self) -> Vec<Sequence> {
        vec![self.along]
    }
    fn indices(&self) -> Option<Indices> {
        Some(Indices::Positions { along: self.along, offset: self.offset })
    }
}

/// The meaning of [`Op::Range`](super::Op::Range).
pub(super) struct Range {
    pub len: Extent,
}

impl Meaning for Range {
    fn text(&self, _: &Module) -> String {
        format!("range {}", self.len)
    }
    fn sentence(&self) -> &'static str {
        "the numbers 0, 1, 2, ..."
    }
    fn infer(&self, _: &Given<'_>) -> Types {
        Ok(vec![Type::float([Dim::from(self.len)])])
    }
    tabulates!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::notes([])
    }
    fn quantities(&self) -> Vec<Quantity> {
        vec![Quantity::Size(self.len)]
    }
}

/// The meaning of [`Op::Sinusoid`](super::Op::Sinusoid).
pub(super) struct Sinusoid {
    pub dim: Extent,
    pub base: f64,
    pub layout: SinusoidLayout,
}

impl Meaning for Sinusoid {
    fn text(&self, _: &Module) -> String {
        format!("sinusoid dim={} base={:?} {:?}", self.dim, self.base, self.layout)
    }
    fn sentence(&self) -> &'static str {
        "sines and cosines of the position, of wavelengths from 2π to base·2π"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [positions] = given.inputs else { return fail("positions expected") };
        Ok(vec![Type::float(positions.shape.iter().cloned().chain([Dim::from(self.dim)]))])
    }
    fn work(&self, _: &Site<'_>) -> Work {
        Work::default()
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Box {
            role: Role::Embedding,
            label: "Sinusoidal positions",
            notes: vec![format!("width {}", thousands(self.dim.into()))],
            // More than it has inputs: it is drawn next to the sum that it feeds.
            aside: usize::MAX,
        }
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Training::Table
    }
    fn quantities(&self) -> Vec<Quantity> {
        vec![Quantity::Size(self.dim), Quantity::Real(Named::Base, self.base)]
    }
}

/// The meaning of [`Op::RotaryTable`](super::Op::RotaryTable).
pub(super) struct Angles<'a> {
    pub along: Sequence,
    pub rotary: &'a RotaryTable,
}

impl Meaning for Angles<'_> {
    fn text(&self, _: &Module) -> String {
        let Self { along, rotary } = self;
        let long = rotary.long.as_ref().map(|l| format!("{}", l.from));
        // The first and the last frequency tell tables apart; all of them would make a long line.
        format!(
            "rotary_table {along} pairs={} first={:?} last={:?} magnitude={:?}{}",
            rotary.pairs(),
            rotary.inverse_frequency(0),
            rotary.inverse_frequency(rotary.pairs().saturating_sub(1)),
            rotary.magnitude,
            optional("long_from", long)
        )
    }
    fn sentence(&self) -> &'static str {
        "cosine and sine of position × frequency, one frequency a pair of features"
    }
    fn infer(&self, _: &Given<'_>) -> Types {
        let ty = Type::float([self.along.queries(), Dim::from(self.rotary.half())]);
        Ok(vec![ty.clone(), ty])
    }
    tabulates!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::notes([Note::Rotary(self.rotary.dim)])
    }
    fn along(&self) -> Vec<Sequence> {
        vec![self.along]
    }
    fn quantities(&self) -> Vec<Quantity> {
        let RotaryTable { dim, theta, rule, long, magnitude } = self.rotary;
        let mut all = vec![Quantity::Size(*dim), Quantity::Real(Named::Theta, *theta)];
        // A factor of 1 changes nothing that a reader would look up.
        all.extend((*magnitude != 1.0).then_some(Quantity::Real(Named::Magnitude, *magnitude)));
        all.extend(rule.quantities());
        if let Some(LongRotary { from, rule }) = long {
            all.push(Quantity::Count(Named::OriginalContext, *from));
            match rule {
                LongRule::Frequencies(rule) => all.extend(rule.quantities()),
                LongRule::Dynamic { factor } => all.push(Quantity::Real(Named::ScalingFactor, *factor)),
            }
        }
        all
    }
}

/// The meaning of [`Op::Rotate`](super::Op::Rotate).
pub(super) struct Rotate {
    pub pairing: Pairing,
}

impl Meaning for Rotate {
    fn text(&self, _: &Module) -> String {
        format!("rotate {:?}", self.pairing)
    }
    fn sentence(&self) -> &'static str {
        "pairs of features turned by the angle of their position, so q·k depends on distance"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x, cos, sin] = given.inputs else { return fail("rotation takes x, cos and sin") };
        // A size that is not a number fails the check below.
        let pairs = cos.last().and_then(Dim::constant).unwrap_or(u128::MAX);
        let width = x.last().and_then(Dim::constant).unwrap_or(0);
        if cos != sin || x.shape.len() != 4 || pairs.saturating_mul(2) > width {
            return fail(format!("{pairs} pairs rotated in {x}"));
        }
        if x.shape.get(2) != cos.shape.first() {
            return fail(format!("angles of {cos} for {x}"));
        }
        Ok(vec![(*x).clone()])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        // Only the first `2 * pairs` features are rotated.
        let pairs = site.input(1).and_then(Type::last).cloned().unwrap_or_default();
        let rows = site.input(0).map(Type::rows).unwrap_or_default();
        // For each pair four products, a sum and a difference.
        Work { elementwise: &(&rows * &pairs) * &Dim::of(6u64), ..Work::computed(&site.out()) }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("rotate")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // The result is in new memory, and so is the gradient, which is turned back.
        Entry { briefly: 1, ..Entry::of_input(Passing::Fresh) }.alone()
    }
    fn is_kernel(&self) -> bool {
        true
    }
}

/// The meaning of [`Op::AlibiBias`](super::Op::AlibiBias).
pub(super) struct Alibi<'a> {
    pub queries: Sequence,
    pub keys: Sequence,
    pub slopes: &'a Slopes,
}

impl Meaning for Alibi<'_> {
    fn text(&self, _: &Module) -> String {
        let Self { queries, keys, slopes } = self;
        // As for rotary tables, the first and the last number tell them apart.
        let (first, last) = (slopes.slope(0), slopes.slope(slopes.heads.get().saturating_sub(1)));
        format!("alibi_bias {queries} {} heads={} first={first:?} last={last:?}", keys.keys(), slopes.heads)
    }
    fn sentence(&self) -> &'static str {
        "scores lowered with distance, in every head by a slope of its own"
    }
    fn infer(&self, _: &Given<'_>) -> Types {
        let heads = Dim::from(self.slopes.heads);
        Ok(vec![Type::float([Dim::of(1u64), heads, self.queries.queries(), self.keys.keys()])])
    }
    tabulates!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::notes([Note::Words("ALiBi".into())])
    }
    fn quantities(&self) -> Vec<Quantity> {
        let Slopes { heads, max, scale } = self.slopes;
        let reals = [(Named::AlibiMax, *max), (Named::AlibiScale, *scale)];
        let reals = reals.into_iter().map(|(named, x)| Quantity::Real(named, x));
        [Quantity::Size(*heads)].into_iter().chain(reals).collect()
    }
    fn along(&self) -> Vec<Sequence> {
        vec![self.queries, self.keys]
    }
}

/// The meaning of [`Op::RelativeBuckets`](super::Op::RelativeBuckets).
pub(super) struct Buckets {
    pub queries: Sequence,
    pub keys: Sequence,
    pub buckets: Extent,
    pub max_distance: u64,
    pub bidirectional: bool,
}

impl Meaning for Buckets {
    fn text(&self, _: &Module) -> String {
        let Self { queries, keys, buckets, max_distance, bidirectional } = self;
        format!(
            "relative_buckets {queries} {} buckets={buckets} max_distance={max_distance} \
             bidirectional={bidirectional}",
            keys.keys()
        )
    }
    fn sentence(&self) -> &'static str {
        "distances put into buckets, wider ones for longer distances"
    }
    fn infer(&self, _: &Given<'_>) -> Types {
        Ok(vec![Type::int([self.queries.queries(), self.keys.keys()])])
    }
    tabulates!();
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Notes { notes: vec![Note::Words("T5 bias".into())], is_bias: true }
    }
    fn along(&self) -> Vec<Sequence> {
        vec![self.queries, self.keys]
    }
    fn indices(&self) -> Option<Indices> {
        Some(Indices::Below(self.buckets.get()))
    }
    fn quantities(&self) -> Vec<Quantity> {
        vec![Quantity::Size(self.buckets), Quantity::Count(Named::MaxDistance, self.max_distance)]
    }
}

/// The meaning of [`Op::BiasFromTable`](super::Op::BiasFromTable).
pub(super) struct BiasFromTable;

impl Meaning for BiasFromTable {
    fn text(&self, _: &Module) -> String {
        "bias_from_table".into()
    }
    fn sentence(&self) -> &'static str {
        "rows of a table, one number a head, as a bias on the scores"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [Type { shape, dtype: DType::Float, .. }] if let [t, keys, heads] = shape.as_slice() => {
                Ok(vec![Type::float([Dim::of(1u64), heads.clone(), t.clone(), keys.clone()])])
            }
            _ => fail("a table of biases is `[T, K, H]`"),
        }
    }
    rearranges!(Passing::Fresh);
}
