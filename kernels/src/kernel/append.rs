//! Growing buffers for cached decoding.

use burn::prelude::*;

/// The values of the positions decoded so far, in a buffer that grows: `[.., capacity, D]`. It is written in
/// place if the tensors that earlier calls returned have been dropped.
#[derive(Clone, Debug, Default)]
pub struct Appended<const D: usize> {
    buffer: Option<Tensor<D>>,
}

impl<const D: usize> Appended<D> {
    /// Appends `x [.., T, D]` after the first `len` positions and returns all of them, `[.., len + T, D]`.
    pub fn append(&mut self, x: Tensor<D>, len: usize) -> Tensor<D> {
        let axis = D - 2;
        let mut dims = x.dims();
        let end = len + dims[axis];
        let buffer = match self.buffer.take() {
            Some(buffer) if buffer.dims()[axis] >= end => buffer,
            old => {
                // The capacity at least doubles, so that on average a position is copied only once.
                dims[axis] = end.next_power_of_two().max(64);
                let grown = Tensor::zeros(dims, (&x.device(), x.dtype()));
                match old {
                    Some(old) => {
                        let old = old.narrow(axis, 0, len);
                        let all = old.dims().map(|n| 0..n);
                        grown.slice_assign(all, old)
                    }
                    None => grown,
                }
            }
        };
        let mut range = x.dims().map(|n| 0..n);
        range[axis] = len..end;
        // The buffer was taken out of `self`, so no other reference to it is left and it is written in place.
        let buffer = buffer.slice_assign(range, x);
        let all = buffer.clone().narrow(axis, 0, end);
        self.buffer = Some(buffer);
        all
    }

    /// Keeps the rows of the first axis, the batch, that have these indices, in this order.
    pub fn select(&mut self, rows: &Tensor<1, Int>) {
        self.buffer = self.buffer.take().map(|buffer| buffer.select(0, rows.clone()));
    }
}
