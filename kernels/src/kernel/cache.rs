//! What a model remembers of the tokens it has decoded.

use burn::prelude::*;

use super::append::Appended;

/// The state of one cached decoding of a model: it belongs to the caller.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// `P`: tokens decoded so far.
    pub past: usize,
    /// One for each attention, in the order they are computed.
    pub layers: Vec<KvCache>,
}

impl Cache {
    /// An empty one for so many attentions.
    pub fn new(layers: usize) -> Self {
        Self { past: 0, layers: vec![KvCache::default(); layers] }
    }

    /// `P`: tokens decoded so far.
    pub fn len(&self) -> usize {
        self.past
    }

    /// Whether nothing is decoded yet.
    pub fn is_empty(&self) -> bool {
        self.past == 0
    }

    /// Keeps these sequences of the batch, in that order (beam search).
    pub fn select(&mut self, rows: &Tensor<1, Int>) {
        for layer in &mut self.layers {
            layer.select(rows);
        }
    }
}

/// What one attention remembers: its keys and values, or what they are computed from.
#[derive(Clone, Debug, Default)]
pub struct KvCache {
    rank_3: Vec<Appended<3>>,
    rank_4: Vec<Appended<4>>,
    len: usize,
}

impl KvCache {
    /// Appends one tensor or several along their time axis, the last but one, and returns all that was appended
    /// so far: `[.., T, D]` → `[.., P + T, D]`.
    pub fn append<T: Append>(&mut self, new: T) -> T {
        let time = new.time();
        let mut count = [0; 2];
        let all = new.append_to(self, &mut count);
        self.len += time;
        all
    }

    /// Keeps these rows of the batch, in that order (beam search).
    pub fn select(&mut self, rows: &Tensor<1, Int>) {
        self.rank_3.iter_mut().for_each(|kept| kept.select(rows));
        self.rank_4.iter_mut().for_each(|kept| kept.select(rows));
    }
}

/// What a [`KvCache`] can append: tensors of rank three and four, and tuples of them.
pub trait Append: Sized {
    /// How many positions there are.
    fn time(&self) -> usize;

    /// Appends to the buffers from `count` on, which counts those of either rank.
    fn append_to(self, cache: &mut KvCache, count: &mut [usize; 2]) -> Self;
}

/// The buffer of that number, made where it is not there yet.
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
