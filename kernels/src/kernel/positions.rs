//! Positions of a sequence.

use burn::prelude::*;

/// Positions `start, start + 1, ..` as `[1, T]`.
pub fn position_ids(start: usize, length: usize, device: &Device) -> Tensor<2, Int> {
    Tensor::<1, Int>::arange(start as i64..(start + length) as i64, device).unsqueeze()
}

/// The numbers `0, 1, ..` as `[N]`.
pub fn number_range(length: usize, device: &Device) -> Tensor<1> {
    Tensor::<1, Int>::arange(0..length as i64, device).float()
}
