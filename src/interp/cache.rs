//! The state of incremental decoding: keys and values of past positions, and the encoder results that later
//! steps need.

use burn::prelude::*;
use trafoc_kernels::{Appended, KvCache};

use super::Fault;
use super::device::is_flex;
use super::plan::Plan;
use super::room::{TooMuch, refuse_beyond_free};
use super::value::{Ranked, Value};

/// The state of one incremental decoding. It belongs to the caller and fits only the plan it was made from.
#[derive(Debug, Default)]
pub struct Cache {
    pub(super) buffers: Vec<Buffer>,
    /// Values computed from the encoder output that later calls read, in the order of the plan's kept
    /// registers.
    pub(super) memory: Vec<Value>,
    /// The number of positions decoded so far.
    pub(super) past: usize,
    /// The length of the source, in tokens.
    pub(super) source: u64,
    /// The number of sequences in the batch.
    pub(super) batch: usize,
    /// How single positions are decoded without tensors.
    #[cfg(feature = "flex")]
    pub(super) step: super::step::kept::Step,
}

impl Cache {
    /// An empty cache for a plan, with a buffer for each op that keeps something.
    pub fn new(plan: &Plan) -> Self {
        Self { buffers: vec![Buffer::default(); plan.buffers], ..Self::default() }
    }

    /// The same cache, in which every step is computed by ops on tensors, as it is for batches.
    #[cfg(feature = "flex")]
    #[must_use]
    pub fn with_tensors(mut self) -> Self {
        self.step = super::step::kept::Step::Never;
        self
    }

    /// Whether steps are computed by a program without tensors.
    #[cfg(feature = "flex")]
    pub fn has_program(&self) -> bool {
        matches!(self.step, super::step::kept::Step::Ready(_))
    }

    /// `P`: the number of positions decoded so far.
    pub fn len(&self) -> usize {
        self.past
    }

    /// Whether no position has been decoded yet.
    pub fn is_empty(&self) -> bool {
        self.past == 0
    }

    /// Keeps the listed sequences of the batch, in this order. A sequence may be listed more than once, as
    /// beam search requires if one hypothesis has several continuations. With `same_source` all sequences have the same
    /// source, so what is computed of it is copied only if their number changes.
    ///
    /// # Errors
    /// More copies would not fit into memory.
    pub fn select(&mut self, sequences: &[usize], same_source: bool, device: &Device) -> Result<(), TooMuch> {
        self.refuse_copies_that_do_not_fit(sequences.len(), device)?;
        // Backends panic at an index outside of the batch.
        let rows: Vec<i64> =
            sequences.iter().map(|row| (*row).min(self.batch.saturating_sub(1)) as i64).collect();
        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [sequences.len()]), device);
        for buffer in &mut self.buffers {
            buffer.select(&rows);
        }
        // A value without the axis of the batch, such as a bias, is the same for all sequences.
        let stays = same_source && sequences.len() == self.batch;
        for value in self.memory.iter_mut().filter(|_| !stays) {
            if value.dims().and_then(|d| d.first().copied()) == Some(self.batch) {
                *value = std::mem::take(value).rows(&rows);
            }
        }
        self.batch = sequences.len();
        Ok(())
    }

    /// Refuses to keep more sequences than there is memory for. Each buffer is copied before it is released.
    fn refuse_copies_that_do_not_fit(&self, sequences: usize, device: &Device) -> Result<(), TooMuch> {
        if sequences <= self.batch || !is_flex(device) {
            return Ok(());
        }
        let memory = self.memory.iter().map(|value| {
            let dims = value.dims().filter(|dims| dims.first() == Some(&self.batch));
            dims.map_or(0, |dims| 4 * dims.iter().product::<usize>())
        });
        let sizes: Vec<usize> = self.buffers.iter().map(Buffer::bytes).chain(memory).collect();
        let all: u128 = sizes.iter().map(|n| *n as u128).sum();
        let more = all * (sequences - self.batch) as u128 / self.batch.max(1) as u128;
        let needed = more + sizes.iter().max().copied().unwrap_or(0) as u128;
        refuse_beyond_free(needed)
    }
}

/// What one op keeps: a buffer that grows along the positions, [`Appended`] of a rank that is known only when a graph is run:
/// that of the first tensor appended.
#[derive(Clone, Debug, Default)]
pub(super) enum Buffer {
    #[default]
    Empty,
    R2(Appended<2>),
    // Latent attention keeps what keys and values are computed from, `[B, T, D]`, before there are heads.
    R3(Appended<3>),
    R4(Appended<4>),
    /// What an op other than attention keeps, which does not grow.
    State(Box<KvCache>),
}

impl Buffer {
    /// Appends `x [.., T, D]` after the first `len` positions and returns all positions, `[.., len + T,
    /// D]`.
    pub fn append(&mut self, x: Ranked<Float>, len: usize) -> Result<Ranked<Float>, Fault> {
        if let Buffer::Empty = self {
            *self = match &x {
                Ranked::R1(_) => return Err(Fault::rank(1)),
                Ranked::R2(_) => Buffer::R2(Appended::default()),
                Ranked::R3(_) => Buffer::R3(Appended::default()),
                Ranked::R4(_) => Buffer::R4(Appended::default()),
            };
        }
        Ok(match (self, x) {
            (Buffer::R2(buffer), Ranked::R2(x)) => Ranked::R2(buffer.append(x, len)),
            (Buffer::R3(buffer), Ranked::R3(x)) => Ranked::R3(buffer.append(x, len)),
            (Buffer::R4(buffer), Ranked::R4(x)) => Ranked::R4(buffer.append(x, len)),
            (_, x) => return Err(Fault::rank(x.rank())),
        })
    }

    /// The state of an op that appends nothing.
    pub fn state(&mut self) -> Result<&mut KvCache, Fault> {
        if let Buffer::Empty = self {
            *self = Buffer::State(Box::default());
        }
        match self {
            Buffer::State(state) => Ok(state),
            _ => Err(Fault("a state is in the place of keys or values".into())),
        }
    }

    /// The bytes of the buffer.
    fn bytes(&self) -> usize {
        match self {
            Buffer::Empty => 0,
            Buffer::R2(buffer) => buffer.bytes(),
            Buffer::R3(buffer) => buffer.bytes(),
            Buffer::R4(buffer) => buffer.bytes(),
            Buffer::State(state) => state.bytes(),
        }
    }

    fn select(&mut self, rows: &Tensor<1, Int>) {
        match self {
            Buffer::Empty => {}
            Buffer::R2(buffer) => buffer.select(rows),
            Buffer::R3(buffer) => buffer.select(rows),
            Buffer::R4(buffer) => buffer.select(rows),
            Buffer::State(state) => state.select(rows),
        }
    }
}
