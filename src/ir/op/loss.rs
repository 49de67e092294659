//! Losses of a model's own parts, which training adds to that of its outputs.

use super::meaning::{Given, Meaning, Picture, Site, Types, one_float, size};
use super::quantity::{Named, Quantity};
use super::training::{Entry, Passing, Training};
use crate::ir::infer::fail;
use crate::ir::work::Work;
use crate::ir::{Dim, Module, Type};

/// The meaning of [`Op::BatchMean`](super::Op::BatchMean).
pub(super) struct BatchMean;

impl Meaning for BatchMean {
    fn text(&self, _: &Module) -> String {
        "batch_mean".into()
    }
    fn sentence(&self) -> &'static str {
        "the mean of each feature over all positions of the batch"
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
