//! Products of two tensors that are both computed, and what comes between the scores of attention and its sum: the
//! pieces of an attention that a part puts together itself.

use std::fmt;

use super::Sequence;
use super::forward::{Copied, Forward};
use super::meaning::{Given, Meaning, Picture, Site, Types, one_float, rearranges, size};
use super::quantity::Quantity;
use super::training::{Entry, Operand, Passing, Training};
use crate::ir::infer::{broadcast, fail};
use crate::ir::text::flag;
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Extent, Module, Type};

/// What is kept for the gradient of a product: both of its factors.
const FACTORS: [Operand; 2] = [Operand::Input(0), Operand::Input(1)];

/// The meaning of [`Op::MatMul`](super::Op::MatMul).
pub(super) struct MatMul {
    pub transposed: bool,
}

impl Meaning for MatMul {
    fn text(&self, _: &Module) -> String {
        format!("matmul{}", flag(self.transposed, " transposed"))
    }
    fn sentence(&self) -> &'static str {
        if self.transposed {
            "the product of every query with every key"
        } else {
            "values, each multiplied by its weight and added up"
        }
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [a, b] = given.inputs else { return fail("a product has two factors") };
        let ([batch, heads, rows, inner], [b0, b1, b2, b3]) = (a.shape.as_slice(), b.shape.as_slice()) else {
            return fail(format!("the product of {a} and {b}"));
        };
        let (other, columns) = if self.transposed { (b3, b2) } else { (b2, b3) };
        if (batch, heads, inner) != (b0, b1, other) || a.dtype != DType::Float || b.dtype != DType::Float {
            return fail(format!("{a} and {b} do not fit as factors"));
        }
        Ok(vec![Type::float([batch.clone(), heads.clone(), rows.clone(), columns.clone()])])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let inner = site.input(0).and_then(Type::last).cloned().unwrap_or_default();
        let out = site.out();
        let attention_weights = if self.transposed { out.clone() } else { Dim::default() };
        // All pairs are computed, also those that a mask hides afterwards.
        Work { matmul: &(&out * &inner) * &Dim::of(2u64), attention_weights, ..Work::computed(&out) }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step(if self.transposed { "q kᵀ" } else { "weighted sum" })
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Entry::new(Passing::Product, FACTORS).keeping(FACTORS).alone()
    }
}

/// Which axes of two tensors a product runs over, in the notation of Einstein: `bhtd,hde->bhte`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// The letters of the axes of the first tensor, each once.
    pub left: String,
    /// The letters of the second.
    pub right: String,
    /// The letters of the result.
    pub result: String,
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}->{}", self.left, self.right, self.result)
    }
}

impl Axes {
    /// The size of the axis with this letter.
    fn size<'t>(&self, letter: char, left: &'t Type, right: &'t Type) -> Option<&'t Dim> {
        let of = |letters: &str, ty: &'t Type| ty.shape.get(letters.chars().position(|c| c == letter)?);
        of(&self.left, left).or_else(|| of(&self.right, right))
    }

    /// Whether the axes of each tensor, and those of the result, are in another order in a product of matrices: `[shared, rows,
    /// summed]` times `[shared, summed, columns]`. An axis of one tensor alone is summed over before.
    fn reordered(&self) -> [bool; 3] {
        let place = |c: char| match (self.left.contains(c), self.right.contains(c), self.result.contains(c)) {
            (true, true, true) => 0,
            (true, false, true) => 1,
            (true, true, false) => 2,
            (_, _, false) => 3,
            (false, _, true) => 4,
        };
        // Rows come before what is summed over, and columns after it.
        [&self.left, &self.right, &self.result].map(|letters| !letters.chars().map(place).is_sorted())
    }

    /// The letters that the result does not have.
    pub fn summed(&self) -> impl Iterator<Item = char> {
        let all = self.left.chars().chain(self.right.chars().filter(|c| !self.left.contains(*c)));
        all.filter(|c| !self.result.contains(*c))
    }
}

impl Meaning for Axes {
    fn text(&self, _: &Module) -> String {
        format!("einsum {self}")
    }
    fn sentence(&self) -> &'static str {
        "the products of two tensors, added up over the axes that the result does not have"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [a, b] = given.inputs else { return fail("a product has two factors") };
        for (letters, ty) in [(&self.left, a), (&self.right, b)] {
            if letters.chars().count() != ty.shape.len() {
                return fail(format!("`{letters}` for {ty}"));
            }
        }
        for (letter, dim) in self.right.chars().zip(b.shape.iter()) {
            let other = self.size(letter, a, b);
            if other != Some(dim) {
                let other = other.map(Dim::to_string).unwrap_or_default();
                return fail(format!("the axis `{letter}` has size {other} in one and {dim} in the other"));
            }
        }
        let sizes: Option<Vec<Dim>> = self.result.chars().map(|c| self.size(c, a, b).cloned()).collect();
        sizes.map_or_else(|| fail(format!("{self} has an axis from nowhere")), |s| Ok(vec![Type::float(s)]))
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let out = site.out();
        let (Some(a), Some(b)) = (site.input(0), site.input(1)) else { return Work::default() };
        // Over an axis of one tensor alone, this tensor is summed before the product.
        let is_shared = |c: &char| self.left.contains(*c) && self.right.contains(*c);
        let shared: Dim =
            self.summed().filter(is_shared).filter_map(|c| self.size(c, a, b).cloned()).product();
        let before = |letters: &str, ty: &Type| {
            let is_alone = self.summed().any(|c| letters.contains(c) && !is_shared(&c));
            if is_alone { size(Some(ty)) } else { Dim::default() }
        };
        let elementwise = before(&self.left, a) + before(&self.right, b);
        Work { matmul: &(&out * &shared) * &Dim::of(2u64), elementwise, ..Work::computed(&out) }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step(format!("einsum {self}"))
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // The factors are put in the order of matrices.
        Entry { briefly: 1, ..Entry::new(Passing::Product, FACTORS).keeping(FACTORS) }.alone()
    }
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        // A product of matrices, which has its result twice for a moment, and its axes in the order of matrices.
        let [left, right, is_strided] = self.reordered();
        Some(Forward { copied: Copied::These([left, right]), halves: 2, is_strided, ..Forward::NEW })
    }
}

/// The meaning of [`Op::ForBatch`](super::Op::ForBatch).
pub(super) struct ForBatch;

impl Meaning for ForBatch {
    fn text(&self, _: &Module) -> String {
        "for_batch".into()
    }
    fn sentence(&self) -> &'static str {
        "the same for every example of the batch"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x, like] = given.inputs else { return fail("a tensor and one of the whole batch") };
        let mut ty = (*x).clone();
        match (ty.shape_mut().first_mut(), like.shape.first()) {
            (Some(one), Some(batch)) if *one == Dim::of(1u64) => *one = batch.clone(),
            _ => return fail(format!("{x} for every example of {like}")),
        }
        Ok(vec![ty])
    }
    // The gradients of all examples are added up.
    rearranges!(Passing::Fresh);
    fn is_view(&self) -> bool {
        true
    }
}

/// What takes the place of hidden numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// 0, which adds nothing to a sum.
    Zero,
    /// The lowest number, of which softmax makes 0.
    Lowest,
    /// The lowest number, for queries that may see a key; others keep what they have.
    LowestIfAny,
}

/// What follows from putting a number in the place of what a mask hides.
macro_rules! replaces {
    () => {
        fn work(&self, site: &Site<'_>) -> Work {
            site.per_element(1)
        }
        fn picture(&self, _: &Site<'_>) -> Picture {
            Picture::Pass
        }
        fn training(&self, _: &Site<'_>) -> Training {
            Entry { flags: 1, needs_halves: 4, ..Entry::of_input(Passing::Fresh) }.alone()
        }
        fn is_view_without(&self) -> Option<usize> {
            // Without a mask nothing is hidden.
            Some(1)
        }
    };
}

/// The meaning of [`Op::Hide`](super::Op::Hide).
pub(super) struct Hide {
    pub fill: Fill,
}

impl Meaning for Hide {
    fn text(&self, _: &Module) -> String {
        match self.fill {
            Fill::Zero => "hide".into(),
            Fill::Lowest => "hide lowest".into(),
            Fill::LowestIfAny => "hide lowest if any is seen".into(),
        }
    }
    fn sentence(&self) -> &'static str {
        "what a query may not see, replaced by one number"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x, mask] = given.inputs else { return fail("a tensor and its mask") };
        if mask.dtype != DType::Bool || broadcast(&x.shape, &mask.shape)? != x.shape {
            return fail(format!("the mask {mask} for {x}"));
        }
        Ok(vec![(*x).clone()])
    }
    replaces!();
}

/// Whether a mask of these keys is one of these positions, or of those before them as well.
fn has_mask(positions: &Dim, keys: &Dim) -> bool {
    let cached = Sequence::Cached;
    positions == keys || *positions == cached.queries() && *keys == cached.keys()
}

/// The number that padding has where other positions, or other numbers of its own, are computed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neutral {
    /// It adds nothing to a sum.
    Zero,
    /// A quotient by it, its root, its logarithm and their gradients are numbers, which those of 0 are not.
    One,
}

/// The meaning of [`Op::HidePadding`](super::Op::HidePadding).
pub(super) struct HidePadding {
    pub neutral: Neutral,
}

impl Meaning for HidePadding {
    fn text(&self, _: &Module) -> String {
        match self.neutral {
            Neutral::Zero => "hide_padding".into(),
            Neutral::One => "hide_padding 1".into(),
        }
    }
    fn sentence(&self) -> &'static str {
        match self.neutral {
            Neutral::Zero => "0 at positions that are padding, which add nothing to others",
            Neutral::One => "1 at positions that are padding, so that what is divided by it is a number",
        }
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x, mask] = given.inputs else { return fail("a tensor and the mask of its positions") };
        let (rank, one) = (x.shape.len(), Dim::of(1u64));
        let (batch, positions) = (x.shape.first(), x.shape.iter().rev().nth(1));
        let is_of_rows = matches!((mask.shape.as_slice(), batch, positions),
            ([b, heads, queries, keys], Some(batch), Some(positions))
                if b == batch && (heads, queries) == (&one, &one) && has_mask(positions, keys));
        if !(3..=4).contains(&rank) || x.dtype != DType::Float || mask.dtype != DType::Bool || !is_of_rows {
            return fail(format!("the mask {mask} for the positions of {x}"));
        }
        Ok(vec![(*x).clone()])
    }
    replaces!();
}

/// The number that stands for a query and a key, apart from that of distance 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distances {
    /// `query - key`
    Each,
    /// `query - key` up to a distance, and beyond it numbers on a logarithmic scale (He et al. 2021).
    Logarithmic {
        /// The largest distance that has a number of its own.
        exact: Extent,
        /// The distance whose number is twice `exact`, less one, is the one below this.
        farthest: Extent,
    },
    /// Positions are read from left to right, in rows of this length: `2 * columns - 1` for each row and 1 for each
    /// column (Liu et al. 2021).
    Grid {
        /// The length of a row.
        columns: Extent,
        /// Whether the first position is none of the grid: the last three features stand for its distance to
        /// the others, for theirs to it, and for its own (Bao et al. 2021).
        has_class: bool,
    },
    /// The position of the key in its text, whatever that of the query. The op may have a second input, the mask of
    /// the positions that are not counted, `[B,1,1,K]`.
    OfKey,
}

/// The meaning of [`Op::ByDistance`](super::Op::ByDistance).
pub(super) struct ByDistance {
    pub queries: Sequence,
    pub keys: Sequence,
    pub center: Extent,
    pub distances: Distances,
    pub of_keys: bool,
}

impl Meaning for ByDistance {
    fn text(&self, _: &Module) -> String {
        let Self { queries, keys, center, distances, of_keys } = self;
        let rule = match distances {
            Distances::Each => String::new(),
            Distances::Logarithmic { exact, farthest } => format!(" exact={exact} farthest={farthest}"),
            Distances::Grid { columns, has_class } => {
                format!(" columns={columns}{}", flag(*has_class, " class"))
            }
            Distances::OfKey => " of_key".to_owned(),
        };
        format!("by_distance {queries} {} center={center}{rule}{}", keys.keys(), flag(*of_keys, " of_keys"))
    }
    fn sentence(&self) -> &'static str {
        "for every query and key, the feature whose number is their distance"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let one = Dim::of(1u64);
        let (queries, keys) = (self.queries.queries(), self.keys.keys());
        let mut types = match given.inputs {
            [x, mask] if self.distances == Distances::OfKey => {
                let of_keys = [x.shape.first().unwrap_or(&one), &one, &one, &keys];
                if mask.dtype != DType::Bool || !mask.shape.iter().eq(of_keys) {
                    return fail(format!("the mask {mask} for the keys of {x}"));
                }
                one_float(&Given { inputs: &[x], ..*given })?
            }
            _ => one_float(given)?,
        };
        let of = if self.of_keys { &keys } else { &queries };
        match types.first_mut().map(|ty| ty.shape_mut().as_mut_slice()) {
            Some([_, _, rows, features]) if *rows == *of || *rows == one => {
                *rows = queries;
                *features = keys;
            }
            _ => return fail("features of every position of heads"),
        }
        Ok(types)
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work::computed(&site.out())
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("by distance")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // An index of eight bytes for every element, in both directions, which a lookup has twice, next to the result. What
        // is kept of it is one for all heads.
        Entry { briefly: 5, needs_halves: 6, ..Entry::of_input(Passing::Fresh) }.alone()
    }
    fn forward(&self, site: &Site<'_>) -> Option<Forward> {
        let is_one = site.input(0).and_then(Type::last).and_then(Dim::constant) == Some(1);
        // One feature of a key is the same for every query.
        if self.of_keys && self.distances != Distances::OfKey && is_one {
            return Some(Forward::VIEW);
        }
        // The index of every element in eight bytes.
        Some(Forward { halves: 6, is_strided: self.of_keys, ..Forward::ORDERED })
    }
    fn is_view_without(&self) -> Option<usize> {
        // Without padding, every query sees the features of keys in their order, and nothing is looked up.
        (self.distances == Distances::OfKey).then_some(1)
    }
    fn quantities(&self) -> Vec<Quantity> {
        let more = match self.distances {
            Distances::Each | Distances::OfKey => Vec::new(),
            Distances::Logarithmic { exact, farthest } => vec![exact, farthest],
            Distances::Grid { columns, .. } => vec![columns],
        };
        std::iter::once(self.center).chain(more).map(Quantity::Size).collect()
    }
    fn along(&self) -> Vec<Sequence> {
        vec![self.queries, self.keys]
    }
}
