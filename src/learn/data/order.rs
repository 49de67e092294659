//! Divides examples into batches and orders them. Every batch is a function of the seed and the number of
//! its step, computed without a list of the epoch.

use super::batch::Batch;
use super::dataset::Dataset;
use crate::learn::random::Counter;
use crate::learn::recipe::{self, Split};

/// The version of the order that this program follows. An unfinished run of another version cannot be
/// continued with the same numbers. In version 1, a list of all examples was shuffled for each epoch.
pub const ORDER: u64 = 2;

/// The order of a number of examples over all epochs.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    seed: u64,
    /// The number of training examples.
    examples: u64,
    /// The number of examples in a batch.
    size: u64,
    /// The number of batches in a step.
    accumulate: u64,
    /// The number of batches that are sorted by length together; 0 if they are not sorted.
    bucket: u64,
}

impl Order {
    /// The order of `examples` examples, which the seed determines.
    pub fn new(batch: &recipe::Batch, examples: usize, seed: u64) -> Self {
        let (size, accumulate) = ((*batch.size).max(1), (*batch.accumulate).max(1));
        Self { seed, examples: examples as u64, size, accumulate, bucket: *batch.bucket }
    }

    /// The number of batches in an epoch, of which the last may be smaller.
    fn batches(&self) -> u64 {
        self.examples.div_ceil(self.size)
    }

    /// The number of steps in one epoch.
    pub fn steps_of_epoch(&self) -> u64 {
        // Without examples there would be no step to divide by.
        self.batches().div_ceil(self.accumulate).max(1)
    }

    /// The batches of a step, counted from 0, as indices of examples. `length` gives the length of an
    /// example, by which batches are sorted.
    pub fn step(&self, step: u64, length: &dyn Fn(usize) -> usize) -> Vec<Vec<usize>> {
        let (epoch, at) = (step / self.steps_of_epoch(), step % self.steps_of_epoch());
        let first = at.saturating_mul(self.accumulate);
        let last = first.saturating_add(self.accumulate).min(self.batches());
        // A step does not reach into the next epoch, so the last one of an epoch may have fewer batches.
        (first..last).map(|batch| self.batch(epoch, batch, length)).collect()
    }

    /// One batch of an epoch, as indices of examples.
    fn batch(&self, epoch: u64, batch: u64, length: &dyn Fn(usize) -> usize) -> Vec<usize> {
        let order = Counter::new(self.seed, "order", &[epoch]);
        let items = |first: u64, count: u64| -> Vec<usize> {
            let last = first.saturating_add(count).min(self.examples);
            (first..last).map(|at| order.item(self.examples, at) as usize).collect()
        };
        if self.bucket == 0 {
            return items(batch.saturating_mul(self.size), self.size);
        }
        // Sorting puts batches of similar length next to each other, so the batches change places. The last
        // one may be smaller. It stays at the end of the epoch, so that accumulation sees it last.
        let places = Counter::new(self.seed, "batches", &[epoch]);
        // Only the full batches are permuted: `item` returns the last, smaller one as it is.
        let batch = places.item(self.examples / self.size, batch);
        let (group, within) = (batch / self.bucket, batch % self.bucket);
        let whole = self.bucket.saturating_mul(self.size);
        // Every batch sorts the whole group again, which is little work next to a step, and so nothing is
        // kept from one step to the next.
        let mut group = items(group.saturating_mul(whole), whole);
        // The sort is stable: examples of the same length keep their random order.
        group.sort_by_key(|example| length(*example));
        let first = usize::try_from(within.saturating_mul(self.size)).unwrap_or(usize::MAX);
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        group.into_iter().skip(first).take(size).collect()
    }
}

/// Produces the batches of training steps and of evaluations.
#[derive(Clone, Copy, Debug)]
pub struct Loader<'d> {
    dataset: &'d Dataset,
    order: Order,
}

impl<'d> Loader<'d> {
    /// A loader of prepared data.
    pub fn new(dataset: &'d Dataset) -> Self {
        Self { dataset, order: Order::new(&dataset.batch, dataset.train.len(), dataset.seed) }
    }

    /// The number of steps in one epoch.
    pub fn steps_of_epoch(&self) -> u64 {
        self.order.steps_of_epoch()
    }

    /// The epoch of a step; both are counted from 0.
    pub fn epoch(&self, step: u64) -> u64 {
        step / self.steps_of_epoch()
    }

    /// The batches of a step, counted from 0: one, or several if gradients are accumulated. The gradient of
    /// a step is that of the mean over all their predictions.
    pub fn step(&self, step: u64) -> Vec<Batch> {
        let (dataset, epoch) = (self.dataset, self.epoch(step));
        let batches = self.order.step(step, &|example| dataset.train.length(example));
        batches.iter().map(|indices| dataset.collate(Split::Train, indices, epoch)).collect()
    }

    /// The batches of a part, in the order of its files, with at most `limit` examples.
    pub fn part(&self, split: Split, limit: Option<u64>) -> impl Iterator<Item = Batch> + use<'d> {
        let dataset = self.dataset;
        let size = usize::try_from(*dataset.batch.size).unwrap_or(usize::MAX);
        let most = limit.and_then(|l| usize::try_from(l).ok()).unwrap_or(usize::MAX);
        let mut some = dataset.part(split).map(|part| part.some(most)).into_iter().flatten();
        std::iter::from_fn(move || {
            let indices: Vec<usize> = some.by_ref().take(size).collect();
            // The same epoch in every evaluation, so that the same tokens are masked and results can be
            // compared.
            (!indices.is_empty()).then(|| dataset.collate(split, &indices, 0))
        })
    }
}
