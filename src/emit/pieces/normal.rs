//! Fresh weights.

use burn::module::Param;
use burn::nn::Initializer;
use burn::prelude::*;

/// `N(0, std²)`
pub fn normal<const D: usize>(shape: [usize; D], std: f64, device: &Device) -> Param<Tensor<D>> {
    Initializer::Normal { mean: 0.0, std }.init(shape, device)
}
