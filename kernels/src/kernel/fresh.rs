//! The initial values of parameters.

use burn::module::{Param, ParamId};
use burn::nn::Initializer;
use burn::prelude::*;
use burn::tensor::Distribution;

/// A parameter drawn from `N(0, std²)`.
pub fn normal<const D: usize>(shape: [usize; D], std: f64, device: &Device) -> Param<Tensor<D>> {
    Initializer::Normal { mean: 0.0, std }.init(shape, device)
}

/// A parameter drawn from `N(0, std²)`; values more than `cut` standard deviations from 0 are drawn again.
pub fn truncated_normal<const D: usize>(
    shape: [usize; D],
    std: f64,
    cut: f64,
    device: &Device,
) -> Param<Tensor<D>> {
    let draw = move |device: &Device, requires_grad: bool| {
        let normal = Distribution::Normal(0.0, std);
        let mut x = Tensor::<D>::random(shape, normal, device);
        loop {
            let outside = x.clone().abs().greater_elem(cut * std);
            if !outside.clone().any().into_scalar::<bool>() {
                break if requires_grad { x.require_grad() } else { x };
            }
            let again = x.random_like(normal);
            x = x.mask_where(outside, again);
        }
    };
    Param::uninitialized(ParamId::new(), draw, device.clone(), true, shape.into())
}

/// The table with zeros in the row of the padding token.
pub fn zero_row(table: Param<Tensor<2>>, row: usize) -> Param<Tensor<2>> {
    table.init_mapper(move |table| table.slice_fill(s![row..row + 1, ..], 0.0))
}
