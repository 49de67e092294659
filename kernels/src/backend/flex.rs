//! The kernels on burn's own CPU backend, where the processor has the instructions for them.

use std::sync::Arc;

use burn::backend::ops::{AttentionModuleOptions, FloatTensorOps, ModuleOps};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};

use super::flex_fused::{decode_attention, decodes};
use super::flex_product::{product, product_with, product_with_transpose};
use super::flex_tensor::{contiguous, is_ours, numbers, owned, retire, rows, unset, with_features, writable};
use super::fused::MayFuse;
use super::packed::{Packed, WeightType};
use super::{Activation, Bias, Extra, Kernels, Parts, activated, default};
use crate::cpu::gemm::Right;
use crate::cpu::{activation, packed};

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
        let ([q, k, v], extra) = default::with_sinks_as_keys::<Self>([q, k, v], extra);
        let Parts { mask, bias, .. } = extra.parts();
        let of_keys = Flex::float_sum_dim(Flex::float_sum_dim(k.clone(), 3), 2);
        let of_queries = Flex::float_sum_dim(q.clone(), 3);
        let zero = Flex::float_mul_scalar(Flex::float_add(of_queries, of_keys), 0.0.into());
        Flex::float_add(Flex::attention(q, k, v, mask, bias, options), zero)
    }

    fn kernel_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: Bias<Self>,
        then: Option<Activation>,
    ) -> FloatTensor<Self> {
        // Other element types, and processors without the instructions of the kernels.
        if !is_ours(&x) || !is_ours(&weight) {
            return activated::<Self>(default::linear::<Self>(x, weight, bias), then);
        }
        product(x, weight, bias, then)
    }

    fn kernel_packed_product(
        x: FloatTensor<Self>,
        weight: Arc<Packed>,
        bias: Bias<Self>,
        then: Option<Activation>,
    ) -> FloatTensor<Self> {
        if !is_ours(&x) {
            return activated::<Self>(default::packed_product::<Self>(x, &weight, bias), then);
        }
        // A few rows take as long as reading the matrix does, so its numbers stay as few bits as they are.
        if rows(&x) > MOST_ROWS || weight.weight_type() == WeightType::F32 {
            return product_with(x, Right::Packed(&weight), weight.outputs(), bias, then);
        }
        let bias = bias.contiguous();
        let mut y = with_features(&x, weight.outputs());
        let x = contiguous(x);
        packed::product(numbers(&x), &weight, bias.as_ref().map(numbers), y.storage_mut());
        retire(x);
        activated::<Self>(y, then)
    }

    fn kernel_unembed(x: FloatTensor<Self>, table: FloatTensor<Self>) -> FloatTensor<Self> {
        if !is_ours(&x) || !is_ours(&table) {
            return default::unembed::<Self>(x, table);
        }
        product_with_transpose(x, table)
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
        let mut y = unset(x.shape());
        activation::activate(activation, numbers(&x), y.storage_mut());
        y
    }

    fn kernel_gate(
        gate: FloatTensor<Self>,
        x: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        if !is_ours(&gate) || !is_ours(&x) {
            return Flex::float_mul(default::activate::<Self>(gate, activation), x);
        }
        let (gate, mut x) = (contiguous(gate), contiguous(x));
        if let Some(x) = owned(&mut x) {
            activation::gate_in_place(activation, numbers(&gate), x);
        } else {
            let mut y = unset(x.shape());
            activation::gate(activation, numbers(&gate), numbers(&x), y.storage_mut());
            x = y;
        }
        retire(gate);
        x
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
        retire(x);
        gradient
    }
}

/// The largest number of rows that are multiplied with packed weights as they are. For more rows it is faster to
/// unpack a part of the weights and to multiply all rows with it.
const MOST_ROWS: usize = 8;
