//! Copies of tensors whose rows are in another order.

use rayon::prelude::*;

use super::parallel::Parallel;
use super::simd::{SHARE, rows_of_share};

/// Copies the rows of `x`, whose axes have this shape and these strides, the last of which is 1, to `y` in their order.
pub fn rows(x: &[f32], shape: &[usize], strides: &[usize], y: &mut [f32]) {
    let Some((width, shape)) = shape.split_last() else { return };
    if y.is_empty() {
        return;
    }
    let axes: Vec<(usize, usize)> = shape.iter().copied().zip(strides.iter().copied()).collect();
    let count = rows_of_share(*width);
    let part = |(i, y): (usize, &mut [f32])| {
        for (row, y) in (i * count..).zip(y.chunks_mut(*width)) {
            let (mut rest, mut first) = (row, 0);
            for (size, stride) in axes.iter().rev() {
                first += rest % size * stride;
                rest /= size;
            }
            y.copy_from_slice(x.get(first..first + width).unwrap_or_default());
        }
    };
    if y.len() <= 2 * SHARE {
        y.chunks_mut(count * width).enumerate().for_each(part);
    } else {
        y.par_chunks_mut(count * width).enumerate().in_parallel(part);
    }
}
