//! A matrix of weights that is packed.

use std::collections::BTreeMap;

use burn::prelude::*;
use burn::tensor::DType;
use trafoc_kernels::{Packed, WeightType, packs_weights};

use super::device;

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

/// Which matrices are packed, and in which type.
#[derive(Clone, Debug)]
pub struct Packs {
    /// The type of the packed weights.
    pub(super) of: WeightType,
    /// The matrices by index, with whether each is the table of logits.
    pub(super) tables: BTreeMap<usize, bool>,
}

/// Where the weights of a model are made, and whether they are packed.
#[derive(Clone, Copy)]
pub struct Placement<'a> {
    /// The device of the tensors.
    pub device: &'a Device,
    /// The matrices that are packed one after the other as they are read, so that the model is never as a whole in memory
    /// in single precision. Where they cannot be packed they become tensors, and `Weights::pack` says why.
    pub packs: Option<&'a Packs>,
}

impl<'a> From<&'a Device> for Placement<'a> {
    fn from(device: &'a Device) -> Self {
        Self { device, packs: None }
    }
}

impl<'a> Placement<'a> {
    /// What is packed on this device.
    pub(super) fn packs(&self) -> Option<&'a Packs> {
        let dtype = Tensor::<1>::zeros([1], self.device).dtype();
        self.packs.filter(|_| refused(self.device, dtype).is_none())
    }
}

/// Why a device cannot multiply with packed weights.
pub(super) fn refused(device: &Device, dtype: DType) -> Option<PackError> {
    // Packed weights have no gradients, so they are not for autodiff.
    if !device::is_flex(device) || dtype != DType::F32 || device.is_autodiff() {
        return Some(PackError::Device);
    }
    (!packs_weights()).then_some(PackError::Processor)
}

/// A matrix of the weights that was packed for inference.
#[derive(Clone, Debug)]
pub(super) struct PackedMatrix {
    pub packed: Packed,
    /// The shape in memory before it was packed.
    pub shape: [usize; 2],
    /// Whether it is the table of logits, `[V, D]`, and not the weight of a projection, `[in, out]`.
    pub is_table: bool,
}

impl PackedMatrix {
    /// Packs a matrix in the order and shape that it has in memory.
    pub fn new(numbers: Vec<f32>, shape: [usize; 2], is_table: bool, of: WeightType) -> Self {
        let [rows, columns] = shape;
        let packed = if is_table {
            Packed::table(numbers, rows, columns, of)
        } else {
            Packed::weight(&numbers, rows, columns, of)
        };
        Self { packed, shape, is_table }
    }

    /// The numbers that products use, in the order and shape of files: `[out, in]` or `[V, D]`.
    pub fn of_files(&self) -> Vec<f32> {
        // A table is packed as the weight of logits, `[D, V]`, and a projection as `[in, out]`: files have
        // the transpose of either.
        let [rows, columns] = if self.is_table { [self.shape[1], self.shape[0]] } else { self.shape };
        transpose(&self.packed.unpacked(), rows, columns)
    }

    /// The numbers that products use, in the order and shape that they had in memory: `[in, out]` or
    /// `[V, D]`.
    pub fn of_memory(&self) -> Vec<f32> {
        if self.is_table { self.of_files() } else { self.packed.unpacked() }
    }
}

/// `[rows, columns]` → `[columns, rows]`, in tiles that fit the cache.
pub(super) fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    // A tile is 4 KiB to read and 4 KiB to write.
    const TILE: usize = 32;
    let mut out = vec![0.0; values.len()];
    for top in (0..rows).step_by(TILE) {
        for left in (0..columns).step_by(TILE) {
            for r in top..(top + TILE).min(rows) {
                for c in left..(left + TILE).min(columns) {
                    out[c * rows + r] = values[r * columns + c];
                }
            }
        }
    }
    out
}
