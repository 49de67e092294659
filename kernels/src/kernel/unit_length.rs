//! Vectors of unit length.

use burn::prelude::*;
use burn::tensor::DType;

/// Unit length along the last axis: `x / max(|x|, 1e-12)`. The bound is applied under the root, so that the
/// gradient of a zero vector is finite. Squares are summed in single precision.
pub fn unit_length<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let norm = x.clone().cast(DType::F32).square().sum_dim(D - 1).clamp_min(1e-24).sqrt();
    let dtype = x.dtype();
    x / norm.cast(dtype)
}
