//! Ops over all features of a position.

use super::forward::Forward;
use super::meaning::{Given, Meaning, Picture, Site, Types, one_float, size};
use super::quantity::Quantity;
use super::training::{Entry, Passing, Training};
use crate::ir::infer::fail;
use crate::ir::work::Work;
use crate::ir::{Dim, Extent, Module, Type};

/// How the features become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest of them.
    Max,
}

impl Reduction {
    /// Its name, as in PyTorch.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Max => "amax",
        }
    }
}

impl Meaning for Reduction {
    fn text(&self, _: &Module) -> String {
        self.name().into()
    }
    fn sentence(&self) -> &'static str {
        match self {
            Reduction::Sum => "the sum of all features",
            Reduction::Mean => "the mean of all features",
            Reduction::Max => "the largest of all features",
        }
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let mut types = one_float(given)?;
        match types.first_mut().and_then(|ty| ty.shape_mut().last_mut()) {
            Some(last) => *last = Dim::of(1u64),
            None => return fail("a tensor with features expected"),
        }
        Ok(types)
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work { elementwise: size(site.input(0)), ..Work::computed(&site.out()) }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step(match self {
            Reduction::Sum => "sum of features",
            Reduction::Mean => "mean of features",
            Reduction::Max => "largest feature",
        })
    }
    fn training(&self, _: &Site<'_>) -> Training {
        let entry = Entry::of_input(Passing::Fresh);
        match self {
            Reduction::Sum | Reduction::Mean => entry,
            // The index of the largest feature, in twice the bytes of a number. The gradient is put among zeros, which exist
            // twice for a moment, and added to that of other ops.
            Reduction::Max => Entry { own: 2, needs_inputs: 3, ..entry },
        }
        .alone()
    }
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        Some(Forward::ORDERED)
    }
}

/// The meaning of [`Op::Softmax`](super::Op::Softmax).
pub(super) struct Softmax;

impl Meaning for Softmax {
    fn text(&self, _: &Module) -> String {
        "softmax".into()
    }
    fn sentence(&self) -> &'static str {
        "positive numbers whose sum over the features is 1"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        one_float(given)
    }
    fn work(&self, site: &Site<'_>) -> Work {
        // maximum, difference, exponential, sum, quotient
        site.per_element(5)
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("softmax")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // The differences from the maximum and their exponentials are kept.
        Entry { own: 2, needs_halves: 5, ..Entry::of_input(Passing::Fresh) }.alone()
    }
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        Some(Forward::ORDERED)
    }
}

/// The meaning of [`Op::TopK`](super::Op::TopK).
pub(super) struct TopK {
    pub count: Extent,
}

impl Meaning for TopK {
    fn text(&self, _: &Module) -> String {
        format!("top_k {}", self.count)
    }
    fn sentence(&self) -> &'static str {
        "1 for the largest features, and 0 for the others"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let types = one_float(given)?;
        // The number of keys is not known, and all of them are the largest if there are fewer.
        let features = types.first().and_then(Type::last).map_or(Some(0), Dim::constant);
        let features = features.unwrap_or(u128::from(self.count));
        if u128::from(self.count) > features || self.count == 0 {
            return fail(format!("the {} largest of {features} features", self.count));
        }
        Ok(types)
    }
    fn work(&self, site: &Site<'_>) -> Work {
        site.per_element(1)
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("largest features")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // A choice has no gradient, so nothing is kept.
        Training::Table
    }
    fn forward(&self, _: &Site<'_>) -> Option<Forward> {
        // All features in their order, and the index of each in twice the bytes of a number.
        Some(Forward { halves: 6, ..Forward::ORDERED })
    }
    fn quantities(&self) -> Vec<Quantity> {
        vec![Quantity::Size(self.count)]
    }
}
