//! The kernels on burn's own CPU backend, where the processor has the instructions for them.

use burn::backend::ops::{AttentionModuleOptions, FloatTensorOps, ModuleOps};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::prelude::Shape;
use burn::tensor::DType;
use burn_flex::FlexTensor;

use super::{Activation, Extra, Kernels, default};
use crate::cpu::{activation, product, simd};

/// Whether the kernels can compute with tensors of this type.
fn is_ours(x: &FlexTensor) -> bool {
    x.dtype() == DType::F32 && simd::is_available()
}

/// The numbers of a tensor, which is contiguous.
fn numbers(x: &FlexTensor) -> &[f32] {
    match x.layout().contiguous_offsets() {
        Some((start, end)) => x.storage::<f32>().get(start..end).unwrap_or_default(),
        None => &[],
    }
}

/// The tensor with its numbers one after the other.
fn contiguous(x: FlexTensor) -> FlexTensor {
    if x.is_contiguous() { x } else { x.to_contiguous() }
}

/// The numbers of a tensor for writing, if nothing else uses its memory and all of it is the tensor's.
fn owned(x: &mut FlexTensor) -> Option<&mut [f32]> {
    let (start, end) = x.layout().contiguous_offsets()?;
    x.try_storage_mut::<f32>()?.get_mut(start..end)
}

impl Kernels for Flex {
    // Flex mistakes a query whose scores are all NaN for one that sees no key (ops/attention.rs of
    // burn-flex 0.22.1). Therefore a number is added to the result of each query: NaN if the query or a
    // key is not finite, and zero otherwise.
    fn kernel_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        extra: Extra<Self>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
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
        let mut y = FlexTensor::zeros(x.shape(), DType::F32);
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
    let mut y = FlexTensor::zeros(Shape::from([1, width]), DType::F32);
    f(numbers(&contiguous(x)), numbers(matrix), y.storage_mut());
    y
}

/// A gradient for writing. It may be used by something else, too, and it may be one number that was expanded.
fn writable(gradient: FlexTensor) -> FlexTensor {
    let mut gradient = contiguous(gradient);
    if owned(&mut gradient).is_some() { gradient } else { copy(&gradient) }
}

/// A tensor with memory of its own.
fn copy(x: &FlexTensor) -> FlexTensor {
    let mut y = FlexTensor::zeros(x.shape(), DType::F32);
    y.storage_mut::<f32>().copy_from_slice(numbers(x));
    y
}
