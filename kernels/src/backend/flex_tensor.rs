//! The tensors of burn's own CPU backend as slices of numbers in single precision.

use burn::backend::TensorMetadata;
use burn::prelude::{Shape, TensorData};
use burn::tensor::DType;
use burn_flex::{FlexTensor, Layout};

use super::buffers;
use crate::cpu::{copy, simd};

/// Whether the kernels can compute with tensors of this type.
pub fn is_ours(x: &FlexTensor) -> bool {
    x.dtype() == DType::F32 && simd::is_available()
}

/// The numbers of a tensor, which is contiguous.
pub fn numbers(x: &FlexTensor) -> &[f32] {
    match x.layout().contiguous_offsets() {
        Some((start, end)) => x.storage::<f32>().get(start..end).unwrap_or_default(),
        // Callers make the tensor contiguous first. Any slice of other memory would be wrong numbers.
        None => &[],
    }
}

/// The tensor with its numbers one after the other.
pub fn contiguous(x: FlexTensor) -> FlexTensor {
    if x.is_contiguous() {
        return x;
    }
    let strides: Option<Vec<usize>> =
        x.layout().strides().iter().map(|stride| usize::try_from(*stride).ok()).collect();
    match strides {
        // Heads are split and merged by copies of rows. Single numbers are copied faster by burn.
        Some(strides) if x.dtype() == DType::F32 && last(&x) >= FEWEST && strides.last() == Some(&1) => {
            let shape = x.shape();
            let mut y = unset(shape.clone());
            let numbers = x.storage::<f32>().get(x.layout().start_offset()..).unwrap_or_default();
            copy::rows(numbers, &shape, &strides, y.storage_mut());
            retire(x);
            y
        }
        _ => x.to_contiguous(),
    }
}

/// The fewest numbers of rows that are copied as such.
const FEWEST: usize = 16;

/// The numbers of a tensor for writing; `None` if something else uses its memory or they are not contiguous.
pub fn owned(x: &mut FlexTensor) -> Option<&mut [f32]> {
    let (start, end) = x.layout().contiguous_offsets()?;
    x.try_storage_mut::<f32>()?.get_mut(start..end)
}

/// A new tensor whose numbers are arbitrary: the caller writes all of them.
pub fn unset(shape: Shape) -> FlexTensor {
    of_numbers(buffers::take(shape.num_elements()), shape)
}

/// A new tensor of zeros. Flex's own function takes them as bytes without an alignment and copies them, which
/// takes twice the memory and longer than many kernels (`Bytes::from_bytes_vec` of cubecl-environment
/// 0.11.3).
pub fn zeros(shape: Shape) -> FlexTensor {
    of_numbers(buffers::take_zeros(shape.num_elements()), shape)
}

fn of_numbers(numbers: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(numbers, shape))
}

/// Keeps the memory of a tensor that is no longer needed for later results, unless another tensor shares it.
pub fn retire(x: FlexTensor) {
    if x.dtype() != DType::F32 || !x.is_unique() {
        return;
    }
    // All of the memory, of which the tensor may be a view.
    let len = x.storage::<f32>().len();
    let x = x.with_layout(Layout::contiguous(Shape::from([len])));
    if let Ok(numbers) = x.into_data().try_into_vec() {
        buffers::give(numbers);
    }
}

/// A tensor for writing with the same numbers. It is copied if something else uses its memory, and if it is
/// one number that was expanded, as the gradient of a sum is.
pub fn writable(x: FlexTensor) -> FlexTensor {
    let mut x = contiguous(x);
    if owned(&mut x).is_some() { x } else { copy(&x) }
}

/// A tensor with memory of its own.
fn copy(x: &FlexTensor) -> FlexTensor {
    let mut y = unset(x.shape());
    y.storage_mut::<f32>().copy_from_slice(numbers(x));
    y
}

/// The size of the last axis.
pub fn last(x: &FlexTensor) -> usize {
    x.shape().last().copied().unwrap_or_default()
}

/// The number of rows: of all axes but the last.
pub fn rows(x: &FlexTensor) -> usize {
    let shape = x.shape();
    shape.iter().take(shape.num_dims().saturating_sub(1)).product()
}

/// A new tensor in the shape of `x`, apart from the last axis, which has this size. The caller writes all numbers.
pub fn with_features(x: &FlexTensor, features: usize) -> FlexTensor {
    let mut shape = x.shape();
    if let Some(last) = shape.last_mut() {
        *last = features;
    }
    unset(shape)
}
