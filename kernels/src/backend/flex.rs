//! The kernels on burn's own CPU backend, where the processor has the instructions for them.

use std::sync::Arc;

use burn::backend::ops::{AttentionModuleOptions, FloatTensorOps, ModuleOps};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::prelude::Shape;
use burn_flex::FlexTensor;

use super::flex_fused::{decode_attention, decodes};
use super::flex_tensor::{contiguous, is_ours, numbers, owned, writable, zeros};
use super::fused::MayFuse;
use super::packed::{Packed, WIDTH};
use super::{Activation, Bias, Extra, Kernels, default};
use crate::cpu::{activation, packed, product};

impl Kernels for Flex {
    fn kernel_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        extra: Extra<Self>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        // Tiles for many queries, rows of keys for a few, and burn's own attention for everything else.
        if let Some(fused) = Self::fused(&q).filter(|fused| fused.attends(&q, &k, &v)) {
            return fused.attention([q, k, v], extra, options).0;
        }
        if decodes(&q, &k, &v) {
            return decode_attention(q, k, v, extra, options);
        }
        // Flex mistakes a query whose scores are all NaN for one that sees no key (ops/attention.rs of
        // burn-flex 0.22.1), and returns zeros that hide the fault. Therefore a number is added to the result
        // of each query: NaN if the query or a key is not finite, and zero otherwise.
        let (mask, bias) = extra.parts();
        let of_keys = Flex::float_sum_dim(Flex::float_sum_dim(k.clone(), 3), 2);
        let of_queries = Flex::float_sum_dim(q.clone(), 3);
        let zero = Flex::float_mul_scalar(Flex::float_add(of_queries, of_keys), 0.0.into());
        Flex::float_add(Flex::attention(q, k, v, mask, bias, options), zero)
    }

    fn kernel_linear(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: Bias<Self>) -> FloatTensor<Self> {
        // Other element types, and processors without the instructions of the kernels.
        if !is_ours(&x) || !is_ours(&weight) {
            return default::linear::<Self>(x, weight, bias);
        }
        let mut y = if rows(&x) == 1 && is_small(&weight) {
            let mut y = with_features(&x, last(&weight));
            product::sum_of_rows(numbers(&contiguous(x)), numbers(&weight), y.storage_mut());
            y
        } else {
            default::linear::<Self>(x, weight, Bias::Nothing)
        };
        // Nothing else uses `y` yet, so the bias can be added in place.
        if let (Bias::Added(bias), Some(y)) = (bias, owned(&mut y)) {
            product::add_to_rows(y, numbers(&contiguous(bias)));
        }
        y
    }

    fn kernel_packed_product(
        x: FloatTensor<Self>,
        weight: Arc<Packed>,
        bias: Bias<Self>,
    ) -> FloatTensor<Self> {
        if !is_ours(&x) {
            return default::packed_product::<Self>(x, &weight, bias);
        }
        let bias = match bias {
            Bias::Nothing => None,
            Bias::Added(bias) => Some(contiguous(bias)),
        };
        let bias = bias.as_ref().map(numbers);
        let mut y = with_features(&x, weight.outputs());
        if rows(&x) <= MOST_ROWS {
            packed::product(numbers(&contiguous(x)), &weight, bias, y.storage_mut());
        } else {
            unpacked_product(x, &weight, bias, y.storage_mut());
        }
        y
    }

    fn kernel_unembed(x: FloatTensor<Self>, table: FloatTensor<Self>) -> FloatTensor<Self> {
        // As in `kernel_linear`: only a small matrix and a single row are multiplied faster than by burn.
        if rows(&x) != 1 || !is_small(&table) || !is_ours(&x) || !is_ours(&table) {
            return default::by_rows::<Self>(x, |x| Flex::float_matmul(x, Flex::float_transpose(table)));
        }
        let mut y = with_features(&x, table.shape().first().copied().unwrap_or_default());
        product::dots(numbers(&contiguous(x)), numbers(&table), y.storage_mut());
        y
    }

    fn kernel_activate(x: FloatTensor<Self>, activation: Activation) -> FloatTensor<Self> {
        if !is_ours(&x) {
            return default::activate::<Self>(x, activation);
        }
        let mut x = contiguous(x);
        // In training the tape has another reference to the input, so this happens in inference.
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

/// The number of elements up to which a matrix is multiplied with a row here. For 64 x 512 the kernel takes
/// 0.6 times as long as burn's product; for the matrices of gpt2-small, the smallest of which is 768 x 768,
/// it makes decoding take 1.15 times as long.
const LARGEST_MATRIX: usize = 1 << 16;

/// Whether a matrix is so small that calling burn's product costs more than the product with a row.
fn is_small(matrix: &FlexTensor) -> bool {
    matrix.is_contiguous() && matrix.shape().num_elements() <= LARGEST_MATRIX
}

/// The size of the last axis.
fn last(x: &FlexTensor) -> usize {
    x.shape().last().copied().unwrap_or_default()
}

/// The number of rows: of all axes but the last.
fn rows(x: &FlexTensor) -> usize {
    let shape = x.shape();
    shape.iter().take(shape.num_dims().saturating_sub(1)).product()
}

/// Zeros in the shape of `x`, apart from the last axis, which has this size.
fn with_features(x: &FlexTensor, features: usize) -> FlexTensor {
    let mut shape = x.shape();
    if let Some(last) = shape.last_mut() {
        *last = features;
    }
    zeros(shape)
}

/// The largest number of rows that are multiplied with packed weights as they are. For more rows, burn's
/// product is faster although the weights have to be unpacked for it: for 16 rows and 768 x 3072 weights by
/// about a half.
const MOST_ROWS: usize = 8;

/// `y = x weight + bias`, with a part of the weight's outputs unpacked at a time.
fn unpacked_product(x: FlexTensor, weight: &Packed, bias: Option<&[f32]>, y: &mut [f32]) {
    let (inputs, outputs) = (weight.inputs(), weight.outputs());
    let x = Flex::float_reshape(contiguous(x), Shape::from([y.len() / outputs.max(1), inputs]));
    for from in (0..outputs).step_by(weight.part()) {
        // The last part may be narrower.
        let width = weight.part().min(outputs - from);
        let mut part = zeros(Shape::from([inputs, width]));
        packed::unpack(weight, from / WIDTH, width, part.storage_mut());
        let product = Flex::float_matmul(x.clone(), part);
        let bias = bias.and_then(|bias| bias.get(from..from + width));
        packed::place(numbers(&product), bias, from, (y, outputs));
    }
}
