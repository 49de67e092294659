//! Ops that read earlier positions of the same sequence. While a model decodes, each keeps what it needs of them.

use super::forward::Forward;
use super::meaning::{Given, Meaning, Picture, Site, State, Types};
use super::training::{Entry, Passing, Training};
use crate::ir::infer::{Mismatch, fail};
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Extent, Module, Sym, Type};

/// Checks that a value has an axis of positions before its features, which decoding computes one after the other.
pub(super) fn along_time(x: &Type, decodes: bool) -> Result<(), Mismatch> {
    let axis = x.shape.len().checked_sub(2).and_then(|axis| x.shape.get(axis));
    let fits = axis.is_some_and(|axis| !decodes || *axis == Dim::sym(Sym::Time));
    if !fits || x.dtype != DType::Float || x.optional {
        return fail(format!("{x} has no positions that follow each other"));
    }
    Ok(())
}

/// The words that end the line of an op.
pub(super) fn decoding(decodes: bool) -> &'static str {
    if decodes { " decodes" } else { "" }
}

/// The elements of one position of a value, for one sequence.
fn one_position(ty: Option<&Type>) -> u128 {
    let sizes = ty.map_or(&[][..], |ty| ty.shape.as_slice());
    let at = sizes.len().saturating_sub(2);
    // The batch comes first, and the positions last but one.
    let others = sizes.iter().enumerate().filter(|(i, _)| *i != 0 && *i != at);
    let of = |dim: &Dim| dim.constant().unwrap_or(1);
    others.map(|(_, dim)| of(dim)).fold(1, u128::saturating_mul)
}

/// The answers about the state of an op that keeps this number of positions of its first input.
macro_rules! keeps {
    (|$self:ident, $site:ident| $positions:expr) => {
        fn has_state(&$self) -> bool {
            $self.decodes
        }
        fn state(&$self, $site: &Site<'_>) -> Option<State> {
            let of_position = one_position($site.input(0));
            $self.decodes.then(|| State { of_position, positions: $positions })
        }
    };
}

/// The meaning of [`Op::Earlier`](super::Op::Earlier).
pub(super) struct Earlier {
    pub by: Extent,
    pub decodes: bool,
}

impl Meaning for Earlier {
    fn text(&self, _: &Module) -> String {
        format!("earlier by={}{}", self.by, decoding(self.decodes))
    }
    fn sentence(&self) -> &'static str {
        "what was there some positions earlier, zeros before the first"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [x] => {
                along_time(x, self.decodes)?;
                Ok(vec![(*x).clone()])
            }
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
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        // The first positions of what is joined with zeros.
        Some(Forward { is_strided: true, ..Forward::ORDERED })
    }
    keeps!(|self, site| self.by.get());
}

/// The meaning of [`Op::CausalConv`](super::Op::CausalConv).
pub(super) struct CausalConv {
    pub decodes: bool,
}

/// The number of positions that a convolution reads.
fn width(site: &Site<'_>) -> u64 {
    let weights = site.input(1).and_then(Type::last).and_then(Dim::constant);
    weights.and_then(|n| u64::try_from(n).ok()).unwrap_or(1)
}

impl Meaning for CausalConv {
    fn text(&self, _: &Module) -> String {
        format!("causal_conv{}", decoding(self.decodes))
    }
    fn sentence(&self) -> &'static str {
        "each feature multiplied by weights over the last positions, and summed"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x, w] = given.inputs else { return fail("a convolution takes a value and weights") };
        along_time(x, self.decodes)?;
        match (x.shape.as_slice(), w.shape.as_slice()) {
            ([_, _, features], [rows, one, _]) if features == rows && one.constant() == Some(1) => {
                Ok(vec![(*x).clone()])
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
        // The padded input is kept. Each weight's product is added to the sum of those before.
        let both = Entry::of_inputs(Passing::Fresh, site.node.inputs.len());
        Entry { own: 1, briefly: 2, needs_halves: 12, ..both }.alone()
    }
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        // The input joined with zeros, the sum so far, which is the result, and the product that is added to it.
        Some(Forward { halves: 4, frees: true, ..Forward::ORDERED })
    }
    keeps!(|self, site| width(site).saturating_sub(1));
}

/// The meaning of [`Op::CumulativeSum`](super::Op::CumulativeSum).
pub(super) struct CumulativeSum {
    pub decodes: bool,
}

impl Meaning for CumulativeSum {
    fn text(&self, _: &Module) -> String {
        format!("cumulative_sum{}", decoding(self.decodes))
    }
    fn sentence(&self) -> &'static str {
        "the sum over all positions so far"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [x] => {
                along_time(x, self.decodes)?;
                Ok(vec![(*x).clone()])
            }
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
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        Some(Forward::ORDERED)
    }
    keeps!(|self, site| 1);
}
