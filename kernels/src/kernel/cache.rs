//! What a model keeps while it decodes token by token: keys and values, and the states of what is not attention.

use burn::prelude::*;

use super::append::Appended;

/// The state of a model while it decodes one batch. The caller owns it.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// `P`: the number of tokens decoded so far.
    pub past: usize,
    /// What each layer that reads earlier positions keeps, in the order in which the model computes them.
    pub layers: Vec<KvCache>,
}

impl Cache {
    /// An empty cache for a model with this number of layers that read earlier positions.
    pub fn new(layers: usize) -> Self {
        Self { past: 0, layers: vec![KvCache::default(); layers] }
    }

    /// `P`: the number of tokens decoded so far.
    pub fn len(&self) -> usize {
        self.past
    }

    /// Whether no token is decoded yet.
    pub fn is_empty(&self) -> bool {
        self.past == 0
    }

    /// Keeps the sequences of the batch that have these indices, in this order, as beam search requires.
    pub fn select(&mut self, rows: &Tensor<1, Int>) {
        for layer in &mut self.layers {
            layer.select(rows);
        }
    }
}

/// What one layer keeps: the keys and values of attention, or what they are computed from; of anything else, a
/// state whose size does not grow.
#[derive(Clone, Debug, Default)]
pub struct KvCache {
    rank_3: Vec<Appended<3>>,
    rank_4: Vec<Appended<4>>,
    len: usize,
    state_3: Option<Tensor<3>>,
    state_4: Option<Tensor<4>>,
}

impl KvCache {
    /// Appends a tensor, or several in a tuple, along the axis of positions, the last but one. Returns
    /// everything that has been appended so far: `[.., T, D]` → `[.., P + T, D]`.
    pub fn append<T: Append>(&mut self, new: T) -> T {
        let time = new.time();
        // Counted anew in every call: the tensors of a tuple are in the same order each time, so each finds
        // its own buffer again.
        let mut count = [0; 2];
        let all = new.append_to(self, &mut count);
        // Once for all tensors of a tuple, which are of the same positions.
        self.len += time;
        all
    }

    /// The bytes of everything that is kept.
    pub fn bytes(&self) -> usize {
        fn of<const D: usize>(state: Option<&Tensor<D>>) -> usize {
            state.map_or(0, |state| state.shape().num_elements() * state.dtype().size())
        }
        let appended = self.rank_3.iter().map(Appended::bytes).chain(self.rank_4.iter().map(Appended::bytes));
        appended.sum::<usize>() + of(self.state_3.as_ref()) + of(self.state_4.as_ref())
    }

    /// Keeps the rows of the first axis, the batch, that have these indices, in this order.
    pub fn select(&mut self, rows: &Tensor<1, Int>) {
        self.rank_3.iter_mut().for_each(|kept| kept.select(rows));
        self.rank_4.iter_mut().for_each(|kept| kept.select(rows));
        self.state_3 = self.state_3.take().map(|state| state.select(0, rows.clone()));
        self.state_4 = self.state_4.take().map(|state| state.select(0, rows.clone()));
    }

    /// The state of the layer; `None` before the first position.
    pub fn state<S: State>(&mut self) -> &mut Option<S> {
        S::of(self)
    }
}

/// What a layer can have as its state: a tensor of rank 3 or 4 whose first axis is the batch.
pub trait State: Sized {
    /// The place of a state of this rank.
    fn of(cache: &mut KvCache) -> &mut Option<Self>;
}

impl State for Tensor<3> {
    fn of(cache: &mut KvCache) -> &mut Option<Self> {
        &mut cache.state_3
    }
}

impl State for Tensor<4> {
    fn of(cache: &mut KvCache) -> &mut Option<Self> {
        &mut cache.state_4
    }
}

/// What a [`KvCache`] can append: tensors of rank 3 and 4, and tuples of these.
pub trait Append: Sized {
    /// The number of positions, `T`.
    fn time(&self) -> usize;

    /// Appends to the cache's next buffers and returns their contents. `count` is the number of buffers of
    /// rank 3 and of rank 4 that this call has used so far.
    fn append_to(self, cache: &mut KvCache, count: &mut [usize; 2]) -> Self;
}

/// The index of the next buffer, which is created if it does not exist yet.
fn buffer<const D: usize>(all: &mut Vec<Appended<D>>, count: &mut usize) -> usize {
    let at = *count;
    *count += 1;
    if all.len() <= at {
        all.resize(at + 1, Appended::default());
    }
    at
}

impl Append for Tensor<3> {
    fn time(&self) -> usize {
        self.dims()[1]
    }

    fn append_to(self, cache: &mut KvCache, [count, _]: &mut [usize; 2]) -> Self {
        let at = buffer(&mut cache.rank_3, count);
        cache.rank_3[at].append(self, cache.len)
    }
}

impl Append for Tensor<4> {
    fn time(&self) -> usize {
        self.dims()[2]
    }

    fn append_to(self, cache: &mut KvCache, [_, count]: &mut [usize; 2]) -> Self {
        let at = buffer(&mut cache.rank_4, count);
        cache.rank_4[at].append(self, cache.len)
    }
}

impl<A: Append, B: Append> Append for (A, B) {
    fn time(&self) -> usize {
        self.0.time()
    }

    fn append_to(self, cache: &mut KvCache, count: &mut [usize; 2]) -> Self {
        let first = self.0.append_to(cache, count);
        (first, self.1.append_to(cache, count))
    }
}

impl<A: Append, B: Append, C: Append> Append for (A, B, C) {
    fn time(&self) -> usize {
        self.0.time()
    }

    fn append_to(self, cache: &mut KvCache, count: &mut [usize; 2]) -> Self {
        let first = self.0.append_to(cache, count);
        let second = self.1.append_to(cache, count);
        (first, second, self.2.append_to(cache, count))
    }
}
