//! Weights for inference, also in fewer bits: the matrices of linear layers and of logits are packed once, in the
//! order in which products read them.

use std::sync::Arc;

use burn::module::Param;
use burn::prelude::*;
use burn::tensor::DType;
pub use trafoc_kernels::WeightType;

pub use super::packed::{PackError, Packs, Placement};
use super::packed::{PackedMatrix, refused};
use super::plan::{Plan, Use};
use super::weights::{Weights, WeightsError, layout};
use crate::ir::Verified;

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

impl Packs {
    /// All matrices of a plan that can be packed, in this type.
    pub fn new(plan: &Plan, of: WeightType) -> Self {
        let which = |(index, how)| match how {
            Use::Linear => Some((index, false)),
            Use::Logits => Some((index, true)),
            // Rows that are only looked up need no product, and other uses need the tensor.
            Use::Rows | Use::Other => None,
        };
        Self { of, tables: plan.uses().into_iter().filter_map(which).collect() }
    }

    /// The type of the packed weights.
    pub fn weight_type(&self) -> WeightType {
        self.of
    }

    /// The same matrices in another type.
    pub fn with_type(&self, of: WeightType) -> Self {
        Self { of, ..self.clone() }
    }
}

impl Placement<'_> {
    /// How many bytes the weights of a graph take at most while they are made from files: all of them, and twice the
    /// largest of them in single precision, as it is read and as it is transposed.
    ///
    /// # Errors
    /// The graph has too many parameters to be run, or too large ones.
    pub fn memory(&self, graph: &Verified) -> Result<u128, WeightsError> {
        let packs = self.packs();
        let (mut sum, mut largest) = (0, 0);
        for slot in layout(graph)?.values() {
            let plain = 4 * slot.shape.iter().map(|n| *n as u128).product::<u128>();
            largest = largest.max(plain);
            let packed =
                packs.filter(|packs| slot.place.rank == 2 && packs.tables.contains_key(&slot.place.index));
            // Files have the outputs first, of projections and of tables.
            sum += match (packed, slot.shape.as_slice()) {
                (Some(packs), [outputs, inputs]) => packs.of.bytes(*inputs, *outputs) as u128,
                _ => plain,
            };
        }
        Ok(sum + 2 * largest)
    }
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
        let dtype = self.matrices.first().map_or(DType::F32, |p| p.val().dtype());
        if let Some(why) = refused(&device, dtype) {
            return Err(why);
        }
        // The map is shared with clones of these weights, which stay as they are.
        let mut all = (*self.packed).clone();
        let mut packing = Packing::default();
        for (index, is_table) in Packs::new(plan, of).tables {
            let Some(parameter) = self.matrices.get_mut(index) else { continue };
            let matrix = match all.remove(&index) {
                Some(same) if same.packed.weight_type() == of => same,
                // It was packed in another type. Its unrounded numbers are gone.
                Some(old) => PackedMatrix::new(old.of_memory(), old.shape, is_table, of),
                None => {
                    // The tensor is taken out, so that its memory can be used or is free again before the next matrix
                    // is packed. One number takes its place, since plans refer to matrices by index.
                    let none = Param::initialized(parameter.id, Tensor::zeros([1, 1], &device));
                    let tensor = std::mem::replace(parameter, none).into_value();
                    let shape = tensor.dims();
                    let data = tensor.try_into_data().map_err(|_| PackError::Device)?;
                    let numbers = data.try_into_vec::<f32>().map_err(|_| PackError::Device)?;
                    PackedMatrix::new(numbers, shape, is_table, of)
                }
            };
            packing.matrices += 1;
            packing.before += 4 * matrix.shape[0] * matrix.shape[1];
            packing.after += matrix.packed.bytes();
            all.insert(index, matrix);
        }
        self.packed = Arc::new(all);
        if packing.matrices == 0 { Err(PackError::Nothing) } else { Ok(packing) }
    }
}
