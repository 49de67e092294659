//! Ops that read earlier positions of the same sequence.
//!
//! The first input of each has all positions so far, those of the cache included, and the second the present ones, so
//! that an op knows how many results there are. Without a cache both are the same value.

use super::meaning::{Given, Meaning, Picture, Site, Types};
use super::training::{Entry, Operand, Passing, Training};
use crate::ir::infer::{Mismatch, fail};
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Extent, Module, Type};

/// The type of the present positions, which is that of the result.
fn present(all: &Type, x: &Type) -> Result<Type, Mismatch> {
    let axis = x.shape.len().checked_sub(2);
    let is_along = |(i, (a, b)): (usize, (&Dim, &Dim))| Some(i) == axis || a == b;
    let fits =
        all.shape.len() == x.shape.len() && all.shape.iter().zip(x.shape.iter()).enumerate().all(is_along);
    if axis.is_none() || !fits || [all, x].iter().any(|ty| ty.dtype != DType::Float || ty.optional) {
        return fail(format!("{x} are no positions of {all}"));
    }
    Ok(x.clone())
}

/// The meaning of [`Op::Earlier`](super::Op::Earlier).
pub(super) struct Earlier {
    pub by: Extent,
}

impl Meaning for Earlier {
    fn text(&self, _: &Module) -> String {
        format!("earlier by={}", self.by)
    }
    fn sentence(&self) -> &'static str {
        "what was there some positions earlier, zeros before the first"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [all, x] => Ok(vec![present(all, x)?]),
            _ => fail("earlier positions of one value"),
        }
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work::computed(&site.out())
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step(format!("{} earlier", self.by))
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Entry { needs_halves: 4, ..Entry::of_input(Passing::Fresh) }.alone()
    }
}

/// The meaning of [`Op::CausalConv`](super::Op::CausalConv).
pub(super) struct CausalConv;

/// The number of positions that a convolution reads.
fn width(site: &Site<'_>) -> u64 {
    let weights = site.input(2).and_then(Type::last).and_then(Dim::constant);
    weights.and_then(|n| u64::try_from(n).ok()).unwrap_or(1)
}

impl Meaning for CausalConv {
    fn text(&self, _: &Module) -> String {
        "causal_conv".into()
    }
    fn sentence(&self) -> &'static str {
        "each feature multiplied by weights over the last positions, and summed"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [all, x, w] = given.inputs else { return fail("a convolution takes a value and weights") };
        let (ty, weights) = (present(all, x)?, w.shape.as_slice());
        match (ty.shape.as_slice(), weights) {
            ([_, _, features], [rows, one, _]) if features == rows && one.constant() == Some(1) => {
                Ok(vec![ty])
            }
            _ => fail(format!("weights {w} of a convolution over {x}")),
        }
    }
    fn work(&self, site: &Site<'_>) -> Work {
        // A product and a sum for each weight, but for the first one's sum.
        site.per_element(width(site).saturating_mul(2).saturating_sub(1))
    }
    fn picture(&self, site: &Site<'_>) -> Picture {
        Picture::step(format!("convolution over {}", width(site)))
    }
    fn training(&self, site: &Site<'_>) -> Training {
        // The padded input, and for each weight a product, which is added to the sum of those before.
        let mut entries = vec![Entry { needs_halves: 4, ..Entry::of_input(Passing::Fresh) }];
        for j in 0..usize::try_from(width(site)).unwrap_or(usize::MAX) {
            let of = [Operand::Entry(0), Operand::Input(2)];
            let before = entries.len().saturating_sub(1);
            let product = Entry { needs_halves: 4, ..Entry::new(Passing::Fresh, of).keeping(of) };
            entries.push(product);
            if j > 0 {
                let of = [Operand::Entry(before), Operand::Entry(before.saturating_add(1))];
                entries.push(Entry::new(Passing::Shared, of));
            }
        }
        let last = entries.len().saturating_sub(1);
        Training::Computed { entries, results: vec![last] }
    }
}

/// The meaning of [`Op::CumulativeSum`](super::Op::CumulativeSum).
pub(super) struct CumulativeSum;

impl Meaning for CumulativeSum {
    fn text(&self, _: &Module) -> String {
        "cumulative_sum".into()
    }
    fn sentence(&self) -> &'static str {
        "the sum over all positions so far"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [all, x] => Ok(vec![present(all, x)?]),
            _ => fail("a sum over the positions of one value"),
        }
    }
    fn work(&self, site: &Site<'_>) -> Work {
        site.per_element(1)
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("sum so far")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Entry { needs_halves: 6, ..Entry::of_input(Passing::Fresh) }.alone()
    }
}
