//! Weights for inference, also in fewer bits: the matrices of linear layers and of logits are packed once, in the
//! order in which products read them.

use std::sync::Arc;

use burn::module::Param;
use burn::prelude::*;
use burn::tensor::DType;
pub use trafoc_kernels::WeightType;
use trafoc_kernels::{Packed, packs_weights};

use super::device;
use super::packed::PackedMatrix;
use super::plan::{Plan, Use};
use super::weights::Weights;

/// What packing has done, for a message to the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// The number of packed matrices.
    pub matrices: usize,
    /// Their bytes in single precision.
    pub before: usize,
    /// Their bytes as they are packed, scales included.
    pub after: usize,
}

/// Why weights of fewer bits cannot be computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackError {
    /// Only Flex has kernels for them, and only for inputs in single precision.
    Device,
    /// The processor does not have the instructions of these kernels.
    Processor,
    /// The model has no matrices that could be packed.
    Nothing,
}

impl Weights {
    /// Packs the weights for inference with a plan: the matrices of linear layers, and the table of logits
    /// even if rows are looked up in it, too. Everything else remains as it is: embeddings that are not the
    /// table of logits, norms, biases, patch projections.
    ///
    /// # Errors
    /// There is no kernel for the device or the processor, or nothing to pack.
    pub fn pack(&mut self, plan: &Plan, of: WeightType) -> Result<Packing, PackError> {
        let Some(device) = self.device() else { return Err(PackError::Nothing) };
        let is_single = self.matrices.first().is_none_or(|p| p.val().dtype() == DType::F32);
        // Packed weights have no gradients, so they are not for autodiff.
        if !device::is_flex(&device) || !is_single || device.is_autodiff() {
            return Err(PackError::Device);
        }
        if !packs_weights() {
            return Err(PackError::Processor);
        }
        // The map is shared with clones of these weights, which stay as they are.
        let mut all = (*self.packed).clone();
        let mut packing = Packing::default();
        for (index, how) in plan.uses() {
            let is_table = match how {
                Use::Linear => false,
                Use::Logits => true,
                // Rows that are only looked up need no product, and other uses need the tensor.
                Use::Rows | Use::Other => continue,
            };
            let Some(parameter) = self.matrices.get_mut(index) else { continue };
            let (shape, numbers) = match all.remove(&index) {
                // It was packed before, perhaps in another type. Its unrounded numbers are gone.
                Some(old) => (old.shape, old.of_memory()),
                None => {
                    // The tensor is taken out, so that its memory can be used or is free again before the next matrix
                    // is packed. One number takes its place, since plans refer to matrices by index.
                    let none = Param::initialized(parameter.id, Tensor::zeros([1, 1], &device));
                    let tensor = std::mem::replace(parameter, none).into_value();
                    let shape = tensor.dims();
                    let data = tensor.try_into_data().map_err(|_| PackError::Device)?;
                    (shape, data.try_into_vec::<f32>().map_err(|_| PackError::Device)?)
                }
            };
            let [rows, columns] = shape;
            packing.matrices += 1;
            packing.before += 4 * numbers.len();
            let packed = if is_table {
                Packed::table(numbers, rows, columns, of)
            } else {
                Packed::weight(&numbers, rows, columns, of)
            };
            packing.after += packed.bytes();
            all.insert(index, PackedMatrix { packed, shape, is_table });
        }
        self.packed = Arc::new(all);
        if packing.matrices == 0 { Err(PackError::Nothing) } else { Ok(packing) }
    }
}
