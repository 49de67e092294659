//! Losses of a model's own parts, which training adds to that of its outputs.

use super::meaning::{Given, Meaning, Picture, Site, Types, one_float, size};
use super::quantity::{Named, Quantity};
use super::training::{Entry, Passing, Training};
use crate::ir::infer::fail;
use crate::ir::work::Work;
use crate::ir::{Dim, Module, Sym, Type};

/// The axis whose padding is left out of a mean of a value: its last but one, if that is a sequence of a batch.
/// Padding only fills a batch, so a loss must not depend on it.
pub fn padded(ty: &Type) -> Option<Sym> {
    let axis = ty.shape.iter().rev().nth(1)?.symbol()?;
    let is_of_batch = (3..=4).contains(&ty.shape.len()) && ty.shape.first() == Some(&Dim::sym(Sym::Batch));
    Some(axis).filter(|axis| is_of_batch && matches!(axis, Sym::Time | Sym::Source))
}

/// The meaning of [`Op::BatchMean`](super::Op::BatchMean).
pub(super) struct BatchMean;

impl Meaning for BatchMean {
    fn text(&self, _: &Module) -> String {
        "batch_mean".into()
    }
    fn sentence(&self) -> &'static str {
        "the mean of each feature over all positions of the batch but padding"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let mut types = one_float(given)?;
        match types.first_mut().and_then(|ty| ty.shape_mut().split_last_mut()) {
            Some((_, others)) => others.fill(Dim::of(1u64)),
            None => return fail("a tensor with features expected"),
        }
        Ok(types)
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work { elementwise: size(site.input(0)), ..Work::computed(&site.out()) }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("mean of the batch")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Entry::of_input(Passing::Fresh).alone()
    }
}

/// The meaning of [`Op::ExtraLoss`](super::Op::ExtraLoss).
pub(super) struct ExtraLoss {
    pub weight: f64,
}

impl Meaning for ExtraLoss {
    fn text(&self, _: &Module) -> String {
        format!("extra_loss weight={:?}", self.weight)
    }
    fn sentence(&self) -> &'static str {
        "a loss that training adds, with a weight, to that of the outputs"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        one_float(given)?;
        Ok(vec![Type::float([Dim::of(1u64)])])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work { elementwise: size(site.input(0)), ..Work::computed(&site.out()) }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("extra loss")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Entry::of_input(Passing::Fresh).alone()
    }
    fn loss_weight(&self) -> Option<f64> {
        Some(self.weight)
    }
    fn quantities(&self) -> Vec<Quantity> {
        vec![Quantity::Real(Named::LossWeight, self.weight)]
    }
}
