//! Linear layers and tables whose weights are kept in fewer bits, for inference.

use std::sync::Arc;

use burn::prelude::*;

pub use crate::backend::packed::WeightType;
use crate::backend::{self, Activation};

/// Whether there are kernels for packed weights: they need burn's CPU backend, and a processor with a fused
/// multiply-add. Elsewhere, packed weights are unpacked in every product.
pub fn packs_weights() -> bool {
    backend::packs_weights()
}

/// A weight `[in, out]` in fewer bits. Only its numbers are rounded: inputs, products and sums are in single
/// precision.
#[derive(Clone, Debug)]
pub struct Packed(pub(crate) Arc<backend::packed::Packed>);

impl Packed {
    /// Packs the weight of a linear layer, `[in, out]`.
    pub fn weight(numbers: &[f32], inputs: usize, outputs: usize, of: WeightType) -> Self {
        let number = |k: usize, n: usize| numbers.get(k * outputs + n).copied().unwrap_or_default();
        Self(Arc::new(backend::packed::Packed::new(inputs, outputs, of, number)))
    }

    /// Packs a table `[V, D]` as the weight `[D, V]` of logits. In single precision it is never in memory twice.
    pub fn table(numbers: Vec<f32>, rows: usize, width: usize, of: WeightType) -> Self {
        if of == WeightType::F32 {
            return Self(Arc::new(backend::packed::Packed::of_rows(numbers, rows, width)));
        }
        let number = |k: usize, n: usize| numbers.get(n * width + k).copied().unwrap_or_default();
        Self(Arc::new(backend::packed::Packed::new(width, rows, of, number)))
    }

    /// The type of the weights.
    pub fn weight_type(&self) -> WeightType {
        self.0.weight_type()
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The numbers that products use, `[in, out]`.
    pub fn unpacked(&self) -> Vec<f32> {
        self.0.unpacked()
    }

    /// `x weight + bias`: `[.., in]`, bias `[out]` → `[.., out]`. All rows are multiplied as one matrix.
    pub fn apply<const D: usize>(&self, x: Tensor<D>, bias: Option<Tensor<1>>) -> Tensor<D> {
        backend::packed_product(x, Arc::clone(&self.0), bias, None)
    }

    /// An activation of `x weight + bias`: `[.., in]`, bias `[out]` → `[.., out]`
    pub fn apply_activated<const D: usize>(
        &self,
        x: Tensor<D>,
        bias: Option<Tensor<1>>,
        activation: Activation,
    ) -> Tensor<D> {
        backend::packed_product(x, Arc::clone(&self.0), bias, Some(activation))
    }

    /// The rows of a packed table with these indices: `[B, T]` → `[B, T, D]`
    pub fn look_up(&self, ids: Tensor<2, Int>) -> Tensor<3> {
        let ([batch, time], device) = (ids.dims(), ids.device());
        let width = self.0.inputs();
        // Only the rows of a few tokens are unpacked, and on the host, so no kernel is needed for it.
        let rows: Vec<usize> =
            ids.into_data().iter::<i64>().map(|id| usize::try_from(id).unwrap_or_default()).collect();
        Tensor::from_data(TensorData::new(self.0.columns(&rows), [batch, time, width]), &device)
    }
}
