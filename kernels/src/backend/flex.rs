//! The kernels on burn's own CPU backend, where the processor has the instructions for them.

use burn::backend::ops::{AttentionModuleOptions, FloatTensorOps, ModuleOps};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::prelude::Shape;
use burn_flex::FlexTensor;

use super::flex_tensor::{contiguous, is_ours, numbers, owned, writable, zeros};
use super::fused::MayFuse;
use super::{Activation, Extra, Kernels, default};
use crate::cpu::{activation, product};

impl Kernels for Flex {
    // For a few queries it is burn's own. Flex mistakes a query whose scores are all NaN for one that sees no
    // key (ops/attention.rs of burn-flex 0.22.1). Therefore a number is added to the result of each query: NaN
    // if the query or a key is not finite, and zero otherwise.
    fn kernel_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        extra: Extra<Self>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        if let Some(fused) = Self::fused(&q).filter(|fused| fused.attends(&q, &k, &v)) {
            return fused.attention([q, k, v], extra, options).0;
        }
        let (mask, bias) = extra.parts();
        let of_keys = Flex::float_sum_dim(Flex::float_sum_dim(k.clone(), 3), 2);
        let of_queries = Flex::float_sum_dim(q.clone(), 3);
        let zero = Flex::float_mul_scalar(Flex::float_add(of_queries, of_keys), 0.0.into());
        Flex::float_add(Flex::attention(q, k, v, mask, bias, options), zero)
    }

    fn kernel_product(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self> {
        if !is_small_product(&x, &weight) {
            return Flex::float_matmul(x, weight);
        }
        row_product(x, &weight, 1, product::sum_of_rows)
    }

    fn kernel_unembed(x: FloatTensor<Self>, table: FloatTensor<Self>) -> FloatTensor<Self> {
        if !is_small_product(&x, &table) {
            return Flex::float_matmul(x, Flex::float_transpose(table));
        }
        row_product(x, &table, 0, product::dots)
    }

    fn kernel_activate(x: FloatTensor<Self>, activation: Activation) -> FloatTensor<Self> {
        if !is_ours(&x) {
            return default::activate::<Self>(x, activation);
        }
        let mut x = contiguous(x);
        if let Some(numbers) = owned(&mut x) {
            activation::activate_in_place(activation, numbers);
            return x;
        }
        let mut y = zeros(x.shape());
        activation::activate(activation, numbers(&x), y.storage_mut());
        y
    }

    fn kernel_activate_backward(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        if !is_ours(&x) {
            return default::activate_backward::<Self>(x, gradient, activation);
        }
        let x = contiguous(x);
        let mut gradient = writable(gradient);
        if let Some(gradient) = owned(&mut gradient) {
            activation::activate_backward(activation, numbers(&x), gradient);
        }
        gradient
    }
}

/// The most numbers of a matrix that is multiplied with a row here. Of 64 x 512 the kernel takes 0.6 of the
/// time of burn's product, of 768 x 768 more than burn's.
const LARGEST_MATRIX: usize = 1 << 16;

/// Whether one row is multiplied with a small matrix, where calling burn's product costs more than the
/// product.
fn is_small_product(x: &FlexTensor, matrix: &FlexTensor) -> bool {
    x.shape().first() == Some(&1)
        && matrix.shape().iter().product::<usize>() <= LARGEST_MATRIX
        && matrix.is_contiguous()
        && is_ours(x)
        && is_ours(matrix)
}

/// The product of one row with a matrix, whose axis `axis` is that of the result.
fn row_product(
    x: FlexTensor,
    matrix: &FlexTensor,
    axis: usize,
    f: fn(&[f32], &[f32], &mut [f32]),
) -> FlexTensor {
    let width = matrix.shape().get(axis).copied().unwrap_or_default();
    let mut y = zeros(Shape::from([1, width]));
    f(numbers(&contiguous(x)), numbers(matrix), y.storage_mut());
    y
}
