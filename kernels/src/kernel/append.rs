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
        let end = len + x.dims()[axis];
        let buffer = match self.buffer.take() {
            Some(buffer) => with_room(buffer, len, end),
            None => {
                let mut dims = x.dims();
                dims[axis] = capacity(end);
                Tensor::zeros(dims, (&x.device(), x.dtype()))
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

    /// Takes the buffer out, with room for one more position than these; `None` if nothing has been appended. The caller
    /// puts it back by [`Self::put_back`].
    pub(crate) fn take_with_room(&mut self, len: usize) -> Option<Tensor<D>> {
        self.buffer.take().map(|buffer| with_room(buffer, len, len + 1))
    }

    /// Puts back what [`Self::take_with_room`] has taken out.
    pub(crate) fn put_back(&mut self, buffer: Tensor<D>) {
        self.buffer = Some(buffer);
    }

    /// The bytes of the buffer, with the room that nothing has been written to yet.
    pub fn bytes(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.shape().num_elements() * buffer.dtype().size())
    }

    /// Keeps the rows of the first axis, the batch, that have these indices, in this order.
    pub fn select(&mut self, rows: &Tensor<1, Int>) {
        self.buffer = self.buffer.take().map(|buffer| buffer.select(0, rows.clone()));
    }
}

/// The capacity of a buffer that must hold this many positions. It at least doubles each time, so that on average a
/// position is copied only once.
fn capacity(positions: usize) -> usize {
    positions.next_power_of_two().max(64)
}

/// A buffer with room for `end` positions, of which there are `len` in the old one.
fn with_room<const D: usize>(old: Tensor<D>, len: usize, end: usize) -> Tensor<D> {
    let axis = D - 2;
    let mut dims = old.dims();
    if dims[axis] >= end {
        return old;
    }
    dims[axis] = capacity(end);
    let grown = Tensor::zeros(dims, (&old.device(), old.dtype()));
    let old = old.narrow(axis, 0, len);
    let all = old.dims().map(|n| 0..n);
    grown.slice_assign(all, old)
}
