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
        // Proposals, and which of them are refused. If the cut is narrow, most normal numbers would be
        // outside, so uniform ones are proposed and accepted in proportion to the normal density.
        let propose = || {
            if cut >= 1.0 {
                let x = Tensor::<D>::random(shape, Distribution::Normal(0.0, 1.0), device);
                (x.clone(), x.abs().greater_elem(cut))
            } else {
                let x = Tensor::<D>::random(shape, Distribution::Uniform(-cut, cut), device);
                let density = x.clone().powi_scalar(2).mul_scalar(-0.5).exp();
                (x, density.lower(Tensor::random(shape, Distribution::Uniform(0.0, 1.0), device)))
            }
        };
        let (mut x, mut refused) = propose();
        while refused.clone().any().into_scalar::<bool>() {
            let (again, still) = propose();
            x = x.mask_where(refused.clone(), again);
            refused = refused.bool_and(still);
        }
        let x = x.mul_scalar(std);
        if requires_grad { x.require_grad() } else { x }
    };
    // Drawn when the parameter is first read, as burn's own initial values are, so that a model whose weights
    // are loaded draws nothing.
    Param::uninitialized(ParamId::new(), draw, device.clone(), true, shape.into())
}

/// A parameter with the logarithms of 1, 2, ... times `gain` in every row (Gu and Dao 2023).
pub fn logarithms<const D: usize>(shape: [usize; D], gain: f64, device: &Device) -> Param<Tensor<D>> {
    let draw = move |device: &Device, requires_grad: bool| {
        let row = shape[D - 1].max(1);
        let count = shape.iter().product::<usize>();
        let values: Vec<f32> = (0..count).map(|i| (gain * ((i % row + 1) as f64).ln()) as f32).collect();
        let x = Tensor::<D>::from_data(TensorData::new(values, shape), device);
        if requires_grad { x.require_grad() } else { x }
    };
    Param::uninitialized(ParamId::new(), draw, device.clone(), true, shape.into())
}

/// The table with zeros in the row of the padding token.
pub fn zero_row(table: Param<Tensor<2>>, row: usize) -> Param<Tensor<2>> {
    table.init_mapper(move |table| table.slice_fill(s![row..row + 1, ..], 0.0))
}
